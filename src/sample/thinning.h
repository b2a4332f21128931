/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much fewer samples are to be taken so that a recording costs a busy machine no more than it
 * may. Where CPUs have nothing else to do no application notices the cost, and there are few
 * samples; where it takes all of them there are many, and half as many tell nearly as much.
 *
 * Each sample carries the time that it stands for, so the times that they add up to stay right.
 */
#ifndef RBPF_SAMPLE_THINNING_H
#define RBPF_SAMPLE_THINNING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define THINNING_INTERVAL (10 * NSEC_PER_SEC) /* between two looks at the cost */
#define THINNING_MAX	  4		      /* the frequency is not made lower than by this */

struct thinning {
	uint32_t divisor; /* of the frequency that was asked for, 1 to THINNING_MAX; 0 is 1 */
	uint32_t calm;	  /* intervals in which it could have been one less */
};

/* An interval, all in ns of CPU time. */
struct thinning_cost {
	uint64_t all;	  /* what the recording took, in rbpf and in the kernel … */
	uint64_t ticks;	  /* … of it, the BPF program that clocks run */
	uint64_t limit;	  /* what it may take */
	uint64_t busy;	  /* what all CPUs ran, or had to run while they were stolen … */
	uint64_t machine; /* … of what they have */
};

/* Note the cost of an interval. Returns whether t->divisor has changed by that. */
bool thinning_note(struct thinning *t, const struct thinning_cost *cost);

#endif
