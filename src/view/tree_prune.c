/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/tree_prune.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "view/tree.h"

#define LEFT_OUT UINT32_MAX

int tree_prune(struct tree *t, size_t first, double min, bool by_samples)
{
	/* Where the nodes from @first on go. */
	_cleanup_free_ uint32_t *moved = calloc(t->n_nodes - first + 1, sizeof(*moved));
	size_t n = first;

	if (!moved)
		return -ENOMEM;
	for (size_t i = first; i < t->n_nodes; i++) {
		const struct tree_node *node = &t->nodes[i];
		uint64_t width = by_samples ? node->total_samples : node->total_value;
		bool below = node->parent >= first && moved[node->parent - first] == LEFT_OUT;

		moved[i - first] = below || (double)width < min ? LEFT_OUT : (uint32_t)n++;
		t->n_left_out += moved[i - first] == LEFT_OUT;
	}
	for (size_t i = first; i < t->n_nodes; i++) {
		struct tree_node node = t->nodes[i];

		if (moved[i - first] == LEFT_OUT)
			continue;
		if (node.parent >= first)
			node.parent = moved[node.parent - first];
		t->nodes[moved[i - first]] = node;
	}
	t->n_nodes = n;
	return 0;
}
