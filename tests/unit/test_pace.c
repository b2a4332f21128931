/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>

#include "base/pace.h"

Test(pace, some_at_once_and_then_one_each_interval)
{
	struct pace p = { .interval_ns = 10, .at_once = 3 };

	cr_expect_eq(pace_use(&p, 1000), 0);
	cr_expect_eq(pace_use(&p, 1000), 0);
	cr_expect_eq(pace_use(&p, 1000), 10);
	cr_expect_eq(pace_use(&p, 1010), 10);
	cr_expect_eq(pace_use(&p, 1020), 10);
	/* Too early, it is told to wait for longer. */
	cr_expect_eq(pace_use(&p, 1025), 15);
}

Test(pace, rest_earns_no_more_than_what_may_be_at_once)
{
	struct pace p = { .interval_ns = 10, .at_once = 3 };

	for (int i = 0; i < 3; i++)
		pace_use(&p, 1000);
	/* Two of the three intervals have passed. */
	cr_expect_eq(pace_use(&p, 1020), 0);
	cr_expect_eq(pace_use(&p, 1020), 10);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(pace_use(&p, 9000), 0);
	cr_expect_eq(pace_use(&p, 9000), 10);
}

Test(pace, seldom_is_never_to_wait)
{
	struct pace p = { .interval_ns = 10, .at_once = 2 };

	for (uint64_t now = 1000; now < 2000; now += 10)
		cr_expect_eq(pace_use(&p, now), 0);
}
