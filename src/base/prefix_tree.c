/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/prefix_tree.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/intern.h"

#define SLOTS_MIN 64u

_Static_assert(INTERN_MAX < 1u << HASH_SLOT_BITS, "a node fits");

int prefix_tree_init(struct prefix_tree *ret)
{
	struct prefix_tree t = { 0 };

	if (array_reserve(t.nodes, t.cap_nodes, 1))
		return -ENOMEM;
	t.nodes[0] = (struct prefix_node) { 0 };
	t.n_nodes = 1;
	t.seed = hash_seed();
	*ret = t;
	return 0;
}

void prefix_tree_deinit(struct prefix_tree *t)
{
	free(t->nodes);
	free(t->slots);
	*t = (struct prefix_tree) { 0 };
}

void prefix_tree_drop_slots(struct prefix_tree *t)
{
	free(t->slots);
	t->slots = NULL;
	t->mask = 0;
}

void prefix_tree_clear(struct prefix_tree *t)
{
	/* A table for the next nodes grows with them: to clear a large one for few takes longer. */
	prefix_tree_drop_slots(t);
	t->n_slots = 0;
	t->n_nodes = 1;
	t->nodes[0].first = 0;
}

void prefix_tree_shrink(struct prefix_tree *t)
{
	struct prefix_node *nodes;

	prefix_tree_clear(t);
	nodes = realloc(t->nodes, sizeof(*nodes));
	if (nodes) {
		t->nodes = nodes;
		t->cap_nodes = 1;
	}
}

static uint32_t hash_of(const struct prefix_tree *t, uint32_t parent, uint32_t what)
{
	return (uint32_t)hash_mix(t->seed ^ ((uint64_t)parent << 32 | what));
}

/* The slot of this child, or the free one where it belongs. */
static size_t find_slot(const struct prefix_tree *t, uint32_t parent, uint32_t what, uint32_t hash)
{
	size_t at = hash & t->mask;

	for (; t->slots[at]; at = (at + 1) & t->mask) {
		const struct prefix_node *node;

		if (!hash_slot_fits(t->slots[at], hash))
			continue;
		node = &t->nodes[hash_slot_number(t->slots[at])];
		if (node->parent == parent && node->what == what)
			break;
	}
	return at;
}

static bool has_slot(const struct prefix_tree *t, uint32_t node)
{
	return t->of_pairs || t->nodes[t->nodes[node].parent].first != node;
}

/* Make room in the slots, which are at most 3/4 full, for one node more. */
static int grow_slots(struct prefix_tree *t)
{
	const size_t want = t->n_slots + 1;
	size_t n = t->slots ? t->mask + 1 : 0;
	uint32_t *slots;

	if (want <= n / 4 * 3)
		return 0;
	for (n = SLOTS_MIN; want > n / 4 * 3;)
		n *= 2;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(t->slots);
	t->slots = slots;
	t->mask = n - 1;
	for (uint32_t i = 1; t->n_slots && i < t->n_nodes; i++) {
		const struct prefix_node *node = &t->nodes[i];
		const uint32_t hash = hash_of(t, node->parent, node->what);

		if (has_slot(t, i))
			slots[find_slot(t, node->parent, node->what, hash)] = hash_slot(hash, i);
	}
	return 0;
}

int prefix_tree_reserve(struct prefix_tree *t, size_t n)
{
	return array_reserve(t->nodes, t->cap_nodes, n) ? -ENOMEM : 0;
}

static int add_node(struct prefix_tree *t, uint32_t parent, uint32_t what, uint32_t *ret)
{
	if (t->n_nodes >= INTERN_MAX)
		return -E2BIG;
	if (array_reserve(t->nodes, t->cap_nodes, t->n_nodes + 1))
		return -ENOMEM;
	t->nodes[t->n_nodes] = (struct prefix_node) { .parent = parent, .what = what };
	*ret = (uint32_t)t->n_nodes++;
	return 0;
}

/* The node of this pair that has a slot. */
static int find_or_add(struct prefix_tree *t, uint32_t parent, uint32_t what, uint32_t *ret)
{
	const uint32_t hash = hash_of(t, parent, what);
	size_t slot;
	int r;

	if (grow_slots(t))
		return -ENOMEM;
	slot = find_slot(t, parent, what, hash);
	if (t->slots[slot]) {
		*ret = hash_slot_number(t->slots[slot]);
		return 0;
	}
	r = add_node(t, parent, what, ret);
	if (r)
		return r;
	t->slots[slot] = hash_slot(hash, *ret);
	t->n_slots++;
	return 0;
}

int prefix_tree_child(struct prefix_tree *t, uint32_t parent, uint32_t what, uint32_t *ret)
{
	uint32_t first;
	int r;

	if (parent >= t->n_nodes)
		return -EINVAL;
	first = t->nodes[parent].first;
	if (!first) {
		r = add_node(t, parent, what, ret);
		if (!r)
			t->nodes[parent].first = *ret;
		return r;
	}
	if (t->nodes[first].what != what)
		return find_or_add(t, parent, what, ret);
	*ret = first;
	return 0;
}

int prefix_tree_pair(struct prefix_tree *t, uint32_t one, uint32_t other, uint32_t *ret)
{
	t->of_pairs = true;
	return find_or_add(t, one, other, ret);
}
