/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The order of the children in a call tree, as their lists of siblings: a step of tree_build().
 */
#ifndef RBPF_VIEW_TREE_ORDER_H
#define RBPF_VIEW_TREE_ORDER_H

#include <stdint.h>

struct groups;
struct tree;

/* Put @node, which is in no list yet, before its siblings. */
void tree_push_child(struct tree *t, uint32_t node);

/*
 * Make the lists of children by the rank of their groups in @g; nodes without a frame get into
 * none. Takes time that grows with the number of nodes, and that of groups or a logarithm. Returns
 * 0 or -ENOMEM.
 */
int tree_order_frames(struct tree *t, const struct groups *g);

#endif
