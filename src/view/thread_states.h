/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How each thread spent its time: the microstates of view/state.h, which add up to all of it. And
 * how all threads together spent each second.
 */
#ifndef RBPF_VIEW_THREAD_STATES_H
#define RBPF_VIEW_THREAD_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "view/owner.h"
#include "view/state.h"

struct profile;
struct view_filter;

struct thread_states {
	uint32_t id;	     /* of the thread or owner, or the second (seconds.h); PROFILE_NONE: all
				together */
	uint32_t n_threads;  /* that the row is of; 0 of seconds */
	uint64_t elapsed_ns; /* from when it was first seen until it was last seen; 0 of seconds */
	uint64_t ns[STATES];
	uint64_t held_ns; /* of its waits, while it held the GVL */
	uint64_t turn_ns; /* of those for the GVL, as its turn was over */
	uint64_t sum_ns;  /* of all states */
};

struct thread_states_table {
	struct thread_states *
		v; /* owned. Threads, owners: most time first that is not idle; seconds: in order */
	size_t n;
	struct thread_states all;
	bool in_part; /* only some of the time of these threads is selected */
	/* How many of their waits began before the recording, and went on after it … */
	uint32_t began_before, went_on;
	uint32_t cut[STATES]; /* … by state; one that did both counts twice */
};

#define THREAD_STATES_INIT                                                                         \
	{                                                                                          \
		0                                                                                  \
	}

/* Add @ns in @state, of state_of(), to all sums of @to but sum_ns. */
void thread_states_add(struct thread_states *to, unsigned int state, uint64_t ns);

/*
 * Of the selected samples of @p, which is by_thread and of EVENT_WALL. CPU time is the kernel's
 * account of each thread where that is known and @f selects all of its time, divided into the
 * states as its samples are; 0 of a thread that has none. Returns 0 or -ENOMEM. @ret:
 * thread_states_deinit().
 */
int thread_states_build(const struct profile *p, const struct view_filter *f,
			struct thread_states_table *ret);

/*
 * The same, but for waits that were cut, of sums that the caller made of the selected samples: @v
 * has .ns, .held_ns and .turn_ns of each thread of @p, by id, and is zero in all else; *@ret owns
 * it then. @p need not be by_thread. Without @account, CPU time is always that of the samples.
 */
void thread_states_finish(const struct profile *p, const struct view_filter *f, bool account,
			  struct thread_states *v, struct thread_states_table *ret);

/*
 * Add up the rows of threads that have the same owner, and give them its id. Elapsed is what passed
 * for each of its threads. Returns 0 or -ENOMEM.
 */
int thread_states_by_owner(const struct profile *p, enum owner_kind kind,
			   struct thread_states_table *t);

/* Percent by which the sum of a thread's states may differ from the time that passed. */
#define THREAD_STATES_PART 5

/*
 * Whether it differs by more than that, and by more than 10 ms: one sample of CPU time more or less
 * does not count.
 */
bool thread_states_differ(const struct thread_states *t);

/*
 * By second of the recording. @p has kept its samples, and is of EVENT_WALL. A wait is divided
 * among the seconds that it was in. CPU time is what was sampled in each. Returns 0 or -ENOMEM.
 * @ret: thread_states_deinit().
 */
int second_states_build(const struct profile *p, const struct view_filter *f,
			struct thread_states_table *ret);

void thread_states_deinit(struct thread_states_table *t);
#define _cleanup_thread_states_ _cleanup_(thread_states_deinit)

#endif
