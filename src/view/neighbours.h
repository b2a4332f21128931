/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who calls a method, and whom it calls.
 *
 * A sample counts for a caller if the caller called the method directly somewhere in its stack:
 * once, however often that is. So nothing is estimated, as it is where only the counts of calls are
 * known; but a sample of a method that is called again further in, by another caller, counts for
 * both, and the callers of such a method add up to more than its total.
 *
 * Frames that are not shown are skipped: what is called through them is called by the frame
 * outside.
 */
#ifndef RBPF_VIEW_NEIGHBOURS_H
#define RBPF_VIEW_NEIGHBOURS_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "view/filter.h"
#include "view/group.h"
#include "view/totals.h"

struct profile;

struct neighbour {
	/*
	 * A frame of it; PROFILE_NONE: the samples in which nothing called the method (of callers),
	 * or in which it ran itself (of callees).
	 */
	uint32_t frame;
	struct plain_sum sum;
};

struct neighbour_list {
	struct neighbour *rows; /* the greatest value first; owned */
	size_t n, cap;
};

struct method_neighbours {
	uint32_t frame; /* a frame of the method */
	struct group_total time;
	struct neighbour_list callers, callees;
};

struct neighbours {
	struct method_neighbours *methods; /* the greatest total first; owned */
	size_t n_methods;
	struct view_sum all; /* selected samples */
};

#define NEIGHBOURS_INIT                                                                            \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Of the methods, or lines with GROUP_BY_LINE, whose name @method matches and which are in samples
 * that @f selects (NULL: all). Returns 0, -ENOMEM, or -EINVAL (as view_selection_new()). @ret:
 * neighbours_deinit().
 */
int neighbours_build(const struct profile *p, const struct view_filter *f, enum group_by by,
		     const regex_t *method, struct neighbours *ret);
void neighbours_deinit(struct neighbours *n);
#define _cleanup_neighbours_ _cleanup_(neighbours_deinit)

#endif
