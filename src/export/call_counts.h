/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many samples each function (or line) has, and each call of one by another, for formats that
 * have no whole stacks: counted once a sample, however often a stack has it.
 */
#ifndef RBPF_EXPORT_CALL_COUNTS_H
#define RBPF_EXPORT_CALL_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct profile;
struct shown;

/* Samples and values by shown stack; [0] are those of which no frame is shown. */
struct stack_count {
	uint64_t samples;
	uint64_t value;
};

/* Returns 0 or -ENOMEM. @ret: free(). */
int stack_counts(const struct shown *shown, struct stack_count **ret);

/*
 * For formats that count samples. Of an event whose samples have durations, set the samples of
 * @counts to how often a profiler would have met the stack that takes one at an interval: each
 * millisecond, which is stackprof's own default for wall time, or each microsecond if all are less
 * than a second. What rounding takes from one stack it gives to the next: their sum is the rounded
 * sum. A stack that is shorter may get 0. Returns the interval in ns.
 *
 * For other events the interval is the period, and samples are left alone, but where some stand for
 * more than others: then each counts as often as it stands for one.
 */
uint64_t stack_counts_of_time(const struct profile *p, struct stack_count *counts);

/* What calls the outermost frame of a stack. */
#define CALLS_ROOT UINT32_MAX

struct call_edge {
	uint32_t from, to; /* groups; CALLS_ROOT */
	uint64_t samples;
};

/* Groups are below @n, which itself stands for the stack of a sample without frames. */
struct call_counts {
	uint64_t *self, *total;	 /* samples by group; owned */
	struct call_edge *edges; /* in the order of @from, then @to, each pair once; owned */
	size_t n_edges;
};

#define CALL_COUNTS_INIT                                                                           \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Add up @counts, of stack_counts(), by the group of each frame, of which there are @n: @group_of.
 * Returns 0 or -ENOMEM. @ret: call_counts_deinit().
 */
int call_counts_init(const struct shown *shown, const struct stack_count *counts,
		     const uint32_t *group_of, size_t n, struct call_counts *ret);
void call_counts_deinit(struct call_counts *c);
#define _cleanup_call_counts_ _cleanup_(call_counts_deinit)

/* Lines of functions as groups: frames of one function that execute one line. */
struct line_groups {
	uint32_t *of_frame; /* by frame id; owned */
	uint32_t *frame;    /* by group: its first frame; owned */
	size_t n;
};

/* @function_of: the function of each frame. Returns 0 or -ENOMEM. @ret: line_groups_deinit(). */
int line_groups_init(const struct profile *p, const uint32_t *function_of, struct line_groups *ret);
void line_groups_deinit(struct line_groups *g);
#define _cleanup_line_groups_ _cleanup_(line_groups_deinit)

#endif
