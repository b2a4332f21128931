/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/perf_map_file.h"
#include "symbol/perf_map.h"

#if defined(__SANITIZE_ADDRESS__)
#define SLOWDOWN 10
#else
#define SLOWDOWN 1
#endif

static struct perf_map_budget budget = PERF_MAP_BUDGET_INIT;

static int map_fd(void)
{
	int fd = memfd_create("perf.map", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	return fd;
}

static void append(int fd, const char *text)
{
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static const char *name_at(struct perf_map *map, uint64_t addr)
{
	const char *name = perf_map_find(map, addr, NULL);

	return name ? name : "none";
}

Test(perf_map, entries)
{
	struct perf_map map = PERF_MAP_INIT(&budget);
	int fd = map_fd();
	uint64_t start;

	cr_expect_str_eq(name_at(&map, 0), "none");
	append(fd, "7f0000001000 100 rb_foo\n"
		   "0x7F0000002000 0x10 Foo#bar (/app/foo.rb:12)\n"
		   "ffffffffffffff00 ff last\r\n");
	cr_assert_eq(perf_map_read_file(&map, fd), 0);
	cr_expect_str_eq(name_at(&map, 0x7f0000000fff), "none");
	cr_expect_str_eq(name_at(&map, 0x7f0000001000), "rb_foo");
	cr_expect_str_eq(name_at(&map, 0x7f00000010ff), "rb_foo");
	cr_expect_str_eq(name_at(&map, 0x7f0000001100), "none");
	cr_expect_str_eq(perf_map_find(&map, 0x7f000000200f, &start), "Foo#bar (/app/foo.rb:12)");
	cr_expect_eq(start, 0x7f0000002000);
	cr_expect_str_eq(name_at(&map, 0xfffffffffffffffe), "last");
	cr_expect_str_eq(name_at(&map, UINT64_MAX), "none");
	perf_map_deinit(&map);
	close(fd);
}

Test(perf_map, garbage)
{
	static const char bytes[] = "1000 10 a\0b\n";
	struct perf_map map = PERF_MAP_INIT(&budget);
	struct buf line = BUF_INIT;
	int fd = map_fd();

	append(fd, "\n \n1000\n1000 \n1000 10\n1000 10 \nx000 10 a\n1000 1x a\n1000 0 a\n"
		   "-1000 10 a\n10000000000000000 10 a\n1000 ffffffffffffffff a\n0x 10 a\n");
	cr_assert_eq(write(fd, bytes, sizeof(bytes) - 1), (ssize_t)sizeof(bytes) - 1);
	buf_add_repeat(&line, 'x', 200000);
	buf_addstr(&line, "\n2000 10 good\n3000 10 ");
	buf_add_repeat(&line, 'y', PERF_MAP_MAX_NAME + 100);
	buf_addstr(&line, "\n");
	append(fd, buf_str(&line));
	cr_assert_eq(perf_map_read_file(&map, fd), 0);
	cr_expect_eq(map.n, 2);
	cr_expect_str_eq(name_at(&map, 0x2000), "good");
	cr_expect_eq(strlen(name_at(&map, 0x3000)), PERF_MAP_MAX_NAME, "cut");
	cr_expect_eq(perf_map_read_file(&map, -1), -EBADF);
	perf_map_deinit(&map);
	buf_deinit(&line);
	close(fd);
}

Test(perf_map, grows)
{
	struct perf_map map = PERF_MAP_INIT(&budget);
	int fd = map_fd();

	append(fd, "1000 100 first\n2000 100 sec");
	cr_assert_eq(perf_map_read_file(&map, fd), 0);
	cr_expect_str_eq(name_at(&map, 0x1000), "first");
	cr_expect_str_eq(name_at(&map, 0x2000), "none", "its line has no end yet");
	append(fd, "ond\n1080 10 third\n");
	cr_assert_eq(perf_map_read_file(&map, fd), 0);
	cr_expect_str_eq(name_at(&map, 0x2000), "second");
	cr_expect_str_eq(name_at(&map, 0x107f), "first");
	cr_expect_str_eq(name_at(&map, 0x1080), "third");
	cr_expect_str_eq(name_at(&map, 0x1090), "first");
	cr_assert_eq(perf_map_read_file(&map, fd), 0);
	cr_expect_eq(map.n, 3, "nothing new");

	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
	append(fd, "1000 10 anew\n");
	cr_assert_eq(perf_map_read_file(&map, fd), 0);
	cr_expect_str_eq(name_at(&map, 0x1000), "anew");
	cr_expect_str_eq(name_at(&map, 0x2000), "none");
	perf_map_deinit(&map);
	close(fd);
}

/* Of entries of any shapes, the last one that has an address holds. */
Test(perf_map, later_entries_hold)
{
	int latest[1024];

	srand(1);
	for (int round = 0; round < 100; round++) {
		struct perf_map map = PERF_MAP_INIT(&budget);
		struct buf text = BUF_INIT;
		int fd = map_fd();

		memset(latest, -1, sizeof(latest));
		for (int i = 0; i < 100; i++) {
			int start = rand() % 900, size = 1 + rand() % (rand() % 100 + 1);

			buf_addf(&text, "%x %x %d\n", start, size, i);
			for (int k = start; k < start + size; k++)
				latest[k] = i;
		}
		append(fd, buf_str(&text));
		cr_assert_eq(perf_map_read_file(&map, fd), 0);
		for (uint64_t addr = 0; addr < 1024; addr++) {
			const char *name = perf_map_find(&map, addr, NULL);

			cr_assert_eq(name ? atoi(name) : -1, latest[addr], "round %d, at %#lx",
				     round, (unsigned long)addr);
		}
		perf_map_deinit(&map);
		buf_deinit(&text);
		close(fd);
	}
}

/* As in several seconds. */
static void read_all(struct perf_map *map, int fd)
{
	uint64_t before;

	do {
		before = map->read;
		perf_map_budget_tick(&budget);
		cr_assert_eq(perf_map_read_file(map, fd), 0);
	} while (map->read != before);
}

/* More than will be read, all of it at the same place, or each within the one before. */
Test(perf_map, limits)
{
	struct perf_map map = PERF_MAP_INIT(&budget);
	struct buf text = BUF_INIT;
	int fd = map_fd();
	uint64_t ns;

	for (uint64_t i = 0; i < PERF_MAP_MAX_ENTRIES + 10; i++)
		buf_addf(&text, "%lx %lx name_%lu\n", (unsigned long)(0x1000 + (i & ~1ul)),
			 (unsigned long)(0x1000000 - 2 * i), (unsigned long)i);
	cr_assert_lt(text.len, PERF_MAP_MAX_BYTES);
	append(fd, buf_str(&text));
	ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	read_all(&map, fd);
	cr_expect_eq(map.n, PERF_MAP_MAX_ENTRIES);
	cr_expect(map.is_cut);
	cr_expect_eq(budget.n_cut, 1);
	cr_expect_lt(budget.memory, PERF_MAPS_MAX_MEMORY);
	cr_expect_str_eq(name_at(&map, 0x1000 + 400000), "name_400001");
	ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - ns;
	cr_log_info("%.0f ms", (double)ns / 1e6);
	cr_expect_leq(ns, 3 * SLOWDOWN * NSEC_PER_SEC);
	perf_map_deinit(&map);

	/* A sparse file. */
	cr_expect_eq(budget.memory, PERF_MAPS_MAX_MEMORY);
	cr_assert_eq(ftruncate(fd, (off_t)4 << 30), 0);
	read_all(&map, fd);
	cr_expect_leq(map.read, PERF_MAP_MAX_BYTES + 65536);
	cr_expect_eq(budget.n_cut, 2);
	perf_map_deinit(&map);
	buf_deinit(&text);
	close(fd);
}

/* A file that is written anew again and again. */
Test(perf_map, work_on_the_same_file)
{
	struct perf_map map = PERF_MAP_INIT(&budget);
	struct buf text = BUF_INIT;
	uint64_t n_bytes = 0;
	int fd = map_fd();

	while (text.len < 1 << 20)
		buf_addf(&text, "%zx 10 name\n", text.len);
	for (int i = 0; i < 200; i++) {
		perf_map_budget_tick(&budget);
		cr_assert_eq(ftruncate(fd, 0), 0);
		cr_assert_eq(perf_map_read_file(&map, fd), 0);
		cr_assert_eq(pwrite(fd, text.data, text.len, 0), (ssize_t)text.len);
		cr_assert_eq(perf_map_read_file(&map, fd), 0);
		n_bytes += map.read;
	}
	cr_expect_geq(n_bytes, PERF_MAP_MAX_BYTES);
	cr_expect_leq(n_bytes, PERF_MAP_MAX_BYTES + text.len);
	cr_expect_eq(budget.n_cut, 1, "counted once");
	perf_map_deinit(&map);
	cr_expect_eq(budget.memory, PERF_MAPS_MAX_MEMORY);
	buf_deinit(&text);
	close(fd);
}

/* Maps of many processes; none of them is too large. */
Test(perf_map, memory_of_all)
{
	struct perf_map maps[64];
	struct buf text = BUF_INIT;
	struct mallinfo2 before = mallinfo2(), after;
	size_t n = sizeof(maps) / sizeof(maps[0]), entries = 0;
	int fd = map_fd();

	while (text.len < 4 << 20)
		buf_addf(&text, "%zx 10 name_%zu\n", text.len, text.len);
	append(fd, buf_str(&text));
	buf_deinit(&text);
	for (size_t i = 0; i < n; i++) {
		maps[i] = (struct perf_map)PERF_MAP_INIT(&budget);
		perf_map_budget_tick(&budget);
		cr_assert_eq(perf_map_read_file(&maps[i], fd), 0);
		perf_map_find(&maps[i], 0, NULL);
		entries += maps[i].n;
	}
	after = mallinfo2();
	cr_expect_gt(entries, PERF_MAP_MAX_ENTRIES / 2);
	cr_expect_lt(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd,
		     PERF_MAPS_MAX_MEMORY);
	cr_expect(!maps[0].is_cut && maps[n - 1].is_cut);
	cr_expect_geq(budget.n_cut, n / 2);
	cr_expect_str_eq(name_at(&maps[0], 0), "name_0");
	for (size_t i = 0; i < n; i++)
		perf_map_deinit(&maps[i]);
	cr_expect_eq(budget.memory, PERF_MAPS_MAX_MEMORY);
	close(fd);
}

/* Reading and sorting go on at the next tick; what was known until then holds. */
Test(perf_map, work_from_tick_to_tick)
{
	struct perf_map map = PERF_MAP_INIT(&budget);
	int fd = map_fd();

	append(fd, "1000 10 first\n");
	cr_assert_eq(perf_map_read_file(&map, fd), 0);
	cr_expect_str_eq(name_at(&map, 0x1000), "first");
	append(fd, "2000 10 second\n");
	budget.read = 0;
	cr_assert_eq(perf_map_read_file(&map, fd), 0);
	cr_expect_eq(map.n, 1);
	perf_map_budget_tick(&budget);
	cr_assert_eq(perf_map_read_file(&map, fd), 0);
	cr_expect_eq(map.n, 2);
	budget.sorted = 1;
	cr_expect_str_eq(name_at(&map, 0x1000), "first");
	cr_expect_str_eq(name_at(&map, 0x2000), "none");
	perf_map_budget_tick(&budget);
	cr_expect_str_eq(name_at(&map, 0x2000), "second");
	cr_expect_eq(budget.n_cut, 0);
	perf_map_deinit(&map);
	close(fd);
}
