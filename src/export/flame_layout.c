/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/flame_layout.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "view/tree.h"

static uint64_t width_of(const struct flame_layout *layout, const struct tree_node *node)
{
	return layout->by_samples ? node->total_samples : node->total_value;
}

int flame_layout_build(const struct tree *t, double min_percent, struct flame_layout *ret)
{
	_cleanup_flame_layout_ struct flame_layout layout = {
		.by_samples = t->nodes[0].total_value == 0,
		.n_hidden = t->n_left_out,
	};
	/* By node: where its next child goes. */
	_cleanup_free_ uint64_t *next_x = calloc(t->n_nodes, sizeof(*next_x));
	double min_width;
	uint32_t node = 0;

	if (!next_x)
		return -ENOMEM;
	layout.total = width_of(&layout, &t->nodes[0]);
	min_width = (double)layout.total * min_percent / 100;
	do {
		const struct tree_node *n = &t->nodes[node];
		uint64_t x = next_x[n->parent], w = width_of(&layout, n);

		if (node && (!w || (double)w < min_width)) {
			uint32_t end = tree_skip(t, node);

			for (; node != end; node = tree_next(t, node))
				layout.n_hidden++;
			continue;
		}
		if (array_reserve(layout.boxes, layout.cap_boxes, layout.n_boxes + 1))
			return -ENOMEM;
		layout.boxes[layout.n_boxes++] = (struct flame_box) {
			.x = x,
			.w = w,
			.depth = n->depth,
			.node = node,
		};
		if (n->depth > layout.max_depth)
			layout.max_depth = n->depth;
		next_x[node] = x;
		if (node)
			next_x[n->parent] += w;
		node = tree_next(t, node);
	} while (node);
	*ret = layout;
	layout = (struct flame_layout)FLAME_LAYOUT_INIT; /* owned by *ret now */
	return 0;
}

void flame_layout_deinit(struct flame_layout *layout)
{
	if (!layout)
		return;
	free(layout->boxes);
	*layout = (struct flame_layout)FLAME_LAYOUT_INIT;
}
