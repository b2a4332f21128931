/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether names of a process get lost, as the objects that they are read from are freed or moved
 * before they are read; and how long the engine is therefore to copy them when it takes a stack
 * (engine_copy_names()).
 *
 * That costs the target some microseconds for each new object, and the check of each frame of each
 * sample. So it is done only where more than one of LOST_NAMES_SHARE stacks has a frame without a
 * name, for LOST_NAMES_COPY_NS, and longer each time that it turns out to be needed again. A few
 * that are lost must be a larger share. So must those of the first window: a large program's first
 * second has so much to be read for the first time that some of it comes too late.
 */
#ifndef RBPF_SAMPLE_LOST_NAMES_H
#define RBPF_SAMPLE_LOST_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#define LOST_NAMES_WINDOW_NS 1000000000ull
#define LOST_NAMES_SHARE     50
#define LOST_NAMES_MIN	     2 /* stacks; one alone may be chance */
#define LOST_NAMES_MIN_FIRST 8 /* … of the first window */
#define LOST_NAMES_FEW	     4 /* stacks: fewer than these … */
#define LOST_NAMES_FEW_SHARE                                                                       \
	8 /* … and those of the first window must be more than one of so many */
#define LOST_NAMES_COPY_NS     10000000000ull
#define LOST_NAMES_COPY_MAX_NS 160000000000ull
#define LOST_NAMES_ASK	       16 /* stacks of a window that are asked for again */

/* All 0: nothing is known yet. Times are of CLOCK_MONOTONIC. */
struct lost_names {
	uint64_t window_ns; /* when the current window began … */
	bool learnt;	    /* … which is not the first one */
	uint32_t stacks;    /* that were named in it … */
	uint32_t lost;	    /* … and of those with a frame without a name */
	uint32_t asked;	    /* of these, that were asked for again */
	bool last_lost;	    /* the last one that was noted */
	uint64_t copy_ns;   /* how long they were copied last; 0: never */
	uint64_t until_ns;  /* until when they are copied; 0: never */
};

/* A stack that was sampled at @now_ns was named; @lost: not all of it. */
void lost_names_note(struct lost_names *l, uint64_t now_ns, bool lost);

/*
 * Whether the stack that was noted last is to be asked for again: not all of it was named, perhaps
 * only because a collection came between; all samples of it would be without those names until the
 * epoch ends.
 */
bool lost_names_ask_again(struct lost_names *l);

/* Until when names are to be copied, if that has to begin at @now_ns; 0: nothing is to be done. */
uint64_t lost_names_copy_until(struct lost_names *l, uint64_t now_ns);

#endif
