/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/priority.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

#define HELPER_SLICE_NS 100000ull		 /* the shortest that there is */
#define AGAIN_NS	(PRIORITY_BURST_NS / 20) /* so much must be saved up to be raised again */

/* struct sched_attr of sched_setattr(2) in its first version, which not every libc has. */
struct schedule {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns; /* of SCHED_OTHER: the time slice, since 6.12 */
	uint64_t deadline_ns;
	uint64_t period_ns;
};

static int set_policy(int policy, int flags)
{
	struct sched_param param = { .sched_priority = policy == SCHED_RR ? 1 : 0 };

	return sched_setscheduler(0, policy | flags, &param) ? -errno : 0;
}

/*
 * A bout was too long. The signal also tells of RLIMIT_CPU, which ends processes: then it is sent
 * again a second later, when this one is not SCHED_RR.
 */
static void end_bout(int sig)
{
	int saved = errno;

	if ((sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) != SCHED_RR) {
		signal(sig, SIG_DFL);
		raise(sig);
	}
	set_policy(SCHED_OTHER, SCHED_RESET_ON_FORK);
	errno = saved;
}

/* Each time, for the kernel raises the limit by a second when it sends the signal. */
static int begin_bout(const struct priority *p)
{
	struct rlimit bout = { .rlim_cur = PRIORITY_BOUT_US, .rlim_max = p->bout.rlim_max };

	if (setrlimit(RLIMIT_RTTIME, &bout))
		return -errno;
	return set_policy(SCHED_RR, SCHED_RESET_ON_FORK);
}

static int raise_real_time(struct priority *p)
{
	struct sigaction sa = { .sa_handler = end_bout, .sa_flags = SA_RESTART };
	int r;

	if (getrlimit(RLIMIT_RTTIME, &p->bout))
		return -errno;
	/* At the hard limit it would be killed. */
	if (p->bout.rlim_max != RLIM_INFINITY)
		return -EPERM;
	sigemptyset(&sa.sa_mask);
	sigaction(SIGXCPU, &sa, &p->xcpu);
	r = begin_bout(p);
	if (r) {
		setrlimit(RLIMIT_RTTIME, &p->bout);
		sigaction(SIGXCPU, &p->xcpu, NULL);
	}
	return r;
}

static void note_turn(struct priority *p, uint64_t now, uint64_t cpu)
{
	p->turn_ns = now;
	p->turn_cpu_ns = cpu;
}

void priority_raise(struct priority *p)
{
	*p = (struct priority)PRIORITY_INIT;
	/* One that runs by another policy was given it by somebody who knows better. */
	if (sched_getscheduler(0) != SCHED_OTHER)
		return;
	errno = 0;
	p->nice = getpriority(PRIO_PROCESS, 0);
	if (errno)
		return;
	/* With this flag children begin with nice 0. */
	p->refused = set_policy(SCHED_OTHER, SCHED_RESET_ON_FORK);
	if (!p->refused && setpriority(PRIO_PROCESS, 0, PRIORITY_NICE))
		p->refused = -errno;
	if (p->refused)
		return;
	p->refused = raise_real_time(p);
	p->kind = p->refused ? PRIORITY_NICED : PRIORITY_REAL_TIME;
	p->raised = true;
	p->credit_ns = PRIORITY_BURST_NS;
	note_turn(p, clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_PROCESS_CPUTIME_ID));
}

static void set_raised(struct priority *p, bool raised)
{
	setpriority(PRIO_PROCESS, 0, raised ? PRIORITY_NICE : p->nice);
	if (p->kind == PRIORITY_REAL_TIME && raised)
		begin_bout(p);
	else if (p->kind == PRIORITY_REAL_TIME)
		set_policy(SCHED_OTHER, SCHED_RESET_ON_FORK);
	p->raised = raised;
}

/* Whether end_bout() has been called since the last turn. */
static bool bout_ended(const struct priority *p)
{
	return p->kind == PRIORITY_REAL_TIME && p->raised &&
	       (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) != SCHED_RR;
}

static void update_credit(struct priority *p)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	p->credit_ns += (int64_t)((now - p->turn_ns) * PRIORITY_PERCENT / 100);
	p->credit_ns -= (int64_t)(cpu - p->turn_cpu_ns);
	if (p->credit_ns > (int64_t)PRIORITY_BURST_NS)
		p->credit_ns = PRIORITY_BURST_NS;
	note_turn(p, now, cpu);
}

void priority_turn(struct priority *p)
{
	if (p->kind == PRIORITY_PLAIN)
		return;
	update_credit(p);
	if (p->raised && p->credit_ns < 0)
		set_raised(p, false);
	else if (bout_ended(p) || (!p->raised && p->credit_ns >= (int64_t)AGAIN_NS))
		set_raised(p, true);
}

void priority_drop(struct priority *p)
{
	if (p->kind == PRIORITY_PLAIN)
		return;
	/* Without CAP_SYS_NICE the flag stays. */
	if (set_policy(SCHED_OTHER, 0))
		set_policy(SCHED_OTHER, SCHED_RESET_ON_FORK);
	setpriority(PRIO_PROCESS, 0, p->nice);
	if (p->kind == PRIORITY_REAL_TIME) {
		setrlimit(RLIMIT_RTTIME, &p->bout);
		sigaction(SIGXCPU, &p->xcpu, NULL);
	}
	*p = (struct priority)PRIORITY_INIT;
}

static bool helpers_refused;

void priority_allow_helpers(bool allow)
{
	helpers_refused = !allow;
}

void priority_set_helper(void)
{
	struct schedule attr = { .size = sizeof(attr),
				 .policy = SCHED_OTHER,
				 .nice = PRIORITY_NICE,
				 .runtime_ns = HELPER_SLICE_NS };

	if (!helpers_refused)
		syscall(SYS_sched_setattr, 0, &attr, 0);
}
