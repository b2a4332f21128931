/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbol/perf_map.h"

#if defined(__SANITIZE_ADDRESS__)
#define SLOWDOWN 10
#else
#define SLOWDOWN 1
#endif

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
	struct perf_map map = PERF_MAP_INIT;
	int fd = map_fd();
	uint64_t start;

	cr_expect_str_eq(name_at(&map, 0), "none");
	append(fd, "7f0000001000 100 rb_foo\n"
		   "0x7F0000002000 0x10 Foo#bar (/app/foo.rb:12)\n"
		   "ffffffffffffff00 ff last\r\n");
	cr_assert_eq(perf_map_read(&map, fd), 0);
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
	struct perf_map map = PERF_MAP_INIT;
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
	cr_assert_eq(perf_map_read(&map, fd), 0);
	cr_expect_eq(map.n, 2);
	cr_expect_str_eq(name_at(&map, 0x2000), "good");
	cr_expect_eq(strlen(name_at(&map, 0x3000)), PERF_MAP_MAX_NAME, "cut");
	cr_expect_eq(perf_map_read(&map, -1), -EBADF);
	perf_map_deinit(&map);
	buf_deinit(&line);
	close(fd);
}

Test(perf_map, grows)
{
	struct perf_map map = PERF_MAP_INIT;
	int fd = map_fd();

	append(fd, "1000 100 first\n2000 100 sec");
	cr_assert_eq(perf_map_read(&map, fd), 0);
	cr_expect_str_eq(name_at(&map, 0x1000), "first");
	cr_expect_str_eq(name_at(&map, 0x2000), "none", "its line has no end yet");
	append(fd, "ond\n1080 10 third\n");
	cr_assert_eq(perf_map_read(&map, fd), 0);
	cr_expect_str_eq(name_at(&map, 0x2000), "second");
	cr_expect_str_eq(name_at(&map, 0x107f), "first");
	cr_expect_str_eq(name_at(&map, 0x1080), "third");
	cr_expect_str_eq(name_at(&map, 0x1090), "first");
	cr_assert_eq(perf_map_read(&map, fd), 0);
	cr_expect_eq(map.n, 3, "nothing new");

	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
	append(fd, "1000 10 anew\n");
	cr_assert_eq(perf_map_read(&map, fd), 0);
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
		struct perf_map map = PERF_MAP_INIT;
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
		cr_assert_eq(perf_map_read(&map, fd), 0);
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

/* More than will be read, all of it at the same place, or each within the one before. */
Test(perf_map, limits)
{
	struct perf_map map = PERF_MAP_INIT;
	struct buf text = BUF_INIT;
	int fd = map_fd();
	uint64_t ns;

	for (uint64_t i = 0; i < PERF_MAP_MAX_ENTRIES + 10; i++)
		buf_addf(&text, "%lx %lx name_%lu\n", (unsigned long)(0x1000 + (i & ~1ul)),
			 (unsigned long)(0x1000000 - 2 * i), (unsigned long)i);
	cr_assert_lt(text.len, PERF_MAP_MAX_BYTES);
	append(fd, buf_str(&text));
	ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	cr_assert_eq(perf_map_read(&map, fd), 0);
	cr_expect_eq(map.n, PERF_MAP_MAX_ENTRIES);
	cr_expect_str_eq(name_at(&map, 0x1000 + 500000), "name_500001");
	ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - ns;
	cr_log_info("%.0f ms", (double)ns / 1e6);
	cr_expect_leq(ns, 3 * SLOWDOWN * NSEC_PER_SEC);
	perf_map_deinit(&map);

	/* A sparse file. */
	cr_assert_eq(ftruncate(fd, (off_t)4 << 30), 0);
	cr_assert_eq(perf_map_read(&map, fd), 0);
	cr_expect_leq(map.read, PERF_MAP_MAX_BYTES + 65536);
	perf_map_deinit(&map);
	buf_deinit(&text);
	close(fd);
}
