/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Percentiles of how long the waits in a row were, of rows of states and of peers.
 *
 * Sums do not tell them, so each wait is looked at once more: it is read again, or has been kept.
 * They are those of a histogram (base/histogram.h): within 1.6 %, and neither above the longest
 * wait of the row nor below its shortest.
 */
#ifndef RBPF_VIEW_WAIT_PERCENTILES_H
#define RBPF_VIEW_WAIT_PERCENTILES_H

#include <stdint.h>

struct err;
struct flat;
struct profile;
struct replay;
struct view_filter;

struct wait_percentiles {
	uint64_t n;		/* waits that were looked at: those of flat_row.waits */
	uint64_t p50, p95, p99; /* ns; 0 if there are none */
};

/*
 * Set the percentiles of the rows of @flat, which are of @p, by @by (FLAT_BY_STATE or FLAT_BY_PEER)
 * and of what @f selects. @p has whole_waits; it has kept them, or @from is what it was read from.
 * Returns 0, or an error with @err set: -ENOMEM, or what profile_each_wait() returns.
 */
int wait_percentiles(const struct profile *p, const struct replay *from,
		     const struct view_filter *f, unsigned int by, struct flat *flat,
		     struct err *err);

#endif
