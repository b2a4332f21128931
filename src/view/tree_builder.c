/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is known before the first part is added up: which aggregates each part has, and the paths of
 * all.
 */
#include "view/tree_builder.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/intern.h"
#include "profile/profile.h"
#include "view/filter.h"
#include "view/sum.h"

/* Bytes that a node takes here and in what is made of it, about. */
#define TREE_NODE_COST 256
/* One path may be in many parts. */
#define STEPS_PER_NODE 4

void tree_builder_deinit(struct tree_builder *b)
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
	free(b->exact);
	free(b->states);
	free(b->in_state);
	free(b->jit);
	free(b->stacks);
	free(b->reached);
	free(b->above);
}

enum owner_kind tree_owners_of(enum tree_split split)
{
	static const enum owner_kind kinds[] = {
		[TREE_SPLIT_PROCESS] = OWNER_PROCESS,	  [TREE_SPLIT_THREAD] = OWNER_THREAD,
		[TREE_SPLIT_CONTAINER] = OWNER_CONTAINER, [TREE_SPLIT_RUBY] = OWNER_RUBY,
		[TREE_SPLIT_REQUEST] = OWNER_REQUEST,
	};

	return kinds[split];
}

bool tree_can_split(const struct profile *p, enum tree_split split)
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

	return split == TREE_SPLIT_NONE ? 0
					: owner_of_aggregate(b->profile, tree_owners_of(split), a);
}

static size_t count_parts(const struct tree_builder *b)
{
	enum tree_split split = b->tree.opts.split;

	return split == TREE_SPLIT_NONE ? 1 : owner_limit(b->profile, tree_owners_of(split));
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

static bool has_exact(const struct tree_builder *b)
{
	for (size_t i = 0; i < b->starts[b->n_parts]; i++) {
		const struct profile_aggregate *a = &b->profile->aggregates[b->order[i]];

		if (view_sum_of(b->profile, a).exact_samples)
			return true;
	}
	return false;
}

static int alloc_exact(struct tree_builder *b)
{
	b->exact = calloc(b->shape.n_paths, sizeof(*b->exact));
	if (!b->exact || array_reserve(b->tree.exact, b->tree.cap_exact, 1))
		return -ENOMEM;
	b->tree.exact[0] = (struct tree_exact) { 0 };
	return 0;
}

static int alloc_states(struct tree_builder *b)
{
	b->in_state = calloc(b->shape.n_paths, sizeof(*b->in_state));
	return b->in_state ? state_of_stacks(b->profile, &b->states) : -ENOMEM;
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

int tree_builder_init(struct tree_builder *b, const struct profile *p, const struct view_filter *f,
		      const struct tree_options *opts)
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
	if (opts->exact && has_exact(b) && alloc_exact(b))
		return -ENOMEM;
	if (opts->states && alloc_states(b))
		return -ENOMEM;
	if (b->n_parts > 1)
		count_own(b);
	return 0;
}
