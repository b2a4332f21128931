/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How complete the native stacks of a recording are.
 */
#ifndef RBPF_VIEW_NATIVE_H
#define RBPF_VIEW_NATIVE_H

#include <stddef.h>
#include <stdint.h>

#include "profile/reason.h"

struct profile;

struct native_gap {
	enum frame_reason reason; /* of the FRAME_GAP; REASON_NONE if the stack has none */
	uint64_t samples;	  /* of which it is the innermost gap */
};

struct native_stacks {
	uint64_t samples;  /* whose native stack was walked */
	uint64_t complete; /* of these, without a gap; the others are in .gaps, each once */
	/* Most samples first, then by text; so many have any. */
	struct native_gap gaps[FRAME_REASON_COUNT];
	size_t n_gaps;
};

/* Of all samples that were read, whatever is filtered. Returns 0 or -ENOMEM. */
int native_stacks_count(const struct profile *p, struct native_stacks *ret);

#endif
