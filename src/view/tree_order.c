/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups are ranked by name. Going through all nodes from the highest rank to the lowest and
 * putting each before its siblings leaves every list of children sorted.
 */
#include "view/tree_order.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "profile/profile.h"
#include "view/group.h"
#include "view/tree.h"

/*
 * With so many groups for each node, it takes longer to count the nodes of each than to compare
 * nodes.
 */
#define MANY_GROUPS 16

void tree_push_child(struct tree *t, uint32_t node)
{
	struct tree_node *parent = &t->nodes[t->nodes[node].parent];

	t->nodes[node].next_sibling = parent->first_child;
	parent->first_child = node;
}

struct node_order {
	const struct tree *tree;
	const struct groups *groups;
};

static uint32_t rank_of(const struct tree *t, const struct groups *g, uint32_t node)
{
	return g->rank[g->of_frame[t->nodes[node].frame]];
}

static int compare_nodes(const void *a, const void *b, void *arg)
{
	const struct node_order *order = arg;
	uint32_t x = rank_of(order->tree, order->groups, *(const uint32_t *)a);
	uint32_t y = rank_of(order->tree, order->groups, *(const uint32_t *)b);

	return (x > y) - (x < y);
}

static void sort_by_comparing(const struct tree *t, const struct groups *g, uint32_t *sorted,
			      size_t n)
{
	struct node_order order = { .tree = t, .groups = g };

	if (n)
		qsort_r(sorted, n, sizeof(*sorted), compare_nodes, &order);
}

static int sort_by_counting(const struct tree *t, const struct groups *g, uint32_t *sorted)
{
	/* ends[rank] is first a count, then where the rank's nodes end so far. */
	_cleanup_free_ size_t *ends = calloc(g->n + 1, sizeof(*ends));

	if (!ends)
		return -ENOMEM;
	for (uint32_t i = 1; i < t->n_nodes; i++)
		if (t->nodes[i].frame != PROFILE_NONE)
			ends[rank_of(t, g, i) + 1]++;
	for (size_t i = 1; i <= g->n; i++)
		ends[i] += ends[i - 1];
	for (uint32_t i = 1; i < t->n_nodes; i++)
		if (t->nodes[i].frame != PROFILE_NONE)
			sorted[ends[rank_of(t, g, i)]++] = i;
	return 0;
}

int tree_order_frames(struct tree *t, const struct groups *g)
{
	_cleanup_free_ uint32_t *sorted = calloc(t->n_nodes, sizeof(*sorted));
	size_t n = 0;

	if (!sorted)
		return -ENOMEM;
	for (uint32_t i = 1; i < t->n_nodes; i++)
		if (t->nodes[i].frame != PROFILE_NONE)
			sorted[n++] = i;
	if (n < g->n / MANY_GROUPS)
		sort_by_comparing(t, g, sorted, n);
	else if (sort_by_counting(t, g, sorted))
		return -ENOMEM;
	while (n--)
		tree_push_child(t, sorted[n]);
	return 0;
}
