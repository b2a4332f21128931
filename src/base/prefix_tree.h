/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A prefix tree: a node is what its parent is followed by, and there is one node for each pair of a
 * parent and what follows. Both are numbers; what they stand for is the caller's.
 *
 * Stacks of calls are mostly chains: of what is new in one, each node is the only child of the one
 * before. So the first child of a node is found by the node, and only the others in a table, which
 * is far away in memory.
 *
 * A node takes about 15 bytes, a third of what a pair takes in an intern (intern.h). Single nodes
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
	uint32_t first;	 /* child; 0: none, or a pair, which is no parent */
};

struct prefix_tree {
	struct prefix_node *nodes; /* [0] is the root, parents are before their children; owned */
	size_t n_nodes, cap_nodes;
	uint32_t *slots; /* of all but first children; open addressing: hash_slot() of a node, 0 is
			    free; owned */
	size_t mask;	 /* slots - 1 */
	size_t n_slots;	 /* in use */
	bool of_pairs;	 /* prefix_tree_pair() was called */
	uint64_t seed;	 /* hash_seed() */
};

/* A tree of the root alone. Returns 0 or -ENOMEM. @ret: prefix_tree_deinit(). */
int prefix_tree_init(struct prefix_tree *ret);
void prefix_tree_deinit(struct prefix_tree *t); /* accepts one that is all zero */

/*
 * Make room for @n nodes in all, so that the tree need not grow up to them. Returns 0 or -ENOMEM.
 */
int prefix_tree_reserve(struct prefix_tree *t, size_t n);

/* Remove all nodes but the root; keeps the memory of the nodes. */
void prefix_tree_clear(struct prefix_tree *t);

/* The same, but give that memory back. */
void prefix_tree_shrink(struct prefix_tree *t);

/* Give back what children are found by; the next prefix_tree_child() makes it anew. */
void prefix_tree_drop_slots(struct prefix_tree *t);

/*
 * The child of node @parent for @what, made if there is none yet: then its number is the number of
 * nodes before. Returns 0, -ENOMEM, -E2BIG past INTERN_MAX nodes, or -EINVAL: @parent is none; on
 * failure nothing changed.
 */
int prefix_tree_child(struct prefix_tree *t, uint32_t parent, uint32_t what, uint32_t *ret);

/*
 * The same for a pair of any two numbers, of which the first is in the place of a parent. A tree is
 * used for pairs only, or not at all.
 */
int prefix_tree_pair(struct prefix_tree *t, uint32_t one, uint32_t other, uint32_t *ret);

#endif
