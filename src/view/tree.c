/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From aggregates to a tree, in time proportional to their number plus the number of distinct
 * stacks, however deep these are:
 *
 *   1. Aggregates are put in order by part (process, thread, …; one part if the tree is not split).
 *   2. In each part the weights of equal stacks are added up, in an array indexed by stack id.
 *   3. The recording's stacks are themselves a prefix tree. The node of a stack is a child of the
 *      node of its callers, so each stack that is reached needs one look-up, remembered for the
 *      others that share it. (An inverted tree shares no prefixes with the recording: there each
 *      distinct stack is walked as a whole.)
 *   4. Nodes are made after their parents, so that totals are one pass from the last to the first.
 *   5. How much of a node compiled code ran is known by stack, not by node: a function has frames
 *      with and without FRAME_YJIT. The weights are added up along the stacks that were reached, from
 *      callees to callers, and each compiled frame gives its stack's sum to its node.
 *   6. Children are put in order (tree_order.h).
 *
 * A node is found by its parent and its group in a prefix tree of the part that is being added:
 * nodes of different parts have nothing in common. So parts can also be built one after another,
 * each in the place of the one before (tree_parts_build()).
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
#include "base/prefix_tree.h"
#include "profile/profile.h"
#include "view/filter.h"
#include "view/group.h"
#include "view/label.h"
#include "view/owner.h"
#include "view/tree_order.h"
#include "view/tree_prune.h"

#define NODE_NONE      UINT32_MAX

/* Bytes that a node takes here and in what is made of it, about. */
#define TREE_NODE_COST 256
/* The same stacks may be walked again and again without a new node. */
#define STEPS_PER_NODE 4

/* What is known of a stack while one part is being added. */
struct stack_state {
	uint64_t value;
	uint64_t samples;
	uint64_t below; /* samples of the stacks that go on from it */
	uint32_t node;	/* NODE_NONE: not looked up yet */
	uint32_t epoch; /* the state is of this part; else it is stale */
};

struct tree_builder {
	const struct profile *profile;
	struct tree tree;
	struct view_selection *selection;
	struct groups groups;
	/*
	 * The nodes of the part that is being added, by group: node 0 is that of the part, and the
	 * tree has node n at the index part_node + n.
	 */
	struct prefix_tree prefixes;
	uint32_t part_node;
	struct stack_state *states; /* by stack id */
	uint32_t epoch;		    /* of the part that is being added, from 1 */
	uint32_t *touched;	    /* stacks with samples in this part */
	size_t n_touched;
	uint32_t *order; /* aggregates by part: those of part i are at starts[i] … */
	size_t *starts;	 /* … up to starts[i + 1] */
	size_t n_parts;
	uint64_t value, samples; /* of all that are selected */
	size_t max_nodes, max_steps;
	size_t steps;	/* nodes looked up, new ones and old ones */
	bool too_large; /* more nodes or steps than may be */
	bool has_jit;
	uint32_t *reached; /* stacks whose node was looked up in this part, callers first */
	size_t n_reached;
	uint32_t *leaves; /* by stack: its node, if that is asked for; owned */
	uint32_t *path; /* scratch: stacks between one whose node is known and one that is asked */
	size_t cap_path;
};

static void builder_deinit(struct tree_builder *b)
{
	tree_deinit(&b->tree);
	view_selection_free(b->selection);
	groups_deinit(&b->groups);
	prefix_tree_deinit(&b->prefixes);
	free(b->states);
	free(b->touched);
	free(b->reached);
	free(b->path);
	free(b->leaves);
	free(b->order);
	free(b->starts);
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
	return split == TREE_SPLIT_NONE || p->by_thread;
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

static int builder_init(struct tree_builder *b, const struct profile *p,
			const struct view_filter *f, const struct tree_options *opts)
{
	*b = (struct tree_builder) { .profile = p };
	b->max_nodes = profile_output_max(p) / TREE_NODE_COST;
	b->max_steps = b->max_nodes * STEPS_PER_NODE;
	if (b->max_nodes > INTERN_MAX)
		b->max_nodes = INTERN_MAX;
	b->tree.opts = *opts;
	b->tree.profile = p;
	b->states = calloc(p->n_stacks + 1, sizeof(*b->states));
	b->touched = calloc(p->n_stacks + 1, sizeof(*b->touched));
	b->reached = calloc(p->n_stacks + 1, sizeof(*b->reached));
	for (size_t i = 0; i < p->n_frames && !b->has_jit; i++)
		b->has_jit = p->frames[i].flags & FRAME_JIT;
	if (!b->states || !b->touched || !b->reached || view_selection_new(p, f, &b->selection) ||
	    groups_init(p, opts->by_line ? GROUP_BY_LINE : GROUP_BY_FUNCTION, &b->groups) ||
	    prefix_tree_init(&b->prefixes) || array_reserve(b->tree.nodes, b->tree.cap_nodes, 1) ||
	    sort_by_part(b))
		return -ENOMEM;
	if (f && f->stack == STACK_BOTH)
		view_selection_show(b->selection, opts->stack);
	b->tree.nodes[0] = (struct tree_node) { .frame = PROFILE_NONE };
	b->tree.n_nodes = 1;
	return 0;
}

static int add_node(struct tree_builder *b, const struct tree_node *node)
{
	struct tree *t = &b->tree;

	if (array_reserve(t->nodes, t->cap_nodes, t->n_nodes + 1))
		return -ENOMEM;
	t->nodes[t->n_nodes++] = *node;
	return 0;
}

/* Whether one node more may be looked up. */
static bool may_step(struct tree_builder *b)
{
	b->too_large = b->tree.n_nodes >= b->max_nodes || b->steps++ >= b->max_steps;
	return !b->too_large;
}

/* The child of @parent, in the part that is being added, for @group; made if there is none yet. */
static int child_of(struct tree_builder *b, uint32_t parent, uint32_t group, uint32_t *ret)
{
	struct tree_node node = { .parent = parent, .frame = b->groups.frame[group] };
	uint32_t id;

	if (!may_step(b) || prefix_tree_child(&b->prefixes, parent - b->part_node, group, &id))
		return -ENOMEM;
	*ret = b->part_node + id;
	if (*ret < b->tree.n_nodes)
		return 0;
	node.depth = b->tree.nodes[parent].depth + 1;
	return add_node(b, &node);
}

/* Begin a part: its node, below the root; the root itself if the tree is not split. */
static int begin_part(struct tree_builder *b, uint32_t part)
{
	const struct tree_node node = { .depth = 1, .frame = PROFILE_NONE, .label = part };

	b->epoch++;
	b->n_touched = 0;
	b->n_reached = 0;
	prefix_tree_clear(&b->prefixes);
	if (b->tree.opts.split == TREE_SPLIT_NONE)
		return 0;
	b->part_node = (uint32_t)b->tree.n_nodes;
	return may_step(b) ? add_node(b, &node) : -ENOMEM;
}

static struct stack_state *state_of(struct tree_builder *b, uint32_t stack)
{
	struct stack_state *state = &b->states[stack];

	if (state->epoch != b->epoch)
		*state = (struct stack_state) { .node = NODE_NONE, .epoch = b->epoch };
	return state;
}

/* *@node becomes its child for @frame, or stays if the frame is hidden. */
static int descend(struct tree_builder *b, uint32_t frame, uint32_t *node)
{
	if (!view_frame_shown(b->selection, frame))
		return 0;
	return child_of(b, *node, b->groups.of_frame[frame], node);
}

static int node_of_stack(struct tree_builder *b, uint32_t part, uint32_t stack, uint32_t *ret)
{
	const struct profile_stack *stacks = b->profile->stacks;
	uint32_t node = part;
	size_t n = 0;

	for (; stack; stack = stacks[stack].parent) {
		const struct stack_state *state = state_of(b, stack);

		if (state->node != NODE_NONE) {
			node = state->node;
			break;
		}
		if (array_reserve(b->path, b->cap_path, n + 1))
			return -ENOMEM;
		b->path[n++] = stack;
	}
	while (n--) {
		if (descend(b, stacks[b->path[n]].frame, &node))
			return -ENOMEM;
		b->states[b->path[n]].node = node;
		b->reached[b->n_reached++] = b->path[n];
	}
	*ret = node;
	return 0;
}

/* Of @samples, compiled code ran @node's function if @frame says so. */
static void add_jit(struct tree_builder *b, uint32_t node, uint32_t frame, uint64_t samples)
{
	uint32_t jit = b->profile->frames[frame].flags & FRAME_JIT;

	if (!jit || !view_frame_shown(b->selection, frame))
		return;
	b->tree.nodes[node].jit |= jit;
	b->tree.nodes[node].jit_samples += samples;
}

static int inverted_node_of_stack(struct tree_builder *b, uint32_t part, uint32_t stack,
				  uint32_t *ret)
{
	const struct profile_stack *stacks = b->profile->stacks;
	uint64_t samples = b->states[stack].samples;
	uint32_t node = part;

	for (; stack; stack = stacks[stack].parent) {
		if (descend(b, stacks[stack].frame, &node))
			return -ENOMEM;
		add_jit(b, node, stacks[stack].frame, samples);
	}
	*ret = node;
	return 0;
}

/* The node whose self time @stack's is. */
static int leaf_of_stack(struct tree_builder *b, uint32_t part, uint32_t stack, uint32_t *ret)
{
	uint32_t instead = view_stack_instead(b->selection);
	int err;

	err = b->tree.opts.inverted ? inverted_node_of_stack(b, part, stack, ret)
				    : node_of_stack(b, part, stack, ret);
	if (!err && stack && *ret == part && instead)
		err = descend(b, b->profile->stacks[instead].frame, ret);
	return err;
}

static void add_jit_of_part(struct tree_builder *b)
{
	const struct profile_stack *stacks = b->profile->stacks;

	for (size_t i = b->n_reached; b->has_jit && i--;) {
		const struct profile_stack *stack = &stacks[b->reached[i]];
		struct stack_state *state = &b->states[b->reached[i]];
		uint64_t samples = state->samples + state->below;

		state_of(b, stack->parent)->below += samples;
		add_jit(b, state->node, stack->frame, samples);
	}
}

/* Add the samples of one part, if there are any. */
static int add_part(struct tree_builder *b, uint32_t part)
{
	if (b->starts[part] == b->starts[part + 1])
		return 0;
	if (begin_part(b, part))
		return -ENOMEM;
	for (size_t i = b->starts[part]; i < b->starts[part + 1]; i++) {
		const struct profile_aggregate *a = &b->profile->aggregates[b->order[i]];
		struct stack_state *state = state_of(b, a->stack);

		if (!state->samples)
			b->touched[b->n_touched++] = a->stack;
		state->samples += a->samples;
		state->value += a->value;
	}
	for (size_t i = 0; i < b->n_touched; i++) {
		uint32_t stack = b->touched[i], node;
		int err = leaf_of_stack(b, b->part_node, stack, &node);

		if (err)
			return err;
		b->tree.nodes[node].self_value += b->states[stack].value;
		b->tree.nodes[node].self_samples += b->states[stack].samples;
		if (b->leaves)
			b->leaves[stack] = node;
	}
	add_jit_of_part(b);
	return 0;
}

/* The totals of the nodes of a part, from @first on, and what the root has of them. */
static void add_totals(struct tree *t, size_t first)
{
	for (size_t i = t->n_nodes; i-- > first;) {
		struct tree_node *node = &t->nodes[i];

		node->total_value += node->self_value;
		node->total_samples += node->self_samples;
		t->nodes[node->parent].total_value += node->total_value;
		t->nodes[node->parent].total_samples += node->total_samples;
	}
}

static void end_totals(struct tree *t)
{
	t->nodes[0].total_value += t->nodes[0].self_value;
	t->nodes[0].total_samples += t->nodes[0].self_samples;
}

static int add_parts(struct tree_builder *b)
{
	struct tree *t = &b->tree;
	const double min = (double)(b->value ? b->value : b->samples) * t->opts.min_percent / 100;
	int err = 0;

	for (size_t i = 0; i < b->n_parts && !err; i++) {
		size_t first = t->n_nodes;

		err = add_part(b, (uint32_t)i);
		if (err)
			break;
		add_totals(t, first);
		if (t->opts.min_percent > 0)
			err = tree_prune(t, first, min, !b->value);
	}
	end_totals(t);
	return err;
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
			tree_push_child(t, node_of[parts[n]]);
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
	err = tree_order_frames(&b.tree, &b.groups);
	if (!err && opts->split != TREE_SPLIT_NONE)
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
	if (!parts || builder_init(&parts->builder, p, f, opts) ||
	    rank_parts(&parts->builder, &parts->parts, &parts->n))
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

int tree_parts_build(struct tree_parts *parts, size_t i, const struct tree **ret)
{
	struct tree_builder *b = &parts->builder;

	b->tree.nodes[0] = (struct tree_node) { .frame = PROFILE_NONE };
	b->tree.n_nodes = 1;
	if (add_part(b, parts->parts[i]))
		return b->too_large ? -E2BIG : -ENOMEM;
	add_totals(&b->tree, 1);
	end_totals(&b->tree);
	if (tree_order_frames(&b->tree, &b->groups))
		return -ENOMEM;
	tree_push_child(&b->tree, b->part_node);
	*ret = &b->tree;
	return 0;
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
