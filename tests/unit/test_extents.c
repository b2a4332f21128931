/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "native/extents.h"

#define SIZE  1000u
#define PARTS 200

static void assert_sane_extents(const struct extents *e)
{
	uint32_t retired = 0;

	for (size_t i = 0; i < e->n; i++) {
		cr_assert_gt(e->v[i].n, 0);
		cr_assert(!i || e->v[i - 1].first + e->v[i - 1].n < e->v[i].first,
			  "ascending, and what is free is in one piece");
	}
	for (size_t i = 0; i < e->n_retired; i++) {
		cr_assert(!i || e->retired[i - 1].since <= e->retired[i].since);
		retired += e->retired[i].extent.n;
	}
	cr_assert_eq(e->retired_size, retired);
	cr_assert_leq(e->n_retired, e->allocated);
}

Test(extents, grace)
{
	struct extents e;
	uint32_t a, b, c = 77;

	cr_assert_eq(extents_init(&e, 10), 0);
	cr_assert_eq(extents_alloc(&e, 6, &a), 0);
	cr_assert_eq(extents_alloc(&e, 4, &b), 0);
	cr_expect_eq(extents_alloc(&e, 1, &c), -ENOSPC);
	cr_expect_eq(c, 77, "untouched");
	extents_retire(&e, a, 6, 5);
	extents_retire(&e, b, 4, 7);
	assert_sane_extents(&e);
	cr_expect(!extents_reclaim(&e, EXTENTS_GRACE_NS + 4));
	cr_expect_eq(extents_alloc(&e, 1, &c), -ENOSPC, "it may be read still");
	cr_expect(extents_reclaim(&e, EXTENTS_GRACE_NS + 6));
	cr_expect(extents_fit(&e, 6) && !extents_fit(&e, 7));
	cr_expect(extents_reclaim(&e, EXTENTS_GRACE_NS + 7));
	cr_expect(extents_fit(&e, 10), "it is one part again");
	assert_sane_extents(&e);
	extents_deinit(&e);
	cr_assert_eq(extents_init(&e, 0), 0);
	cr_expect_eq(extents_alloc(&e, 1, &c), -ENOSPC);
	extents_deinit(&e);
	extents_deinit(&e);
}

/* Against an array that says of each element who has it. */
Test(extents, at_random)
{
	struct extent parts[PARTS] = { 0 };
	uint8_t owned[SIZE] = { 0 };
	struct extents e;
	uint64_t now = 1;

	srand(1);
	cr_assert_eq(extents_init(&e, SIZE), 0);
	for (int i = 0; i < 20000; i++) {
		struct extent *p = &parts[rand() % PARTS];
		uint32_t n = 1 + (uint32_t)rand() % 20;

		now += EXTENTS_GRACE_NS / 16;
		extents_reclaim(&e, now);
		if (p->n) {
			extents_retire(&e, p->first, p->n, now);
			memset(owned + p->first, 0, p->n);
			p->n = 0;
		} else if (!extents_alloc(&e, n, &p->first)) {
			p->n = n;
			cr_assert_leq(p->first + n, SIZE);
			for (uint32_t k = p->first; k < p->first + n; k++)
				cr_assert(!owned[k]++, "element %u is taken once", k);
		}
		assert_sane_extents(&e);
	}
	for (int i = 0; i < PARTS; i++)
		if (parts[i].n)
			extents_retire(&e, parts[i].first, parts[i].n, now);
	extents_reclaim(&e, now + EXTENTS_GRACE_NS);
	cr_expect_eq(e.n, 1, "nothing is lost");
	cr_expect_eq(e.v[0].n, SIZE);
	cr_expect_eq(e.allocated, 0);
	extents_deinit(&e);
}
