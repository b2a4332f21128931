/* SPDX-License-Identifier: GPL-2.0-only */
/* What the paths of one part have, in arrays that all parts use one after the other. */
#include "view/tree_builder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "profile/profile.h"
#include "view/filter.h"
#include "view/sum.h"

/* If a part has fewer paths than one in so many, sorting them takes less than looking for them. */
#define FEW_PATHS  16
/*
 * If it has more than that, to go through all paths in their order takes less than to go up from
 * each.
 */
#define MANY_PATHS 8

/* Note that this part has @path, and so its parents. */
static void meet(struct tree_builder *b, uint32_t path)
{
	while (b->sums[path].part != b->part) {
		b->sums[path] = (struct path_sum) { .part = b->part };
		if (b->exact)
			b->exact[path] = (struct tree_exact) { 0 };
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
	const uint32_t path = b->shape.of_stack[a->stack];
	struct path_sum *sum = &b->sums[path];

	sum->part = b->part;
	sum->self_value += a->value;
	sum->self_samples += a->samples;
	if (b->exact) {
		const struct view_sum of = view_sum_of(b->profile, a);

		b->exact[path].samples += of.exact_samples;
		b->exact[path].value += of.exact_value;
	}
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
	if (b->part > 1 && b->exact)
		memset(b->exact, 0, b->shape.n_paths * sizeof(*b->exact));
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

int tree_sum_part(struct tree_builder *b, uint32_t part)
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

void tree_sum_totals(struct tree_builder *b)
{
	for (size_t i = b->n_met; i--;) {
		struct path_sum *sum = &b->sums[b->met[i]];
		const uint32_t above = b->shape.paths[b->met[i]].parent;
		struct path_sum *parent = &b->sums[above];

		sum->total_value += sum->self_value;
		sum->total_samples += sum->self_samples;
		if (!b->met[i])
			break;
		parent->total_value += sum->total_value;
		parent->total_samples += sum->total_samples;
		if (b->exact) {
			b->exact[above].samples += b->exact[b->met[i]].samples;
			b->exact[above].value += b->exact[b->met[i]].value;
		}
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

int tree_sum_jit(struct tree_builder *b, uint32_t part)
{
	if (!b->jit)
		return 0;
	if (b->tree.opts.inverted)
		return add_inverted_jit_of_part(b, part);
	add_jit_of_part(b, part);
	return 0;
}
