/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stacks of a page: the call tree, of which the page holds the heaviest nodes only. What was
 * taken in another node is shown at the nearest of its callers that the page holds.
 */
#ifndef RBPF_EXPORT_PAGE_TREE_H
#define RBPF_EXPORT_PAGE_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "view/tree.h"

struct buf;
struct flame_colors;
struct json;
struct profile;
struct view_filter;

struct page_tree {
	struct tree tree;
	uint32_t *leaves;  /* by stack id: its node, or PROFILE_NONE; owned */
	uint32_t *ids;	   /* by node: its number in the page, or that of the caller; owned */
	uint32_t *parents; /* by number in the page: that of its parent; owned */
	uint32_t *nodes;   /* by number in the page: the node; owned */
	size_t n;	   /* nodes in the page, with the root, which is 0 */
};

#define PAGE_TREE_INIT                                                                             \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * The tree of the selected samples of @p. @by_line: a node is a line. Returns what tree_build()
 * does. @ret: page_tree_deinit(). The page has no nodes before page_tree_keep().
 */
int page_tree_init(const struct profile *p, const struct view_filter *f, bool by_line,
		   struct page_tree *ret);
void page_tree_deinit(struct page_tree *t);
#define _cleanup_page_tree_ _cleanup_(page_tree_deinit)

/*
 * Let the page hold the @max nodes with the greatest weights, and the root. @weights are by node;
 * that of a node is not below that of those that it called. Returns 0 or -ENOMEM. May be called
 * again.
 */
int page_tree_keep(struct page_tree *t, const uint64_t *weights, size_t max);

/*
 * The node whose self time samples with @stack are; the root if none with it was selected, as when
 * the recording changes while it is read again.
 */
uint32_t page_tree_node(const struct page_tree *t, uint32_t stack);

/* The number in the page of what is shown for them. */
static inline uint32_t page_tree_id(const struct page_tree *t, uint32_t stack)
{
	return t->ids[page_tree_node(t, stack)];
}

/*
 * Append the nodes but the root to @packed: how far below its own number its parent's is, and the
 * number of its label; with @colors, also its category and its shade (flame_color.h). The labels
 * are appended to @json as an array named "labels", each as its name and where it is. Returns 0 or
 * -ENOMEM.
 */
int page_tree_write(const struct page_tree *t, struct flame_colors *colors, struct json *json,
		    struct buf *packed);

#endif
