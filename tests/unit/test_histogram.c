/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/histogram.h"

#define VALUES 20000u

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* The next value is in the same step as @v or in the next one. */
static void expect_step(uint64_t v)
{
	const uint32_t step = histogram_step(v);

	cr_assert_lt(step, HISTOGRAM_STEPS, "%lu", v);
	cr_assert_leq(distance(histogram_middle(step), v), v / 64, "%lu: %lu", v,
		      histogram_middle(step));
	cr_assert_eq(histogram_step(histogram_middle(step)), step, "%lu", v);
	if (v != UINT64_MAX)
		cr_assert_leq(histogram_step(v + 1) - step, 1, "%lu", v);
}

Test(histogram, small_values_are_exact)
{
	for (uint64_t v = 0; v < 2 * HISTOGRAM_PARTS; v++) {
		expect_step(v);
		cr_expect_eq(histogram_middle(histogram_step(v)), v);
	}
}

Test(histogram, around_each_power_of_two)
{
	for (unsigned int bit = 0; bit < 64; bit++)
		for (uint64_t i = 0; i < 300; i++) {
			expect_step((1ull << bit) + i);
			expect_step((1ull << bit) - i);
		}
	cr_expect_eq(histogram_step(UINT64_MAX), HISTOGRAM_STEPS - 1);
}

static uint64_t random_state = 88172645463325252ull;

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	return random_state ^= random_state << 17;
}

/* From 1 to 2^31, as many of each order of magnitude: more than nine. */
static uint64_t random_value(void)
{
	const uint64_t power = 1ull << random_u64() % 31;

	return power + random_u64() % power;
}

static int compare_u64(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void expect_percentiles(const struct histogram *h, const uint64_t *sorted, size_t n)
{
	for (unsigned int percent = 1; percent <= 100; percent++) {
		const uint64_t exact = sorted[(n * percent + 99) / 100 - 1];
		const uint64_t got = histogram_percentile(h, percent);

		cr_assert_leq(distance(got, exact), exact / 64, "P%u of %zu: %lu, not %lu", percent,
			      n, got, exact);
		cr_assert_geq(got, sorted[0], "P%u of %zu", percent, n);
		cr_assert_leq(got, sorted[n - 1], "P%u of %zu", percent, n);
	}
}

Test(histogram, percentiles_of_random_values)
{
	static const size_t sizes[] = { 1, 2, 3, 19, 20, 99, 100, 101, 1000, VALUES };
	static uint64_t values[VALUES];

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct histogram h = { 0 };

		for (size_t j = 0; j < sizes[i]; j++) {
			values[j] = random_value();
			cr_assert_eq(histogram_add(&h, values[j]), 0);
		}
		qsort(values, sizes[i], sizeof(*values), compare_u64);
		cr_expect_eq(h.n, sizes[i]);
		cr_expect_eq(h.smallest, values[0]);
		cr_expect_eq(h.largest, values[sizes[i] - 1]);
		expect_percentiles(&h, values, sizes[i]);
		histogram_deinit(&h);
	}
}

/* Those of values that are alike are exact, also where a step is wide. */
Test(histogram, of_equal_values)
{
	static const uint64_t values[] = { 0, 1, 1000, 5000000, UINT64_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		struct histogram h = { 0 };

		for (int j = 0; j < 7; j++)
			cr_assert_eq(histogram_add(&h, values[i]), 0);
		cr_expect_eq(histogram_percentile(&h, 1), values[i]);
		cr_expect_eq(histogram_percentile(&h, 99), values[i]);
		histogram_deinit(&h);
	}
}

Test(histogram, empty)
{
	struct histogram h = { 0 };

	cr_expect_eq(histogram_percentile(&h, 50), 0);
	histogram_deinit(&h);
}
