/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The priority at which this process runs: while it does a bounded amount of work it is scheduled
 * ahead of all ordinary processes, so that on a busy machine it examines a process that lives for
 * some milliseconds before that has ended.
 *
 * The policy is SCHED_RR with its lowest priority, beside nice -20. Where SCHED_RR is refused (no
 * CAP_SYS_NICE, a control group without real-time bandwidth) it is nice -20 alone. What it may take
 * ahead of others is limited twice:
 *
 *	PRIORITY_BOUT_US	as SCHED_RR without sleeping: then the kernel sends SIGXCPU
 *				(RLIMIT_RTTIME), and until the next turn it is nice -20 alone, which
 *				lets others run in between
 *	PRIORITY_PERCENT	of CPU time of one CPU, with PRIORITY_BURST_NS that may be saved up:
 *				beyond it the process runs as it was started
 *
 * Children do not inherit it (SCHED_RESET_ON_FORK); those that it waits for have
 * priority_set_helper()'s. For one thread, the main one. CAP_SYS_NICE is needed each time that the
 * priority is raised again; without it, it is not raised again.
 */
#ifndef RBPF_BASE_PRIORITY_H
#define RBPF_BASE_PRIORITY_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#define PRIORITY_BOUT_US  50000ull
#define PRIORITY_PERCENT  20
#define PRIORITY_BURST_NS 1000000000ull
#define PRIORITY_NICE	  (-20)

enum priority_kind {
	PRIORITY_PLAIN = 0, /* as the process was started */
	PRIORITY_NICED = 1,
	PRIORITY_REAL_TIME = 2,
};

struct priority {
	enum priority_kind kind; /* what was granted */
	bool raised;		 /* it has it just now, or nice alone after a long bout */
	int nice;		 /* of before */
	int refused;		 /* negative errno: why kind is not PRIORITY_REAL_TIME */
	uint64_t turn_ns;	 /* the last turn, CLOCK_MONOTONIC … */
	uint64_t turn_cpu_ns;	 /* … and the CPU time of the process then */
	int64_t credit_ns;	 /* CPU time that is left of its share; below 0: overdrawn */
	struct rlimit bout;	 /* RLIMIT_RTTIME of before */
	struct sigaction xcpu;	 /* SIGXCPU of before */
};

#define PRIORITY_INIT                                                                              \
	{                                                                                          \
		.kind = PRIORITY_PLAIN                                                             \
	}

/* Raise it as far as the kernel lets: @p->kind and @p->refused tell how far that is. */
void priority_raise(struct priority *p);

/* Once in each turn of the loop, before it sleeps: keep to the limits, or raise it again. */
void priority_turn(struct priority *p);

/* Run as before; @p is PRIORITY_INIT then. Accepts PRIORITY_INIT. */
void priority_drop(struct priority *p);

/* Whether priority_set_helper() is to do something; it does unless this says no. */
void priority_allow_helpers(bool allow);

/*
 * For a process that another one with a raised priority waits for, a short moment each time: nice
 * -20, and a time slice of 0.1 ms where the kernel has such (6.12), so that it runs as soon as it
 * is asked, and not only when another's slice has ended. Stays as it is, of this thread and of its
 * children. A kernel that refuses it is as good as a machine with nothing else to do.
 */
void priority_set_helper(void);

#endif
