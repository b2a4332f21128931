/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>

#include "symbol/frame_symbols.h"

#define N 5000u

/* Each differs from another one in one member alone. */
static struct frame_key key_of(uint32_t i)
{
	struct frame_key key = { .pc = 0x7f0000001000 };

	switch (i % 5) {
	case 0:
		key.pc += 8ull * i;
		break;
	case 1:
		key.iseq_version = i;
		break;
	case 2:
		key.method_version = i;
		break;
	case 3:
		key.file = i;
		break;
	default:
		key.file = 1;
		key.line = i;
	}
	return key;
}

Test(frame_symbols, empty)
{
	struct frame_symbols s = { 0 };
	struct frame_key key = key_of(0);
	uint32_t symbol = 9;

	cr_expect_eq(frame_symbols_get(&s, &key, &symbol), -ENOENT);
	cr_expect_eq(symbol, 9, "untouched");
	cr_expect_eq(frame_symbols_bytes(&s), 0);
	frame_symbols_deinit(&s);
}

Test(frame_symbols, by_each_member)
{
	struct frame_symbols s = { 0 };
	struct frame_key key;
	uint32_t symbol;

	for (uint32_t i = 0; i < N; i++) {
		key = key_of(i);
		cr_assert_eq(frame_symbols_get(&s, &key, &symbol), -ENOENT, "%u", i);
		cr_assert_eq(frame_symbols_add(&s, &key, i), 0);
	}
	for (uint32_t i = 0; i < N; i++) {
		key = key_of(i);
		cr_assert_eq(frame_symbols_get(&s, &key, &symbol), 0, "%u", i);
		cr_assert_eq(symbol, i);
		key.unsaved = 1;
		cr_assert_eq(frame_symbols_get(&s, &key, &symbol), -ENOENT, "%u unsaved", i);
	}
	cr_expect_leq(s.count, (s.mask + 1) / 4 * 3);
	cr_expect_geq(frame_symbols_bytes(&s), N * sizeof(struct frame_symbol));
	frame_symbols_deinit(&s);
}
