/* SPDX-License-Identifier: GPL-2.0-only */
/* Saving what top shows as a recording. */
#ifndef RBPF_CMD_TOP_SAVE_H
#define RBPF_CMD_TOP_SAVE_H

#include <stddef.h>
#include <stdint.h>

#include "profile/window.h"

struct err;
struct profile_totals;
struct recorder_options;
struct sampling;

/*
 * Write the seconds @range of @w, of which number 0 began at @start_ns (CLOCK_MONOTONIC), to
 * rbpf-top-SECONDS.data in the working directory, SECONDS being when the range began, since 1970.
 * What came of it is put into @said, in one line.
 */
void top_save(const struct sampling *s, struct window *w, struct window_range range,
	      uint64_t start_ns, uint64_t start_realtime_ns, char *said, size_t size);

/* The same as @opts say; its totals are put into @totals. Returns 0, or -errno with @err set. */
int top_save_to(const struct sampling *s, struct window *w, struct window_range range,
		uint64_t start_ns, uint64_t start_realtime_ns, const struct recorder_options *opts,
		struct profile_totals *totals, struct err *err);

#endif
