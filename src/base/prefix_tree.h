/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A prefix tree: a node is what its parent is followed by, and there is one node for each pair of a
 * parent and what follows. Both are numbers; what they stand for is the caller's.
 *
 * A node takes about 20 bytes, half of what a pair takes in an intern (intern.h). Single nodes
 * cannot be removed. Not thread-safe.
 */
#ifndef RBPF_BASE_PREFIX_TREE_H
#define RBPF_BASE_PREFIX_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct prefix_node {
	uint32_t parent; /* node; the root is its own */
	uint32_t what;	 /* 0 in the root */
};

struct prefix_tree {
	struct prefix_node *nodes; /* [0] is the root, parents are before their children; owned */
	size_t n_nodes, cap_nodes;
	uint32_t *slots; /* open addressing: hash_slot() of a node, 0 is free; owned */
	size_t mask;	 /* slots - 1 */
	uint64_t seed;	 /* hash_seed() */
};

/* A tree of the root alone. Returns 0 or -ENOMEM. @ret: prefix_tree_deinit(). */
int prefix_tree_init(struct prefix_tree *ret);
void prefix_tree_deinit(struct prefix_tree *t); /* accepts one that is all zero */

/* Make room for @n nodes in all, so that the tree need not grow up to them. Returns 0 or -ENOMEM. */
int prefix_tree_reserve(struct prefix_tree *t, size_t n);

/* Remove all nodes but the root; keeps the memory of the nodes. */
void prefix_tree_clear(struct prefix_tree *t);

/* The same, but give that memory back. */
void prefix_tree_shrink(struct prefix_tree *t);

/* Give back what children are found by; the next prefix_tree_child() makes it anew. */
void prefix_tree_drop_slots(struct prefix_tree *t);

/*
 * The child of @parent for @what, made if there is none yet: then its number is the number of nodes
 * before. @parent may be another number than that of a node, if it means something to the caller.
 * Returns 0, -ENOMEM, or -E2BIG past INTERN_MAX nodes; on failure nothing changed.
 */
int prefix_tree_child(struct prefix_tree *t, uint32_t parent, uint32_t what, uint32_t *ret);

#endif
