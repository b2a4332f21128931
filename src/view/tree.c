/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From aggregates to a tree, in time proportional to their number plus the number of distinct
 * stacks, however deep these are:
 *
 *   1. The paths of all selected stacks are found, and put in order (tree_shape.h).
 *   2. Aggregates are put in order by part (process, thread, …; one part if the tree is not split):
 *      tree_builder.c.
 *   3. In each part the weights of aggregates are added up in an array indexed by path, of which
 * only the paths that the part has are looked at. A path is behind its parent in it, so totals are
 * one pass from the last to the first: tree_sums.c.
 *   4. Paths that are wide enough become nodes, in their order.
 *   5. If it is asked for, the weights of samples of one state after the other are added up in the
 * same way, for these nodes: tree_states.c.
 *   6. How much of a node compiled code ran is known by stack, not by path: a function has frames
 *      with and without FRAME_YJIT. The weights are added up along the stacks of the part, from
 *      callees to callers, and each compiled frame gives its stack's sum to its path: tree_sums.c,
 * too.
 *
 * Parts can also be walked one after another without making nodes (tree_parts_walk()).
 *
 * Nothing recurses: depth is the target's choice.
 */
#include "view/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "profile/profile.h"
#include "view/label.h"
#include "view/tree_builder.h"

/* ---- nodes ---- */

/* @node is that of @path. */
static int add_node(struct tree_builder *b, uint32_t path, const struct tree_node *node)
{
	struct tree *t = &b->tree;

	b->too_large = t->n_nodes >= b->limits.max_nodes;
	if (b->too_large || array_reserve(t->nodes, t->cap_nodes, t->n_nodes + 1))
		return -ENOMEM;
	if (b->exact) {
		if (array_reserve(t->exact, t->cap_exact, t->n_nodes + 1))
			return -ENOMEM;
		t->exact[t->n_nodes] = b->exact[path];
	}
	t->nodes[t->n_nodes++] = *node;
	return 0;
}

static void fill_node(const struct tree_builder *b, uint32_t path, struct tree_node *node)
{
	const struct path_sum *sum = &b->sums[path];

	node->self_value = sum->self_value;
	node->self_samples = sum->self_samples;
	node->total_value = sum->total_value;
	node->total_samples = sum->total_samples;
	if (b->jit) {
		node->jit_samples = b->jit[path].samples;
		node->jit = b->jit[path].kinds;
	}
}

static void leave_out(struct tree *t, uint32_t nearest, struct path_sum *sum)
{
	sum->node = nearest | TREE_LEFT_OUT;
	t->nodes[nearest].n_left_out++;
	t->n_left_out++;
}

static bool is_narrow(const struct tree_builder *b, const struct path_sum *sum)
{
	const double all = (double)(b->value ? b->value : b->samples);
	const uint64_t width = b->value ? sum->total_value : sum->total_samples;

	return b->tree.opts.min_percent > 0 && (double)width < all * b->tree.opts.min_percent / 100;
}

/*
 * The node of the empty path of a part: below the root, or the root itself if the tree is not
 * split.
 */
static int add_part_node(struct tree_builder *b, uint32_t part)
{
	struct tree_node node = { .depth = 1, .frame = PROFILE_NONE, .label = part };
	struct tree_node *root = &b->tree.nodes[0];
	struct path_sum *sum = &b->sums[0];

	if (b->exact) {
		b->tree.exact[0].samples += b->exact[0].samples;
		b->tree.exact[0].value += b->exact[0].value;
	}
	if (b->tree.opts.split == TREE_SPLIT_NONE) {
		fill_node(b, 0, root);
		return 0;
	}
	root->total_value += sum->total_value;
	root->total_samples += sum->total_samples;
	if (is_narrow(b, sum)) {
		leave_out(&b->tree, 0, sum);
		return 0;
	}
	sum->node = (uint32_t)b->tree.n_nodes;
	fill_node(b, 0, &node);
	return add_node(b, 0, &node);
}

/* A node for each path that is wide enough, as its parents then are. */
static int add_nodes(struct tree_builder *b, uint32_t part)
{
	const struct prefix_node *paths = b->shape.paths;
	int r = add_part_node(b, part);

	for (size_t i = 1; i < b->n_met && !r; i++) {
		struct path_sum *sum = &b->sums[b->met[i]];
		struct tree_node node = { .parent = b->sums[paths[b->met[i]].parent].node };

		if (node.parent & TREE_LEFT_OUT || is_narrow(b, sum)) {
			leave_out(&b->tree, node.parent & ~TREE_LEFT_OUT, sum);
			continue;
		}
		sum->node = (uint32_t)b->tree.n_nodes;
		node.depth = b->tree.nodes[node.parent].depth + 1;
		node.frame = b->groups.frame[paths[b->met[i]].what];
		fill_node(b, b->met[i], &node);
		r = add_node(b, b->met[i], &node);
	}
	return r;
}

/* Put @node, which is in no list yet, before its siblings. */
static void push_child(struct tree *t, uint32_t node)
{
	struct tree_node *parent = &t->nodes[t->nodes[node].parent];

	t->nodes[node].next_sibling = parent->first_child;
	parent->first_child = node;
}

/* Nodes are in the order of paths, that of the tree. */
static void link_nodes(struct tree *t)
{
	for (uint32_t i = (uint32_t)t->n_nodes; i-- > 1;)
		if (t->nodes[i].frame != PROFILE_NONE)
			push_child(t, i);
}

static void note_leaves(struct tree_builder *b, uint32_t part)
{
	for (size_t i = b->starts[part]; i < b->starts[part + 1]; i++) {
		const uint32_t stack = b->profile->aggregates[b->order[i]].stack;

		b->leaves[stack] = b->sums[b->shape.of_stack[stack]].node & ~TREE_LEFT_OUT;
	}
}

/* Add the samples of one part, if there are any. */
static int add_part(struct tree_builder *b, uint32_t part)
{
	int r;

	if (b->starts[part] == b->starts[part + 1])
		return 0;
	r = tree_sum_part(b, part);
	if (!r)
		r = tree_sum_jit(b, part);
	if (r)
		return r;
	/* The nodes are most of what a tree takes: what is needed no longer makes room for them. */
	if (!b->leaves && !b->states && part + 1 == b->n_parts)
		tree_shape_drop_stacks(&b->shape);
	tree_sum_totals(b);
	r = add_nodes(b, part);
	if (!r && b->states)
		r = tree_sum_states(b, part);
	if (!r && b->leaves)
		note_leaves(b, part);
	return r;
}

static int add_parts(struct tree_builder *b)
{
	int r = 0;

	for (size_t i = 0; i < b->n_parts && !r; i++)
		r = add_part(b, (uint32_t)i);
	link_nodes(&b->tree);
	return r;
}

static int compare_parts(const void *a, const void *b, void *arg)
{
	const uint32_t *ranks = arg; /* by owner */
	uint32_t x = ranks[*(const uint32_t *)a], y = ranks[*(const uint32_t *)b];

	return (x > y) - (x < y);
}

/* The parts with samples, in the order of owner_ranks(). *@ret: free(). */
static int rank_parts(const struct tree_builder *b, uint32_t **ret, size_t *ret_n)
{
	_cleanup_free_ uint32_t *parts = calloc(b->n_parts + 1, sizeof(*parts));
	_cleanup_free_ uint32_t *ranks = NULL;
	size_t n = 0;

	if (!parts || owner_ranks(b->profile, tree_owners_of(b->tree.opts.split), &ranks))
		return -ENOMEM;
	for (size_t i = 0; i < b->n_parts; i++)
		if (b->starts[i] != b->starts[i + 1])
			parts[n++] = (uint32_t)i;
	qsort_r(parts, n, sizeof(*parts), compare_parts, ranks);
	*ret = take_ptr(parts);
	*ret_n = n;
	return 0;
}

/* The root's list of a split tree. */
static int link_parts(struct tree_builder *b)
{
	struct tree *t = &b->tree;
	_cleanup_free_ uint32_t *node_of = calloc(b->n_parts + 1, sizeof(*node_of));
	_cleanup_free_ uint32_t *parts = NULL;
	size_t n;

	if (!node_of || rank_parts(b, &parts, &n))
		return -ENOMEM;
	for (size_t i = 1; i < t->n_nodes; i++)
		if (t->nodes[i].frame == PROFILE_NONE)
			node_of[t->nodes[i].label] = (uint32_t)i;
	while (n--)
		if (node_of[parts[n]]) /* not left out */
			push_child(t, node_of[parts[n]]);
	return 0;
}

/* For each stack no node. */
static int alloc_leaves(struct tree_builder *b)
{
	const size_t bytes = (b->profile->n_stacks + 1) * sizeof(*b->leaves);

	b->leaves = malloc(bytes);
	if (!b->leaves)
		return -ENOMEM;
	memset(b->leaves, 0xff, bytes);
	return 0;
}

/* @leaves may be NULL. */
static int build_tree(const struct profile *p, const struct view_filter *f,
		      const struct tree_options *opts, struct tree *ret, uint32_t **leaves)
{
	struct tree_builder b;
	int err;

	if (!tree_can_split(p, opts->split))
		return -EINVAL;
	err = tree_builder_init(&b, p, f, opts);
	if (!err && leaves)
		err = alloc_leaves(&b);
	if (!err)
		err = add_parts(&b);
	if (err) {
		err = b.too_large ? -E2BIG : err;
		goto out;
	}
	if (opts->split != TREE_SPLIT_NONE)
		err = link_parts(&b);
	if (err)
		goto out;
	*ret = b.tree;
	b.tree = (struct tree) { 0 }; /* owned by *ret now */
	if (leaves)
		*leaves = take_ptr(b.leaves);
out:
	tree_builder_deinit(&b);
	return err;
}

int tree_build(const struct profile *p, const struct view_filter *f,
	       const struct tree_options *opts, struct tree *ret)
{
	return build_tree(p, f, opts, ret, NULL);
}

int tree_build_leaves(const struct profile *p, const struct view_filter *f,
		      const struct tree_options *opts, struct tree *ret, uint32_t **leaves)
{
	if (opts->split != TREE_SPLIT_NONE)
		return -EINVAL;
	return build_tree(p, f, opts, ret, leaves);
}

/* ---- part by part ---- */

struct tree_parts {
	struct tree_builder builder;
	uint32_t *parts; /* owned */
	size_t n;
};

int tree_parts_new(const struct profile *p, const struct view_filter *f,
		   const struct tree_options *opts, struct tree_parts **ret)
{
	_cleanup_tree_parts_ struct tree_parts *parts = NULL;

	if (opts->split == TREE_SPLIT_NONE || !tree_can_split(p, opts->split))
		return -EINVAL;
	parts = calloc(1, sizeof(*parts));
	if (!parts)
		return -ENOMEM;
	if (tree_builder_init(&parts->builder, p, f, opts))
		return parts->builder.too_large ? -E2BIG : -ENOMEM;
	if (rank_parts(&parts->builder, &parts->parts, &parts->n))
		return -ENOMEM;
	*ret = take_ptr(parts);
	return 0;
}

void tree_parts_free(struct tree_parts *parts)
{
	if (!parts)
		return;
	tree_builder_deinit(&parts->builder);
	free(parts->parts);
	free(parts);
}

size_t tree_parts_count(const struct tree_parts *parts)
{
	return parts->n;
}

uint32_t tree_parts_owner(const struct tree_parts *parts, size_t i)
{
	return parts->parts[i];
}

size_t tree_parts_paths(const struct tree_parts *parts)
{
	return parts->builder.shape.n_paths;
}

int tree_parts_walk(struct tree_parts *parts, size_t i, tree_path_fn *fn, void *arg)
{
	struct tree_builder *b = &parts->builder;
	int r = 0;

	if (tree_sum_part(b, parts->parts[i]))
		return b->too_large ? -E2BIG : -ENOMEM;
	for (size_t k = 0; k < b->n_met && !r; k++) {
		const uint32_t id = b->met[k];
		const struct path_sum *sum = &b->sums[id];
		const struct tree_path path = {
			.id = id,
			.parent = b->shape.paths[id].parent,
			.frame = id ? b->groups.frame[b->shape.paths[id].what] : PROFILE_NONE,
			.self_value = sum->self_value,
			.self_samples = sum->self_samples,
		};

		r = fn(arg, &path);
	}
	return r;
}

int tree_error(int r, struct err *err)
{
	if (r != -E2BIG)
		return err_code(err, r);
	err_set(err, r, ERR_PROFILE,
		"the stacks of the recording expand to far more than its size");
	err_hint(err, "--split and --inverted repeat stacks; a filter like --pid takes a part");
	return r;
}

void tree_deinit(struct tree *t)
{
	if (!t)
		return;
	free(t->nodes);
	free(t->exact);
	free(t->states);
	*t = (struct tree) { 0 };
}

uint32_t tree_skip(const struct tree *t, uint32_t node)
{
	while (node && !t->nodes[node].next_sibling)
		node = t->nodes[node].parent;
	return t->nodes[node].next_sibling;
}

uint32_t tree_next(const struct tree *t, uint32_t node)
{
	return t->nodes[node].first_child ? t->nodes[node].first_child : tree_skip(t, node);
}

void tree_node_label(const struct tree *t, uint32_t node, struct buf *out)
{
	const struct profile *p = t->profile;
	const struct tree_node *n = &t->nodes[node];
	const struct profile_frame *frame;

	if (!node) {
		buf_addstr(out, "all");
	} else if (n->frame != PROFILE_NONE) {
		frame = &p->frames[n->frame];
		buf_addstr(out, label_frame(p, n->frame));
		if (t->opts.by_line && frame->line) {
			buf_addf(out, " %s:", label_basename(profile_str(p, frame->file)));
			label_line(frame, out);
		}
	} else {
		owner_label(p, tree_owners_of(t->opts.split), n->label, out);
	}
}
