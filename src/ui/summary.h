/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers for people, and the lines that say how complete and how trustworthy a recording is.
 *
 * Thousands are separated by commas whatever the locale is. Machine output must not use these.
 */
#ifndef RBPF_UI_SUMMARY_H
#define RBPF_UI_SUMMARY_H

#include <stdint.h>

#include "profile/profile.h"

struct buf;

/* A formatted number, by value: use as `num_count(n).s` within one expression. */
struct num_text {
	char s[64];
};

struct num_text num_count(uint64_t n);	   /* "11,876" */
struct num_text num_duration(uint64_t ns); /* "30.0 s", "350 ms", "2.6 µs", "0 s" */
struct num_text num_seconds(uint64_t ns);  /* "9.41s", for columns */
struct num_text num_value(enum value_unit unit, uint64_t value); /* "30.0 s", "1.4 MB", "11,876" */
struct num_text num_column(enum value_unit unit,
			   uint64_t value);		    /* the same for columns: "9.41s" */
struct num_text num_percent(uint64_t part, uint64_t whole); /* "92.4%"; of 0: "0.0%" */
struct num_text num_bytes(uint64_t bytes);		    /* "1.4 MB" (10^6), "512 B" */
struct num_text num_clock(uint64_t ns);			    /* "00:12", "1:02:03" */

/* "1 process", "4 processes": @plural is the whole word, of at most 28 bytes. */
struct num_text num_of(uint64_t n, const char *singular, const char *plural);

/*
 * The summary at the end of a recording of @duration_ns: samples, losses, CPU time against
 * the kernel's account with the share of garbage collection if there was any, and what rbpf itself
 * cost. Four indented lines, a fifth if more than 5 % of the samples failed, and one for each counter
 * that matters (profile/counters.h).
 */
void summary_totals(const struct profile_totals *totals, uint64_t duration_ns, struct buf *out);

/* The same in two lines for the end of a report, and one for each counter that matters. */
void summary_defects(const struct profile_totals *totals, struct buf *out);

#endif
