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
	t->n_nodes = 1;
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

/* Make room in the slots, which are at most 3/4 full, for @want nodes. */
static int grow_slots(struct prefix_tree *t, size_t want)
{
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
	for (uint32_t i = 1; i < t->n_nodes; i++) {
		const uint32_t hash = hash_of(t, t->nodes[i].parent, t->nodes[i].what);

		slots[find_slot(t, t->nodes[i].parent, t->nodes[i].what, hash)] = hash_slot(hash,
											    i);
	}
	return 0;
}

int prefix_tree_reserve(struct prefix_tree *t, size_t n)
{
	return array_reserve(t->nodes, t->cap_nodes, n) ? -ENOMEM : grow_slots(t, n);
}

int prefix_tree_child(struct prefix_tree *t, uint32_t parent, uint32_t what, uint32_t *ret)
{
	const uint32_t hash = hash_of(t, parent, what);
	size_t slot;

	if (grow_slots(t, t->n_nodes + 1))
		return -ENOMEM;
	slot = find_slot(t, parent, what, hash);
	if (!t->slots[slot]) {
		if (t->n_nodes >= INTERN_MAX)
			return -E2BIG;
		if (array_reserve(t->nodes, t->cap_nodes, t->n_nodes + 1))
			return -ENOMEM;
		t->nodes[t->n_nodes] = (struct prefix_node) { parent, what };
		t->slots[slot] = hash_slot(hash, (uint32_t)t->n_nodes++);
	}
	*ret = hash_slot_number(t->slots[slot]);
	return 0;
}
