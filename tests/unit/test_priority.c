/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/priority.h"

static int policy(void)
{
	return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

static void use_cpu(uint64_t ns)
{
	uint64_t end = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < end)
		;
}

/* False, with a reason, where a test cannot look at what the kernel refuses. */
static bool raise_or_skip(struct priority *p)
{
	priority_raise(p);
	if (p->kind == PRIORITY_REAL_TIME)
		return true;
	cr_skip_test("SCHED_RR was refused: %s", strerror(-p->refused));
	return false;
}

static void assert_child_is_plain(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(policy() == SCHED_OTHER && getpriority(PRIO_PROCESS, 0) == 0 ? 0 : 1);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0, "a child inherits the priority");
}

Test(priority, raised_and_dropped)
{
	struct priority p = PRIORITY_INIT;
	struct sigaction xcpu;
	struct rlimit before, after;

	getrlimit(RLIMIT_RTTIME, &before);
	if (!raise_or_skip(&p))
		return;
	cr_expect_eq(policy(), SCHED_RR);
	assert_child_is_plain();
	priority_drop(&p);
	cr_expect_eq(p.kind, PRIORITY_PLAIN);
	cr_expect_eq(sched_getscheduler(0), SCHED_OTHER);
	getrlimit(RLIMIT_RTTIME, &after);
	cr_expect_eq(after.rlim_cur, before.rlim_cur);
	sigaction(SIGXCPU, NULL, &xcpu);
	cr_expect_eq(xcpu.sa_handler, SIG_DFL);
	priority_drop(&p);
}

/* The kernel ends a bout that is too long; the next turn begins another. More than once. */
Test(priority, a_long_bout_ends)
{
	struct priority p = PRIORITY_INIT;
	int i;

	if (!raise_or_skip(&p))
		return;
	for (i = 0; i < 2; i++) {
		use_cpu(PRIORITY_BOUT_US * NSEC_PER_USEC * 2);
		cr_expect_eq(policy(), SCHED_OTHER, "bout %d goes on", i);
		cr_expect_eq(getpriority(PRIO_PROCESS, 0), PRIORITY_NICE);
		usleep(1000);
		priority_turn(&p);
		cr_expect_eq(policy(), SCHED_RR, "no bout after %d", i);
	}
}

Test(priority, the_share_of_a_cpu)
{
	const int before = getpriority(PRIO_PROCESS, 0);
	struct priority p = PRIORITY_INIT;

	if (!raise_or_skip(&p))
		return;
	p.credit_ns = -(int64_t)PRIORITY_BURST_NS;
	priority_turn(&p);
	cr_expect_eq(policy(), SCHED_OTHER, "it has had its share");
	cr_expect_eq(getpriority(PRIO_PROCESS, 0), before);
	cr_expect_not(p.raised);
	priority_turn(&p);
	cr_expect_eq(policy(), SCHED_OTHER);
	p.turn_ns -= PRIORITY_BURST_NS * 100 / PRIORITY_PERCENT;
	priority_turn(&p);
	cr_expect_not(p.raised, "the share is only just made up for");
	p.turn_ns -= 100 * PRIORITY_BURST_NS;
	priority_turn(&p);
	cr_expect_eq(policy(), SCHED_RR, "there is a share again");
	cr_expect_eq(p.credit_ns, PRIORITY_BURST_NS, "no more is saved up than that");
}

/* Without the privilege for SCHED_RR and for nice it stays as it was, and nothing fails. */
Test(priority, refused)
{
	const int before = getpriority(PRIO_PROCESS, 0);
	const struct rlimit none = { 0, 0 };
	struct priority p = PRIORITY_INIT;

	if (setrlimit(RLIMIT_RTPRIO, &none) || setrlimit(RLIMIT_NICE, &none) ||
	    (!geteuid() && setuid(65534))) {
		cr_skip_test("the limits cannot be set");
		return;
	}
	priority_raise(&p);
	cr_expect_eq(p.kind, PRIORITY_PLAIN);
	cr_expect_lt(p.refused, 0);
	cr_expect_eq(policy(), SCHED_OTHER);
	priority_turn(&p);
	priority_drop(&p);
	cr_expect_eq(getpriority(PRIO_PROCESS, 0), before);
}

/* Where there is no room for SCHED_RR, it is nice, which children do not inherit either. */
Test(priority, nice_instead)
{
	const struct rlimit killed = { 1000000, 1000000 };
	const int before = getpriority(PRIO_PROCESS, 0);
	struct priority p = PRIORITY_INIT;

	if (setrlimit(RLIMIT_RTTIME, &killed)) {
		cr_skip_test("RLIMIT_RTTIME cannot be set");
		return;
	}
	priority_raise(&p);
	if (p.kind != PRIORITY_NICED) {
		cr_expect_eq(p.kind, PRIORITY_PLAIN);
		cr_skip_test("nice %d was refused", PRIORITY_NICE);
		return;
	}
	cr_expect_eq(getpriority(PRIO_PROCESS, 0), PRIORITY_NICE);
	assert_child_is_plain();
	p.credit_ns = -(int64_t)PRIORITY_BURST_NS;
	priority_turn(&p);
	cr_expect_eq(getpriority(PRIO_PROCESS, 0), before, "it has had its share");
	priority_drop(&p);
	cr_expect_eq(getpriority(PRIO_PROCESS, 0), before);
}

/* RLIMIT_CPU ends a process with the same signal. */
Test(priority, a_limit_of_cpu_time_still_ends, .signal = SIGXCPU)
{
	const struct rlimit limit = { 1, RLIM_INFINITY };
	struct priority p = PRIORITY_INIT;

	priority_raise(&p);
	priority_turn(&p);
	setrlimit(RLIMIT_CPU, &limit);
	use_cpu(5 * NSEC_PER_SEC);
}

/* Those that it waits for stay ahead, and so do their children. */
Test(priority, helpers)
{
	int status = -1;
	pid_t pid;

	if (geteuid()) {
		cr_skip_test("nice %d needs root", PRIORITY_NICE);
		return;
	}
	priority_set_helper();
	cr_expect_eq(policy(), SCHED_OTHER);
	cr_expect_eq(getpriority(PRIO_PROCESS, 0), PRIORITY_NICE);
	pid = fork();
	if (pid == 0)
		_exit(getpriority(PRIO_PROCESS, 0) == PRIORITY_NICE ? 0 : 1);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
}
