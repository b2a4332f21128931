/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A heat map: the samples by when they were taken. A column is a second (or several), a cell a
 * fraction of it; and beside the cells, what was called when: the values of nodes of a call tree by
 * slot, which is one cell or several behind each other.
 *
 * A value is in the cell of its time. Cells hold sums and are exact.
 * There may be more pairs of a slot and a node than a page has room for: then slots are widened
 * (heat_widen()), or nodes united with their callers (heat_unite()), which loses no value either.
 */
#ifndef RBPF_VIEW_HEAT_H
#define RBPF_VIEW_HEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct heat_pair {
	uint32_t slot, node;
	uint64_t value;
	bool used; /* of a place of the table */
};

/* Where the pair of a node is that was looked for last. */
struct heat_place {
	uint32_t slot1; /* 1 + its slot; 0: nowhere */
	uint32_t pair;
};

struct heat {
	uint64_t column_ns, cell_ns;
	size_t columns, rows;	  /* rows: cells of a column */
	uint64_t *cells;	  /* of the first column, of the second, …; owned */
	size_t slot_cells;	  /* cells of a slot: a part of a column, or whole columns */
	struct heat_pair *pairs;  /* open addressing; owned */
	struct heat_pair *before; /* as many, that are not used any more; owned */
	size_t n_pairs, mask, max_pairs;
	uint64_t seed;		   /* of pairs */
	struct heat_place *places; /* by node; owned */
	size_t cap_places;
	uint64_t from_ns, to_ns; /* from when to before when … */
	size_t cell;		 /* … this one lasts, which the last value was added to */
};

#define HEAT_INIT                                                                                  \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Of @duration_ns from time 0 on, with @rows cells (1 to 1000) in each column. A column is a
 * second, or as many as it takes to have @max_cells at most. @max_pairs: of heat_is_full(). Returns
 * 0 or -ENOMEM. @ret: heat_deinit().
 */
int heat_init(uint64_t duration_ns, size_t rows, size_t max_cells, size_t max_pairs,
	      struct heat *ret);
void heat_deinit(struct heat *h);
#define _cleanup_heat_ _cleanup_(heat_deinit)

/* When the cell of @ns ends; UINT64_MAX: never. */
uint64_t heat_cell_end(struct heat *h, uint64_t ns);

/*
 * Add @value of @node at @ns. What is later than the end is in the last cell. It is quickest where
 * the values before it were of the same time.
 */
void heat_add(struct heat *h, uint64_t ns, uint32_t node, uint64_t value);

/* Whether there are max_pairs: then call one of the two below before the next heat_add(). */
static inline bool heat_is_full(const struct heat *h)
{
	return h->n_pairs >= h->max_pairs;
}

/* Make slots at least twice as wide. Returns 0, or -ENOMEM. */
int heat_widen(struct heat *h);

/* Give the values of each node to @to[node]. Returns 0 or -ENOMEM. */
int heat_unite(struct heat *h, const uint32_t *to);

/* The pairs in the order of slots, then nodes; *@ret: free(). Returns 0 or -ENOMEM. */
int heat_pairs(const struct heat *h, struct heat_pair **ret);

#endif
