/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads of many readers together: each gets what reading the memory below would have given it. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/gathered.h"
#include "target/memory.h"

#define BASE 0x10000ull
#define SIZE (64u * GATHERED_BLOCK)

static struct below {
	struct memory mem;
	uint8_t bytes[SIZE]; /* [BASE, BASE + SIZE), less what is hidden */
	uint64_t hidden, hidden_end;
	size_t calls, spans;
} below;

static void read_below(const struct memory *mem, struct memory_span *spans, size_t n)
{
	(void)mem;
	below.calls++;
	below.spans += n;
	for (size_t i = 0; i < n; i++) {
		const uint64_t addr = spans[i].addr, end = addr + spans[i].len;

		spans[i].ok = addr >= BASE && end >= addr && end <= BASE + SIZE &&
			      (end <= below.hidden || addr >= below.hidden_end);
		if (spans[i].ok)
			memcpy(spans[i].dst, below.bytes + (addr - BASE), spans[i].len);
	}
}

static void setup(struct gathered *g)
{
	memset(&below, 0, sizeof(below));
	below.mem.read_spans = read_below;
	for (size_t i = 0; i < SIZE; i++)
		below.bytes[i] = (uint8_t)(i * 7 + i / 251);
	gathered_init(g, &below.mem);
}

static void assert_sane_gathered(const struct gathered *g)
{
	cr_assert_leq(g->n_fetched, g->addrs.count);
	cr_assert_leq(g->addrs.count, GATHERED_BLOCKS);
	cr_assert_leq(g->n_fetched * GATHERED_BLOCK, g->cap_bytes);
}

static bool is_read(const struct memory *mem, uint64_t addr, size_t len)
{
	uint8_t bytes[8 * GATHERED_BLOCK];

	return !memory_read(mem, addr, bytes, len) &&
	       !memcmp(bytes, below.bytes + (addr - BASE), len);
}

Test(gathered, missed_then_there)
{
	struct memory mem;
	struct gathered g;

	setup(&g);
	mem = gathered_memory(&g);
	cr_expect_not(is_read(&mem, BASE + 8, 8));
	cr_expect_not(is_read(&mem, BASE + GATHERED_BLOCK - 4, 8), "in two blocks");
	cr_expect_not(is_read(&mem, BASE + 5 * GATHERED_BLOCK, 3 * GATHERED_BLOCK));
	memory_expect(&mem, BASE + 20 * GATHERED_BLOCK, 1);
	memory_expect(&mem, BASE + 30 * GATHERED_BLOCK, 0);
	cr_expect(g.missed);
	cr_expect_eq(below.calls, 0);
	cr_assert_eq(gathered_fetch(&g), 0);
	assert_sane_gathered(&g);
	cr_expect_eq(below.calls, 1);
	cr_expect_eq(below.spans, 2 + 3 + 1, "each block once");
	g.missed = false;
	cr_expect(is_read(&mem, BASE + 8, 8));
	cr_expect(is_read(&mem, BASE, 2 * GATHERED_BLOCK));
	cr_expect(is_read(&mem, BASE + GATHERED_BLOCK - 4, 8));
	cr_expect(is_read(&mem, BASE + 5 * GATHERED_BLOCK + 1, 3 * GATHERED_BLOCK - 1));
	cr_expect(is_read(&mem, BASE + 21 * GATHERED_BLOCK - 8, 8));
	cr_expect(is_read(&mem, BASE + 40 * GATHERED_BLOCK, 0));
	cr_expect_not(g.missed);
	cr_expect_not(is_read(&mem, BASE + 21 * GATHERED_BLOCK - 4, 8), "half of it");
	cr_expect(g.missed);
	/* It is a copy. */
	memset(below.bytes, 0, sizeof(below.bytes));
	cr_expect_not(is_read(&mem, BASE + 8, 8));
	cr_expect_eq(below.calls, 1);
	gathered_deinit(&g);
	gathered_deinit(&g);
}

/* What lies beside something that cannot be read. */
Test(gathered, not_as_a_whole)
{
	struct memory mem;
	struct gathered g;

	setup(&g);
	mem = gathered_memory(&g);
	below.hidden = BASE + 2 * GATHERED_BLOCK + 100;
	below.hidden_end = BASE + 4 * GATHERED_BLOCK;
	for (int round = 0; round < 2; round++) {
		cr_expect_eq(is_read(&mem, BASE + 2 * GATHERED_BLOCK, 8), round == 1);
		cr_expect_eq(is_read(&mem, BASE + 2 * GATHERED_BLOCK - 8, 16), round == 1);
		cr_expect_not(is_read(&mem, BASE + 2 * GATHERED_BLOCK + 96, 8));
		cr_expect_not(is_read(&mem, BASE + 3 * GATHERED_BLOCK, 8));
		cr_assert_eq(gathered_fetch(&g), 0);
		assert_sane_gathered(&g);
	}
	g.missed = false;
	cr_expect_not(is_read(&mem, BASE + 3 * GATHERED_BLOCK, 8));
	cr_expect_not(g.missed, "it is known that it cannot be read");
	gathered_deinit(&g);
}

/* Addresses and lengths of a process that has made them up. */
Test(gathered, made_up)
{
	const uint64_t addrs[] = { 0, 1, UINT64_MAX, UINT64_MAX - 7, BASE - 4, BASE + SIZE - 4 };
	uint8_t *bytes = malloc(2ull * GATHERED_BLOCKS * GATHERED_BLOCK);
	struct memory mem;
	struct gathered g;

	setup(&g);
	mem = gathered_memory(&g);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++)
			cr_expect_eq(memory_read(&mem, addrs[i], bytes, 8), -EFAULT);
		cr_assert_eq(gathered_fetch(&g), 0);
	}
	cr_expect_eq(memory_read(&mem, BASE, bytes, 2ull * GATHERED_BLOCKS * GATHERED_BLOCK),
		     -EFAULT);
	assert_sane_gathered(&g);
	/* When there are as many blocks as there may be, the rest is read at once. */
	for (uint64_t i = 0; i < 2 * GATHERED_BLOCKS; i++)
		memory_expect(&mem, (1ull << 40) + i * GATHERED_BLOCK, 8);
	assert_sane_gathered(&g);
	g.missed = false;
	cr_expect(is_read(&mem, BASE + 64, 8));
	cr_expect_not(g.missed);
	free(bytes);
	gathered_deinit(&g);
}
