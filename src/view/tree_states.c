/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much of each node threads spent in which state. Nodes are few, as narrow paths have none, so
 * each has a sum for every state; paths may be many, so they have one, for one state after the
 * other.
 */
#include "view/tree_builder.h"

#include <errno.h>

#include "base/array.h"
#include "profile/profile.h"

static unsigned int part_of(const struct tree_builder *b, const struct profile_aggregate *a)
{
	return state_part(state_of(b->states, a->stack, a->flags));
}

/* The aggregates of @part; *@n: how many. */
static const uint32_t *aggregates_of(const struct tree_builder *b, uint32_t part, size_t *n)
{
	*n = b->starts[part + 1] - b->starts[part];
	return b->order + b->starts[part];
}

/* Which states samples of @part are of, as bits. */
static uint32_t find_states(const struct tree_builder *b, uint32_t part)
{
	size_t n;
	const uint32_t *order = aggregates_of(b, part, &n);
	uint32_t found = 0;

	for (size_t i = 0; i < n; i++)
		found |= 1u << part_of(b, &b->profile->aggregates[order[i]]);
	return found;
}

/* What each path of @part has itself of samples of @state. */
static void add_own(struct tree_builder *b, uint32_t part, unsigned int state)
{
	size_t n;
	const uint32_t *order = aggregates_of(b, part, &n);

	for (size_t i = 0; i < b->n_met; i++)
		b->in_state[b->met[i]] = 0;
	for (size_t i = 0; i < n; i++) {
		const struct profile_aggregate *a = &b->profile->aggregates[order[i]];

		if (part_of(b, a) == state)
			b->in_state[b->shape.of_stack[a->stack]] += b->value ? a->value
									     : a->samples;
	}
}

/* The node of @path; NULL if it has none. */
static struct tree_states *states_of(struct tree_builder *b, uint32_t path)
{
	const uint32_t node = b->sums[path].node;

	return node & TREE_LEFT_OUT ? NULL : &b->tree.states[node];
}

static void add_state(struct tree_builder *b, uint32_t part, unsigned int state)
{
	struct tree_states *of;

	add_own(b, part, state);
	for (size_t i = 0; i < b->n_met; i++)
		if ((of = states_of(b, b->met[i])))
			of->self[state] = b->in_state[b->met[i]];
	for (size_t i = b->n_met; i--;) {
		const uint32_t path = b->met[i];

		if ((of = states_of(b, path)))
			of->total[state] = b->in_state[path];
		if (path)
			b->in_state[b->shape.paths[path].parent] += b->in_state[path];
	}
	/* The root of a split tree is no path: it has what its parts have. */
	if (b->tree.opts.split != TREE_SPLIT_NONE)
		b->tree.states[0].total[state] += b->in_state[0];
}

int tree_sum_states(struct tree_builder *b, uint32_t part)
{
	const uint32_t states = find_states(b, part);
	struct tree *t = &b->tree;

	if (array_reserve(t->states, t->cap_states, t->n_nodes))
		return -ENOMEM;
	for (unsigned int i = 0; i < STATE_PARTS; i++)
		if (states >> i & 1)
			add_state(b, part, i);
	return 0;
}
