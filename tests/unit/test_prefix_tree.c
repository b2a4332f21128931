/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/intern.h"
#include "base/prefix_tree.h"

#define RANDOM 88172645463325252ull

/* xorshift64 */
static uint64_t next_random(uint64_t random)
{
	random ^= random << 13;
	random ^= random >> 7;
	return random ^ random << 17;
}

static void assert_sane_prefix_tree(const struct prefix_tree *t)
{
	cr_assert_gt(t->n_nodes, 0);
	cr_assert_eq(t->nodes[0].parent, 0, "the root is its own parent");
	for (size_t i = 1; i < t->n_nodes; i++)
		cr_assert_lt(t->nodes[i].parent, i, "parents come first");
}

Test(prefix_tree, one_node_for_each_path)
{
	struct prefix_tree t;
	uint32_t a, b, again;

	cr_assert_eq(prefix_tree_init(&t), 0);
	cr_assert_eq(prefix_tree_child(&t, 0, 7, &a), 0);
	cr_expect_eq(a, 1);
	cr_assert_eq(prefix_tree_child(&t, a, 7, &b), 0);
	cr_expect_eq(b, 2, "the same below another parent");
	cr_assert_eq(prefix_tree_child(&t, 0, 7, &again), 0);
	cr_expect_eq(again, a);
	cr_expect_eq(prefix_tree_child(&t, 3, 7, &again), -EINVAL, "there is no such parent");
	cr_expect_eq(t.n_nodes, 3);
	assert_sane_prefix_tree(&t);
	prefix_tree_deinit(&t);
	prefix_tree_deinit(&t); /* twice is allowed */
}

/* The ids of an intern of the same pairs, in which node 0 is missing. */
Test(prefix_tree, as_an_intern_of_pairs)
{
	struct intern pairs = INTERN_INIT;
	struct prefix_tree t;
	uint64_t random = RANDOM;

	cr_assert_eq(prefix_tree_init(&t), 0);
	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < 20000; i++) {
			uint32_t pair[2], node, id;

			random = next_random(random);
			pair[0] = (uint32_t)((random >> 40) % t.n_nodes);
			pair[1] = random % 4;
			cr_assert_eq(intern_add(&pairs, pair, sizeof(pair), &id, NULL), 0);
			cr_assert_eq(prefix_tree_child(&t, pair[0], pair[1], &node), 0);
			if (i % 5000 == 4999)
				prefix_tree_drop_slots(&t);
			cr_assert_eq(node, id + 1);
			cr_assert_eq(t.nodes[node].parent, pair[0]);
			cr_assert_eq(t.nodes[node].what, pair[1]);
		}
		cr_expect_eq(t.n_nodes, pairs.count + 1);
		assert_sane_prefix_tree(&t);
		cr_assert_eq(prefix_tree_reserve(&t, t.n_nodes / 2), 0, "has it already");
		if (round)
			prefix_tree_shrink(&t);
		else
			prefix_tree_clear(&t);
		intern_deinit(&pairs);
		cr_expect_eq(t.n_nodes, 1, "the root stays");
	}
	prefix_tree_deinit(&t);
}

Test(prefix_tree, room_changes_no_node)
{
	struct prefix_tree t;
	uint32_t node = 0;
	size_t cap;

	cr_assert_eq(prefix_tree_init(&t), 0);
	cr_assert_eq(prefix_tree_child(&t, 0, 1, &node), 0);
	cr_assert_eq(prefix_tree_reserve(&t, 10000), 0);
	cap = t.cap_nodes;
	for (uint32_t i = 2; i < 10000; i++) {
		cr_assert_eq(prefix_tree_child(&t, node, i, &node), 0);
		cr_assert_eq(node, i);
	}
	cr_expect_eq(t.cap_nodes, cap);
	cr_assert_eq(prefix_tree_child(&t, 0, 1, &node), 0);
	cr_expect_eq(node, 1, "what was there is found");
	assert_sane_prefix_tree(&t);
	prefix_tree_deinit(&t);
}

/* Of numbers that are no nodes. */
Test(prefix_tree, pairs)
{
	struct intern pairs = INTERN_INIT;
	struct prefix_tree t;
	uint64_t random = RANDOM;

	cr_assert_eq(prefix_tree_init(&t), 0);
	for (unsigned int i = 0; i < 20000; i++) {
		uint32_t pair[2], node, id;

		random = next_random(random);
		pair[0] = UINT32_MAX - (uint32_t)((random >> 40) % 1000);
		pair[1] = random % 100;
		cr_assert_eq(intern_add(&pairs, pair, sizeof(pair), &id, NULL), 0);
		cr_assert_eq(prefix_tree_pair(&t, pair[0], pair[1], &node), 0);
		cr_assert_eq(node, id + 1);
	}
	cr_expect_eq(t.n_nodes, pairs.count + 1);
	intern_deinit(&pairs);
	prefix_tree_deinit(&t);
}

/* A chain of calls needs no table. */
Test(prefix_tree, only_children_are_in_no_slot)
{
	struct prefix_tree t;
	uint32_t node = 0, again = 0;

	cr_assert_eq(prefix_tree_init(&t), 0);
	for (uint32_t i = 0; i < 1000; i++)
		cr_assert_eq(prefix_tree_child(&t, node, i % 7, &node), 0);
	for (uint32_t i = 0; i < 1000; i++)
		cr_assert_eq(prefix_tree_child(&t, again, i % 7, &again), 0);
	cr_expect_eq(again, node);
	cr_expect_eq(t.n_nodes, 1001);
	cr_expect_null(t.slots);
	cr_assert_eq(prefix_tree_child(&t, 500, 99, &node), 0);
	cr_assert_eq(prefix_tree_child(&t, 500, 99, &again), 0);
	cr_expect_eq(again, node);
	cr_expect_eq(t.n_slots, 1);
	prefix_tree_deinit(&t);
}
