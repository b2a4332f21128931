/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Leaving narrow nodes out of a call tree: a step of tree_build().
 *
 * A picture shows a few thousands of the millions of nodes that a long recording of many threads
 * has.
 */
#ifndef RBPF_VIEW_TREE_PRUNE_H
#define RBPF_VIEW_TREE_PRUNE_H

#include <stdbool.h>
#include <stddef.h>

struct tree;

/*
 * Leave out the nodes from @first on, a whole part whose totals are known, that are narrower than
 * @min, and all below them. The lists of children must not have been made yet. Returns 0 or
 * -ENOMEM.
 */
int tree_prune(struct tree *t, size_t first, double min, bool by_samples);

#endif
