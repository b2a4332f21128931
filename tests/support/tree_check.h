/* SPDX-License-Identifier: GPL-2.0-only */
/* What holds for every struct tree. */
#ifndef RBPF_TESTS_TREE_CHECK_H
#define RBPF_TESTS_TREE_CHECK_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"
#include "view/tree.h"

/* Siblings are in the order of names; equal names differ by what they stand for. */
static inline void check_tree_siblings(const struct tree *t, uint32_t first)
{
	for (uint32_t i = first; i; i = t->nodes[i].next_sibling) {
		uint32_t next = t->nodes[i].next_sibling;

		if (!next || t->nodes[i].frame == PROFILE_NONE)
			continue;
		cr_assert_leq(
			strcmp(profile_str(t->profile, t->profile->frames[t->nodes[i].frame].name),
			       profile_str(t->profile,
					   t->profile->frames[t->nodes[next].frame].name)),
			0, "siblings are sorted");
	}
}

static inline void assert_sane_tree(const struct tree *t)
{
	uint64_t *ns = calloc(t->n_nodes, sizeof(*ns)), self_value = 0;
	uint64_t *samples = calloc(t->n_nodes, sizeof(*samples)), self_samples = 0;
	size_t seen = 1;

	cr_assert(ns && samples && t->n_nodes > 0);
	cr_assert_eq(t->nodes[0].parent, 0, "the root is its own parent");
	cr_assert_eq(t->nodes[0].frame, PROFILE_NONE);
	for (uint32_t i = 1; i < t->n_nodes; i++) {
		const struct tree_node *node = &t->nodes[i];

		cr_assert_lt(node->parent, i, "parents come first");
		cr_assert_eq(node->depth, t->nodes[node->parent].depth + 1, "depth");
		cr_assert_gt(node->total_samples, 0, "no node without a sample");
		ns[node->parent] += node->total_value;
		samples[node->parent] += node->total_samples;
	}
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		const struct tree_node *node = &t->nodes[i];

		cr_assert_eq(node->total_value, node->self_value + ns[i],
			     "total is self and children");
		cr_assert_eq(node->total_samples, node->self_samples + samples[i], "samples");
		self_value += node->self_value;
		self_samples += node->self_samples;
		check_tree_siblings(t, node->first_child);
	}
	cr_assert_eq(self_value, t->nodes[0].total_value, "sum over self is the total of the root");
	cr_assert_eq(self_samples, t->nodes[0].total_samples, "the same of samples");
	for (uint32_t i = tree_next(t, 0); i; i = tree_next(t, i))
		seen++;
	cr_assert_eq(seen, t->n_nodes, "the traversal meets every node");
	free(ns);
	free(samples);
}

#endif
