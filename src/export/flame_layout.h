/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The positions of the boxes of a flame graph, in units of the event's value: no pixels, no
 * colours.
 */
#ifndef RBPF_EXPORT_FLAME_LAYOUT_H
#define RBPF_EXPORT_FLAME_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "view/state.h"

struct tree;

struct flame_box {
	uint64_t x, w;	 /* in units of the layout */
	uint32_t depth;	 /* the root is 0 */
	uint32_t node;	 /* in the tree; of a rest: the parent of what is left out */
	bool is_rest;	 /* it stands for all children of @node that have no box */
	uint64_t n_rest; /* nodes that it stands for, as far as the tree has them; 0: unknown */
	uint64_t rest_value, rest_samples;
	uint32_t rest; /* of a rest: its place in .rests */
};

/* What is left out, by part of the time (state.h). */
struct flame_rest {
	uint64_t states[STATE_PARTS];
};

struct flame_layout {
	struct flame_box *boxes; /* in preorder: the first is the root; owned */
	size_t n_boxes, cap_boxes;
	struct flame_rest *rests; /* by .rest, if the tree tells states, else NULL; owned */
	size_t n_rests, cap_rests;
	uint64_t total;	    /* width of the root */
	uint32_t max_depth; /* of a box */
	uint64_t n_hidden;  /* nodes that are too narrow */
	double min_width;   /* of a box but the root's, in units of the layout */
	bool is_limited;    /* it is that of @max_nodes */
	bool by_samples;    /* the unit is a sample, as all weights are 0; else the event's */
};

/* The narrowest box that @layout may have, in its unit; 0 if only the share decided that. */
static inline uint64_t flame_layout_limit(const struct flame_layout *layout)
{
	return layout->is_limited ? (uint64_t)layout->min_width : 0;
}

#define FLAME_LAYOUT_INIT                                                                          \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Children are within their parent from its left end on, in the order of the tree; what they leave
 * free at the right is the parent's self time. Nodes narrower than @min_percent of the root are
 * left out with all below them, and so many of the narrowest that @max_nodes are left: one box, the
 * rest, stands for all children of a node that are left out, if it is not too narrow itself.
 * Returns 0 or -ENOMEM. @ret: flame_layout_deinit().
 */
int flame_layout_build(const struct tree *t, double min_percent, size_t max_nodes,
		       struct flame_layout *ret);
void flame_layout_deinit(struct flame_layout *layout);

#endif
