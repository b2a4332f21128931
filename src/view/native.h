/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How complete the native stacks of a recording are.
 */
#ifndef RBPF_VIEW_NATIVE_H
#define RBPF_VIEW_NATIVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct buf;
struct profile;

struct native_gap {
	uint32_t name;	  /* string: that of the FRAME_GAP; 0 if the stack has none */
	uint64_t samples; /* of which it is the innermost gap */
};

struct native_stacks {
	uint64_t samples;	 /* whose native stack was walked */
	uint64_t complete;	 /* of these, without a gap; the others are in .gaps, each once */
	struct native_gap *gaps; /* most samples first, then by name; owned */
	size_t n_gaps, cap_gaps;
};

#define NATIVE_STACKS_INIT                                                                         \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Of all samples that were read, whatever is filtered. Returns 0 or -ENOMEM. @ret:
 * native_stacks_deinit().
 */
int native_stacks_init(const struct profile *p, struct native_stacks *ret);
void native_stacks_deinit(struct native_stacks *n);
#define _cleanup_native_stacks_ _cleanup_(native_stacks_deinit)

/* Append why it is there: "unknown code" of "[native frames missing: unknown code]". */
void native_gap_reason(const struct profile *p, const struct native_gap *gap, struct buf *out);

#endif
