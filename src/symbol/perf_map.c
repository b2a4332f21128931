/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Code is compiled to where other code was, so entries overlap in any way. To find the latest one
 * of an address, all are walked through by start, with those that have started and not ended in a
 * heap, the latest at its top; whenever the top changes, a span begins. That takes n log n, and a
 * lookup is then a binary search.
 */
#include "symbol/perf_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/sorted.h"
#include "symbol/hex.h"

#define CHUNK 65536

void perf_map_budget_tick(struct perf_map_budget *budget)
{
	budget->read = PERF_MAPS_MAX_READ;
	budget->sorted = PERF_MAPS_MAX_SORTED;
}

void perf_map_deinit(struct perf_map *map)
{
	map->budget->memory += map->memory;
	free(map->entries);
	free(map->spans);
	buf_deinit(&map->names);
	*map = (struct perf_map)PERF_MAP_INIT(map->budget);
}

/* ---- reading ---- */

static void cut(struct perf_map *map)
{
	map->budget->n_cut += !map->is_cut;
	map->is_cut = true;
}

/* Arrays grow by doubling; an entry begins and ends a span, and sorting takes eight bytes of it. */
static uint64_t memory_of(size_t name)
{
	return 2 * (sizeof(struct perf_map_entry) + 2 * sizeof(struct perf_map_span) + name + 1) +
	       8;
}

static int add_entry(struct perf_map *map, uint64_t start, uint64_t end, const char *name,
		     size_t len)
{
	uint64_t memory;

	if (len > PERF_MAP_MAX_NAME)
		len = PERF_MAP_MAX_NAME;
	memory = memory_of(len);
	if (map->n == PERF_MAP_MAX_ENTRIES || memory > map->budget->memory) {
		cut(map);
		return 0;
	}
	if (array_reserve(map->entries, map->cap, map->n + 1))
		return -ENOMEM;
	map->budget->memory -= memory;
	map->memory += memory;
	map->entries[map->n++] = (struct perf_map_entry) { start, end, (uint32_t)map->names.len };
	buf_add(&map->names, name, len);
	buf_addch(&map->names, '\0');
	return buf_failed(&map->names) ? -ENOMEM : 0;
}

/* perf_map.h's form; perf takes "0x", too. */
static bool read_number(const char **p, const char *end, uint64_t *ret)
{
	if (end - *p > 2 && (*p)[0] == '0' && ((*p)[1] | 0x20) == 'x')
		*p += 2;
	return hex_read(p, end, ret) && *p < end && *(*p)++ == ' ';
}

static int parse_line(struct perf_map *map, const char *line, const char *end)
{
	const char *p = line;
	uint64_t start, size;

	if (end > line && end[-1] == '\r')
		end--;
	if (!read_number(&p, end, &start) || !read_number(&p, end, &size) || p == end || !size ||
	    start + size < start || memchr(p, '\0', (size_t)(end - p)))
		return 0;
	return add_entry(map, start, start + size, p, (size_t)(end - p));
}

static int parse_lines(struct perf_map *map, const char *text, size_t len, size_t *used)
{
	const char *end;
	size_t at = 0;
	int r = 0;

	while (!r && (end = memchr(text + at, '\n', len - at))) {
		r = parse_line(map, text + at, end);
		at = (size_t)(end - text) + 1;
	}
	*used = at;
	return r;
}

static int read_lines(struct perf_map *map, perf_map_read_fn *read, void *arg, char *chunk)
{
	size_t used;
	ssize_t n;
	int r;

	while (!map->is_cut && map->budget->read >= CHUNK) {
		n = read(arg, chunk, CHUNK, map->read);
		if (n <= 0)
			return (int)n;
		map->budget->read -= (uint64_t)n;
		r = parse_lines(map, chunk, (size_t)n, &used);
		if (r)
			return r;
		if (!used && n < CHUNK)
			return 0;
		/* A piece of a line without end is garbage, and so is the rest of it. */
		used = used ? used : (size_t)n;
		map->read += used;
		map->n_bytes += used;
		if (map->n_bytes > PERF_MAP_MAX_BYTES)
			cut(map);
	}
	return 0;
}

/* What was read of a file that was written anew is forgotten; how much it was is not. */
static void begin_anew(struct perf_map *map)
{
	const uint64_t n_bytes = map->n_bytes;
	const bool is_cut = map->is_cut;

	perf_map_deinit(map);
	map->n_bytes = n_bytes;
	map->is_cut = is_cut;
}

int perf_map_read(struct perf_map *map, uint64_t size, perf_map_read_fn *read, void *arg)
{
	_cleanup_free_ char *chunk = malloc(CHUNK);

	if (!chunk)
		return -ENOMEM;
	if (size < map->read)
		begin_anew(map);
	return read_lines(map, read, arg, chunk);
}

/* ---- spans ---- */

struct indexing {
	struct perf_map *map;
	uint32_t *order; /* entries by start */
	uint32_t *heap;	 /* of entries, the latest at the top */
	size_t n;	 /* in heap */
};

static int compare_starts(const void *va, const void *vb, void *ctx)
{
	const struct perf_map_entry *entries = ctx;
	uint32_t a = *(const uint32_t *)va, b = *(const uint32_t *)vb;

	if (entries[a].start != entries[b].start)
		return entries[a].start < entries[b].start ? -1 : 1;
	return a < b ? -1 : a > b;
}

static void heap_push(struct indexing *x, uint32_t entry)
{
	size_t i = x->n++, parent;

	for (; i && x->heap[parent = (i - 1) / 2] < entry; i = parent)
		x->heap[i] = x->heap[parent];
	x->heap[i] = entry;
}

static void heap_pop(struct indexing *x)
{
	uint32_t last = x->heap[--x->n];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < x->n) {
		if (child + 1 < x->n && x->heap[child + 1] > x->heap[child])
			child++;
		if (x->heap[child] <= last)
			break;
		x->heap[i] = x->heap[child];
		i = child;
	}
	x->heap[i] = last;
}

/* From @start on, @entry. What began at the same address is no more. */
static int put_span(struct perf_map *map, uint64_t start, uint32_t entry)
{
	struct perf_map_span *last = map->n_spans ? &map->spans[map->n_spans - 1] : NULL;

	if (last && last->start == start) {
		last->entry = entry;
		return 0;
	}
	if (last && last->entry == entry)
		return 0;
	if (array_reserve(map->spans, map->cap_spans, map->n_spans + 1))
		return -ENOMEM;
	map->spans[map->n_spans++] = (struct perf_map_span) { start, entry };
	return 0;
}

/* Put the spans that begin where entries end, up to @until. */
static int end_entries(struct indexing *x, uint64_t until)
{
	const struct perf_map_entry *entries = x->map->entries;
	int r = 0;

	while (!r && x->n && entries[x->heap[0]].end <= until) {
		uint64_t at = entries[x->heap[0]].end;

		while (x->n && entries[x->heap[0]].end <= at)
			heap_pop(x);
		r = put_span(x->map, at, x->n ? x->heap[0] : PERF_MAP_NONE);
	}
	return r;
}

static int make_spans(struct indexing *x)
{
	struct perf_map *map = x->map;
	size_t i;
	int r = 0;

	for (i = 0; i < map->n; i++)
		x->order[i] = (uint32_t)i;
	qsort_r(x->order, map->n, sizeof(*x->order), compare_starts, map->entries);
	map->n_spans = 0;
	for (i = 0; !r && i < map->n; i++) {
		uint64_t start = map->entries[x->order[i]].start;

		r = end_entries(x, start);
		heap_push(x, x->order[i]);
		if (!r)
			r = put_span(map, start, x->heap[0]);
	}
	return r ? r : end_entries(x, UINT64_MAX);
}

/* Out of memory, what was there before may be lost; the next lookup tries again. */
static bool update_index(struct perf_map *map)
{
	struct indexing x = { .map = map };
	int r = -ENOMEM;

	if (map->n_indexed == map->n || map->n > map->budget->sorted)
		return map->n_indexed;
	map->budget->sorted -= map->n;
	x.order = malloc(map->n * sizeof(*x.order));
	x.heap = malloc(map->n * sizeof(*x.heap));
	if (x.order && x.heap)
		r = make_spans(&x);
	free(x.order);
	free(x.heap);
	map->n_indexed = r ? 0 : map->n;
	return !r;
}

const char *perf_map_find(struct perf_map *map, uint64_t addr, uint64_t *start)
{
	const struct perf_map_span *span;
	size_t n;

	if (!update_index(map))
		return NULL;
	n = sorted_up_to(map->spans, map->n_spans, start, addr);
	span = n ? &map->spans[n - 1] : NULL;
	if (!span || span->entry == PERF_MAP_NONE)
		return NULL;
	if (start)
		*start = map->entries[span->entry].start;
	return buf_str(&map->names) + map->entries[span->entry].name;
}
