/* SPDX-License-Identifier: GPL-2.0-only */
/* Charging for a GVL while another CPU does. */
#include <criterion/criterion.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

static void add(__u64 *to, __u64 n);

#define __sync_fetch_and_add(to, n) add((to), (n))
#include "gvl_sum.bpf.h"
#undef __sync_fetch_and_add

#define WAITERS 3
#define US	1000ull

static struct gvl g;
static __u64 another_now, another_charged; /* ns; now: 0 if no other CPU charges */

/* Where the other CPU comes between: what is to be added was read before. */
static void add(__u64 *to, __u64 n)
{
	const __u64 now = another_now;

	another_now = 0;
	if (now)
		another_charged += gvl_take(&g, now);
	*to += n;
}

/* Two may charge the same at a moment: what is charged later is less by that. */
Test(gvl_sum, what_is_charged_is_what_was_waited)
{
	uint64_t charged = 0, now = 0;

	g = (struct gvl) { .waiting = (__u64)WAITERS << GVL_N_SHIFT };
	for (uint64_t i = 1; i <= 100; i++) {
		now += i * 10 * US;
		another_now = i % 3 ? 0 : now + i % 2 * US;
		charged += gvl_take(&g, now);
	}
	cr_expect_gt(another_charged, 0);
	now += 1000000 * US;
	charged += gvl_take(&g, now);
	cr_expect_eq(charged + another_charged, WAITERS * now);
	cr_expect_eq(gvl_take(&g, now), 0);
}

/* Who has charged too much has charged what comes next. */
Test(gvl_sum, nothing_is_charged_until_that_was_waited)
{
	g = (struct gvl) { .waiting = 1ull << GVL_N_SHIFT };
	another_now = 100 * US;
	cr_expect_eq(gvl_take(&g, 100 * US), 100 * US);
	cr_expect_eq(another_charged, 100 * US);
	cr_expect_eq(gvl_take(&g, 150 * US), 0);
	cr_expect_eq(gvl_take(&g, 200 * US), 0);
	cr_expect_eq(gvl_take(&g, 201 * US), US);
}
