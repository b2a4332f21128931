/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Values of events for people (see base/number.h for other numbers), and the lines that say how
 * complete and how trustworthy a recording is.
 */
#ifndef RBPF_UI_SUMMARY_H
#define RBPF_UI_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/number.h"
#include "profile/profile.h"

struct buf;

struct num_text num_value(enum value_unit unit, uint64_t value); /* "30.0 s", "1.4 MB", "11,876" */
struct num_text num_column(enum value_unit unit,
			   uint64_t value); /* the same for columns: "9.41s" */

/* What these lines need to know of a recording beside its totals. */
struct summary_recording {
	uint64_t duration_ns; /* 0 if unknown */
	uint32_t frequency;   /* Hz of CPU time; 0 if unknown */
	bool waits;	      /* waits were recorded, too */
};

/*
 * Whether the CPU time that was sampled differs from the kernel's account by more than 5 %, and by
 * more than three standard deviations of the number of its samples: of few samples chance alone
 * explains more than 5 %.
 */
bool summary_cpu_differs(const struct profile_totals *totals, uint32_t frequency);

/*
 * The summary at the end of a recording: samples, losses, CPU time against the kernel's account
 * with the share of garbage collection if there was any, and what rbpf itself cost. Four indented
 * lines, one for what waits cost; one more if native stacks were walked, one more if more than 5 %
 * of the samples failed, one if summary_cpu_differs(), one if
 * it used little CPU time and its waits were not recorded, and one for each counter that matters
 * (profile/counters.h).
 */
void summary_totals(const struct profile_totals *totals, const struct summary_recording *recording,
		    struct buf *out);

/*
 * What was lost or is not known, for the end of a report: two lines, one more if
 * summary_cpu_differs(), and one for each counter that matters.
 */
void summary_defects(const struct profile_totals *totals, const struct summary_recording *recording,
		     struct buf *out);

#endif
