/* SPDX-License-Identifier: GPL-2.0-only */
/* When titles and attributes of processes are read again. */
#include <criterion/criterion.h>

#include "sample/collector_state.h"
#include "sample/titles.h"
#include "support/collecting.h"

/*
 * A process whose Ruby was not found yet, or whose user has spent much, is not left alone longer
 * each time.
 */
Test(titles, what_was_not_looked_at_is_looked_at_soon)
{
	struct target target = target_start();
	struct tracked_process *p;
	struct collecting f;
	uint64_t now;

	collecting_init(&f, NULL);
	collecting_start(&f, &target);
	p = process_table_find(&f.c->table, target.pid);
	cr_assert_not_null(p);
	cr_assert_null(p->vm);
	for (int i = 0; i < 4; i++) {
		now = clock_ns(CLOCK_MONOTONIC);
		p->look_ns = 0;
		cr_assert_eq(titles_poll(f.c, now), 0);
		cr_expect_geq(p->look_ns, now + NSEC_PER_SEC);
		cr_expect_leq(p->look_ns, clock_ns(CLOCK_MONOTONIC) + NSEC_PER_SEC);
	}
	target_end(&target);
	collecting_deinit(&f);
}
