/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Moments that divide a recording: samples before and after one are added up apart, so that a
 * filter can tell them apart afterwards (struct profile_aggregate, .marks).
 */
#ifndef RBPF_PROFILE_TIME_CUT_H
#define RBPF_PROFILE_TIME_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/wall_time.h"

/* With those that are asked for by their span (span_mark.h): a bit each. */
#define PROFILE_MAX_CUTS 16

struct time_cut {
	uint64_t since_start_ns; /* since the start of the recording */
	struct wall_time clock;	 /* in place of it, if given */
	bool after; /* a sample of just this time is before the cut, else it is behind it */
};

#endif
