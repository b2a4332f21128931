/* SPDX-License-Identifier: GPL-2.0-only */
/* How a tree is built, shared by the files of tree.h: tree.c says what each does. */
#ifndef RBPF_VIEW_TREE_BUILDER_H
#define RBPF_VIEW_TREE_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "view/group.h"
#include "view/owner.h"
#include "view/tree.h"
#include "view/tree_shape.h"

struct profile;
struct view_filter;
struct view_selection;

/*
 * In path_sum.node: the path has no node, this is the nearest of its parents. Nodes are below
 * INTERN_MAX.
 */
#define TREE_LEFT_OUT (1u << 31)

/* What a path has in the part that is being added. */
struct path_sum {
	uint64_t self_value, self_samples;
	uint64_t total_value, total_samples;
	uint32_t part; /* the sum is of this part (tree_builder.part); else it is stale */
	uint32_t node; /* in the tree */
};

/* Samples in which compiled code ran a path's function, and whose code it was. */
struct jit_sum {
	uint64_t samples;
	uint32_t kinds; /* FRAME_JIT */
};

/* Samples of a stack and of those that go on from it, in the part that is being added. */
struct stack_sum {
	uint64_t samples;
	uint32_t part; /* as path_sum.part */
};

struct tree_builder {
	const struct profile *profile;
	struct tree tree;
	struct view_selection *selection;
	struct groups groups;
	struct tree_shape shape;
	struct tree_limits limits;
	bool too_large; /* beyond the limits */

	uint32_t *order; /* aggregates by part: those of part i are at starts[i] … */
	size_t *starts;	 /* … up to starts[i + 1] */
	size_t n_parts;
	uint64_t value, samples; /* of all that are selected */

	uint32_t part;	       /* how many were begun */
	size_t n_own;	       /* paths with samples of their own, in any part; of one part 0 */
	struct path_sum *sums; /* by path */
	uint32_t *met;	       /* the paths of this part, in their order after tree_sum_part() */
	size_t n_met;
	uint32_t *leaves; /* by stack: its node, if that is asked for; owned */

	/* If states are asked for, else NULL: */
	uint8_t *states;    /* by stack id (state.h); owned, as is … */
	uint64_t *in_state; /* … this, by path: what it has of the one that is being added */

	struct tree_exact *exact; /* by path, if that is asked for and there is any; owned */

	/* If there is compiled code, else NULL: */
	struct jit_sum *jit;	  /* by path */
	struct stack_sum *stacks; /* by stack id; NULL in an inverted tree */
	uint32_t *reached;	  /* the stacks of this part, callers first */
	size_t n_reached;
	uint32_t *above; /* scratch: a path and its parents */
	size_t cap_above;
};

/* The kind of owner whose parts @split makes; not TREE_SPLIT_NONE. */
enum owner_kind tree_owners_of(enum tree_split split);

/* Whether the aggregates of @p tell apart what is to be split. */
bool tree_can_split(const struct profile *p, enum tree_split split);

/*
 * The selected aggregates by part, and the paths of their stacks. Returns 0, or -ENOMEM also if
 * b->too_large.
 */
int tree_builder_init(struct tree_builder *b, const struct profile *p, const struct view_filter *f,
		      const struct tree_options *opts);
void tree_builder_deinit(struct tree_builder *b);

/* Add up what each path of @part has itself. Returns 0, or -ENOMEM also if b->too_large. */
int tree_sum_part(struct tree_builder *b, uint32_t part);

/* Then how much of it compiled code ran, if there is any. Returns 0 or -ENOMEM. */
int tree_sum_jit(struct tree_builder *b, uint32_t part);

/* Then what each path has with those below it. */
void tree_sum_totals(struct tree_builder *b);

/* And once the part has its nodes, what these have of each state. Returns 0 or -ENOMEM. */
int tree_sum_states(struct tree_builder *b, uint32_t part);

#endif
