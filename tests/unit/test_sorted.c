/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>

#include "base/sorted.h"

struct item {
	char other;
	uint32_t id;
	uint64_t at;
};

/* What a look at each element says. */
static size_t count(const struct item *v, size_t n, uint64_t key, bool with_key)
{
	size_t i = 0;

	while (i < n && (v[i].at < key || (with_key && v[i].at == key)))
		i++;
	return i;
}

Test(sorted, each_place_in_arrays_of_each_size)
{
	struct item v[9];

	for (size_t n = 0; n <= 9; n++) {
		for (size_t i = 0; i < n; i++)
			v[i] = (struct item) { .at = 10 * (i / 2) + 5,
					       .id = 10 * ((uint32_t)i / 2) + 5 };
		for (uint32_t key = 0; key < 60; key++) {
			const size_t below = count(v, n, key, false),
				     up_to = count(v, n, key, true);

			cr_assert_eq(sorted_below(v, n, at, key), below, "%u of %zu", key, n);
			cr_assert_eq(sorted_up_to(v, n, at, key), up_to, "%u of %zu", key, n);
			cr_assert_eq(sorted_below(v, n, id, key), below, "%u of %zu", key, n);
			cr_assert_eq(sorted_up_to(v, n, id, key), up_to, "%u of %zu", key, n);
		}
	}
}

Test(sorted, numbers_are_unsigned)
{
	const struct item v[] = { { .id = 1, .at = 1 },
				  { .id = UINT32_MAX - 1, .at = UINT64_MAX - 1 },
				  { .id = UINT32_MAX, .at = UINT64_MAX } };

	cr_expect_eq(sorted_below(v, 3, id, UINT32_MAX), 2);
	cr_expect_eq(sorted_up_to(v, 3, id, UINT32_MAX), 3);
	cr_expect_eq(sorted_below(v, 3, id, UINT64_MAX), 3, "a key that no member can have");
	cr_expect_eq(sorted_below(v, 3, at, UINT64_MAX), 2);
	cr_expect_eq(sorted_up_to(v, 3, at, UINT64_MAX), 3);
	cr_expect_eq(sorted_up_to(v, 3, at, 0), 0);
}

Test(sorted, no_array)
{
	const struct item *v = NULL;

	cr_expect_eq(sorted_below(v, 0, id, 1), 0);
	cr_expect_eq(sorted_up_to(v, 0, at, 1), 0);
}
