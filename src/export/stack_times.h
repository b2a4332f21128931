/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When a thread had which stack, for formats whose readers take a sample's time for the start of
 * its stack: it lasts until the next sample of the thread.
 *
 * In a profile the time of a sample is the end of what its value stands for. So a sample is given
 * the time at which that starts, not before the end of the sample before. Behind a wait the thread
 * goes on with the stack of the next tick; if it waits again before one, with the stack that it
 * waited with. In 10 s of Rails with frequent waits, 78% of the CPU time is then that of functions
 * of which ticks tell it. With ticks at their own times it is 64%: the rest is that of functions
 * that wait.
 */
#ifndef RBPF_EXPORT_STACK_TIMES_H
#define RBPF_EXPORT_STACK_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;
struct view_filter;

/* What the values of samples say of the time of their thread. */
enum stack_times_kind {
	STACK_TIMES_NONE, /* nothing: samples are moments, and keep their times */
	STACK_TIMES_PART, /* how much of it they are: the rest is not known */
	STACK_TIMES_ALL,  /* CPU time and waits are all of it: what no wait fills is CPU time */
};

/* That of the samples of @p that @f selects; NULL: all. */
enum stack_times_kind stack_times_kind(const struct profile *p, const struct view_filter *f);

/* What is known of a thread from its samples so far. Zero: nothing. */
struct stack_times {
	uint64_t end;	     /* of the last sample */
	uint32_t after_wait; /* the stack that it goes on with, if … */
	bool waited;	     /* … that was a wait */
	bool begun;	     /* there was one */
	bool hidden;	     /* samples since then are not shown */
};

/* A sample of a thread, in the order of the recording. */
struct stack_sample {
	uint64_t ts; /* ns, CLOCK_MONOTONIC; its end */
	uint64_t value;
	uint32_t stack;
	uint32_t after_wait; /* of a wait: @stack without what says that it waits */
	bool waits;
};

/* A stack from its time until that of the next one. */
struct timed_stack {
	uint64_t ts; /* not before the one before */
	uint64_t value;
	uint32_t stack;
	bool runs; /* the thread uses CPU time until the next one */
};

#define STACK_TIMES_MAX 2

/* What @s adds to the stacks of its thread, written to @ret: their number. */
size_t stack_times_add(struct stack_times *t, enum stack_times_kind kind,
		       const struct stack_sample *s, struct timed_stack ret[STACK_TIMES_MAX]);

/* A sample of the thread is not shown: what it did then is not known. */
static inline void stack_times_hide(struct stack_times *t)
{
	t->hidden = true;
}

/* After all samples: where the last one ends. */
size_t stack_times_end(const struct stack_times *t, enum stack_times_kind kind,
		       struct timed_stack ret[STACK_TIMES_MAX]);

#endif
