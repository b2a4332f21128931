/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "target/captured.h"
#include "target/memory.h"

static uint8_t data[65536];
static size_t len;

/* Append a block whose bytes tell their address. */
static void add(uint64_t addr, uint32_t size, uint32_t kind)
{
	const struct rbpf_block head = { .addr = addr, .len = size, .kind = kind };

	memcpy(data + len, &head, sizeof(head));
	len += sizeof(head);
	for (uint32_t i = 0; i < size; i++)
		data[len + i] = (uint8_t)((addr + i) * 7);
	len += (size + 7) / 8 * 8;
}

static void assert_sane_captured(const struct captured *c)
{
	for (size_t i = 0; i < c->n; i++) {
		cr_assert(!i || c->blocks[i - 1].addr <= c->blocks[i].addr);
		cr_assert_geq(c->blocks[i].reach, c->blocks[i].addr + c->blocks[i].len);
		cr_assert(!i || c->blocks[i - 1].reach <= c->blocks[i].reach);
	}
}

static void set(struct captured *c)
{
	cr_assert_eq(captured_set(c, data, len), 0);
	assert_sane_captured(c);
}

static bool readable(const struct captured *c, uint64_t addr, size_t size)
{
	struct memory mem = captured_memory(c);
	uint8_t bytes[256];

	if (memory_read(&mem, addr, bytes, size))
		return false;
	for (size_t i = 0; i < size; i++)
		cr_assert_eq(bytes[i], (uint8_t)((addr + i) * 7), "byte %zu at %llx", i,
			     (unsigned long long)addr);
	return true;
}

Test(captured, nothing)
{
	struct captured c = CAPTURED_INIT;

	cr_assert_eq(captured_set(&c, NULL, 0), 0);
	cr_expect_not(readable(&c, 0x1000, 1));
	cr_expect(readable(&c, 0x1000, 0), "nothing can be read anywhere");
	captured_deinit(&c);
	captured_deinit(&c);
}

Test(captured, what_lies_in_one_block)
{
	struct captured c = CAPTURED_INIT;

	add(0x2000, 40, RBPF_BLOCK_PART);
	add(0x1000, 13, RBPF_BLOCK_ISEQ);
	add(0x2028, 8, RBPF_BLOCK_PART); /* adjacent */
	add(0x3000, 100, RBPF_BLOCK_PART);
	add(0x3010, 8, RBPF_BLOCK_CFUNC); /* within another */
	add(0x3010, 24, RBPF_BLOCK_PART);
	set(&c);
	cr_assert_eq(c.n, 6);
	cr_expect_eq(c.blocks[0].kind, RBPF_BLOCK_ISEQ);
	cr_expect(readable(&c, 0x1000, 13));
	cr_expect(readable(&c, 0x100c, 1));
	cr_expect_not(readable(&c, 0x1000, 14));
	cr_expect_not(readable(&c, 0xfff, 2));
	cr_expect_not(readable(&c, 0x100d, 1));
	cr_expect(readable(&c, 0x2000, 40));
	cr_expect(readable(&c, 0x2028, 8));
	cr_expect_not(readable(&c, 0x2020, 16), "it is in two");
	cr_expect(readable(&c, 0x3000, 100));
	cr_expect(readable(&c, 0x3010, 84), "only the outer one has it");
	cr_expect(readable(&c, 0x3060, 4), "behind the inner one");
	cr_expect_not(readable(&c, 0x3060, 5));
	cr_expect_not(readable(&c, ~7ull, 8));
	captured_deinit(&c);
}

Test(captured, another_record)
{
	struct captured c = CAPTURED_INIT;

	add(0x1000, 8, RBPF_BLOCK_PART);
	set(&c);
	len = 0;
	add(0x2000, 8, RBPF_BLOCK_PART);
	set(&c);
	cr_expect(readable(&c, 0x2000, 8));
	cr_expect_not(readable(&c, 0x1000, 8));
	captured_deinit(&c);
}

Test(captured, cut_short)
{
	struct captured c = CAPTURED_INIT;

	add(0x1000, 20, RBPF_BLOCK_PART);
	for (size_t n = 1; n < 36; n++) {
		uint8_t *copy = malloc(n); /* ASan sees what is read beyond */

		memcpy(copy, data, n);
		cr_expect_eq(captured_set(&c, copy, n), -EPROTO, "%zu bytes", n);
		cr_expect_not(readable(&c, 0x1000, 1));
		free(copy);
	}
	captured_deinit(&c);
}

static void read_below(const struct memory *mem, struct memory_span *spans, size_t n)
{
	(void)mem;
	for (size_t i = 0; i < n; i++) {
		spans[i].ok = spans[i].addr >= 0x5000;
		for (size_t k = 0; k < spans[i].len; k++)
			((uint8_t *)spans[i].dst)[k] = (uint8_t)((spans[i].addr + k) * 7);
	}
}

Test(captured, what_is_below)
{
	const struct memory below = { .read_spans = read_below };
	struct captured c = CAPTURED_INIT;

	add(0x1000, 20, RBPF_BLOCK_PART);
	set(&c);
	c.below = &below;
	cr_expect(readable(&c, 0x1000, 20));
	cr_expect(readable(&c, 0x5000, 20));
	cr_expect_not(readable(&c, 0x1000, 21));
	captured_deinit(&c);
}

Test(captured, many)
{
	struct captured c = CAPTURED_INIT;

	for (uint64_t i = 0; i < 1000; i++)
		add(0x100000 + i * 7919 % 1000 * 32, 24, RBPF_BLOCK_PART);
	set(&c);
	for (uint64_t i = 0; i < 1000; i++) {
		cr_expect(readable(&c, 0x100000 + i * 32, 24));
		cr_expect_not(readable(&c, 0x100000 + i * 32 + 24, 1));
	}
	captured_deinit(&c);
}
