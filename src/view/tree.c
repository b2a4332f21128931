/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From aggregates to a tree, in time proportional to their number plus the number of distinct
 * stacks, however deep these are:
 *
 *   1. The paths of all selected stacks are found, and put in order (tree_shape.h).
 *   2. Aggregates are put in order by part (process, thread, …; one part if the tree is not split).
 *   3. In each part the weights of aggregates are added up in an array indexed by path, of which only
 *      the paths that the part has are looked at. A path is behind its parent in it, so totals are one
 *      pass from the last to the first.
 *   4. Paths that are wide enough become nodes, in their order.
 *   5. How much of a node compiled code ran is known by stack, not by path: a function has frames
 *      with and without FRAME_YJIT. The weights are added up along the stacks of the part, from
 *      callees to callers, and each compiled frame gives its stack's sum to its path.
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
#include "base/intern.h"
#include "profile/profile.h"
#include "view/filter.h"
#include "view/group.h"
#include "view/label.h"
#include "view/owner.h"
#include "view/tree_shape.h"

/* In path_sum.node: the path has no node, this is the nearest of its parents. Nodes are below INTERN_MAX. */
#define LEFT_OUT       (1u << 31)

/* Bytes that a node takes here and in what is made of it, about. */
#define TREE_NODE_COST 256
/* One path may be in many parts. */
#define STEPS_PER_NODE 4
/* If a part has fewer paths than one in so many, sorting them takes less than looking for them. */
#define FEW_PATHS      16
/* If it has more than that, to go through all paths in their order takes less than to go up from each. */
#define MANY_PATHS     8

/* What a path has in the part that is being added. */
struct path_sum {
	uint64_t self_value, self_samples;
	uint64_t total_value, total_samples;
	uint32_t part; /* the sum is of this part (tree_builder.part); else it is stale */
	uint32_t node; /* in the tree; with LEFT_OUT */
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
	uint32_t *met;	       /* the paths of this part, once add_up() is done in their order */
	size_t n_met;
	uint32_t *leaves; /* by stack: its node, if that is asked for; owned */

	/* If there is compiled code, else NULL: */
	struct jit_sum *jit;	  /* by path */
	struct stack_sum *stacks; /* by stack id; NULL in an inverted tree */
	uint32_t *reached;	  /* the stacks of this part, callers first */
	size_t n_reached;
	uint32_t *above; /* scratch: a path and its parents */
	size_t cap_above;
};

static void builder_deinit(struct tree_builder *b)
{
	tree_deinit(&b->tree);
	view_selection_free(b->selection);
	groups_deinit(&b->groups);
	tree_shape_deinit(&b->shape);
	free(b->order);
	free(b->starts);
	free(b->sums);
	free(b->met);
	free(b->leaves);
	free(b->jit);
	free(b->stacks);
	free(b->reached);
	free(b->above);
}

static enum owner_kind owners_of(enum tree_split split)
{
	static const enum owner_kind kinds[] = {
		[TREE_SPLIT_PROCESS] = OWNER_PROCESS,	  [TREE_SPLIT_THREAD] = OWNER_THREAD,
		[TREE_SPLIT_CONTAINER] = OWNER_CONTAINER, [TREE_SPLIT_RUBY] = OWNER_RUBY,
		[TREE_SPLIT_REQUEST] = OWNER_REQUEST,
	};

	return kinds[split];
}

/* Whether the aggregates of @p tell apart what is to be split. */
static bool can_split(const struct profile *p, enum tree_split split)
{
	if (split == TREE_SPLIT_REQUEST)
		return p->by_request;
	if (split == TREE_SPLIT_NONE || p->by_thread)
		return true;
	return split != TREE_SPLIT_THREAD && p->by_process;
}

static uint32_t part_of(const struct tree_builder *b, const struct profile_aggregate *a)
{
	enum tree_split split = b->tree.opts.split;

	return split == TREE_SPLIT_NONE ? 0 : owner_of_aggregate(b->profile, owners_of(split), a);
}

static size_t count_parts(const struct tree_builder *b)
{
	enum tree_split split = b->tree.opts.split;

	return split == TREE_SPLIT_NONE ? 1 : owner_limit(b->profile, owners_of(split));
}

/* Put the selected aggregates in order by part. */
static int sort_by_part(struct tree_builder *b)
{
	const struct profile *p = b->profile;
	size_t *starts;

	b->n_parts = count_parts(b);
	b->order = calloc(p->n_aggregates + 1, sizeof(*b->order));
	/* starts[part + 1] is first a count, then where the part ends so far. */
	b->starts = starts = calloc(b->n_parts + 2, sizeof(*starts));
	if (!b->order || !starts)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_aggregates; i++) {
		if (!view_selected(b->selection, &p->aggregates[i]))
			continue;
		starts[part_of(b, &p->aggregates[i]) + 2]++;
		b->value += p->aggregates[i].value;
		b->samples += p->aggregates[i].samples;
	}
	for (size_t i = 2; i < b->n_parts + 2; i++)
		starts[i] += starts[i - 1];
	for (size_t i = 0; i < p->n_aggregates; i++)
		if (view_selected(b->selection, &p->aggregates[i]))
			b->order[starts[part_of(b, &p->aggregates[i]) + 1]++] = (uint32_t)i;
	return 0;
}

static bool has_jit(const struct profile *p)
{
	for (size_t i = 0; i < p->n_frames; i++)
		if (p->frames[i].flags & FRAME_JIT)
			return true;
	return false;
}

static int alloc_jit(struct tree_builder *b)
{
	const size_t n = b->profile->n_stacks + 1;

	b->jit = calloc(b->shape.n_paths, sizeof(*b->jit));
	if (!b->jit)
		return -ENOMEM;
	if (b->tree.opts.inverted)
		return 0;
	b->stacks = calloc(n, sizeof(*b->stacks));
	b->reached = calloc(n, sizeof(*b->reached));
	return b->stacks && b->reached ? 0 : -ENOMEM;
}

static int make_shape(struct tree_builder *b)
{
	struct tree_limits *l = &b->limits;
	int r;

	l->max_nodes = profile_output_max(b->profile) / TREE_NODE_COST;
	l->max_steps = l->max_nodes * STEPS_PER_NODE;
	if (l->max_nodes > INTERN_MAX)
		l->max_nodes = INTERN_MAX;
	r = tree_shape_init(b->profile, b->selection, &b->groups, b->tree.opts.inverted, l,
			    &b->shape);
	b->too_large = r == -E2BIG;
	return r;
}

static void count_own(struct tree_builder *b)
{
	for (size_t i = 0; i < b->starts[b->n_parts]; i++) {
		const struct profile_aggregate *a = &b->profile->aggregates[b->order[i]];
		struct path_sum *sum = &b->sums[b->shape.of_stack[a->stack]];

		b->n_own += !sum->self_samples;
		sum->self_samples = 1; /* stale for any part */
	}
}

static int builder_init(struct tree_builder *b, const struct profile *p,
			const struct view_filter *f, const struct tree_options *opts)
{
	*b = (struct tree_builder) { .profile = p, .tree = { .opts = *opts, .profile = p } };
	if (view_selection_new(p, f, &b->selection) ||
	    groups_init(p, opts->by_line ? GROUP_BY_LINE : GROUP_BY_FUNCTION, &b->groups) ||
	    array_reserve(b->tree.nodes, b->tree.cap_nodes, 1) || sort_by_part(b))
		return -ENOMEM;
	b->tree.nodes[0] = (struct tree_node) { .frame = PROFILE_NONE };
	b->tree.n_nodes = 1;
	if (f && f->stack == STACK_BOTH)
		view_selection_show(b->selection, opts->stack);
	if (make_shape(b))
		return -ENOMEM;
	b->sums = calloc(b->shape.n_paths, sizeof(*b->sums));
	b->met = calloc(b->shape.n_paths, sizeof(*b->met));
	if (!b->sums || !b->met || (has_jit(p) && alloc_jit(b)))
		return -ENOMEM;
	if (b->n_parts > 1)
		count_own(b);
	return 0;
}

/* ---- the sums of a part ---- */

/* Note that this part has @path, and so its parents. */
static void meet(struct tree_builder *b, uint32_t path)
{
	while (b->sums[path].part != b->part) {
		b->sums[path] = (struct path_sum) { .part = b->part };
		if (b->jit)
			b->jit[path] = (struct jit_sum) { 0 };
		b->met[b->n_met++] = path;
		path = b->shape.paths[path].parent;
	}
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* All paths that this part has been noted to have, in their order. */
static void find_met(struct tree_builder *b)
{
	b->n_met = 0;
	for (uint32_t i = 0; i < b->shape.n_paths; i++)
		if (b->sums[i].part == b->part)
			b->met[b->n_met++] = i;
}

static void add_self(struct tree_builder *b, const struct profile_aggregate *a)
{
	struct path_sum *sum = &b->sums[b->shape.of_stack[a->stack]];

	sum->part = b->part;
	sum->self_value += a->value;
	sum->self_samples += a->samples;
}

/* For a part with some of the paths: from each stack up to where the part has been. */
static void add_some(struct tree_builder *b, uint32_t part)
{
	b->n_met = 0;
	meet(b, 0);
	for (size_t i = b->starts[part]; i < b->starts[part + 1]; i++) {
		const struct profile_aggregate *a = &b->profile->aggregates[b->order[i]];

		meet(b, b->shape.of_stack[a->stack]);
		add_self(b, a);
	}
	if (b->n_met < b->shape.n_paths / FEW_PATHS)
		qsort(b->met, b->n_met, sizeof(*b->met), compare_ids);
	else
		find_met(b);
}

/* For a part with most of them: a path's parent has a lower id, and mostly lies near. */
static void add_most(struct tree_builder *b, uint32_t part)
{
	/* The first sums find all zero, unless count_own() has been there. */
	if (b->part > 1 || b->n_own)
		memset(b->sums, 0, b->shape.n_paths * sizeof(*b->sums));
	if (b->part > 1 && b->jit)
		memset(b->jit, 0, b->shape.n_paths * sizeof(*b->jit));
	b->sums[0].part = b->part;
	for (size_t i = b->starts[part]; i < b->starts[part + 1]; i++)
		add_self(b, &b->profile->aggregates[b->order[i]]);
	for (size_t i = b->shape.n_paths; i-- > 1;)
		if (b->sums[i].part == b->part)
			b->sums[b->shape.paths[i].parent].part = b->part;
	find_met(b);
}

/* Add up what each path of a part has itself. -ENOMEM beyond the limits, too. */
static int add_up(struct tree_builder *b, uint32_t part)
{
	b->part++;
	if (b->starts[part + 1] - b->starts[part] > b->n_own / MANY_PATHS)
		add_most(b, part);
	else
		add_some(b, part);
	b->limits.steps += b->n_met;
	b->too_large = b->limits.steps > b->limits.max_steps;
	return b->too_large ? -ENOMEM : 0;
}

static void add_totals(struct tree_builder *b)
{
	for (size_t i = b->n_met; i--;) {
		struct path_sum *sum = &b->sums[b->met[i]];
		struct path_sum *parent = &b->sums[b->shape.paths[b->met[i]].parent];

		sum->total_value += sum->self_value;
		sum->total_samples += sum->self_samples;
		if (!b->met[i])
			break;
		parent->total_value += sum->total_value;
		parent->total_samples += sum->total_samples;
	}
}

/* ---- compiled code ---- */

/* Of @samples, compiled code ran @path's function if @frame says so. */
static void add_jit(struct tree_builder *b, uint32_t path, uint32_t frame, uint64_t samples)
{
	uint32_t kinds = b->profile->frames[frame].flags & FRAME_JIT;

	if (!kinds || !view_frame_shown(b->selection, frame))
		return;
	b->jit[path].kinds |= kinds;
	b->jit[path].samples += samples;
}

/* Note that this part has @stack and those of its callers, these first. */
static void reach(struct tree_builder *b, uint32_t stack)
{
	size_t first = b->n_reached, last;

	for (; stack && b->stacks[stack].part != b->part;
	     stack = b->profile->stacks[stack].parent) {
		b->stacks[stack] = (struct stack_sum) { .part = b->part };
		b->reached[b->n_reached++] = stack;
	}
	for (last = b->n_reached; last > first + 1; first++) {
		uint32_t swapped = b->reached[first];

		b->reached[first] = b->reached[--last];
		b->reached[last] = swapped;
	}
}

static void add_jit_of_part(struct tree_builder *b, uint32_t part)
{
	const struct profile_stack *stacks = b->profile->stacks;

	b->n_reached = 0;
	for (size_t i = b->starts[part]; i < b->starts[part + 1]; i++) {
		const struct profile_aggregate *a = &b->profile->aggregates[b->order[i]];

		reach(b, a->stack);
		b->stacks[a->stack].samples += a->samples;
	}
	for (size_t i = b->n_reached; i--;) {
		const uint32_t stack = b->reached[i];
		const uint64_t samples = b->stacks[stack].samples;

		b->stacks[stacks[stack].parent].samples += samples;
		add_jit(b, b->shape.of_stack[stack], stacks[stack].frame, samples);
	}
}

/* Inverted, the path of a stack leads from its innermost frame to its outermost. */
static int add_inverted_jit(struct tree_builder *b, const struct profile_aggregate *a)
{
	const struct profile_stack *stacks = b->profile->stacks;
	size_t n = 0;

	for (uint32_t path = b->shape.of_stack[a->stack]; path;
	     path = b->shape.paths[path].parent) {
		if (array_reserve(b->above, b->cap_above, n + 1))
			return -ENOMEM;
		b->above[n++] = path;
	}
	b->limits.steps += n;
	for (uint32_t stack = a->stack; stack && n; stack = stacks[stack].parent)
		if (view_frame_shown(b->selection, stacks[stack].frame))
			add_jit(b, b->above[--n], stacks[stack].frame, a->samples);
	return 0;
}

static int add_inverted_jit_of_part(struct tree_builder *b, uint32_t part)
{
	int r = 0;

	for (size_t i = b->starts[part]; i < b->starts[part + 1] && !r; i++)
		r = add_inverted_jit(b, &b->profile->aggregates[b->order[i]]);
	return r;
}

/* ---- nodes ---- */

static int add_node(struct tree_builder *b, const struct tree_node *node)
{
	struct tree *t = &b->tree;

	b->too_large = t->n_nodes >= b->limits.max_nodes;
	if (b->too_large || array_reserve(t->nodes, t->cap_nodes, t->n_nodes + 1))
		return -ENOMEM;
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
	sum->node = nearest | LEFT_OUT;
	t->nodes[nearest].n_left_out++;
	t->n_left_out++;
}

static bool is_narrow(const struct tree_builder *b, const struct path_sum *sum)
{
	const double all = (double)(b->value ? b->value : b->samples);
	const uint64_t width = b->value ? sum->total_value : sum->total_samples;

	return b->tree.opts.min_percent > 0 && (double)width < all * b->tree.opts.min_percent / 100;
}

/* The node of the empty path of a part: below the root, or the root itself if the tree is not split. */
static int add_part_node(struct tree_builder *b, uint32_t part)
{
	struct tree_node node = { .depth = 1, .frame = PROFILE_NONE, .label = part };
	struct tree_node *root = &b->tree.nodes[0];
	struct path_sum *sum = &b->sums[0];

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
	return add_node(b, &node);
}

/* A node for each path that is wide enough, as its parents then are. */
static int add_nodes(struct tree_builder *b, uint32_t part)
{
	const struct prefix_node *paths = b->shape.paths;
	int r = add_part_node(b, part);

	for (size_t i = 1; i < b->n_met && !r; i++) {
		struct path_sum *sum = &b->sums[b->met[i]];
		struct tree_node node = { .parent = b->sums[paths[b->met[i]].parent].node };

		if (node.parent & LEFT_OUT || is_narrow(b, sum)) {
			leave_out(&b->tree, node.parent & ~LEFT_OUT, sum);
			continue;
		}
		sum->node = (uint32_t)b->tree.n_nodes;
		node.depth = b->tree.nodes[node.parent].depth + 1;
		node.frame = b->groups.frame[paths[b->met[i]].what];
		fill_node(b, b->met[i], &node);
		r = add_node(b, &node);
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

		b->leaves[stack] = b->sums[b->shape.of_stack[stack]].node & ~LEFT_OUT;
	}
}

/* Add the samples of one part, if there are any. */
static int add_part(struct tree_builder *b, uint32_t part)
{
	int r;

	if (b->starts[part] == b->starts[part + 1])
		return 0;
	r = add_up(b, part);
	if (!r && b->jit && b->tree.opts.inverted)
		r = add_inverted_jit_of_part(b, part);
	else if (!r && b->jit)
		add_jit_of_part(b, part);
	if (r)
		return r;
	/* The nodes are most of what a tree takes: what is needed no longer makes room for them. */
	if (!b->leaves && part + 1 == b->n_parts)
		tree_shape_drop_stacks(&b->shape);
	add_totals(b);
	r = add_nodes(b, part);
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

	if (!parts || owner_ranks(b->profile, owners_of(b->tree.opts.split), &ranks))
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

	if (!can_split(p, opts->split))
		return -EINVAL;
	err = builder_init(&b, p, f, opts);
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
	builder_deinit(&b);
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

	if (opts->split == TREE_SPLIT_NONE || !can_split(p, opts->split))
		return -EINVAL;
	parts = calloc(1, sizeof(*parts));
	if (!parts)
		return -ENOMEM;
	if (builder_init(&parts->builder, p, f, opts))
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
	builder_deinit(&parts->builder);
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

	if (add_up(b, parts->parts[i]))
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
		owner_label(p, owners_of(t->opts.split), n->label, out);
	}
}
