/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"

struct item {
	uint64_t a;
	uint32_t b;
};

Test(array, size)
{
	struct item items[7];

	cr_expect_eq(ARRAY_SIZE(items), 7);
}

Test(array, reserve_nothing)
{
	struct item *v = NULL;
	size_t cap = 0;

	cr_expect_eq(array_reserve(v, cap, 0), 0);
	cr_expect_null(v, "nothing wanted, nothing allocated");
	cr_expect_eq(cap, 0);
}

Test(array, growth_keeps_old_and_zeroes_new)
{
	struct item *v = NULL;
	size_t cap = 0, n = 0, growths = 0;

	for (; n < 10000; n++) {
		size_t old = cap;

		cr_assert_eq(array_reserve(v, cap, n + 1), 0);
		cr_assert_geq(cap, n + 1);
		if (cap != old) {
			growths++;
			cr_assert_geq(cap, 2 * old, "from %zu to %zu: less than double", old, cap);
			for (size_t i = old; i < cap; i++)
				cr_assert(!v[i].a && !v[i].b, "new element %zu is not zero", i);
		}
		v[n] = (struct item) { .a = n * 3, .b = (uint32_t)~n };
	}
	for (size_t i = 0; i < n; i++)
		cr_assert(v[i].a == i * 3 && v[i].b == (uint32_t)~i, "element %zu changed", i);
	cr_expect_leq(growths, 14, "%zu growths", growths);
	free(v);
}

/* Room of which a quarter was used is kept as it is, and more of it is freed. */
Test(array, recycled)
{
	struct item *v = NULL, *was;
	size_t cap = 0;

	array_recycle(v, cap, 0);
	cr_expect(!v && !cap, "nothing stays nothing");
	cr_assert_eq(array_reserve(v, cap, 64), 0);
	was = v;
	array_recycle(v, cap, 16);
	cr_expect(v == was && cap == 64, "a quarter was used: %zu elements of room", cap);
	cr_assert_eq(array_reserve(v, cap, 64), 0);
	cr_expect_eq(v, was, "it is there for the next ones");
	array_recycle(v, cap, 15);
	cr_expect(!v && !cap, "less was used: %zu elements of room", cap);
}

/* Room that nobody uses takes no memory: it is not touched. */
Test(array, room_is_not_touched)
{
	char *v = NULL;
	size_t cap = 0, page = (size_t)sysconf(_SC_PAGESIZE), resident = 0, i;
	unsigned char *in_core;
	char *first;

	cr_assert_eq(array_room(v, cap, 1), 0);
	v[0] = 7;
	cr_assert_eq(array_room(v, cap, 256 * page), 0);
	cr_expect_eq(v[0], 7);
	in_core = calloc(256, 1);
	first = v + page - (uintptr_t)v % page;
	cr_assert_eq(mincore(first, 255 * page, in_core), 0);
	for (i = 0; i < 255; i++)
		resident += in_core[i] & 1;
	cr_expect_lt(resident, 16);
	free(in_core);
	free(v);
}

Test(array, enough_room_changes_nothing)
{
	char *v = NULL, *before;
	size_t cap = 0, cap_before;

	cr_assert_eq(array_reserve(v, cap, 100), 0);
	before = v;
	cap_before = cap;
	cr_expect_eq(array_reserve(v, cap, 100), 0);
	cr_expect_eq(array_reserve(v, cap, cap), 0);
	cr_expect_eq(array_reserve(v, cap, 0), 0);
	cr_expect_eq(v, before);
	cr_expect_eq(cap, cap_before);
	free(v);
}

Test(array, one_big_step)
{
	uint32_t *v = NULL;
	size_t cap = 0;

	cr_assert_eq(array_reserve(v, cap, 1), 0);
	v[0] = 7;
	cr_assert_eq(array_reserve(v, cap, 100001), 0);
	cr_expect_geq(cap, 100001);
	cr_expect_eq(v[0], 7);
	cr_expect_eq(v[100000], 0);
	free(v);
}

Test(array, overflow_leaves_all_as_it_was)
{
	struct item *v = NULL, *before;
	const size_t wants[] = {
		SIZE_MAX,
		SIZE_MAX / sizeof(struct item),
		SIZE_MAX / sizeof(struct item) + 1, /* the product wraps to something small */
		PTRDIFF_MAX / sizeof(struct item) + 1,
		PTRDIFF_MAX,
	};
	size_t cap = 0, cap_before;

	cr_assert_eq(array_reserve(v, cap, 3), 0);
	v[2] = (struct item) { .a = 1, .b = 2 };
	before = v;
	cap_before = cap;
	for (size_t i = 0; i < ARRAY_SIZE(wants); i++) {
		cr_expect_eq(array_reserve(v, cap, wants[i]), -ENOMEM, "want %zu", wants[i]);
		cr_expect_eq(v, before);
		cr_expect_eq(cap, cap_before);
	}
	cr_expect(v[2].a == 1 && v[2].b == 2);
	free(v);
}

Test(array, malloc_failure_leaves_all_as_it_was)
{
	struct item *v = NULL, *before;
	size_t cap = 0, cap_before;

	cr_assert_eq(array_reserve(v, cap, 3), 0);
	before = v;
	cap_before = cap;
	cr_expect_eq(array_reserve(v, cap, (size_t)1 << 58), -ENOMEM);
	cr_expect_eq(v, before);
	cr_expect_eq(cap, cap_before);
	free(v);
}

Test(array, elements_of_huge_size)
{
	void *v = NULL;
	size_t cap = 0;

	cr_expect_eq(array_reserve_raw(&v, &cap, 2, (size_t)PTRDIFF_MAX), -ENOMEM);
	cr_expect_eq(array_reserve_raw(&v, &cap, 1, SIZE_MAX), -ENOMEM);
	cr_expect_null(v);
	cr_expect_eq(cap, 0);
	/* The minimum capacity must not be forced upon elements of which 8 would be too much. */
	cr_expect_eq(array_reserve_raw(&v, &cap, 1, 1 << 20), 0);
	cr_expect_geq(cap, 1);
	free(v);
}
