/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What each thread did when: spans of time, each in one state and with one stack, in the order of
 * time.
 *
 * A wait is known from its beginning to its end. A sample of CPU time only says that the thread ran
 * for so long before it: its time is put where the thread did not wait, backwards from the sample.
 * Where that is not known either, or there is no room (a thread cannot have run longer than time
 * passed), a span is shorter than its value.
 *
 * There may be more samples than anybody can look at. If the spans are too many, those that are
 * shorter than a width are merged: all of one thread and state that begin in the same interval of
 * that width become one span, as wide as the interval, with the sum of their values (one that goes
 * on into the next interval is divided). The width is doubled until the spans are few enough. So no
 * time is lost, only when exactly it was.
 */
#ifndef RBPF_VIEW_SPANS_H
#define RBPF_VIEW_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct time_span {
	uint64_t start, len; /* ns; start is CLOCK_MONOTONIC */
	uint64_t value;	     /* ns: the time that it stands for */
	uint64_t votes;	     /* ns: of the stack, more than all others of what was merged have */
	uint32_t stack;	     /* that of most of the value, if any has most of it */
	uint32_t samples;    /* that end in it; UINT32_MAX: so many or more */
	uint8_t state;	     /* enum thread_state, or what the caller means by it */
	bool gc;	     /* garbage collection */
	bool merged;	     /* it is of several; start is a multiple of the width, len the width */
};

struct span_list {
	struct time_span *v; /* owned */
	size_t n, cap;
	struct span_gap *gaps; /* owned; see spans.c */
	size_t n_gaps;
	uint64_t known_to; /* ns: before that time it is known what the thread did; 0: nothing is */
};

struct spans {
	struct span_list *threads; /* by thread id; owned */
	size_t n_threads;
	size_t n;	/* spans, of all threads */
	size_t max;	/* how many there may be before they are merged */
	uint64_t width; /* ns; 0: none was merged */
};

#define SPANS_INIT                                                                                 \
	{                                                                                          \
		0                                                                                  \
	}

/* Returns 0 or -ENOMEM. @ret: spans_deinit(). */
int spans_init(size_t n_threads, size_t max, struct spans *ret);
void spans_deinit(struct spans *s);
#define _cleanup_spans_ _cleanup_(spans_deinit)

/*
 * Samples of @thread that ended at @ts, of which @like has the value, the stack, the state and gc:
 * CPU time, or a wait. Those of a thread come in the order of time. Return 0 or -ENOMEM.
 */
int spans_add_cpu(struct spans *s, uint32_t thread, uint64_t ts, const struct time_span *like);
int spans_add_wait(struct spans *s, uint32_t thread, uint64_t ts, const struct time_span *like);

/* A span with a start and a length. Returns 0 or -ENOMEM. */
int spans_add(struct spans *s, uint32_t thread, const struct time_span *span);

/* Double the width. Merging ends where each thread has one span for each state, whatever max is. */
void spans_coarsen(struct spans *s);

/* Put all in the order of time, and merge what may be merged at the width that was reached. */
void spans_finish(struct spans *s);

#endif
