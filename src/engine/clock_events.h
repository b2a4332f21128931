/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The perf events that make a BPF program run every so many ns of CPU time, of threads and of CPUs.
 * Not thread-safe.
 *
 * What a thread creates does not inherit its event (attr.inherit): that would begin with a whole
 * period, so what lives for less than one would never be seen; and where a parent and its child
 * take turns the kernel swaps their events, so that the parent would lose what it has had of its
 * period with each child that ends.
 */
#ifndef RBPF_ENGINE_CLOCK_EVENTS_H
#define RBPF_ENGINE_CLOCK_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bpf_map;
struct bpf_program;
struct clock_event;
struct cpus;
struct err;

struct clock_events {
	struct bpf_program *program; /* not owned */
	struct bpf_map *cpu_clocks;  /* struct rbpf_cpu_clock by CPU; not owned */
	struct bpf_map *taken_over;  /* bits by tid; not owned */
	struct bpf_map *carried;     /* ns by tid; not owned */
	uint32_t frequency;	     /* Hz … */
	uint32_t divisor;	     /* … by which it is lowered at present; at least 1 */
	bool any_carried;	     /* something was put into @carried */
	struct clock_event *threads; /* by number less 1; owned */
	size_t n_threads, cap_threads;
	int first_free;		  /* the number of one that has no clock; 0: each has one */
	struct clock_event *cpus; /* owned */
	size_t n_cpus, cap_cpus;
	size_t next_cpu; /* that is to be drawn anew next */
};

/* No clock of a thread has a longer period at first, ns, if it ticks at @frequency Hz. */
uint64_t clock_events_longest_period(uint32_t frequency);

void clock_events_deinit(struct clock_events *ce);

/*
 * A clock for thread @tid. Returns its number, which is positive; -ESRCH if the thread is gone,
 * -ETIMEDOUT if it cannot be waited for, and -EMFILE if too many files are open, without @err; or
 * another error with @err set.
 */
int clock_events_add_thread(struct clock_events *ce, pid_t tid, struct err *err);

/* Close the one of this number. */
void clock_events_remove_thread(struct clock_events *ce, int clock);

/* Clocks for these CPUs, which are online, and no others. Returns 0 or an error with @err set. */
int clock_events_set_cpus(struct clock_events *ce, const struct cpus *cpus, struct err *err);

/*
 * Draw periods of CPUs' clocks anew, of those for which it is due: a program that sleeps and works
 * at the same rate as one ticks, or at a multiple of it, would be sampled at the same place for
 * long.
 */
void clock_events_redraw(struct clock_events *ce);

/*
 * Tick so many times less often from now on. What clocks of threads have had of their periods is
 * not lost: their next ticks stand for it, too. Those of CPUs follow as they are drawn anew.
 */
void clock_events_set_divisor(struct clock_events *ce, uint32_t divisor);

/* Stop all clocks. */
void clock_events_stop(struct clock_events *ce);

#endif
