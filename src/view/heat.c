/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/heat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"

/* Seconds of a column: such that an axis can be marked. */
static const uint64_t column_seconds[] = {
	1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21600, 86400,
};

static size_t columns_of(uint64_t duration_ns, uint64_t seconds)
{
	return duration_ns ? (duration_ns - 1) / (seconds * NSEC_PER_SEC) + 1 : 1;
}

static int alloc_pairs(struct heat *h)
{
	size_t n = 64;

	while (n < 2 * (h->max_pairs + 1))
		n *= 2;
	h->pairs = calloc(n, sizeof(*h->pairs));
	h->mask = n - 1;
	return h->pairs ? 0 : -ENOMEM;
}

int heat_init(uint64_t duration_ns, size_t rows, size_t max_cells, size_t max_pairs,
	      struct heat *ret)
{
	struct heat h = {
		.rows = rows, .slot_cells = 1, .max_pairs = max_pairs, .seed = hash_seed()
	};
	uint64_t seconds = 1;

	/* Beyond the table of a day: in days. */
	for (size_t i = 0; columns_of(duration_ns, seconds) > max_cells / rows + 1; i++)
		seconds = i + 1 < ARRAY_SIZE(column_seconds) ? column_seconds[i + 1] : seconds * 2;
	h.columns = columns_of(duration_ns, seconds);
	h.column_ns = seconds * NSEC_PER_SEC;
	/* Cells of a length that no number of them makes a column of: the last one is shorter. */
	h.cell_ns = (h.column_ns + rows - 1) / rows;
	h.cells = calloc(h.columns * rows, sizeof(*h.cells));
	if (!h.cells || alloc_pairs(&h)) {
		heat_deinit(&h);
		return -ENOMEM;
	}
	*ret = h;
	return 0;
}

void heat_deinit(struct heat *h)
{
	if (!h)
		return;
	free(h->cells);
	free(h->pairs);
	free(h->before);
	free(h->places);
	*h = (struct heat)HEAT_INIT;
}

static void add_to(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

/* The pair of @slot and @node, which is made if there is none. */
static size_t find_pair(struct heat *h, uint32_t slot, uint32_t node)
{
	size_t i = hash_mix(h->seed ^ ((uint64_t)slot << 32 | node)) & h->mask;

	for (; h->pairs[i].used; i = (i + 1) & h->mask)
		if (h->pairs[i].slot == slot && h->pairs[i].node == node)
			return i;
	h->n_pairs++;
	h->pairs[i].used = true;
	h->pairs[i].slot = slot;
	h->pairs[i].node = node;
	return i;
}

/* The same, without a search where the node was last in the same slot. */
static size_t last_pair(struct heat *h, uint32_t slot, uint32_t node)
{
	struct heat_place *place;

	/* Without memory each is searched for. */
	if (array_reserve(h->places, h->cap_places, (size_t)node + 1))
		return find_pair(h, slot, node);
	place = &h->places[node];
	if (place->slot1 != slot + 1)
		*place = (struct heat_place) { slot + 1, (uint32_t)find_pair(h, slot, node) };
	return place->pair;
}

/* Find the cell of @ns, from when it lasts and to when. */
static void find_cell(struct heat *h, uint64_t ns)
{
	const uint64_t column = ns / h->column_ns, row = ns % h->column_ns / h->cell_ns;
	const uint64_t begin = column * h->column_ns, end = begin + h->column_ns;

	if (column >= h->columns) {
		h->cell = h->columns * h->rows - 1;
		h->from_ns = h->columns * h->column_ns;
		h->to_ns = UINT64_MAX;
		return;
	}
	h->cell = column * h->rows + row;
	h->from_ns = begin + row * h->cell_ns;
	h->to_ns = h->from_ns + h->cell_ns < end ? h->from_ns + h->cell_ns : end;
}

uint64_t heat_cell_end(struct heat *h, uint64_t ns)
{
	if (ns < h->from_ns || ns >= h->to_ns)
		find_cell(h, ns);
	return h->to_ns;
}

void heat_add(struct heat *h, uint64_t ns, uint32_t node, uint64_t value)
{
	if (ns < h->from_ns || ns >= h->to_ns)
		find_cell(h, ns);
	add_to(&h->cells[h->cell], value);
	add_to(&h->pairs[last_pair(h, (uint32_t)(h->cell / h->slot_cells), node)].value, value);
}

/*
 * Put the pairs into a new table, with slots of @slot_cells and, if @to is not NULL, other nodes.
 */
static int rebuild(struct heat *h, size_t slot_cells, const uint32_t *to)
{
	struct heat_pair *old = h->pairs;
	const size_t n = h->mask + 1, per_slot = slot_cells / h->slot_cells;

	/* The table before this one: new memory for each would cost more than to clear it. */
	if (!h->before)
		h->before = calloc(n, sizeof(*h->before));
	else
		memset(h->before, 0, n * sizeof(*h->before));
	if (!h->before)
		return -ENOMEM;
	h->pairs = h->before;
	h->before = old;
	h->n_pairs = 0;
	h->slot_cells = slot_cells;
	if (h->places)
		memset(h->places, 0, h->cap_places * sizeof(*h->places));
	for (size_t i = 0; i < n; i++)
		if (old[i].used)
			add_to(&h->pairs[find_pair(h, (uint32_t)(old[i].slot / per_slot),
						   to ? to[old[i].node] : old[i].node)]
					.value,
			       old[i].value);
	return 0;
}

int heat_widen(struct heat *h)
{
	size_t cells = 2 * h->slot_cells;

	/* Within a column: as many cells as make a whole number of slots in it, and of old ones. */
	while (cells < h->rows && (h->rows % cells || cells % h->slot_cells))
		cells++;
	if (h->slot_cells < h->rows && cells > h->rows)
		cells = h->rows;
	return rebuild(h, cells, NULL);
}

int heat_unite(struct heat *h, const uint32_t *to)
{
	return rebuild(h, h->slot_cells, to);
}

static int compare_pairs(const void *va, const void *vb)
{
	const struct heat_pair *a = va, *b = vb;

	if (a->slot != b->slot)
		return a->slot < b->slot ? -1 : 1;
	return a->node < b->node ? -1 : a->node > b->node;
}

int heat_pairs(const struct heat *h, struct heat_pair **ret)
{
	struct heat_pair *list = calloc(h->n_pairs + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i <= h->mask; i++)
		if (h->pairs[i].used)
			list[n++] = h->pairs[i];
	qsort(list, n, sizeof(*list), compare_pairs);
	*ret = list;
	return 0;
}
