/* SPDX-License-Identifier: GPL-2.0-only */
/* The heat map's sums, with and without detail. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "support/profile_builder.h"
#include "view/heat.h"

#define N_NODES 20

struct taken {
	uint64_t ns, value;
	uint32_t node;
};

static uint64_t sum_of_cells(const struct heat *h)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < h->columns * h->rows; i++)
		sum += h->cells[i];
	return sum;
}

Test(heat, grid)
{
	static const struct {
		uint64_t seconds, column_seconds;
		size_t rows, max_cells, columns;
	} cases[] = {
		{ 10, 1, 50, 10000, 10 },      { 0, 1, 50, 10000, 1 },
		{ 3600, 1, 50, 200000, 3600 }, { 3600, 20, 50, 10000, 180 },
		{ 100, 1, 1, 100, 100 },       { 86400 * 365, 86400 * 4, 50, 5000, 92 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_heat_ struct heat h = HEAT_INIT;

		cr_assert_eq(heat_init(cases[i].seconds * NSEC_PER_SEC, cases[i].rows,
				       cases[i].max_cells, 100, &h),
			     0);
		cr_expect_eq(h.columns, cases[i].columns, "%zu: %zu columns", i, h.columns);
		cr_expect_eq(h.column_ns, cases[i].column_seconds * NSEC_PER_SEC, "%zu: %llu", i,
			     (unsigned long long)h.column_ns);
		cr_expect_geq(h.cell_ns * h.rows, h.column_ns);
	}
}

Test(heat, cells)
{
	_cleanup_heat_ struct heat h = HEAT_INIT;

	cr_assert_eq(heat_init(3 * NSEC_PER_SEC, 50, 10000, 100, &h), 0);
	heat_add(&h, 0, 1, 1);
	heat_add(&h, 19999999, 1, 2);
	heat_add(&h, 20000000, 1, 4);
	heat_add(&h, NSEC_PER_SEC - 1, 2, 8);
	heat_add(&h, NSEC_PER_SEC, 2, 16);
	heat_add(&h, 3 * NSEC_PER_SEC, 2, 32);
	heat_add(&h, UINT64_MAX, 2, 64);
	cr_expect_eq(h.cells[0], 3);
	cr_expect_eq(h.cells[1], 4);
	cr_expect_eq(h.cells[49], 8);
	cr_expect_eq(h.cells[50], 16);
	cr_expect_eq(h.cells[149], 96);
	cr_expect_eq(sum_of_cells(&h), 127);
	heat_add(&h, 0, 1, UINT64_MAX);
	cr_expect_eq(h.cells[0], UINT64_MAX, "no overflow");
}

/* What is in the slots, against the samples themselves. */
static void expect_pairs(const struct heat *h, const struct taken *taken, size_t n,
			 const uint32_t *united)
{
	_cleanup_free_ struct heat_pair *pairs = NULL;

	cr_assert_eq(heat_pairs(h, &pairs), 0);
	for (size_t i = 0; i < h->n_pairs; i++) {
		uint64_t want = 0;

		cr_expect(
			!i || pairs[i].slot > pairs[i - 1].slot ||
			(pairs[i].slot == pairs[i - 1].slot && pairs[i].node > pairs[i - 1].node));
		for (size_t k = 0; k < n; k++) {
			const uint64_t cell = taken[k].ns / h->column_ns * h->rows +
					      taken[k].ns % h->column_ns / h->cell_ns;

			if (cell / h->slot_cells == pairs[i].slot &&
			    united[taken[k].node] == pairs[i].node)
				want += taken[k].value;
		}
		cr_expect_eq(pairs[i].value, want);
	}
}

Test(heat, slots)
{
	static const size_t rows[] = { 50, 7, 1, 12 };
	static struct taken taken[3000 + 12 * 200];
	uint32_t united[N_NODES];
	uint64_t seed = 7;

	for (size_t r = 0; r < ARRAY_SIZE(rows); r++) {
		_cleanup_heat_ struct heat h = HEAT_INIT;
		uint64_t sum = 0, in_pairs;
		size_t n = 3000;

		cr_assert_eq(heat_init(40 * NSEC_PER_SEC, rows[r], 100000, 3300, &h), 0);
		for (uint32_t i = 0; i < N_NODES; i++)
			united[i] = i;
		for (size_t i = 0; i < n; i++) {
			taken[i] = (struct taken) { builder_random(&seed, 40000) * 1000000ull,
						    1 + builder_random(&seed, 1000),
						    builder_random(&seed, N_NODES) };
			sum += taken[i].value;
			heat_add(&h, taken[i].ns, taken[i].node, taken[i].value);
		}
		for (int step = 0; step < 12; step++) {
			_cleanup_free_ struct heat_pair *pairs = NULL;

			expect_pairs(&h, taken, n, united);
			cr_assert_eq(heat_pairs(&h, &pairs), 0);
			in_pairs = 0;
			for (size_t i = 0; i < h.n_pairs; i++)
				in_pairs += pairs[i].value;
			cr_expect_eq(in_pairs, sum, "no value is lost");
			cr_expect_eq(sum_of_cells(&h), sum);
			cr_expect(h.slot_cells >= h.rows ? h.slot_cells % h.rows == 0
							 : h.rows % h.slot_cells == 0,
				  "slots of %zu of %zu", h.slot_cells, h.rows);
			if (step % 3 == 2) {
				for (uint32_t i = 0; i < N_NODES; i++)
					united[i] /= 2;
				for (uint32_t i = 0, to[N_NODES]; !i; i++) {
					for (uint32_t k = 0; k < N_NODES; k++)
						to[k] = k / 2;
					cr_assert_eq(heat_unite(&h, to), 0);
				}
			} else {
				cr_assert_eq(heat_widen(&h), 0);
			}
			/* More, of two slots and back again, in what the pairs have become. */
			for (size_t i = 0; i < 200; i++, n++) {
				taken[n] =
					(struct taken) { (i / 50 % 2 * 20 + 3) * NSEC_PER_SEC + i,
							 1 + builder_random(&seed, 1000),
							 builder_random(&seed, N_NODES) };
				sum += taken[n].value;
				heat_add(&h, taken[n].ns, united[taken[n].node], taken[n].value);
			}
		}
	}
}
