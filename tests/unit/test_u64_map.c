/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>

#include "base/u64_map.h"

#define N 20000u

/* Numbers as they come: addresses in steps of 40, and 0. */
static uint64_t key_of(uint32_t i)
{
	return i ? 0x7f0000000000ull + i * 40ull : 0;
}

Test(u64_map, empty)
{
	struct u64_map m = { 0 };
	uint32_t value = 7;

	cr_expect_not(u64_map_get(&m, 0, &value));
	cr_expect_eq(value, 7, "untouched");
	cr_expect_eq(u64_map_bytes(&m), 0);
	u64_map_recycle(&m);
	u64_map_deinit(&m);
	u64_map_deinit(&m);
}

Test(u64_map, the_last_value_of_each)
{
	struct u64_map m = { 0 };
	uint32_t value;

	for (uint32_t turn = 0; turn < 2; turn++)
		for (uint32_t i = 0; i < N; i++)
			cr_assert_eq(u64_map_set(&m, key_of(i), i * 3 + turn), 0);
	cr_expect_eq(m.count, N);
	for (uint32_t i = 0; i < N; i++) {
		cr_assert(u64_map_get(&m, key_of(i), &value), "%u", i);
		cr_assert_eq(value, i * 3 + 1);
		cr_assert_not(u64_map_get(&m, key_of(i) + 8, &value));
	}
	cr_expect_leq(m.count, (m.mask + 1) / 4 * 3);
	cr_expect_geq(u64_map_bytes(&m), N * sizeof(struct u64_map_slot));
	u64_map_deinit(&m);
	cr_expect_eq(u64_map_bytes(&m), 0);
}

/* The memory of one that was full is used again; of one that was nearly empty it is given back. */
Test(u64_map, recycled)
{
	struct u64_map m = { 0 };
	struct u64_map_slot *slots;
	uint32_t value;

	for (uint32_t i = 0; i < N; i++)
		cr_assert_eq(u64_map_set(&m, key_of(i), i), 0);
	slots = m.slots;
	u64_map_recycle(&m);
	cr_expect_eq(m.slots, slots);
	for (uint32_t i = 0; i < N; i++)
		cr_assert_not(u64_map_get(&m, key_of(i), &value));
	cr_assert_eq(u64_map_set(&m, 5, 6), 0);
	cr_assert(u64_map_get(&m, 5, &value));
	cr_expect_eq(value, 6);
	u64_map_recycle(&m);
	cr_expect_null(m.slots);
	cr_expect_not(u64_map_get(&m, 5, &value));
}

/* Those that stay are found, whatever was removed before them: keys collide, as some do here. */
Test(u64_map, removed)
{
	struct u64_map m = { 0 };
	uint32_t value;

	u64_map_remove(&m, 7);
	for (uint32_t turn = 0; turn < 3; turn++) {
		for (uint32_t i = 0; i < N; i++)
			cr_assert_eq(u64_map_set(&m, key_of(i), i), 0);
		for (uint32_t i = 0; i < N; i++)
			if (i % 3 != turn)
				u64_map_remove(&m, key_of(i));
		u64_map_remove(&m, key_of(N));
		cr_assert_eq(m.count, (N + 2 - turn) / 3);
		for (uint32_t i = 0; i < N; i++) {
			cr_assert_eq(u64_map_get(&m, key_of(i), &value), i % 3 == turn, "%u", i);
			cr_assert(i % 3 != turn || value == i, "%u", i);
		}
	}
	u64_map_deinit(&m);
}
