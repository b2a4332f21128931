/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The perf events that make a BPF program run every so many ns of CPU time: one for each thread,
 * which what it creates inherits, or one for each CPU. Not thread-safe.
 */
#ifndef RBPF_ENGINE_CLOCK_EVENTS_H
#define RBPF_ENGINE_CLOCK_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bpf_program;
struct clock_event;
struct cpus;
struct err;

struct clock_events {
	struct bpf_program *program; /* not owned */
	uint32_t frequency;	     /* Hz */
	bool inherit_children;	     /* threads: also by processes that they fork */
	struct clock_event *v;	     /* owned */
	size_t n, cap;
};

void clock_events_deinit(struct clock_events *ce);

/*
 * Sample thread @tid, and all threads (and children, if asked for) that it will create.
 * Returns 0; -ESRCH if the thread is gone and -EMFILE if too many files are open, without @err; or
 * another error with @err set.
 */
int clock_events_add_thread(struct clock_events *ce, pid_t tid, struct err *err);

/*
 * Sample these CPUs, which are online, and no others. Not to be mixed with threads. Returns 0 or an
 * error with @err set.
 */
int clock_events_set_cpus(struct clock_events *ce, const struct cpus *cpus, struct err *err);

/* Stop all clocks. */
void clock_events_stop(struct clock_events *ce);

/* CPU time in ns that the clocks of threads have counted, also in what inherited them. */
uint64_t clock_events_cpu_ns(const struct clock_events *ce);

#endif
