/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <signal.h>

#include "base/clock.h"
#include "base/stop.h"

/* As a shell leaves them, whatever who runs the tests ignores. */
static void default_signals(void)
{
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
}

/* Until a further signal is another wish. */
static void let_it_pass(void)
{
	const uint64_t end = clock_ns(CLOCK_MONOTONIC) + STOP_SAME_NS;

	while (clock_ns(CLOCK_MONOTONIC) <= end)
		;
}

Test(stop, not_asked)
{
	bool by_process = true;

	cr_expect_not(stop_overdue());
	cr_expect_eq(stop_signals(), 0);
	cr_expect_eq(stop_signal(&by_process), 0);
	cr_expect_not(by_process);
}

Test(stop, a_signal_leaves_time_and_a_second_none, .init = default_signals)
{
	bool by_process = false;

	stop_catch_signals();
	raise(SIGTERM);
	cr_expect_eq(stop_signals(), 1);
	cr_expect_eq(stop_signal(&by_process), SIGTERM);
	cr_expect(by_process);
	let_it_pass();
	raise(SIGINT);
	cr_expect_eq(stop_signals(), 2);
	cr_expect_eq(stop_signal(&by_process), SIGINT);
	cr_expect(stop_overdue());
}

/* As timeout(1) sends its signal: to its child, and to the process group that it is in. */
Test(stop, signals_sent_together_count_once, .init = default_signals)
{
	bool by_process;

	stop_catch_signals();
	raise(SIGTERM);
	raise(SIGTERM);
	raise(SIGHUP);
	cr_expect_eq(stop_signals(), 1);
	cr_expect_eq(stop_signal(&by_process), SIGTERM);
	cr_expect_not(stop_overdue());
}

Test(stop, what_is_ignored_stays_so, .init = default_signals)
{
	bool by_process;

	signal(SIGHUP, SIG_IGN); /* as nohup does */
	signal(SIGINT, SIG_IGN); /* as a shell does for what it runs with & */
	stop_catch_signals();
	raise(SIGHUP);
	raise(SIGINT);
	cr_expect_eq(stop_signals(), 0);
	raise(SIGTERM);
	cr_expect_eq(stop_signals(), 1);
	cr_expect_eq(stop_signal(&by_process), SIGTERM);
}

Test(stop, third_signal_ends_the_process, .init = default_signals, .exit_code = 130)
{
	stop_catch_signals();
	raise(SIGINT);
	let_it_pass();
	raise(SIGINT);
	let_it_pass();
	raise(SIGINT);
}

Test(stop, at_a_time)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	stop_at(now + 3600 * NSEC_PER_SEC);
	cr_expect_not(stop_overdue());
	stop_at(now);
	while (clock_ns(CLOCK_MONOTONIC) < now + STOP_GRACE_NS)
		;
	cr_expect(stop_overdue(), "half a second later");
	stop_at(0);
	cr_expect_not(stop_overdue());
}
