/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which requests made which requests wait for the GVL: each wait for it, whose times are exact, is
 * divided by whom the time that it lasted was charged to (gvl_charges.h).
 */
#ifndef RBPF_VIEW_GVL_PAIRS_H
#define RBPF_VIEW_GVL_PAIRS_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct profile;
struct view_filter;

struct gvl_pair {
	uint32_t waiting; /* kind of request: that waited … */
	uint32_t holding; /* … while threads in requests of this kind had the GVL */
	uint64_t ns;
};

struct gvl_pairs {
	struct gvl_pair *v; /* the longest first; owned */
	size_t n;
	/*
	 * ns of waiting for the GVL in all, and the part of it between requests: by threads that
	 * had requests, while they were in none. One that has come may be waiting then, too.
	 */
	uint64_t waited, between;
};

#define GVL_PAIRS_INIT                                                                             \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Of the waits of @p that @f selects. @p is by_request and of EVENT_WALL, and has kept its samples
 * with gvl_caused. Returns 0, -ENOMEM, -EINVAL, or -E2BIG if that is more work than a recording of
 * a real program can ask for. @ret: gvl_pairs_deinit().
 */
int gvl_pairs_build(const struct profile *p, const struct view_filter *f, struct gvl_pairs *ret);
void gvl_pairs_deinit(struct gvl_pairs *pairs);
#define _cleanup_gvl_pairs_ _cleanup_(gvl_pairs_deinit)

#endif
