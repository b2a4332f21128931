/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tables in plain memory, looked at as the BPF programs do: from a struct rbpf_code to the range,
 * from that to the words, and to the rule.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "native/extents.h"
#include "rbpf_cfi_find.h"
#include "native/unwind_tables.h"
#include "support/cfi_check.h"
#include "support/code_image.h"
#include "support/test_worker.h"
#include "symbol/code_readahead.h"
#include "symbol/code_files.h"
#include "symbol/code_map.h"
#include "target/maps.h"

#define WORDS	   (1u << 20)
#define RANGES	   4096u
#define GRACE	   EXTENTS_GRACE_NS
#define NOW	   5000000000ull
#define ALL_BLOCKS 800u /* of an image: 13 chunks of words */

#if defined(__SANITIZE_ADDRESS__)
#define SLOWDOWN 10
#else
#define SLOWDOWN 1
#endif

/* ---- the BPF programs ---- */

static struct unwind_memory mem;
static struct code_files files;
static struct unwind_tables *tables;

static void set_up_with(size_t n_words, size_t n_rules, size_t n_ranges)
{
	mem = (struct unwind_memory) { .n_words = n_words,
				       .n_rules = n_rules,
				       .n_ranges = n_ranges };
	mem.words = calloc(n_words, sizeof(*mem.words));
	mem.rules = calloc(n_rules, sizeof(*mem.rules));
	mem.ranges = calloc(n_ranges, sizeof(*mem.ranges));
	cr_assert(mem.words && mem.rules && mem.ranges);
	cr_assert_eq(code_files_init(&files, test_worker(), NULL), 0);
	cr_assert_eq(unwind_tables_new(&mem, &files, &tables), 0);
}

static void set_up(void)
{
	set_up_with(WORDS, RBPF_CFI_MAX_RULES, RANGES);
}

static void tear_down(void)
{
	unwind_tables_free(tables);
	unwind_tables_free(NULL);
	for (size_t i = 0; i < files.n; i++)
		cr_expect_eq(files.v[i]->references, 0, "%s", files.v[i]->path);
	code_files_deinit(&files);
	free(mem.words);
	free(mem.rules);
	free(mem.ranges);
}

static struct rbpf_range *range_at(struct rbpf_code code, uint64_t addr)
{
	for (uint32_t i = code.first; i < code.first + code.n; i++)
		if (addr >= mem.ranges[i].start && addr < mem.ranges[i].end)
			return &mem.ranges[i];
	return NULL;
}

static const struct rbpf_cfi_rule *rule_in(const struct rbpf_range *range, uint64_t addr)
{
	uint32_t rule;

	cr_assert_eq(range->kind, RBPF_CODE_TABLE);
	cr_assert_eq(range->table % RBPF_POOL_CHUNK, 0);
	rule = rbpf_cfi_find(mem.words + range->table, range->pages, addr - range->base);
	cr_assert_lt(rule, mem.n_rules);
	return &mem.rules[rule];
}

static void assert_sane_area(struct rbpf_code code)
{
	cr_assert_leq(code.first + code.n, mem.n_ranges);
	for (uint32_t i = code.first; i < code.first + code.n; i++) {
		const struct rbpf_range *r = &mem.ranges[i];

		cr_assert_lt(r->start, r->end);
		cr_assert(i == code.first || mem.ranges[i - 1].end <= r->start, "disjoint");
		cr_assert_leq(r->kind, RBPF_CODE_RECORD);
		if (r->kind != RBPF_CODE_TABLE)
			continue;
		cr_assert_gt(r->pages, 0);
		cr_assert_lt(r->table + mem.words[r->table + r->pages], mem.n_words + 1);
		cr_assert_eq(mem.words[r->table], r->pages + 1, "a table begins there");
	}
}

/* Where all tables are, no two in the same place. */
static void assert_tables_apart(struct rbpf_code code)
{
	for (uint32_t i = code.first; i < code.first + code.n; i++) {
		const struct rbpf_range *a = &mem.ranges[i];

		for (uint32_t k = code.first; k < i && a->kind == RBPF_CODE_TABLE; k++) {
			const struct rbpf_range *b = &mem.ranges[k];

			if (b->kind != RBPF_CODE_TABLE || a->table == b->table)
				continue;
			cr_assert(a->table + mem.words[a->table + a->pages] <= b->table ||
				  b->table + mem.words[b->table + b->pages] <= a->table);
		}
	}
}

/* ---- processes ---- */

static struct code_map *read_own(struct code_map *old)
{
	struct code_map *map;

	cr_assert_eq(code_map_read(&files, getpid(), CODE_JIT_NONE, old, &map, NULL), 0);
	return map;
}

static struct rbpf_code add_map(struct code_map *map, uint64_t now)
{
	struct rbpf_code code;

	cr_assert_eq(unwind_tables_add(tables, map, now, &code), 0);
	cr_assert_eq(code.n, map->n);
	assert_sane_area(code);
	return code;
}

static void load(struct code_map *map, uint64_t addr, uint64_t now)
{
	cr_assert_eq(unwind_tables_load(tables, map, getpid(), addr, now, false), 0);
}

static uint64_t code_of(const struct code_image *image)
{
	return (uint64_t)(uintptr_t)image->code;
}

/* A map of images alone, so that they can be added one without another. */
static struct code_map *map_of(const struct code_image *images, size_t n)
{
	struct maps all = MAPS_INIT, some = MAPS_INIT;
	struct code_map *map;

	cr_assert_eq(maps_read(getpid(), &all, NULL), 0);
	for (size_t i = 0; i < all.n; i++)
		for (size_t k = 0; k < n; k++) {
			if (all.v[i].start != code_of(&images[k]))
				continue;
			cr_assert_eq(array_reserve(some.v, some.cap, some.n + 1), 0);
			some.v[some.n++] = all.v[i];
		}
	cr_assert_eq(code_map_from(&files, getpid(), &some, CODE_JIT_NONE, NULL, &map), 0);
	cr_assert_eq(map->n, n);
	free(some.v);
	maps_deinit(&all);
	return map;
}

/* Each rule of [@start, @end) that the pool gives, against a table of its own. */
static size_t compare_range(const struct code_range *range, const struct rbpf_range *added)
{
	const uint64_t step = (range->end - range->start) / 5000 | 1;
	struct cfi_rules rules = CFI_RULES_INIT;
	struct cfi_table table = CFI_TABLE_INIT;
	size_t compared = 0, wrong = 0;
	struct code_file *file = range->file;
	int fd;

	cr_assert_eq(cfi_rules_init(&rules), 0);
	if (file->image) {
		cr_assert_eq(cfi_table_read_image(file->image, file->key.size, &rules, &table), 0);
	} else {
		fd = open(file->path, O_RDONLY | O_CLOEXEC);
		cr_assert_eq(cfi_table_read(fd, &rules, &table), 0, "%s", file->path);
		close(fd);
	}
	cr_expect_eq(added->pages, table.pages);
	for (uint64_t addr = range->start; addr < range->end; addr += step, compared++)
		wrong += memcmp(rule_in(added, addr),
				cfi_table_rule(&table, &rules, addr - range->bias),
				sizeof(struct rbpf_cfi_rule)) != 0;
	cr_expect_eq(wrong, 0, "%s: %zu of %zu places", file->path, wrong, compared);
	cfi_table_deinit(&table);
	cfi_rules_deinit(&rules);
	return compared;
}

/* ---- loading ---- */

Test(unwind_tables, own, .init = set_up, .fini = tear_down)
{
	struct code_map *map = read_own(NULL);
	struct rbpf_code code = add_map(map, NOW);
	struct unwind_tables_stats stats;
	size_t compared = 0, loaded = 0;

	for (size_t i = 0; i < map->n; i++)
		cr_expect_eq(mem.ranges[code.first + i].kind, map->v[i].kind);
	cr_expect_eq(unwind_tables_load(tables, map, getpid(), 1, NOW, false), -ENOENT);
	for (size_t i = 0; i < map->n; i++) {
		struct rbpf_range *added = &mem.ranges[code.first + i];

		if (!map->v[i].file)
			continue;
		added->asked = 1;
		load(map, map->v[i].start, NOW);
		cr_assert_eq(map->v[i].file->table_state, CODE_TABLE_NOT_TRIED,
			     "%s: no second copy is kept", map->v[i].file->path);
		compared += compare_range(&map->v[i], added);
		loaded++;
	}
	cr_expect_gt(loaded, 3);
	cr_expect_gt(compared, 5000);
	assert_sane_area(code);
	assert_tables_apart(code);
	cr_expect_eq(range_at(code, getauxval(AT_SYSINFO_EHDR))->kind, RBPF_CODE_TABLE);
	stats = unwind_tables_stats(tables);
	cr_expect_leq(stats.tables, loaded);
	cr_expect_gt(stats.tables, 3);
	cr_expect_geq(stats.bytes, stats.words * 4);
	cr_expect_eq(stats.dropped + stats.refused, 0);
	load(map, map->v[0].start, NOW);
	cr_expect_eq(unwind_tables_stats(tables).words, stats.words, "loaded once");
	unwind_tables_remove(tables, map, NOW);
	code_map_unref(map);
}

Test(unwind_tables, read_ahead, .init = set_up, .fini = tear_down)
{
	struct code_map *map = read_own(NULL);
	struct rbpf_code code = add_map(map, NOW);
	size_t compared = 0;

	for (size_t i = 0; i < map->n; i++) {
		if (!map->v[i].file)
			continue;
		cr_assert_eq(unwind_tables_load(tables, map, getpid(), map->v[i].start, NOW, true),
			     0);
		/* As the BPF programs ask, again and again. */
		cr_assert_eq(unwind_tables_load(tables, map, getpid(), map->v[i].start, NOW, true),
			     0);
	}
	cr_assert_eq(unwind_tables_poll(tables, NOW), 0);
	cr_assert_eq(code_readahead_poll(&files, true), 0);
	cr_assert_eq(unwind_tables_poll(tables, NOW), 0);
	for (size_t i = 0; i < map->n; i++) {
		if (!map->v[i].file)
			continue;
		cr_expect_eq(map->v[i].file->table_state, CODE_TABLE_NOT_TRIED,
			     "no second copy is kept");
		compared += compare_range(&map->v[i], &mem.ranges[code.first + i]);
	}
	cr_expect_gt(compared, 5000);
	assert_sane_area(code);
	assert_tables_apart(code);
	unwind_tables_remove(tables, map, NOW);
	code_map_unref(map);
}

static void measure(const char *path)
{
	struct code_image image = { 0 };
	struct code_map *map;
	struct rbpf_code code;
	uint64_t ns, cpu;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	image.code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0x40000);
	cr_assert_neq(image.code, MAP_FAILED);
	close(fd);
	map = map_of(&image, 1);
	cr_assert_not_null(map->v[0].file, "%s", path);
	code = add_map(map, NOW);
	ns = clock_ns(CLOCK_MONOTONIC);
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	load(map, code_of(&image), NOW);
	ns = clock_ns(CLOCK_MONOTONIC) - ns;
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	cr_log_info("%s: %.1f ms, of them %.1f on a CPU, %lu KiB", path, (double)ns / 1e6,
		    (double)cpu / 1e6, (unsigned long)unwind_tables_stats(tables).bytes >> 10);
	compare_range(&map->v[0], &mem.ranges[code.first]);
	cr_expect_lt(cpu, 150000000ull * SLOWDOWN);
	unwind_tables_remove(tables, map, NOW);
	code_map_unref(map);
	munmap(image.code, 4096);
}

Test(unwind_tables, libruby, .init = set_up, .fini = tear_down)
{
	glob_t found = { 0 };

	if (glob("/usr/lib/*/libruby-*.so.*.*.*", 0, NULL, &found)) {
		tear_down(); /* Criterion does not call .fini for a test that is skipped */
		cr_skip_test("there is no libruby");
	}
	measure(found.gl_pathv[0]);
	globfree(&found);
}

/* ---- processes that share, come and go ---- */

Test(unwind_tables, maps_that_are_shared, .init = set_up, .fini = tear_down)
{
	struct rbpf_code first, second, other;
	struct code_map *map, *map2;
	struct code_image image;

	code_image_make(&image, 10, 16);
	code_image_map(&image);
	map = map_of(&image, 1);
	map2 = map_of(&image, 1);
	first = add_map(map, NOW);
	second = add_map(map, NOW);
	other = add_map(map2, NOW);
	cr_expect_eq(first.first, second.first, "one area for both");
	cr_expect_neq(first.first, other.first);
	load(map, code_of(&image), NOW);
	cr_expect_eq(mem.ranges[first.first].kind, RBPF_CODE_TABLE);
	cr_expect_eq(mem.ranges[other.first].kind, RBPF_CODE_TABLE, "of each with that file");
	cr_expect_eq(mem.ranges[first.first].table, mem.ranges[other.first].table);
	unwind_tables_remove(tables, map, NOW);
	cr_expect_eq(add_map(map, NOW).first, first.first, "still there");
	unwind_tables_remove(tables, map, NOW);
	unwind_tables_remove(tables, map, NOW);
	cr_expect_neq(add_map(map, NOW).first, first.first, "another may still read there");
	unwind_tables_remove(tables, map, NOW);
	other = add_map(map, NOW + GRACE);
	cr_expect_eq(other.first, first.first);
	cr_expect_eq(mem.ranges[other.first].kind, RBPF_CODE_TABLE, "its table has stayed");
	unwind_tables_remove(tables, map, NOW + GRACE);
	unwind_tables_remove(tables, map, NOW + GRACE); /* removed already: nothing */
	unwind_tables_remove(tables, map2, NOW + GRACE);
	code_map_unref(map);
	code_map_unref(map2);
	code_image_remove(&image);
}

Test(unwind_tables, library_that_is_loaded_later, .init = set_up, .fini = tear_down)
{
	struct rbpf_code before, after;
	struct code_map *old, *new;
	struct code_image image;
	uint64_t libc = (uint64_t)(uintptr_t)gnu_get_libc_version;

	old = read_own(NULL);
	before = add_map(old, NOW);
	load(old, libc, NOW);
	code_image_make(&image, 10, 16);
	code_image_map(&image);
	new = read_own(old);
	after = add_map(new, NOW);
	unwind_tables_remove(tables, old, NOW);
	cr_expect_eq(after.n, before.n + 1);
	cr_expect_eq(range_at(after, libc)->kind, RBPF_CODE_TABLE, "at once");
	cr_expect_eq(range_at(after, libc)->table, range_at(before, libc)->table);
	cr_expect_eq(range_at(after, code_of(&image))->kind, RBPF_CODE_UNREAD);
	load(new, code_of(&image), NOW);
	cr_expect_eq(range_at(after, code_of(&image))->kind, RBPF_CODE_TABLE);
	cr_expect_null(range_at(before, code_of(&image)));
	unwind_tables_remove(tables, new, NOW);
	code_map_unref(old);
	code_map_unref(new);
	code_image_remove(&image);
}

Test(unwind_tables, no_table, .init = set_up, .fini = tear_down)
{
	struct code_image images[2];
	struct code_map *map;
	struct rbpf_code code;

	code_image_make(&images[0], 0, 16);
	code_image_make(&images[1], 1, 16);
	code_image_map(&images[0]);
	code_image_map(&images[1]);
	map = map_of(images, 2);
	code = add_map(map, NOW);
	load(map, code_of(&images[0]), NOW);
	cr_expect_eq(range_at(code, code_of(&images[0]))->kind, RBPF_CODE_NO_TABLE);
	cr_expect_eq(range_at(code, code_of(&images[1]))->kind, RBPF_CODE_UNREAD);
	unwind_tables_remove(tables, map, NOW);
	code = add_map(map, NOW + GRACE);
	cr_expect_eq(range_at(code, code_of(&images[0]))->kind, RBPF_CODE_NO_TABLE, "known by now");
	cr_expect_eq(unwind_tables_load(tables, map, getpid(), 1, NOW + GRACE, false), -ENOENT);
	unwind_tables_remove(tables, map, NOW + GRACE);
	code_map_unref(map);
	code_image_remove(&images[0]);
	code_image_remove(&images[1]);
}

/* ---- a pool that is full ---- */

#define CROWD 5

struct crowd {
	int n;
	struct code_image images[CROWD];
	struct code_map *maps[CROWD];
	struct rbpf_code code[CROWD];
	uint64_t addr[CROWD];
};

/*
 * Tables for so many blocks, whose rows have these offsets; each has a map of its own, and all are
 * added. Those with the same numbers are different files with the same words.
 */
static void crowd_init_as(struct crowd *c, int n, const unsigned int *blocks,
			  const uint8_t *offsets)
{
	set_up_with(27 * RBPF_POOL_CHUNK, RBPF_CFI_MAX_RULES, RANGES);
	c->n = n;
	for (int i = 0; i < n; i++) {
		code_image_make(&c->images[i], blocks[i], offsets[i]);
		code_image_map(&c->images[i]);
		c->addr[i] = code_of(&c->images[i]);
		c->maps[i] = map_of(&c->images[i], 1);
		c->code[i] = add_map(c->maps[i], NOW);
	}
}

static void crowd_init_with(struct crowd *c, int n, const unsigned int *blocks)
{
	crowd_init_as(c, n, blocks, (const uint8_t[CROWD]) { 16, 24, 32, 40, 48 });
}

/* Two are loaded, and a third one does not fit in. */
static void crowd_init(struct crowd *c)
{
	crowd_init_with(c, 3, (const unsigned int[]) { ALL_BLOCKS, ALL_BLOCKS, ALL_BLOCKS });
	load(c->maps[0], c->addr[0], NOW);
	load(c->maps[1], c->addr[1], NOW + 1);
	cr_assert_eq(unwind_tables_stats(tables).tables, 2);
}

static void crowd_deinit(struct crowd *c)
{
	for (int i = 0; i < c->n; i++) {
		code_map_unref(c->maps[i]);
		code_image_remove(&c->images[i]);
	}
	tear_down();
}

static uint32_t kind_of(const struct crowd *c, int i)
{
	return mem.ranges[c->code[i].first].kind;
}

static void expect_kinds(const struct crowd *c, uint32_t a, uint32_t b, uint32_t third,
			 const char *when)
{
	cr_expect_eq(kind_of(c, 0), a, "%u: %s", kind_of(c, 0), when);
	cr_expect_eq(kind_of(c, 1), b, "%u: %s", kind_of(c, 1), when);
	cr_expect_eq(kind_of(c, 2), third, "%u: %s", kind_of(c, 2), when);
}

Test(unwind_tables, what_is_new_stays)
{
	struct crowd c;

	crowd_init(&c);
	mem.ranges[c.code[2].first].asked = 1;
	load(c.maps[2], c.addr[2], NOW + 2);
	expect_kinds(&c, RBPF_CODE_TABLE, RBPF_CODE_TABLE, RBPF_CODE_NO_ROOM, "refused");
	cr_expect_eq(unwind_tables_stats(tables).refused, 1);
	load(c.maps[2], c.addr[2], NOW + 3);
	cr_expect_eq(unwind_tables_stats(tables).refused, 1, "known");
	unwind_tables_tick(tables, NOW + 2 + UNWIND_STAY_NS - 1);
	expect_kinds(&c, RBPF_CODE_TABLE, RBPF_CODE_TABLE, RBPF_CODE_NO_ROOM, "too early");
	unwind_tables_tick(tables, NOW + 2 + UNWIND_STAY_NS);
	expect_kinds(&c, RBPF_CODE_TABLE, RBPF_CODE_TABLE, RBPF_CODE_UNREAD, "again");
	cr_expect_eq(mem.ranges[c.code[2].first].asked, 0);
	crowd_deinit(&c);
}

/* The one that was loaded first goes; its words are another's only after the grace. */
Test(unwind_tables, oldest_makes_room)
{
	const uint64_t later = NOW + 2 * UNWIND_STAY_NS;
	struct unwind_tables_stats stats;
	struct rbpf_range before;
	uint32_t *words;
	struct crowd c;

	crowd_init(&c);
	before = mem.ranges[c.code[0].first];
	words = malloc(13 * RBPF_POOL_CHUNK * 4);
	memcpy(words, mem.words + before.table, 13 * RBPF_POOL_CHUNK * 4);
	load(c.maps[2], c.addr[2], later);
	expect_kinds(&c, RBPF_CODE_NO_ROOM, RBPF_CODE_TABLE, RBPF_CODE_NO_ROOM, "on its way");
	cr_expect_eq(mem.ranges[c.code[0].first].table, before.table, "as it was read by then");
	cr_expect_eq(mem.ranges[c.code[0].first].pages, before.pages);
	unwind_tables_tick(tables, later + GRACE - 1);
	load(c.maps[2], c.addr[2], later + GRACE - 1);
	expect_kinds(&c, RBPF_CODE_NO_ROOM, RBPF_CODE_TABLE, RBPF_CODE_NO_ROOM, "grace");
	cr_expect_eq(memcmp(words, mem.words + before.table, 13 * RBPF_POOL_CHUNK * 4), 0);
	unwind_tables_tick(tables, later + GRACE);
	expect_kinds(&c, RBPF_CODE_UNREAD, RBPF_CODE_TABLE, RBPF_CODE_UNREAD, "room for one");
	load(c.maps[2], c.addr[2], later + GRACE);
	expect_kinds(&c, RBPF_CODE_UNREAD, RBPF_CODE_TABLE, RBPF_CODE_TABLE, "loaded");
	compare_range(&c.maps[2]->v[0], &mem.ranges[c.code[2].first]);
	compare_range(&c.maps[1]->v[0], &mem.ranges[c.code[1].first]);
	stats = unwind_tables_stats(tables);
	cr_expect_eq(stats.tables, 2);
	cr_expect_eq(stats.dropped, 1);
	cr_expect_eq(stats.refused, 1);

	/* And the next one, when it is asked for: the second has been there longest. */
	load(c.maps[0], c.addr[0], later + GRACE);
	expect_kinds(&c, RBPF_CODE_NO_ROOM, RBPF_CODE_NO_ROOM, RBPF_CODE_TABLE, "next");
	load(c.maps[0], c.addr[0], later + 2 * GRACE);
	expect_kinds(&c, RBPF_CODE_TABLE, RBPF_CODE_UNREAD, RBPF_CODE_TABLE, "loaded again");
	compare_range(&c.maps[0]->v[0], &mem.ranges[c.code[0].first]);
	free(words);
	crowd_deinit(&c);
}

/* A table that no added map needs goes first, however new it is. */
Test(unwind_tables, unused_makes_room)
{
	struct crowd c;

	crowd_init(&c);
	unwind_tables_remove(tables, c.maps[1], NOW + 2);
	cr_expect_eq(unwind_tables_stats(tables).tables, 2, "kept while there is room");
	load(c.maps[2], c.addr[2], NOW + 3);
	cr_expect_eq(kind_of(&c, 0), RBPF_CODE_TABLE);
	cr_expect_eq(kind_of(&c, 2), RBPF_CODE_NO_ROOM);
	cr_expect_eq(unwind_tables_stats(tables).tables, 1);
	unwind_tables_tick(tables, NOW + 3 + GRACE);
	load(c.maps[2], c.addr[2], NOW + 3 + GRACE);
	cr_expect_eq(kind_of(&c, 0), RBPF_CODE_TABLE);
	cr_expect_eq(kind_of(&c, 2), RBPF_CODE_TABLE);
	/* Of the one that was refused and was removed, nothing is known: it is like new. */
	c.code[1] = add_map(c.maps[1], NOW + 3 + GRACE);
	load(c.maps[1], c.addr[1], NOW + 3 + GRACE);
	cr_expect_eq(kind_of(&c, 1), RBPF_CODE_NO_ROOM);
	unwind_tables_remove(tables, c.maps[1], NOW + 3 + GRACE);
	c.code[1] = add_map(c.maps[1], NOW + 3 + GRACE);
	cr_expect_eq(kind_of(&c, 1), RBPF_CODE_UNREAD);
	crowd_deinit(&c);
}

/* What makes it a table in use is any map with the file, also one that came when it was loaded. */
Test(unwind_tables, used_by_who_came_later)
{
	struct code_map *late;
	struct crowd c;

	crowd_init(&c);
	late = map_of(&c.images[0], 1);
	c.code[0] = add_map(late, NOW + 2);
	cr_expect_eq(kind_of(&c, 0), RBPF_CODE_TABLE, "at once");
	unwind_tables_remove(tables, c.maps[0], NOW + 2);
	load(c.maps[2], c.addr[2], NOW + 3);
	expect_kinds(&c, RBPF_CODE_TABLE, RBPF_CODE_TABLE, RBPF_CODE_NO_ROOM, "used");
	cr_expect_eq(unwind_tables_stats(tables).dropped, 0);
	unwind_tables_remove(tables, late, NOW + 4);
	code_map_unref(late);
	crowd_deinit(&c);
}

/* That others' words become free is no reason to change a range that was a table just now. */
Test(unwind_tables, grace_of_what_was_dropped)
{
	const uint64_t later = NOW + 2 * UNWIND_STAY_NS;
	const unsigned int half = ALL_BLOCKS / 2;
	struct crowd c;

	crowd_init_with(&c, 5, (const unsigned int[]) { half, ALL_BLOCKS, half, half, ALL_BLOCKS });
	for (int i = 0; i < 3; i++)
		load(c.maps[i], c.addr[i], NOW + (uint64_t)i);
	expect_kinds(&c, RBPF_CODE_TABLE, RBPF_CODE_TABLE, RBPF_CODE_TABLE, "all full");
	load(c.maps[3], c.addr[3], later);
	expect_kinds(&c, RBPF_CODE_NO_ROOM, RBPF_CODE_TABLE, RBPF_CODE_TABLE, "one goes");
	load(c.maps[4], c.addr[4], later + GRACE / 2);
	expect_kinds(&c, RBPF_CODE_NO_ROOM, RBPF_CODE_NO_ROOM, RBPF_CODE_TABLE, "and one more");
	unwind_tables_tick(tables, later + GRACE);
	expect_kinds(&c, RBPF_CODE_UNREAD, RBPF_CODE_NO_ROOM, RBPF_CODE_TABLE, "its grace");
	cr_expect_eq(kind_of(&c, 3), RBPF_CODE_UNREAD);
	unwind_tables_tick(tables, later + GRACE + GRACE / 2);
	expect_kinds(&c, RBPF_CODE_UNREAD, RBPF_CODE_UNREAD, RBPF_CODE_TABLE, "both over");
	crowd_deinit(&c);
}

/* ---- files with the same words, as containers of one image have ---- */

#define TWINS 4 /* of the crowd; the pool has room for two that differ */

/* All but the last are the same, and loaded. */
static void twins_init(struct crowd *c)
{
	crowd_init_as(c, CROWD,
		      (const unsigned int[]) { ALL_BLOCKS, ALL_BLOCKS, ALL_BLOCKS, ALL_BLOCKS,
					       ALL_BLOCKS },
		      (const uint8_t[]) { 16, 16, 16, 16, 24 });
	for (int i = 0; i < TWINS; i++)
		load(c->maps[i], c->addr[i], NOW);
}

static size_t references(const struct crowd *c, int i)
{
	return c->maps[i]->v[0].file->references;
}

Test(unwind_tables, the_same_words_are_there_once)
{
	struct unwind_tables_stats stats;
	struct crowd c;

	twins_init(&c);
	stats = unwind_tables_stats(tables);
	cr_expect_eq(stats.tables, 1);
	cr_expect_eq(stats.refused, 0);
	for (int i = 0; i < TWINS; i++) {
		cr_expect_eq(kind_of(&c, i), RBPF_CODE_TABLE);
		cr_expect_eq(mem.ranges[c.code[i].first].table, mem.ranges[c.code[0].first].table);
		compare_range(&c.maps[i]->v[0], &mem.ranges[c.code[i].first]);
	}
	load(c.maps[TWINS], c.addr[TWINS], NOW);
	cr_expect_eq(unwind_tables_stats(tables).tables, 2, "other words");
	cr_expect_neq(mem.ranges[c.code[TWINS].first].table, mem.ranges[c.code[0].first].table);
	compare_range(&c.maps[TWINS]->v[0], &mem.ranges[c.code[TWINS].first]);
	crowd_deinit(&c);
}

/* Of files that nobody maps, one is kept with the words, not all that had them. */
Test(unwind_tables, the_same_words_outlive_their_files)
{
	struct crowd c;

	twins_init(&c);
	for (int i = 0; i < TWINS - 1; i++) {
		unwind_tables_remove(tables, c.maps[i], NOW);
		cr_expect_eq(references(&c, i), 1, "the map's");
		cr_expect_eq(kind_of(&c, TWINS - 1), RBPF_CODE_TABLE);
	}
	unwind_tables_remove(tables, c.maps[TWINS - 1], NOW);
	cr_expect_eq(references(&c, TWINS - 1), 2, "the map's, and the words'");
	cr_expect_eq(unwind_tables_stats(tables).tables, 1);
	c.code[0] = add_map(c.maps[0], NOW + 1);
	cr_expect_eq(kind_of(&c, 0), RBPF_CODE_UNREAD);
	load(c.maps[0], c.addr[0], NOW + 1);
	cr_expect_eq(kind_of(&c, 0), RBPF_CODE_TABLE);
	cr_expect_eq(unwind_tables_stats(tables).tables, 1, "those that were there");
	crowd_deinit(&c);
}

/* They are in use while one of the files is, are dropped for all of them, and come back for all. */
Test(unwind_tables, the_same_words_make_room_once)
{
	const uint64_t later = NOW + 2 * UNWIND_STAY_NS;
	struct code_image big;
	struct rbpf_code code;
	struct code_map *map;
	struct crowd c;

	twins_init(&c);
	load(c.maps[TWINS], c.addr[TWINS], NOW + 1);
	code_image_make(&big, ALL_BLOCKS, 32);
	code_image_map(&big);
	map = map_of(&big, 1);
	code = add_map(map, NOW + 2);
	unwind_tables_remove(tables, c.maps[0], NOW + 2);
	load(map, code_of(&big), NOW + 2);
	cr_expect_eq(mem.ranges[code.first].kind, RBPF_CODE_NO_ROOM);
	cr_expect_eq(kind_of(&c, 1), RBPF_CODE_TABLE, "others use it");

	unwind_tables_tick(tables, later);
	load(map, code_of(&big), later);
	cr_expect_eq(unwind_tables_stats(tables).dropped, 1);
	for (int i = 1; i < TWINS; i++)
		cr_expect_eq(kind_of(&c, i), RBPF_CODE_NO_ROOM, "all that had them");
	cr_expect_eq(kind_of(&c, TWINS), RBPF_CODE_TABLE);
	unwind_tables_tick(tables, later + GRACE);
	load(c.maps[1], c.addr[1], later + GRACE);
	load(c.maps[2], c.addr[2], later + GRACE);
	cr_expect_eq(kind_of(&c, 2), RBPF_CODE_TABLE, "though the pool is full");
	cr_expect_eq(kind_of(&c, 3), RBPF_CODE_UNREAD);
	cr_expect_eq(unwind_tables_stats(tables).tables, 2);
	compare_range(&c.maps[2]->v[0], &mem.ranges[c.code[2].first]);
	unwind_tables_remove(tables, map, later + GRACE);
	code_map_unref(map);
	code_image_remove(&big);
	crowd_deinit(&c);
}

/* One that is larger than all of the pool drives nobody out, and is not asked for any more. */
Test(unwind_tables, too_large)
{
	struct code_image images[2];
	struct code_map *map;
	struct rbpf_code code;

	set_up_with(12 * RBPF_POOL_CHUNK + 5, RBPF_CFI_MAX_RULES, RANGES);
	code_image_make(&images[0], 10, 16);
	code_image_make(&images[1], ALL_BLOCKS, 16);
	code_image_map(&images[0]);
	code_image_map(&images[1]);
	map = map_of(images, 2);
	code = add_map(map, NOW);
	load(map, code_of(&images[0]), NOW);
	load(map, code_of(&images[1]), NOW + 2 * UNWIND_STAY_NS);
	unwind_tables_tick(tables, NOW + 5 * UNWIND_STAY_NS);
	cr_expect_eq(range_at(code, code_of(&images[0]))->kind, RBPF_CODE_TABLE);
	cr_expect_eq(range_at(code, code_of(&images[1]))->kind, RBPF_CODE_NO_ROOM);
	cr_expect_eq(unwind_tables_stats(tables).dropped, 0);
	unwind_tables_remove(tables, map, NOW + 5 * UNWIND_STAY_NS);
	code_map_unref(map);
	code_image_remove(&images[0]);
	code_image_remove(&images[1]);
	tear_down();
}

Test(unwind_tables, no_room_for_ranges)
{
	struct rbpf_code code = { .first = 7, .n = 7 };
	struct code_image image;
	struct code_map *map, *map2;

	set_up_with(WORDS, RBPF_CFI_MAX_RULES, 1);
	code_image_make(&image, 10, 16);
	code_image_map(&image);
	map = map_of(&image, 1);
	map2 = map_of(&image, 1);
	add_map(map, NOW);
	cr_expect_eq(unwind_tables_add(tables, map2, NOW, &code), -ENOSPC);
	cr_expect_eq(code.n, 7, "untouched");
	cr_expect_eq(unwind_tables_load(tables, map2, getpid(), code_of(&image), NOW, false),
		     -ENOENT);
	unwind_tables_remove(tables, map2, NOW); /* not added: nothing */
	unwind_tables_remove(tables, map, NOW);
	cr_expect_eq(unwind_tables_add(tables, map2, NOW, &code), -ENOSPC, "grace");
	add_map(map2, NOW + GRACE);
	code_map_unref(map);
	code_map_unref(map2);
	code_image_remove(&image);
	tear_down();
}

/* Rows with a rule for which there is no room say nothing; the others are as they were. */
Test(unwind_tables, few_rules)
{
	struct code_image images[2];
	const struct rbpf_cfi_rule *rule;
	struct code_map *map;
	struct rbpf_code code;

	set_up_with(WORDS, 6, RANGES);
	code_image_make(&images[0], 10, 16);
	code_image_make(&images[1], 10, 120);
	code_image_map(&images[0]);
	code_image_map(&images[1]);
	map = map_of(images, 2);
	code = add_map(map, NOW);
	load(map, code_of(&images[0]), NOW);
	load(map, code_of(&images[1]), NOW);
	cr_assert_gt(cfi_rules_count(&files.rules), 6);
	rule = rule_in(range_at(code, code_of(&images[0])), code_of(&images[0]));
	cr_expect_eq(rule->cfa_off, 16);
	rule = rule_in(range_at(code, code_of(&images[1])), code_of(&images[1]) + 4);
	cr_expect_eq(rule->cfa, RBPF_CFI_CFA_NONE);
	for (uint64_t i = 0; i < 640; i++)
		rule_in(range_at(code, code_of(&images[1])), code_of(&images[1]) + i);
	unwind_tables_remove(tables, map, NOW);
	code_map_unref(map);
	code_image_remove(&images[0]);
	code_image_remove(&images[1]);
	tear_down();
}

/* The process is gone before its file was read, and so is the file. */
Test(unwind_tables, file_that_cannot_be_opened, .init = set_up, .fini = tear_down)
{
	struct code_image image;
	struct code_map *map;
	struct rbpf_code code;

	code_image_make(&image, 10, 16);
	code_image_map(&image);
	map = map_of(&image, 1);
	code = add_map(map, NOW);
	code_file_done(&files, map->v[0].file, CODE_PART_ALL); /* as if many others were open */
	code_image_remove(&image);
	cr_expect_eq(unwind_tables_load(tables, map, 0x3fffffff, code_of(&image), NOW, false), 0);
	cr_expect_eq(mem.ranges[code.first].kind, RBPF_CODE_NO_TABLE);
	unwind_tables_remove(tables, map, NOW);
	code = add_map(map, NOW + GRACE);
	cr_expect_eq(mem.ranges[code.first].kind, RBPF_CODE_UNREAD, "another may map it still");
	unwind_tables_remove(tables, map, NOW + GRACE);
	code_map_unref(map);
}

/* ---- while the BPF programs read ---- */

struct reader {
	const struct rbpf_range *range;
	uint64_t start;
	int stop;
	size_t reads, tables, wrong;
};

/* Each of the rules that the image has there, and no other, as long as the kind says table. */
static void *read_all_the_time(void *ctx)
{
	struct reader *r = ctx;

	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
		uint64_t offset = r->reads++ % (ALL_BLOCKS * CODE_IMAGE_BLOCK);
		const struct rbpf_cfi_rule *rule;
		uint32_t found;

		if (__atomic_load_n(&r->range->kind, __ATOMIC_ACQUIRE) != RBPF_CODE_TABLE)
			continue;
		found = rbpf_cfi_find(mem.words +
					      __atomic_load_n(&r->range->table, __ATOMIC_RELAXED),
				      __atomic_load_n(&r->range->pages, __ATOMIC_RELAXED),
				      r->start + offset - r->range->base);
		rule = &mem.rules[found];
		r->tables++;
		r->wrong += rule->cfa_off != (offset / 4 % 2 ? 8 : 16);
	}
	return NULL;
}

/* Three that fit in by twos, over and over; time goes by as fast as it is made to. */
Test(unwind_tables, reader_sees_nothing_by_halves)
{
	uint64_t now = NOW + 2 * UNWIND_STAY_NS;
	struct reader reader = { 0 };
	pthread_t thread;
	struct crowd c;

	crowd_init(&c);
	reader.range = &mem.ranges[c.code[0].first];
	reader.start = c.addr[0];
	cr_assert_eq(pthread_create(&thread, NULL, read_all_the_time, &reader), 0);
	for (int i = 0; i < 60 / SLOWDOWN; i++, now += UNWIND_STAY_NS / 4) {
		load(c.maps[i % 3], c.addr[i % 3], now);
		usleep(2000); /* what the grace stands for */
	}
	__atomic_store_n(&reader.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	cr_expect_eq(reader.wrong, 0, "%zu of %zu", reader.wrong, reader.tables);
	cr_expect_gt(unwind_tables_stats(tables).dropped, 1);
	crowd_deinit(&c);
}
