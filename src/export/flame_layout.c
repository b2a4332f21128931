/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/flame_layout.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "view/tree.h"

/* A node on the path to the one that is laid out, and what of it its children have taken so far. */
struct open_node {
	uint32_t node;
	uint64_t x; /* where its next child goes */
	uint64_t value, samples;
	uint64_t n_left_out;
	struct flame_rest taken; /* by state, if the tree tells */
};

struct layout_builder {
	const struct tree *tree;
	struct flame_layout layout;
	struct open_node *open; /* by depth; owned */
	size_t n_open, cap_open;
};

static uint64_t width_of(const struct flame_layout *layout, const struct tree_node *node)
{
	return layout->by_samples ? node->total_samples : node->total_value;
}

static bool is_shown(const struct flame_layout *layout, uint64_t width)
{
	return width && (double)width >= layout->min_width;
}

static int add_box(struct flame_layout *layout, const struct flame_box *box)
{
	if (array_reserve(layout->boxes, layout->cap_boxes, layout->n_boxes + 1))
		return -ENOMEM;
	layout->boxes[layout->n_boxes++] = *box;
	if (box->depth > layout->max_depth)
		layout->max_depth = box->depth;
	return 0;
}

/* By state, what no box shows of the children of @open. */
static int add_rest_states(struct layout_builder *b, const struct open_node *open,
			   struct flame_box *box)
{
	struct flame_layout *layout = &b->layout;
	struct flame_rest rest;

	if (!b->tree->states)
		return 0;
	for (size_t i = 0; i < STATE_PARTS; i++)
		rest.states[i] = b->tree->states[open->node].total[i] -
				 b->tree->states[open->node].self[i] - open->taken.states[i];
	if (array_reserve(layout->rests, layout->cap_rests, layout->n_rests + 1))
		return -ENOMEM;
	box->rest = (uint32_t)layout->n_rests;
	layout->rests[layout->n_rests++] = rest;
	return 0;
}

/* All children of @open that have a box have one by now: one for the others. */
static int add_rest(struct layout_builder *b, const struct open_node *open)
{
	const struct tree_node *n = &b->tree->nodes[open->node];
	struct flame_box box = {
		.x = open->x,
		.depth = n->depth + 1,
		.node = open->node,
		.is_rest = true,
		.n_rest = open->n_left_out,
		.rest_value = n->total_value - n->self_value - open->value,
		.rest_samples = n->total_samples - n->self_samples - open->samples,
	};

	box.w = b->layout.by_samples ? box.rest_samples : box.rest_value;
	if (!is_shown(&b->layout, box.w))
		return 0;
	return add_rest_states(b, open, &box) ? -ENOMEM : add_box(&b->layout, &box);
}

/* The nodes at @depth and below have all their children. */
static int close_nodes(struct layout_builder *b, uint32_t depth)
{
	int r = 0;

	for (; b->n_open > depth && !r; b->n_open--)
		r = add_rest(b, &b->open[b->n_open - 1]);
	return r;
}

static int open_node(struct layout_builder *b, uint32_t node)
{
	const struct tree_node *n = &b->tree->nodes[node];
	struct flame_box box = { .w = width_of(&b->layout, n), .depth = n->depth, .node = node };

	if (n->depth) {
		struct open_node *parent = &b->open[n->depth - 1];

		box.x = parent->x;
		parent->x += box.w;
		parent->value += n->total_value;
		parent->samples += n->total_samples;
		for (size_t i = 0; b->tree->states && i < STATE_PARTS; i++)
			parent->taken.states[i] += b->tree->states[node].total[i];
	}
	if (array_reserve(b->open, b->cap_open, b->n_open + 1))
		return -ENOMEM;
	b->open[b->n_open++] = (struct open_node) {
		.node = node,
		.x = box.x,
		.n_left_out = n->n_left_out,
	};
	return add_box(&b->layout, &box);
}

/* Leave out @node and all below it. Returns the node that comes then. */
static uint32_t leave_out(struct layout_builder *b, uint32_t node)
{
	const uint32_t end = tree_skip(b->tree, node);
	struct open_node *parent = &b->open[b->tree->nodes[node].depth - 1];

	for (; node != end; node = tree_next(b->tree, node)) {
		parent->n_left_out += 1 + b->tree->nodes[node].n_left_out;
		b->layout.n_hidden++;
	}
	return end;
}

static int lay_out(struct layout_builder *b)
{
	uint32_t node = 0;
	int r;

	do {
		const struct tree_node *n = &b->tree->nodes[node];

		r = close_nodes(b, n->depth);
		if (r)
			return r;
		if (node && !is_shown(&b->layout, width_of(&b->layout, n))) {
			node = leave_out(b, node);
			continue;
		}
		r = open_node(b, node);
		if (r)
			return r;
		node = tree_next(b->tree, node);
	} while (node);
	return close_nodes(b, 0);
}

static int compare_widths(const void *va, const void *vb)
{
	const uint64_t a = *(const uint64_t *)va, b = *(const uint64_t *)vb;

	return a < b ? 1 : a > b ? -1 : 0;
}

/*
 * Let at most @max nodes be shown. No child is wider than its parent, so what is shown is a tree.
 */
static int limit_nodes(const struct tree *t, size_t max, struct flame_layout *layout)
{
	_cleanup_free_ uint64_t *widths = malloc(t->n_nodes * sizeof(*widths));
	size_t n = 0;

	if (!widths)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_nodes; i++)
		if (is_shown(layout, width_of(layout, &t->nodes[i])))
			widths[n++] = width_of(layout, &t->nodes[i]);
	if (n <= max)
		return 0;
	qsort(widths, n, sizeof(*widths), compare_widths);
	layout->min_width = (double)widths[max] + 1;
	layout->is_limited = true;
	return 0;
}

int flame_layout_build(const struct tree *t, double min_percent, size_t max_nodes,
		       struct flame_layout *ret)
{
	struct layout_builder b = { .tree = t };
	int r;

	b.layout.by_samples = t->nodes[0].total_value == 0;
	b.layout.n_hidden = t->n_left_out;
	b.layout.total = width_of(&b.layout, &t->nodes[0]);
	b.layout.min_width = (double)b.layout.total * min_percent / 100;
	r = limit_nodes(t, max_nodes, &b.layout);
	if (!r)
		r = lay_out(&b);
	free(b.open);
	if (r)
		flame_layout_deinit(&b.layout);
	else
		*ret = b.layout;
	return r;
}

void flame_layout_deinit(struct flame_layout *layout)
{
	if (!layout)
		return;
	free(layout->boxes);
	free(layout->rests);
	*layout = (struct flame_layout)FLAME_LAYOUT_INIT;
}
