/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What requests of one kind took: how many were seen, their time, and how long they were.
 *
 * How long a request was is known within two bounds: at least from its first sample to its last one
 * (profile_request_least_ns()), and where waits were recorded, which leaves no long time between
 * samples, at most between the samples of its thread around it (profile_request_most_ns()). So 50
 * of 100 requests were at least as long as the median of the first, and at most as the median of
 * the second. A request without a sample is not seen, and has no part in this.
 */
#ifndef RBPF_VIEW_REQUEST_STATS_H
#define RBPF_VIEW_REQUEST_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "view/state.h"

struct profile;
struct view_filter;

/* ns. What 50 (or 95, or 99) of 100 requests did not exceed is from .least to .most. */
struct request_length {
	uint64_t least; /* 0 if there is no request, or but a single tick of the one that tells */
	uint64_t most;	/* 0 if it is not known */
};

struct request_row {
	uint32_t kind;	   /* struct profile_request_kind */
	bool in_parts;	   /* .requests are the parts of requests: see request_is_of_server() */
	uint64_t requests; /* seen, in threads that are selected; 0 for kind 0, no request */
	uint64_t samples, value;
	uint64_t gc_value;	 /* the part of it in garbage collection … */
	uint64_t gc_unknown;	 /* … and that may be so or not: its collector is not known */
	uint64_t states[STATES]; /* and what its threads did: of EVENT_WALL, in ns */
	uint64_t gvl_caused;	 /* ns that other threads waited for the GVL while these had it */
	struct request_length p50, p95, p99;
};

struct request_stats {
	struct request_row *rows; /* by value, the largest first; of no request last; owned */
	size_t n_rows;
	uint64_t samples, value; /* selected in all, as are: */
	uint64_t states[STATES], gvl_caused, gc_unknown;
};

#define REQUEST_STATS_INIT                                                                         \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Rows of the selected samples of @p, which must be by_request, and by_thread if samples were or
 * are left out (-EINVAL if @f needs it); what was caused is that of those that were read with
 * gvl_caused. Returns 0 or -ENOMEM. Lengths are those of whole requests within the times that were
 * read. @ret: request_stats_deinit().
 */
int request_stats_build(const struct profile *p, const struct view_filter *f,
			struct request_stats *ret);
void request_stats_deinit(struct request_stats *stats);
#define _cleanup_request_stats_ _cleanup_(request_stats_deinit)

#endif
