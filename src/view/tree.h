/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The call tree: every distinct path of functions (or lines) from the root, with its self and
 * total time. What flame graphs, --tree and the folded export are drawn from.
 */
#ifndef RBPF_VIEW_TREE_H
#define RBPF_VIEW_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "view/stack_mode.h"
#include "view/state.h"

struct buf;
struct err;
struct profile;
struct view_filter;

enum tree_split {
	TREE_SPLIT_NONE,
	TREE_SPLIT_PROCESS, /* the first level below the root is the process */
	TREE_SPLIT_THREAD,  /* … the thread */
	TREE_SPLIT_CONTAINER,
	TREE_SPLIT_RUBY,    /* … the version of Ruby */
	TREE_SPLIT_REQUEST, /* … the kind of request; needs a profile that is by_request */
};

struct tree_options {
	bool by_line;  /* nodes are lines, not functions */
	bool inverted; /* callers above: the root's children are the innermost frames */
	enum tree_split split;
	enum stack_mode stack; /* of this tree, if the filter says STACK_BOTH */
	double min_percent;    /* leave out nodes narrower than this share of the root; 0: none */
	bool exact;	       /* tell how much of each node is exact: tree_exact_of() */
	bool states;	       /* tell how much of it threads spent in which state */
};

struct tree_node {
	uint32_t parent;       /* node index; the root (0) is its own parent */
	uint32_t first_child;  /* node index, 0 if none */
	uint32_t next_sibling; /* node index, 0 if none */
	uint32_t depth;	       /* the root is 0 */
	uint32_t frame;	       /* a frame of this function; PROFILE_NONE for root and split nodes */
	uint32_t label;	       /* split nodes: owner (view/owner.h); else 0 */
	uint64_t self_value;
	uint64_t total_value; /* self and all below; equal to the sum over children plus self */
	uint64_t self_samples;
	uint64_t total_samples;
	uint64_t jit_samples; /* of these, in which a compiler's code ran the function … */
	uint32_t jit;	      /* … and which: FRAME_YJIT, FRAME_ZJIT, both */
	uint32_t n_left_out;  /* below it, but below none of its children, for opts.min_percent */
};

/* Of a node's total, what is exact (sum.h). */
struct tree_exact {
	uint64_t samples, value;
};

/*
 * Of a node's self and total value, by part (state.h): what threads spent in each. Of samples, if
 * all values are 0.
 */
struct tree_states {
	uint64_t self[STATE_PARTS], total[STATE_PARTS];
};

struct tree {
	struct tree_node *nodes; /* [0] is the root, "all"; owned */
	size_t n_nodes, cap_nodes;
	struct tree_exact *exact; /* by node; NULL without opts.exact, or if nothing is; owned */
	size_t cap_exact;
	struct tree_states *states; /* by node; NULL without opts.states; owned */
	size_t cap_states;
	uint64_t n_left_out; /* nodes, for opts.min_percent */
	struct tree_options opts;
	const struct profile *profile; /* not owned */
};

/*
 * Build the tree of the selected samples (@f NULL: of all). Children are sorted by name (then file,
 * then line), bytewise, so that the same profile gives the same picture; a parent's index is below
 * its children's. In an inverted tree self times are at the outermost frames, where paths end.
 * Samples without a frame count as self time of the root or split node, and so do those of which
 * none is shown if no other stands for them (stack_mode_prepare()).
 *
 * With min_percent, what is narrower has no node, nor has what is below it; the totals of others
 * contain it. It takes memory for the distinct paths of all parts and for the nodes that stay. The
 * width is the total value, or the number of samples if all values are 0.
 *
 * Returns 0, -ENOMEM, -EINVAL (it is split, or @f needs it, and @p is not by_thread; by
 * process, container and Ruby also a profile that is by_process can be split), or -E2BIG
 * (more nodes than profile_output_max() allows), for which tree_error() has the words. @ret:
 * tree_deinit().
 */
int tree_build(const struct profile *p, const struct view_filter *f,
	       const struct tree_options *opts, struct tree *ret);

/* Of a tree with opts.exact. */
static inline struct tree_exact tree_exact_of(const struct tree *t, size_t node)
{
	return t->exact ? t->exact[node] : (struct tree_exact) { 0 };
}
int tree_error(int r, struct err *err);

/*
 * The same of a tree that is not split, and for each stack of @p, by id, the node whose self time
 * samples with it are, or of which they would be below if that is left out; PROFILE_NONE where none
 * is selected. *@leaves: free().
 */
int tree_build_leaves(const struct profile *p, const struct view_filter *f,
		      const struct tree_options *opts, struct tree *ret, uint32_t **leaves);
void tree_deinit(struct tree *t);
#define _cleanup_tree_ _cleanup_(tree_deinit)

/*
 * The paths of a split tree part by part, without nodes: the samples of each process, thread, …
 * make a tree of their own.
 *
 * Returns 0, -ENOMEM, -EINVAL (as tree_build(), or it is not split), or -E2BIG as tree_build().
 * *@ret: tree_parts_free(), while @p and @f live.
 */
struct tree_parts;
int tree_parts_new(const struct profile *p, const struct view_filter *f,
		   const struct tree_options *opts, struct tree_parts **ret);
void tree_parts_free(struct tree_parts *parts); /* accepts NULL */

static inline void tree_parts_freep(struct tree_parts **parts)
{
	tree_parts_free(*parts);
}
#define _cleanup_tree_parts_ _cleanup_(tree_parts_freep)

/* The number of parts with samples, and the owner of one: in the order of the whole tree. */
size_t tree_parts_count(const struct tree_parts *parts);
uint32_t tree_parts_owner(const struct tree_parts *parts, size_t i);

/* A path from the root of a part. Its id is the same in all parts. */
struct tree_path {
	uint32_t id;	 /* 0: the empty path */
	uint32_t parent; /* a path, which came before */
	uint32_t frame;	 /* a frame of its last function; PROFILE_NONE of the empty path */
	uint64_t self_value, self_samples;
};
typedef int tree_path_fn(void *arg, const struct tree_path *path);

/* Ids of paths are below this. */
size_t tree_parts_paths(const struct tree_parts *parts);

/*
 * Call @fn with each path of part @i in the order of the tree, without regard to min_percent.
 * Returns 0, -ENOMEM, -E2BIG as tree_build(), here for all calls together, or what @fn returns,
 * which ends it.
 */
int tree_parts_walk(struct tree_parts *parts, size_t i, tree_path_fn *fn, void *arg);

/*
 * The node after @node in preorder: a parent, then its children from left to right, each with all
 * that is below it. 0 after the last. Needs no stack, however deep the tree is.
 */
uint32_t tree_next(const struct tree *t, uint32_t node);

/* The same without what is below @node. */
uint32_t tree_skip(const struct tree *t, uint32_t node);

/* Whether compiled code ran the function in most samples of @node. */
static inline bool tree_node_is_jit(const struct tree_node *node)
{
	return node->jit_samples > node->total_samples - node->jit_samples;
}

/*
 * Append the text of a node, e.g. "Foo#bar", "all", "ruby (pid 42)" (owner_label()); with
 * by_line "Foo#bar foo.rb:12", "Foo#bar foo.rb:~12" if the line is approximate. Never empty.
 */
void tree_node_label(const struct tree *t, uint32_t node, struct buf *out);

#endif
