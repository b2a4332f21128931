/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From aggregates to a tree, in time proportional to their number plus the number of distinct stacks,
 * however deep these are:
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
 *   6. Groups are ranked by name. Going through all nodes from the highest rank to the lowest and
 *      putting each before its siblings leaves every list of children sorted.
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

struct child_key {
	uint32_t parent; /* node */
	uint32_t what;	 /* group; below the root of a split tree: part */
};

struct tree_builder {
	const struct profile *profile;
	struct tree tree;
	struct view_selection *selection;
	struct groups groups;
	struct intern children;	    /* struct child_key -> index of the node - 1 */
	struct stack_state *states; /* by stack id */
	uint32_t epoch;		    /* of the part that is being added, from 1 */
	uint32_t *touched;	    /* stacks with samples in this part */
	size_t n_touched;
	size_t max_nodes;
	size_t steps;	/* nodes looked up, new ones and old ones */
	bool too_large; /* more nodes or steps than may be */
	bool has_jit;
	uint32_t *reached; /* stacks whose node was looked up in this part, callers first */
	size_t n_reached;
	uint32_t *path; /* scratch: stacks between one whose node is known and one that is asked */
	size_t cap_path;
};

static void builder_deinit(struct tree_builder *b)
{
	tree_deinit(&b->tree);
	view_selection_free(b->selection);
	groups_deinit(&b->groups);
	intern_deinit(&b->children);
	free(b->states);
	free(b->touched);
	free(b->reached);
	free(b->path);
}

static int builder_init(struct tree_builder *b, const struct profile *p,
			const struct view_filter *f, const struct tree_options *opts)
{
	*b = (struct tree_builder) { .profile = p };
	b->max_nodes = profile_output_max(p) / TREE_NODE_COST;
	b->tree.opts = *opts;
	b->tree.profile = p;
	b->states = calloc(p->n_stacks + 1, sizeof(*b->states));
	b->touched = calloc(p->n_stacks + 1, sizeof(*b->touched));
	b->reached = calloc(p->n_stacks + 1, sizeof(*b->reached));
	for (size_t i = 0; i < p->n_frames && !b->has_jit; i++)
		b->has_jit = p->frames[i].flags & FRAME_JIT;
	if (!b->states || !b->touched || !b->reached || view_selection_new(p, f, &b->selection) ||
	    groups_init(p, opts->by_line ? GROUP_BY_LINE : GROUP_BY_FUNCTION, &b->groups) ||
	    array_reserve(b->tree.nodes, b->tree.cap_nodes, 1))
		return -ENOMEM;
	if (f && f->stack == STACK_BOTH)
		view_selection_show(b->selection, opts->stack);
	b->tree.nodes[0] = (struct tree_node) { .frame = PROFILE_NONE };
	b->tree.n_nodes = 1;
	return 0;
}

/* The child of @parent that stands for @what, made if there is none yet. */
static int child_of(struct tree_builder *b, uint32_t parent, uint32_t what, uint32_t *ret)
{
	struct child_key key = { .parent = parent, .what = what };
	struct tree *t = &b->tree;
	struct tree_node *node;
	bool is_part = b->tree.opts.split != TREE_SPLIT_NONE && !parent;
	bool is_new;
	uint32_t id;

	b->too_large = t->n_nodes >= b->max_nodes || b->steps++ >= b->max_nodes * STEPS_PER_NODE;
	if (b->too_large)
		return -ENOMEM;
	if (intern_add(&b->children, &key, sizeof(key), &id, &is_new))
		return -ENOMEM;
	if (is_new) {
		if (array_reserve(t->nodes, t->cap_nodes, t->n_nodes + 1))
			return -ENOMEM;
		node = &t->nodes[t->n_nodes++];
		*node = (struct tree_node) {
			.parent = parent,
			.depth = t->nodes[parent].depth + 1,
			.frame = is_part ? PROFILE_NONE : b->groups.frame[what],
			.label = is_part ? what : 0,
		};
	}
	*ret = id + 1;
	return 0;
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

/* Add the samples of one part; @order holds @n indexes of aggregates. */
static int add_part(struct tree_builder *b, uint32_t part, const uint32_t *order, size_t n)
{
	uint32_t part_node = 0;

	b->epoch++;
	b->n_touched = 0;
	b->n_reached = 0;
	if (b->tree.opts.split != TREE_SPLIT_NONE && child_of(b, 0, part, &part_node))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct profile_aggregate *a = &b->profile->aggregates[order[i]];
		struct stack_state *state = state_of(b, a->stack);

		if (!state->samples)
			b->touched[b->n_touched++] = a->stack;
		state->samples += a->samples;
		state->value += a->value;
	}
	for (size_t i = 0; i < b->n_touched; i++) {
		uint32_t stack = b->touched[i], node;
		int err = leaf_of_stack(b, part_node, stack, &node);

		if (err)
			return err;
		b->tree.nodes[node].self_value += b->states[stack].value;
		b->tree.nodes[node].self_samples += b->states[stack].samples;
	}
	add_jit_of_part(b);
	return 0;
}

static enum owner_kind owners_of(enum tree_split split)
{
	static const enum owner_kind kinds[] = {
		[TREE_SPLIT_PROCESS] = OWNER_PROCESS,
		[TREE_SPLIT_THREAD] = OWNER_THREAD,
		[TREE_SPLIT_CONTAINER] = OWNER_CONTAINER,
		[TREE_SPLIT_RUBY] = OWNER_RUBY,
	};

	return kinds[split];
}

static uint32_t part_of(const struct tree_builder *b, const struct profile_aggregate *a)
{
	enum tree_split split = b->tree.opts.split;

	return split == TREE_SPLIT_NONE ? 0
					: owner_of_thread(b->profile, owners_of(split), a->thread);
}

static size_t count_parts(const struct tree_builder *b)
{
	enum tree_split split = b->tree.opts.split;

	return split == TREE_SPLIT_NONE ? 1 : owner_limit(b->profile, owners_of(split));
}

static int add_samples(struct tree_builder *b)
{
	const struct profile *p = b->profile;
	size_t n_parts = count_parts(b);
	/* Aggregates by part. starts[part] is first a count, then where the part ends so far. */
	_cleanup_free_ uint32_t *order = calloc(p->n_aggregates + 1, sizeof(*order));
	_cleanup_free_ size_t *starts = calloc(n_parts + 2, sizeof(*starts));

	if (!order || !starts)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_aggregates; i++)
		if (view_selected(b->selection, &p->aggregates[i]))
			starts[part_of(b, &p->aggregates[i]) + 2]++;
	for (size_t i = 2; i < n_parts + 2; i++)
		starts[i] += starts[i - 1];
	for (size_t i = 0; i < p->n_aggregates; i++)
		if (view_selected(b->selection, &p->aggregates[i]))
			order[starts[part_of(b, &p->aggregates[i]) + 1]++] = (uint32_t)i;
	for (size_t i = 0; i < n_parts; i++) {
		size_t n = starts[i + 1] - starts[i];

		if (n && add_part(b, (uint32_t)i, order + starts[i], n))
			return -ENOMEM;
	}
	return 0;
}

static void add_totals(struct tree *t)
{
	for (size_t i = t->n_nodes; i--;) {
		struct tree_node *node = &t->nodes[i];

		node->total_value += node->self_value;
		node->total_samples += node->self_samples;
		if (i) {
			t->nodes[node->parent].total_value += node->total_value;
			t->nodes[node->parent].total_samples += node->total_samples;
		}
	}
}

static void push_child(struct tree *t, uint32_t node)
{
	struct tree_node *parent = &t->nodes[t->nodes[node].parent];

	t->nodes[node].next_sibling = parent->first_child;
	parent->first_child = node;
}

struct part_order {
	const struct tree *tree;
	const uint32_t *ranks; /* by owner */
};

static int compare_parts(const void *a, const void *b, void *arg)
{
	const struct part_order *order = arg;
	uint32_t x = order->ranks[order->tree->nodes[*(const uint32_t *)a].label];
	uint32_t y = order->ranks[order->tree->nodes[*(const uint32_t *)b].label];

	return (x > y) - (x < y);
}

static int link_parts(struct tree *t)
{
	_cleanup_free_ uint32_t *parts = calloc(t->n_nodes, sizeof(*parts));
	_cleanup_free_ uint32_t *ranks = NULL;
	struct part_order order = { .tree = t };
	size_t n = 0;

	if (!parts || owner_ranks(t->profile, owners_of(t->opts.split), &ranks))
		return -ENOMEM;
	order.ranks = ranks;
	for (size_t i = 1; i < t->n_nodes; i++)
		if (!t->nodes[i].parent)
			parts[n++] = (uint32_t)i;
	qsort_r(parts, n, sizeof(*parts), compare_parts, &order);
	while (n--)
		push_child(t, parts[n]);
	return 0;
}

static int link_children(struct tree_builder *b)
{
	struct tree *t = &b->tree;
	const struct groups *g = &b->groups;
	/* Nodes by rank; ends[rank] is first a count, then where the rank's nodes end so far. */
	_cleanup_free_ uint32_t *sorted = calloc(t->n_nodes, sizeof(*sorted));
	_cleanup_free_ size_t *ends = calloc(g->n + 1, sizeof(*ends));

	if (!sorted || !ends)
		return -ENOMEM;
	for (size_t i = 1; i < t->n_nodes; i++)
		if (t->nodes[i].frame != PROFILE_NONE)
			ends[g->rank[g->of_frame[t->nodes[i].frame]] + 1]++;
	for (size_t i = 1; i <= g->n; i++)
		ends[i] += ends[i - 1];
	for (size_t i = 1; i < t->n_nodes; i++)
		if (t->nodes[i].frame != PROFILE_NONE)
			sorted[ends[g->rank[g->of_frame[t->nodes[i].frame]]]++] = (uint32_t)i;
	for (size_t i = g->n ? ends[g->n - 1] : 0; i--;)
		push_child(t, sorted[i]);
	return t->opts.split == TREE_SPLIT_NONE ? 0 : link_parts(t);
}

int tree_build(const struct profile *p, const struct view_filter *f,
	       const struct tree_options *opts, struct tree *ret)
{
	struct tree_builder b;
	int err;

	if (opts->split != TREE_SPLIT_NONE && !p->by_thread)
		return -EINVAL;
	err = builder_init(&b, p, f, opts);
	if (err)
		goto out;
	err = add_samples(&b);
	if (err) {
		err = b.too_large ? -E2BIG : err;
		goto out;
	}
	add_totals(&b.tree);
	err = link_children(&b);
	if (err)
		goto out;
	*ret = b.tree;
	b.tree = (struct tree) { 0 }; /* owned by *ret now */
out:
	builder_deinit(&b);
	return err;
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
