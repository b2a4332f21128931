/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When names, of a process or those that are kept for all, are to be forgotten, because many of
 * them are of code that is gone or is not run any more: a program that defines methods all the
 * time, or a machine whose containers come and go, would have rbpf keep ever more of them. All that
 * are still needed are read again as they are met; so it is done rarely, and only where it gives
 * back much.
 *
 * What the names take a minute after they were last forgotten is what the program needs; what has
 * come since then is new code, old code, or code that runs rarely.
 */
#ifndef RBPF_SAMPLE_NAMES_AGE_H
#define RBPF_SAMPLE_NAMES_AGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

#define NAMES_SETTLE_NS (60 * NSEC_PER_SEC)
#define NAMES_KEEP_NS	(600 * NSEC_PER_SEC) /* they are forgotten no more often than that */
#define NAMES_GROWTH	4		     /* one part in so many more than a minute after … */
#define NAMES_ROOM	(16u << 10) /* … and so many bytes; of all processes together … */
#define NAMES_ROOM_ALL	(8u << 20)  /* … so many, for then all of it is written again */

/* All zero at first. */
struct names_age {
	uint64_t since_ns; /* CLOCK_MONOTONIC: the first time that there were any; 0: there are none
			      yet */
	size_t settled;	   /* bytes, a minute after that */
};

/*
 * Whether the names, @bytes of them at @now, are to be forgotten; then @a is all zero again. @room:
 * NAMES_ROOM or more.
 */
bool names_age_over(struct names_age *a, size_t bytes, size_t room, uint64_t now);

#endif
