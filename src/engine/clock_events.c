/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/clock_events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fds.h"
#include "rbpf_abi.h"
#include "target/cpus.h"
#include "target/remote.h"

/* How far periods are from the one that was asked for, in thousandths. */
#define DITHER_LEAST   30
#define DITHER_MOST    100

#define FIRST_NS       20000000ull /* until it is looked at who is waited for */
/* The period of a CPU's clock is kept for so many ticks, and for so long, at least. */
#define REDRAW_TICKS   10
#define REDRAW_MIN     (NSEC_PER_SEC / 10)
#define REDRAWS	       16 /* at a time: each interrupts a CPU */

#define ATTR_SIZE_VER5 112 /* the perf_event_attr that 5.10 knows */

struct clock_event {
	struct bpf_link *link; /* owns fd; NULL: this one is free */
	int fd;
	int cpu;	   /* -1: of a thread … */
	pid_t tid;	   /* … this one */
	uint64_t base;	   /* of a thread: ns of its CPU time that the event had counted then */
	uint64_t period;   /* ns; of a thread, without the divisor */
	uint64_t began_ns; /* CLOCK_MONOTONIC: it ticks in multiples of its period since then */
	int next_free;	   /* if this one is: the number of the next, 0: it is the last */
};

void clock_events_deinit(struct clock_events *ce)
{
	size_t i;

	for (i = 0; i < ce->n_threads; i++)
		bpf_link__destroy(ce->threads[i].link);
	for (i = 0; i < ce->n_cpus; i++)
		bpf_link__destroy(ce->cpus[i].link);
	free(ce->threads);
	free(ce->cpus);
	*ce = (struct clock_events) { 0 };
}

/*
 * The period of one clock, drawn anew for each: 3 to 10 % longer or shorter than asked for, so that
 * a program in step with the clock, or with the period of another thread, is not misread. Those of
 * CPUs, whose time is that by which programs sleep, are drawn anew again and again. Each sample
 * carries its own.
 */
static uint64_t draw_period(uint32_t frequency)
{
	uint64_t period = NSEC_PER_SEC / frequency, part;
	uint32_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		random = (uint32_t)clock_ns(CLOCK_MONOTONIC);
	part = period * (DITHER_LEAST + random % (DITHER_MOST - DITHER_LEAST)) / 1000;
	period = random & 1u << 31 ? period + part : period - part;
	return period & ~RBPF_PERIOD_OF_CPU;
}

uint64_t clock_events_longest_period(uint32_t frequency)
{
	const uint64_t period = NSEC_PER_SEC / frequency;

	return period + period * DITHER_MOST / 1000;
}

static uint64_t draw_period_of_cpu(const struct clock_events *ce)
{
	return draw_period(ce->frequency) * ce->divisor | RBPF_PERIOD_OF_CPU;
}

/* ---- a call that may wait ---- */

static void wake(int sig)
{
	(void)sig;
}

/*
 * perf_event_open() waits while the process of @tid executes a program, which it can make last for
 * ever (target/remote.h). A signal ends that, and the one for a call that was not waiting yet is
 * repeated. Returns the descriptor or -errno; -EINTR after @ns.
 */
static int open_within(struct perf_event_attr *attr, pid_t tid, int cpu, uint64_t ns)
{
	const struct timeval us = { .tv_sec = (time_t)(ns / NSEC_PER_SEC),
				    .tv_usec = (suseconds_t)(ns % NSEC_PER_SEC / NSEC_PER_USEC) };
	const struct itimerval limit = { us, us }, none = { 0 };
	struct sigaction sa = { .sa_handler = wake }, old;
	int fd;

	sigemptyset(&sa.sa_mask);
	sigaction(SIGALRM, &sa, &old);
	setitimer(ITIMER_REAL, &limit, NULL);
	fd = (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	setitimer(ITIMER_REAL, &none, NULL);
	sigaction(SIGALRM, &old, NULL);
	return fd;
}

/* -ETIMEDOUT: it cannot be waited for. */
static int open_patiently(struct perf_event_attr *attr, pid_t tid, int cpu)
{
	uint64_t patience;
	int fd;

	fd = open_within(attr, tid, cpu, FIRST_NS);
	if (fd != -EINTR || tid <= 0)
		return fd;
	patience = remote_patience(tid);
	if (patience)
		fd = open_within(attr, tid, cpu, patience);
	if (fd == -EINTR && patience)
		remote_note_wait(tid, FIRST_NS + patience, 0, false);
	return fd == -EINTR ? -ETIMEDOUT : fd;
}

/*
 * A period rather than a frequency: the kernel then keeps what was left of it when a thread is
 * switched out, so that each sample stands for exactly this much CPU time.
 */
static int open_event(pid_t tid, int cpu, uint64_t period, uint32_t divisor)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = ATTR_SIZE_VER5,
		.config = cpu < 0 ? PERF_COUNT_SW_TASK_CLOCK : PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period,
		.disabled = 1, /* until the program is attached */
		.exclude_idle = cpu >= 0,
	};

	int fd = open_patiently(&attr, tid, cpu), r = 0;

	/* The BPF programs are told the first one whenever it ticks, and know the divisor. */
	period *= divisor;
	if (fd >= 0 && divisor > 1 && ioctl(fd, PERF_EVENT_IOC_PERIOD, &period))
		r = -errno;
	if (r)
		close(fd);
	return r ? r : fd;
}

/* What the BPF program needs to know of a CPU's clock. Returns 0 or -errno. */
static int tell(const struct clock_events *ce, int cpu, const struct rbpf_cpu_clock *clock)
{
	const uint32_t key = (uint32_t)cpu;

	return bpf_map__update_elem(ce->cpu_clocks, &key, sizeof(key), clock, sizeof(*clock),
				    BPF_ANY);
}

/* Open an event and attach the program. Returns 0 or -errno. */
static int attach(const struct clock_events *ce, pid_t tid, int cpu, struct clock_event *ret)
{
	const uint64_t period = cpu < 0 ? draw_period(ce->frequency) : draw_period_of_cpu(ce);
	struct bpf_link *link;
	int fd, r = 0;

	if (cpu >= 0)
		r = tell(ce, cpu, &(struct rbpf_cpu_clock) { .period = period });
	if (r)
		return r;
	fd = open_event(tid, cpu, period, cpu < 0 ? ce->divisor : 1);
	if (fd < 0)
		return fd;
	if (cpu < 0 && !fds_may_keep(fd)) {
		close(fd);
		return -EMFILE;
	}
	link = bpf_program__attach_perf_event(ce->program, fd);
	if (!link) {
		r = -errno;
		close(fd);
		return r;
	}
	*ret = (struct clock_event) { .link = link,
				      .fd = fd,
				      .cpu = cpu,
				      .tid = tid,
				      .period = period,
				      .began_ns = clock_ns(CLOCK_MONOTONIC) };
	return 0;
}

static int refused(int r, const char *what, int id, struct err *err)
{
	err_set(err, r, ERR_ENV, "cannot sample %s %d: %s", what, id, strerror(-r));
	if (r == -EACCES || r == -EPERM)
		err_hint(err,
			 "perf_event_open(2) is refused: sysctl kernel.perf_event_paranoid, or the "
			 "container's seccomp profile");
	return r;
}

/* ---- threads ---- */

int clock_events_add_thread(struct clock_events *ce, pid_t tid, struct err *err)
{
	struct clock_event event;
	int clock = ce->first_free, r;

	if (!clock && array_reserve(ce->threads, ce->cap_threads, ce->n_threads + 1))
		return err_oom(err);
	r = attach(ce, tid, -1, &event);
	if (r == -ENFILE)
		r = -EMFILE;
	if (r == -ESRCH || r == -ETIMEDOUT || r == -EMFILE)
		return r;
	if (r)
		return refused(r, "thread", (int)tid, err);
	if (clock)
		ce->first_free = ce->threads[clock - 1].next_free;
	else
		clock = (int)++ce->n_threads;
	ce->threads[clock - 1] = event;
	return clock;
}

/* Of an id that may be another thread's soon. */
static void forget_carried(const struct clock_events *ce, pid_t tid)
{
	const uint32_t key = (uint32_t)tid;

	if (ce->any_carried)
		bpf_map__delete_elem(ce->carried, &key, sizeof(key), 0);
}

void clock_events_remove_thread(struct clock_events *ce, int clock)
{
	struct clock_event *event = &ce->threads[clock - 1];

	forget_carried(ce, event->tid);
	bpf_link__destroy(event->link);
	*event = (struct clock_event) { .next_free = ce->first_free };
	ce->first_free = clock;
}

/* Whether it is the thread's own clock that sees it: bpf/clock.bpf.h. */
static bool has_taken_over(const struct clock_events *ce, pid_t tid)
{
	const uint32_t key = (uint32_t)tid / 64;
	uint64_t word;

	return !bpf_map__lookup_elem(ce->taken_over, &key, sizeof(key), &word, sizeof(word), 0) &&
	       word >> tid % 64 & 1;
}

/* Carry @ns over for thread @tid, beside what was before and it has not ticked since. */
static void carry(const struct clock_events *ce, pid_t tid, int64_t ns)
{
	const uint32_t key = (uint32_t)tid;
	int64_t before = 0;

	bpf_map__lookup_elem(ce->carried, &key, sizeof(key), &before, sizeof(before), 0);
	ns += before;
	bpf_map__update_elem(ce->carried, &key, sizeof(key), &ns, sizeof(ns), BPF_ANY);
}

/*
 * Make the period of a thread's clock longer or shorter. It begins anew with that, so what it has
 * had of the one before is carried over: by the count of the event, which is the CPU time that its
 * periods are made of. And as the clock took over it was given half a period for what comes after
 * its last tick (takes_over()), which is half of another one now.
 *
 * What it has had before it takes over the CPUs' clocks see, if they have any.
 */
static void change_thread(const struct clock_events *ce, struct clock_event *event,
			  uint32_t divisor)
{
	const uint64_t before = event->period * ce->divisor, period = event->period * divisor;
	const bool taken_over = has_taken_over(ce, event->tid);
	uint64_t count;

	if (read(event->fd, &count, sizeof(count)) != (ssize_t)sizeof(count) ||
	    ioctl(event->fd, PERF_EVENT_IOC_PERIOD, &period))
		return;
	if (taken_over)
		carry(ce, event->tid,
		      (int64_t)((count - event->base) % before) +
			      ((int64_t)period - (int64_t)before) / 2);
	else if (!ce->n_cpus)
		carry(ce, event->tid, (int64_t)((count - event->base) % before));
	event->base = count;
}

/* ---- CPUs ---- */

static bool has_cpu(const struct clock_events *ce, int cpu)
{
	size_t i;

	for (i = 0; i < ce->n_cpus; i++)
		if (ce->cpus[i].cpu == cpu)
			return true;
	return false;
}

int clock_events_set_cpus(struct clock_events *ce, const struct cpus *cpus, struct err *err)
{
	size_t i;
	int r;

	/* The event of a CPU that went offline does not come back with it. */
	for (i = ce->n_cpus; i-- > 0;) {
		if (cpus_has(cpus, ce->cpus[i].cpu))
			continue;
		bpf_link__destroy(ce->cpus[i].link);
		ce->cpus[i] = ce->cpus[--ce->n_cpus];
	}
	if (array_reserve(ce->cpus, ce->cap_cpus, ce->n_cpus + cpus->n))
		return err_oom(err);
	for (i = 0; i < cpus->n; i++) {
		if (has_cpu(ce, cpus->v[i]))
			continue;
		r = attach(ce, -1, cpus->v[i], &ce->cpus[ce->n_cpus]);
		ce->n_cpus += !r;
		if (r && r != -ENODEV) /* gone offline again meanwhile */
			return refused(r, "CPU", cpus->v[i], err);
	}
	return 0;
}

/*
 * The clock begins anew with a whole period. What it has had of the one before is what its first
 * tick stands for, too. That may be little only: rbpf is woken by what begins and ends, and what
 * begins now must not have to wait for longer than usual until it can be sampled. Returns whether
 * the period was due to be drawn anew, and was.
 */
static bool redraw(const struct clock_events *ce, struct clock_event *event)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC), ticks = REDRAW_TICKS * event->period;
	const uint64_t had = (now - event->began_ns) % event->period;
	const struct rbpf_cpu_clock before = { .period = event->period };
	struct rbpf_cpu_clock clock;

	if (now - event->began_ns < (ticks > REDRAW_MIN ? ticks : REDRAW_MIN) ||
	    had > event->period / 4)
		return false;
	clock.period = draw_period_of_cpu(ce);
	clock.first = clock.period + had;
	clock.drawn_ns = now;
	if (tell(ce, event->cpu, &clock))
		return false;
	if (ioctl(event->fd, PERF_EVENT_IOC_PERIOD, &clock.period)) {
		tell(ce, event->cpu, &before);
		return false;
	}
	event->period = clock.period;
	event->began_ns = now;
	return true;
}

void clock_events_redraw(struct clock_events *ce)
{
	size_t i, done = 0;

	for (i = 0; i < ce->n_cpus && done < REDRAWS; i++)
		done += redraw(ce, &ce->cpus[ce->next_cpu++ % ce->n_cpus]);
}

/* ---- all ---- */

void clock_events_set_divisor(struct clock_events *ce, uint32_t divisor)
{
	size_t i;

	ce->any_carried = true;
	for (i = 0; i < ce->n_threads; i++)
		if (ce->threads[i].link)
			change_thread(ce, &ce->threads[i], divisor);
	ce->divisor = divisor;
}

void clock_events_stop(struct clock_events *ce)
{
	size_t i;

	for (i = 0; i < ce->n_threads; i++)
		if (ce->threads[i].link)
			ioctl(ce->threads[i].fd, PERF_EVENT_IOC_DISABLE, 0);
	for (i = 0; i < ce->n_cpus; i++)
		ioctl(ce->cpus[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}
