/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "sample/held.h"

static void add(struct held *h, size_t size)
{
	uint8_t bytes[300];

	memset(bytes, (int)size, sizeof(bytes));
	cr_assert_eq(held_add(h, bytes, size, size % 2), 0);
}

static void expect_first(struct held *h, size_t size)
{
	const struct held_record *first = held_first(h);
	const uint8_t *bytes = (const uint8_t *)(first + 1);

	cr_assert_not_null(first);
	cr_assert_eq(first->size, size);
	cr_expect_eq(first->with_ruby, size % 2);
	cr_expect_eq((uintptr_t)bytes % 8, 0);
	for (size_t i = 0; i < size; i++)
		cr_assert_eq(bytes[i], (uint8_t)size, "byte %zu of %zu", i, size);
	held_pop(h);
}

Test(held, records_come_back_in_their_order)
{
	struct held h = { 0 };

	cr_expect_null(held_first(&h));
	for (size_t size = 0; size < 300; size++)
		add(&h, size);
	for (size_t size = 0; size < 150; size++)
		expect_first(&h, size);
	for (size_t size = 0; size < 10; size++)
		add(&h, size);
	for (size_t size = 150; size < 300; size++)
		expect_first(&h, size);
	for (size_t size = 0; size < 10; size++)
		expect_first(&h, size);
	cr_expect_null(held_first(&h));
	cr_expect_eq(held_bytes(&h), 0, "the memory is given back");
	add(&h, 5);
	expect_first(&h, 5);
	held_deinit(&h);
}

Test(held, what_is_held_takes_that_much)
{
	struct held h = { 0 };

	add(&h, 8);
	cr_expect_eq(held_bytes(&h), 16);
	add(&h, 9);
	cr_expect_eq(held_bytes(&h), 16 + 24);
	held_pop(&h);
	cr_expect_eq(held_bytes(&h), 24, "what was taken is not held any more");
	held_deinit(&h);
	cr_expect_null(held_first(&h));
}

/* Something is always held, as while a program loads one library after the other. */
Test(held, what_passes_through_takes_no_memory)
{
	struct held h = { 0 };

	for (size_t i = 0; i < 10; i++)
		add(&h, 290 + i);
	for (size_t i = 10; i < 2000; i++) {
		add(&h, 290 + i % 10);
		expect_first(&h, 290 + i % 10);
	}
	cr_expect_leq(h.cap, 2048, "%zu words", h.cap);
	for (size_t i = 0; i < 10; i++)
		expect_first(&h, 290 + i);
	cr_expect_eq(held_bytes(&h), 0);
}
