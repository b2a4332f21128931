/* SPDX-License-Identifier: GPL-2.0-only */
/* When titles and attributes of processes are read again. */
#include <criterion/criterion.h>

#include "sample/collector_state.h"
#include "sample/titles.h"
#include "support/collecting.h"

static struct collecting f;
static struct target target;

static void setup(void)
{
	target = target_start();
	collecting_init(&f, NULL);
	collecting_start(&f, &target);
}

static void teardown(void)
{
	target_end(&target);
	collecting_deinit(&f);
}

TestSuite(titles, .init = setup, .fini = teardown);

/* It may end before it is a second old. */
Test(titles, of_what_has_its_first_sample)
{
	struct tracked_process *p;
	pid_t child;

	child = target_fork(&target);
	collecting_birth(&f, RBPF_RING_FORK, target.pid, target.pid, child);
	collecting_poll(&f);
	p = process_table_find(&f.c->table, child);
	cr_assert_not_null(p);
	for (int i = 0; i < 2; i++) {
		free(p->info.cmdline);
		p->info.cmdline = strdup("that of its parent");
		collecting_tick(&f, child, child);
		collecting_poll(&f);
		cr_expect_eq(!strcmp(p->info.cmdline, "that of its parent"), i == 1);
		cr_expect_str_neq(collecting_str(&f, collecting_process(&f, child)->cmdline),
				  "that of its parent", "once");
	}
	collecting_finish(&f);
}

/*
 * A process whose Ruby was not found yet, or whose user has spent much, is not left alone longer
 * each time.
 */
Test(titles, what_was_not_looked_at_is_looked_at_soon)
{
	struct tracked_process *p;
	uint64_t now;

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
}
