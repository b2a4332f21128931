/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The paths that the selected samples of a profile take from the root of a call tree: what the
 * parts of a split tree have in common. It is made once, and the samples of each part are then
 * added up in it (tree.h), for one path may be in thousands of parts.
 */
#ifndef RBPF_VIEW_TREE_SHAPE_H
#define RBPF_VIEW_TREE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prefix_tree.h"

struct groups;
struct profile;
struct view_selection;

struct tree_shape {
	/*
	 * A path is that of its parent and a group. They are in the order of the call tree: a path,
	 * then all that go on from it, those with a group of a lower rank first. [0] is the empty
	 * path. Owned.
	 */
	struct prefix_node *paths;
	size_t n_paths;
	/*
	 * By stack id: its path, that of the shown frames of it; SHAPE_NONE if no selected sample
	 * has the stack or, of a shape that is not inverted, one that goes on from it. Owned.
	 */
	uint32_t *of_stack;
};

#define SHAPE_NONE UINT32_MAX

/* How large a shape may become, and how much may be done for it. */
struct tree_limits {
	size_t max_nodes;
	size_t max_steps; /* look-ups of paths, new ones and old ones */
	size_t steps;	  /* so far */
};

/*
 * Inverted, paths begin at the innermost frames. Returns 0, -ENOMEM, or -E2BIG beyond @limits.
 * @ret: tree_shape_deinit().
 */
int tree_shape_init(const struct profile *p, const struct view_selection *sel,
		    const struct groups *groups, bool inverted, struct tree_limits *limits,
		    struct tree_shape *ret);
/* Give back the memory of of_stack, which is NULL then. */
void tree_shape_drop_stacks(struct tree_shape *s);
void tree_shape_deinit(struct tree_shape *s); /* accepts one that is all zero */

#endif
