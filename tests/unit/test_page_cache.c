/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pages that are kept: each read gets what reading the memory below would have given it, until that
 * changes.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/memory.h"
#include "target/page_cache.h"

#define PAGE  4096u
#define BASE  0x7f0000000000ull
#define PAGES (3 * PAGE_CACHE_PAGES) /* so many that some share a slot */
#define SIZE  ((size_t)PAGES * PAGE)

static struct below {
	struct memory mem;
	uint8_t *bytes;	    /* [BASE, BASE + SIZE) */
	bool hidden[PAGES]; /* cannot be read */
	size_t calls, spans;
} below;

static bool is_there(uint64_t addr, size_t len)
{
	if (addr < BASE || addr - BASE >= SIZE || len > SIZE - (addr - BASE))
		return false;
	for (uint64_t at = addr - addr % PAGE; at < addr + len; at += PAGE)
		if (below.hidden[(at - BASE) / PAGE])
			return false;
	return true;
}

static void read_below(const struct memory *mem, struct memory_span *spans, size_t n)
{
	(void)mem;
	below.calls++;
	below.spans += n;
	for (size_t i = 0; i < n; i++) {
		spans[i].ok = is_there(spans[i].addr, spans[i].len);
		if (spans[i].ok)
			memcpy(spans[i].dst, below.bytes + (spans[i].addr - BASE), spans[i].len);
	}
}

static struct memory setup(struct page_cache *c)
{
	free(below.bytes);
	memset(&below, 0, sizeof(below));
	below.mem.read_spans = read_below;
	below.bytes = malloc(SIZE);
	for (size_t i = 0; i < SIZE; i++)
		below.bytes[i] = (uint8_t)(i * 7 + i / 251);
	cr_assert_eq(page_cache_init(c, &below.mem), 0);
	return page_cache_memory(c);
}

static void teardown(struct page_cache *c)
{
	page_cache_deinit(c);
	free(below.bytes);
	below.bytes = NULL;
}

static bool is_read(const struct memory *mem, uint64_t addr, size_t len)
{
	uint8_t bytes[4 * PAGE];

	return !memory_read(mem, addr, bytes, len) &&
	       !memcmp(bytes, below.bytes + (addr - BASE), len);
}

Test(page_cache, words_of_a_page_are_one_read)
{
	struct page_cache c;
	struct memory mem = setup(&c);

	for (uint64_t at = BASE; at < BASE + PAGE; at += 8)
		cr_assert(is_read(&mem, at, 8));
	cr_expect_eq(below.calls, 1);
	cr_expect(is_read(&mem, BASE + PAGE - 4, 8), "across two pages");
	cr_expect_eq(below.calls, 2);
	cr_expect_eq(below.spans, 2, "the first one is there");
	cr_expect(is_read(&mem, BASE + PAGE + 8, 8));
	cr_expect_eq(below.calls, 2, "and so is the second");
	teardown(&c);
}

Test(page_cache, pages_of_a_call_are_one_read)
{
	uint8_t bytes[40][16];
	struct memory_span spans[40];
	struct page_cache c;
	struct memory mem = setup(&c);

	for (size_t i = 0; i < 40; i++)
		spans[i] = (struct memory_span) { BASE + i * PAGE + 100, bytes[i], 16, false };
	memory_read_spans(&mem, spans, 40);
	cr_expect_eq(below.calls, 1);
	for (size_t i = 0; i < 40; i++)
		cr_expect(spans[i].ok &&
			  !memcmp(bytes[i], below.bytes + i * PAGE + 100, sizeof(bytes[i])));
	teardown(&c);
}

Test(page_cache, what_changes_is_seen_after_a_refresh)
{
	struct page_cache c;
	struct memory mem = setup(&c);
	uint8_t was = below.bytes[0], now;

	below.hidden[1] = true;
	cr_assert_eq(memory_read(&mem, BASE, &now, 1), 0);
	cr_assert_eq(memory_read(&mem, BASE + PAGE, &now, 1), -EFAULT);
	below.bytes[0] ^= 1;
	below.hidden[1] = false;
	cr_assert_eq(memory_read(&mem, BASE, &now, 1), 0);
	cr_expect_eq(now, was);
	cr_assert_eq(memory_read(&mem, BASE + PAGE, &now, 1), -EFAULT);
	cr_assert_eq(memory_read(memory_now(&mem), BASE, &now, 1), 0);
	cr_expect_eq(now, was ^ 1, "the memory below is as it is");
	memory_refresh(&mem);
	cr_expect(is_read(&mem, BASE, 1));
	cr_expect(is_read(&mem, BASE + PAGE, 1));
	teardown(&c);
}

Test(page_cache, other_memory_has_nothing_to_refresh)
{
	struct page_cache c;

	setup(&c);
	memory_refresh(&below.mem);
	cr_expect_eq(memory_now(&below.mem), &below.mem);
	cr_expect(is_read(&below.mem, BASE, 1));
	teardown(&c);
}

/* The second time too: nothing of them is kept. */
Test(page_cache, long_pieces_go_below)
{
	struct page_cache c;
	struct memory mem = setup(&c);

	cr_expect(is_read(&mem, BASE + 8, PAGE_CACHE_PIECE + 1));
	cr_expect(is_read(&mem, BASE + 8, PAGE_CACHE_PIECE + 1));
	cr_expect_eq(below.spans, 2);
	cr_expect(is_read(&mem, BASE + 8, PAGE_CACHE_PIECE), "of three pages");
	cr_expect(is_read(&mem, BASE + 8, PAGE_CACHE_PIECE));
	cr_expect_eq(below.spans, 5);
	teardown(&c);
}

/* It is of what is asked for, whatever is kept: no process gets more looked at for that. */
Test(page_cache, budget)
{
	struct memory_budget budget = { .left = 3 * (MEMORY_CALL_COST + MEMORY_SPAN_COST + 8) };
	struct page_cache c;
	struct memory mem = setup(&c);

	mem.budget = &budget;
	for (int i = 0; i < 3; i++)
		cr_assert(is_read(&mem, BASE, 8));
	cr_expect(!is_read(&mem, BASE, 8));
	cr_expect(budget.used_up);
	cr_expect_eq(below.calls, 1);
	teardown(&c);
}

Test(page_cache, ends_of_the_address_space)
{
	static const uint64_t ends[] = { 0,
					 1,
					 UINT64_MAX,
					 UINT64_MAX - 8,
					 UINT64_MAX - PAGE,
					 UINT64_MAX - 2 * PAGE,
					 UINT64_MAX - 4 * PAGE };
	struct page_cache c;
	struct memory mem = setup(&c);
	uint8_t bytes[PAGE_CACHE_PIECE];

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		for (size_t len = 1; len <= sizeof(bytes); len *= 2)
			cr_assert_eq(memory_read(&mem, ends[i], bytes, len), -EFAULT);
	teardown(&c);
}

/*
 * A few spans at a time, near each other or anywhere; now and then a page comes or goes, which a
 * refresh shows.
 */
Test(page_cache, random_reads)
{
	static uint8_t bytes[8][PAGE_CACHE_PIECE + 64];
	struct memory_span spans[8];
	struct page_cache c;
	struct memory mem = setup(&c);

	srand(1);
	for (int turn = 0; turn < 20000; turn++) {
		size_t n = 1 + (size_t)rand() % 8;
		uint64_t near = (uint64_t)rand() % PAGES * PAGE;

		if (turn % 100 == 0) {
			size_t page = (size_t)rand() % PAGES;

			below.hidden[page] = !below.hidden[page];
			below.bytes[page * PAGE] ^= 1;
			memory_refresh(&mem);
		}
		for (size_t i = 0; i < n; i++) {
			uint64_t at = rand() % 2 ? (near + (uint64_t)rand() % (16 * PAGE)) % SIZE
						 : (uint64_t)rand() % SIZE;
			size_t len = rand() % 4 ? 1 + (size_t)rand() % 64
						: (size_t)rand() % sizeof(bytes[i]);

			spans[i] = (struct memory_span) { BASE + at, bytes[i], len, false };
		}
		memory_read_spans(&mem, spans, n);
		for (size_t i = 0; i < n; i++) {
			bool there = is_there(spans[i].addr, spans[i].len);

			cr_assert_eq(spans[i].ok, there);
			cr_assert(!there || !memcmp(bytes[i], below.bytes + (spans[i].addr - BASE),
						    spans[i].len));
		}
	}
	cr_expect_lt(below.calls, 60000);
	teardown(&c);
}

/* Each page of a call wants the same slot, and there are more than are read at a time. */
Test(page_cache, one_slot)
{
	static uint8_t bytes[PAGES][8];
	static struct memory_span spans[PAGES];
	struct page_cache c;
	struct memory mem = setup(&c);

	for (size_t i = 0; i < PAGES; i++)
		spans[i] = (struct memory_span) { BASE + i * PAGE, bytes[i], 8, false };
	memory_read_spans(&mem, spans, PAGES);
	for (size_t i = 0; i < PAGES; i++)
		cr_assert(spans[i].ok && !memcmp(bytes[i], below.bytes + i * PAGE, 8), "%zu", i);
	teardown(&c);
}
