/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The BPF programs look at the kind of a range first, then at what the kind says to look at. So
 * that they never see half of something:
 *
 * - A table's rules are written first, then its words, then where it is, to each range of its file,
 *   and last, as a release, their kind.
 * - A table is dropped by the kind of its ranges alone. Where it was stays in them, and its words
 *   stay what they were, for the grace of extents.h; and so long its file is not loaded again.
 * - Ranges are written before anybody is told where they are, and not written after they were
 *   removed until the grace is over.
 *
 * A file is known here, as a struct unwind_table, while its table is in the pool; and as long as a
 * range of it is added, if its table was refused for want of room. Such a file may be asked for
 * again when words have become free, and otherwise every UNWIND_STAY_NS. Its size is remembered, so
 * that most of the refusals to come cost no reading; and what its words were, as another file may
 * have brought the same ones there meanwhile.
 */
#include "native/unwind_tables.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "elf/cfi.h"
#include "native/extents.h"
#include "native/unwind_pool.h"
#include "symbol/code_readahead.h"
#include "symbol/code_files.h"
#include "symbol/code_map.h"

enum table_state {
	TABLE_REFUSED, /* its ranges are RBPF_CODE_NO_ROOM */
	TABLE_AGAIN,   /* it was; now they are RBPF_CODE_UNREAD */
	TABLE_READING, /* the same, while the file is being read ahead */
	TABLE_LOADED,
};

struct unwind_table {
	struct code_file *file; /* referred to */
	enum table_state state;
	uint64_t since;		    /* TABLE_REFUSED: then, ns */
	size_t uses;		    /* added ranges of the file */
	uint32_t chunks;	    /* of RBPF_POOL_CHUNK words, that it takes; 0: not known yet */
	uint64_t hash;		    /* unwind_pool_hash(); 0: not known yet */
	struct pooled_table *words; /* TABLE_LOADED: maybe those of other files, too */
};

/* The ranges of a map, in the same order. */
struct area {
	struct code_map *map; /* referred to */
	uint32_t first;
	uint32_t id;
	size_t users; /* processes */
};

struct unwind_tables {
	struct unwind_memory mem;
	struct code_files *files;
	struct unwind_pool pool;
	struct extents ranges;
	uint32_t n_rules;   /* written so far */
	uint32_t last_id;   /* of an area */
	uint64_t freed_at;  /* ns: chunks last became free; 0: never */
	struct area *areas; /* by the address of the map; owned */
	size_t n_areas, cap_areas;
	struct unwind_table *tables; /* by the id of the file; owned */
	size_t n_tables, cap_tables;
	uint64_t dropped, refused;
};

int unwind_tables_new(const struct unwind_memory *mem, struct code_files *files,
		      struct unwind_tables **ret)
{
	struct unwind_tables *t;

	if (mem->n_words > UINT32_MAX || mem->n_ranges > UINT32_MAX)
		return -E2BIG;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->mem = *mem;
	t->files = files;
	if (unwind_pool_init(&t->pool, mem->words, (uint32_t)mem->n_words) ||
	    extents_init(&t->ranges, (uint32_t)mem->n_ranges)) {
		unwind_tables_free(t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

void unwind_tables_free(struct unwind_tables *t)
{
	size_t i;

	if (!t)
		return;
	for (i = 0; i < t->n_areas; i++)
		code_map_unref(t->areas[i].map);
	for (i = 0; i < t->n_tables; i++)
		code_file_unref(t->files, t->tables[i].file);
	unwind_pool_deinit(&t->pool);
	extents_deinit(&t->ranges);
	free(t->areas);
	free(t->tables);
	free(t);
}

/* ---- what is known of files ---- */

/* Where @file is or, if it is not known (false), would be. */
static bool find_table(const struct unwind_tables *t, const struct code_file *file, size_t *ret)
{
	size_t low = 0, high = t->n_tables;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->tables[middle].file->id < file->id)
			low = middle + 1;
		else
			high = middle;
	}
	*ret = low;
	return low < t->n_tables && t->tables[low].file == file;
}

static struct unwind_table *table_of(const struct unwind_tables *t, const struct code_file *file)
{
	size_t i;

	return find_table(t, file, &i) ? &t->tables[i] : NULL;
}

/* What is known of @file; if nothing was, it is TABLE_AGAIN now. Returns 0 or -ENOMEM. */
static int add_table(struct unwind_tables *t, struct code_file *file, struct unwind_table **ret)
{
	size_t i;

	if (!find_table(t, file, &i)) {
		if (array_reserve(t->tables, t->cap_tables, t->n_tables + 1))
			return -ENOMEM;
		memmove(&t->tables[i + 1], &t->tables[i], (t->n_tables++ - i) * sizeof(*t->tables));
		t->tables[i] = (struct unwind_table) { .file = code_file_ref(t->files, file),
						       .state = TABLE_AGAIN };
	}
	*ret = &t->tables[i];
	return 0;
}

static void forget_table(struct unwind_tables *t, struct unwind_table *table)
{
	size_t i = (size_t)(table - t->tables);

	code_file_unref(t->files, table->file);
	memmove(table, table + 1, (--t->n_tables - i) * sizeof(*table));
}

/* ---- ranges, as the BPF programs see them ---- */

static void set_kind(struct rbpf_range *range, uint32_t kind)
{
	if (kind == RBPF_CODE_UNREAD)
		__atomic_store_n(&range->asked, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&range->kind, kind, __ATOMIC_RELEASE);
}

static void set_words(struct rbpf_range *range, const struct pooled_table *words)
{
	__atomic_store_n(&range->table, words->first_chunk * RBPF_POOL_CHUNK, __ATOMIC_RELAXED);
	__atomic_store_n(&range->pages, words->pages, __ATOMIC_RELAXED);
	set_kind(range, RBPF_CODE_TABLE);
}

/* What a range of @file is that comes now; @table is what is known of that, or NULL. */
static uint32_t kind_of(const struct code_file *file, const struct unwind_table *table)
{
	if (file->table_state == CODE_TABLE_NONE)
		return RBPF_CODE_NO_TABLE;
	return table && table->state == TABLE_REFUSED ? RBPF_CODE_NO_ROOM : RBPF_CODE_UNREAD;
}

static void write_range(const struct code_range *from, const struct unwind_table *table,
			struct rbpf_range *to)
{
	*to = (struct rbpf_range) { .start = from->start, .end = from->end, .kind = from->kind };
	if (!from->file)
		return;
	to->base = from->bias + from->file->headers.base;
	if (table && table->state == TABLE_LOADED)
		set_words(to, table->words);
	else
		to->kind = kind_of(from->file, table);
}

/*
 * Give all added ranges of @file the kind @kind or, if @words is not NULL, that table. Returns how
 * many there are.
 */
static size_t update_ranges(struct unwind_tables *t, const struct code_file *file, uint32_t kind,
			    const struct pooled_table *words)
{
	size_t found = 0, i, k;

	for (i = 0; i < t->n_areas; i++) {
		const struct code_map *map = t->areas[i].map;
		struct rbpf_range *ranges = t->mem.ranges + t->areas[i].first;

		for (k = 0; k < map->n; k++) {
			if (map->v[k].file != file)
				continue;
			found++;
			if (words)
				set_words(&ranges[k], words);
			else
				set_kind(&ranges[k], kind);
		}
	}
	return found;
}

/* ---- areas ---- */

/* Where @map is or, if it was not added (false), would be. */
static bool find_area(const struct unwind_tables *t, const struct code_map *map, size_t *ret)
{
	size_t low = 0, high = t->n_areas;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if ((uintptr_t)t->areas[middle].map < (uintptr_t)map)
			low = middle + 1;
		else
			high = middle;
	}
	*ret = low;
	return low < t->n_areas && t->areas[low].map == map;
}

static void use_table(struct unwind_table *table, ssize_t more)
{
	table->uses += (size_t)more;
	if (table->state == TABLE_LOADED)
		table->words->uses += (size_t)more;
}

static void write_ranges(struct unwind_tables *t, const struct area *area)
{
	struct unwind_table *table;
	size_t i;

	for (i = 0; i < area->map->n; i++) {
		const struct code_range *range = &area->map->v[i];

		table = range->file ? table_of(t, range->file) : NULL;
		if (table)
			use_table(table, 1);
		write_range(range, table, &t->mem.ranges[area->first + i]);
	}
}

/* Place @map, which was not, as area @i. */
static int add_area(struct unwind_tables *t, struct code_map *map, size_t i)
{
	uint32_t first = 0;
	int r;

	if (array_reserve(t->areas, t->cap_areas, t->n_areas + 1))
		return -ENOMEM;
	r = map->n ? extents_alloc(&t->ranges, (uint32_t)map->n, &first) : 0;
	if (r)
		return r;
	memmove(&t->areas[i + 1], &t->areas[i], (t->n_areas++ - i) * sizeof(*t->areas));
	t->areas[i] =
		(struct area) { .map = code_map_ref(map), .first = first, .id = ++t->last_id };
	write_ranges(t, &t->areas[i]);
	return 0;
}

int unwind_tables_add(struct unwind_tables *t, struct code_map *map, uint64_t now,
		      struct rbpf_code *ret)
{
	size_t i;
	int r;

	unwind_tables_tick(t, now);
	if (!find_area(t, map, &i)) {
		r = add_area(t, map, i);
		if (r)
			return r;
	}
	t->areas[i].users++;
	*ret = (struct rbpf_code) { .first = t->areas[i].first,
				    .n = (uint32_t)map->n,
				    .id = t->areas[i].id };
	return 0;
}

/* One range of @file was removed. */
static void unuse_table(struct unwind_tables *t, const struct code_file *file)
{
	struct unwind_table *table = file ? table_of(t, file) : NULL;

	if (!table)
		return;
	use_table(table, -1);
	if (table->uses)
		return;
	if (table->state == TABLE_LOADED) {
		/* Words are kept while there is room, but not each file that has the same ones. */
		if (table->words->files == 1)
			return;
		table->words->files--;
	}
	forget_table(t, table);
}

void unwind_tables_remove(struct unwind_tables *t, struct code_map *map, uint64_t now)
{
	struct area area;
	size_t i, k;

	unwind_tables_tick(t, now);
	if (!find_area(t, map, &i) || --t->areas[i].users)
		return;
	area = t->areas[i];
	memmove(&t->areas[i], &t->areas[i + 1], (--t->n_areas - i) * sizeof(*t->areas));
	for (k = 0; k < map->n; k++)
		unuse_table(t, map->v[k].file);
	if (map->n)
		extents_retire(&t->ranges, area.first, (uint32_t)map->n, now);
	code_map_unref(area.map);
}

/* ---- room in the pool ---- */

static void set_refused(struct unwind_table *table, uint64_t now)
{
	table->state = TABLE_REFUSED;
	table->words = NULL;
	table->since = now;
}

static void refuse(struct unwind_tables *t, struct unwind_table *table, uint64_t now)
{
	set_refused(table, now);
	table->uses = update_ranges(t, table->file, RBPF_CODE_NO_ROOM, NULL);
}

/* The ranges of all files that have @words, of which there may be thousands: in one go. */
static void refuse_ranges(struct unwind_tables *t, const struct pooled_table *words)
{
	const uint32_t table = words->first_chunk * RBPF_POOL_CHUNK;
	size_t i, k;

	for (i = 0; i < t->n_areas; i++) {
		struct rbpf_range *ranges = t->mem.ranges + t->areas[i].first;

		for (k = 0; k < t->areas[i].map->n; k++)
			if (ranges[k].kind == RBPF_CODE_TABLE && ranges[k].table == table)
				set_kind(&ranges[k], RBPF_CODE_NO_ROOM);
	}
}

static void drop_words(struct unwind_tables *t, struct pooled_table *words, uint64_t now)
{
	size_t i;

	t->dropped++;
	if (words->uses)
		refuse_ranges(t, words);
	for (i = t->n_tables; i-- > 0;) {
		struct unwind_table *table = &t->tables[i];

		if (table->words != words)
			continue;
		if (table->uses)
			set_refused(table, now);
		else
			forget_table(t, table);
	}
	unwind_pool_drop(&t->pool, words, now);
}

/*
 * Drop tables until @chunks of them are on their way to be free, if that many can be. They need not
 * be next to each other: if they are not, there is no room the next time either, and more go.
 */
static void make_room(struct unwind_tables *t, uint32_t chunks, uint64_t now)
{
	struct pooled_table *next;

	while (t->pool.chunks.retired_size < chunks &&
	       (next = unwind_pool_next(&t->pool, chunks, now)))
		drop_words(t, next, now);
}

void unwind_tables_tick(struct unwind_tables *t, uint64_t now)
{
	size_t i;

	extents_reclaim(&t->ranges, now);
	if (extents_reclaim(&t->pool.chunks, now))
		t->freed_at = now;
	for (i = 0; i < t->n_tables; i++) {
		struct unwind_table *table = &t->tables[i];
		uint64_t age = now - table->since;

		if (table->state != TABLE_REFUSED || age < EXTENTS_GRACE_NS ||
		    table->chunks > t->pool.n_chunks)
			continue;
		if (t->freed_at <= table->since && age < UNWIND_STAY_NS)
			continue;
		table->state = TABLE_AGAIN;
		update_ranges(t, table->file, RBPF_CODE_UNREAD, NULL);
	}
}

/* ---- loading ---- */

static void write_rules(struct unwind_tables *t)
{
	const struct cfi_rules *rules = &t->files->rules;

	for (; t->n_rules < cfi_rules_count(rules) && t->n_rules < t->mem.n_rules; t->n_rules++)
		t->mem.rules[t->n_rules] = *cfi_rules_get(rules, t->n_rules);
}

/* @file takes @chunks, and there is no room for that now. */
static void find_no_room(struct unwind_tables *t, struct code_file *file, uint32_t chunks,
			 uint64_t now)
{
	struct unwind_table *table;

	t->refused++;
	make_room(t, chunks, now);
	table = table_of(t, file); /* only now: what was dropped moved others */
	table->chunks = chunks;
	refuse(t, table, now);
}

/* Nothing was loaded for @file: its ranges are @kind, and nothing is known of it. */
static void set_no_table(struct unwind_tables *t, struct code_file *file, uint32_t kind)
{
	update_ranges(t, file, kind, NULL);
	forget_table(t, table_of(t, file));
}

/* Put @from, the table of a file that is TABLE_AGAIN, into the pool. Returns 0 or -ENOMEM. */
static int store(struct unwind_tables *t, struct code_file *file, const struct cfi_table *from,
		 uint64_t now)
{
	uint32_t chunks = unwind_pool_chunks(from);
	struct unwind_table *table = table_of(t, file);
	struct pooled_table *words;
	int r;

	table->hash = unwind_pool_hash(from);
	write_rules(t);
	r = unwind_pool_put(&t->pool, from, table->hash, t->n_rules, now, &words);
	if (r == -ENOSPC) {
		find_no_room(t, file, chunks, now);
		return 0;
	}
	if (r)
		return r;
	table->state = TABLE_LOADED;
	table->words = words;
	table->chunks = chunks;
	table->uses = update_ranges(t, file, RBPF_CODE_TABLE, words);
	words->uses += table->uses;
	return 0;
}

/* Load the table of @file, which is TABLE_AGAIN or, when that is over, TABLE_READING. */
static int load(struct unwind_tables *t, struct code_file *file, uint64_t now)
{
	const struct unwind_table *table = table_of(t, file);
	const struct cfi_table *from;
	int r;

	if (!extents_fit(&t->pool.chunks, table->chunks) &&
	    !unwind_pool_has(&t->pool, table->hash)) {
		find_no_room(t, file, table->chunks, now);
		return 0;
	}
	r = code_file_table(t->files, file, &from);
	if (!r) {
		r = store(t, file, from, now);
		code_file_forget_table(file);
	} else if (r != -ENOMEM) {
		set_no_table(t, file, RBPF_CODE_NO_TABLE);
		return 0;
	}
	if (r)
		set_no_table(t, file, RBPF_CODE_UNREAD);
	return r;
}

/* What is read ahead is loaded by unwind_tables_poll(). Returns as load(). */
static int load_ahead(struct unwind_tables *t, struct code_file *file)
{
	int r = 0;

	/* It may be there from when there was no room for it. */
	if (file->table_state == CODE_TABLE_NOT_TRIED)
		r = code_readahead_queue(t->files, file, CODE_PART_TABLE);
	if (!r)
		table_of(t, file)->state = TABLE_READING;
	return r;
}

int unwind_tables_load(struct unwind_tables *t, struct code_map *map, pid_t pid, uint64_t addr,
		       uint64_t now, bool ahead)
{
	const struct code_range *range = code_map_find(map, addr);
	struct unwind_table *table;
	size_t i;
	int r;

	unwind_tables_tick(t, now);
	if (!range || !range->file || !find_area(t, map, &i))
		return -ENOENT;
	r = add_table(t, range->file, &table);
	if (r)
		return r;
	if (table->state != TABLE_AGAIN)
		return 0;
	code_file_set_mapping(range->file, pid, range->start, range->end);
	return ahead ? load_ahead(t, range->file) : load(t, range->file, now);
}

static struct code_file *next_that_was_read(const struct unwind_tables *t)
{
	size_t i;

	for (i = 0; i < t->n_tables; i++)
		if (t->tables[i].state == TABLE_READING &&
		    !(t->tables[i].file->queued & CODE_PART_TABLE))
			return t->tables[i].file;
	return NULL;
}

int unwind_tables_poll(struct unwind_tables *t, uint64_t now)
{
	struct code_file *file;
	int r = 0;

	while (!r && (file = next_that_was_read(t)))
		r = load(t, file, now);
	return r;
}

struct unwind_tables_stats unwind_tables_stats(const struct unwind_tables *t)
{
	struct unwind_tables_stats stats = { .tables = (uint32_t)t->pool.n,
					     .dropped = t->dropped,
					     .refused = t->refused };
	size_t i;

	for (i = 0; i < t->pool.n; i++) {
		stats.words += t->pool.v[i]->n_words;
		stats.bytes += (uint64_t)t->pool.v[i]->chunks * RBPF_POOL_CHUNK *
			       sizeof(*t->mem.words);
	}
	return stats;
}
