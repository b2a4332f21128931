/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The single waits that were longest: when each was, of which thread, for what, and in which
 * method.
 *
 * A wait is one of them if a sample of it is selected. Its length is that of the whole wait, as far
 * as the recording has it (profile/wait_lengths.h). Only as many as are asked for are kept.
 */
#ifndef RBPF_VIEW_LONGEST_WAITS_H
#define RBPF_VIEW_LONGEST_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "view/sum.h"

struct err;
struct profile;
struct replay;
struct view_filter;

#define LONGEST_WAITS_MAX 500

struct longest_wait {
	uint64_t begin_ts; /* ns, CLOCK_MONOTONIC */
	uint64_t ns;	   /* its length, in the recording */
	uint32_t thread;   /* thread id */
	uint32_t request;  /* kind; 0: none */
	uint32_t frame;	   /* of the wait: what it was for, and for whom */
	/*
	 * The innermost frame of code that is shown: the method that waits, mostly; else what
	 * stands for a stack of which none is. PROFILE_NONE if there is none.
	 */
	uint32_t method;
	uint8_t state; /* enum thread_state, with STATE_HELD or STATE_TURN */
	/*
	 * Of a wait for the GVL: the thread that had it for most of the time (gvl_holders.h), and
	 * for how long. PROFILE_NONE and 0 if none is known.
	 */
	uint32_t holder;
	uint64_t held_ns;
	/* It began before the recording, or went on after it: it was longer than .ns. */
	bool began_before, went_on;
};

struct longest_waits {
	struct longest_wait *v; /* the longest first; owned */
	size_t n;
	struct plain_sum selected; /* all selected samples, whatever they are of */
	uint64_t waits;		   /* how many there are to choose from … */
	/* Left out, as nobody asked for these: what others wait for is listed of these others. */
	uint64_t idle, joins;
};

#define LONGEST_WAITS_INIT                                                                         \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * At most @max (1 to LONGEST_WAITS_MAX) of the waits of @p that @f selects, those in STATE_IDLE
 * and STATE_JOIN only @with_all. @p has whole_waits; it has kept them, or @from is what it was read
 * from. If it has kept them it is not known who had the GVL.
 *
 * Returns 0, or an error with @err set: -ENOMEM, or what profile_each_wait() returns. @ret:
 * longest_waits_deinit().
 */
int longest_waits_build(const struct profile *p, const struct view_filter *f,
			const struct replay *from, size_t max, bool with_all,
			struct longest_waits *ret, struct err *err);
void longest_waits_deinit(struct longest_waits *l);
#define _cleanup_longest_waits_ _cleanup_(longest_waits_deinit)

#endif
