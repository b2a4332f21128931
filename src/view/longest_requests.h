/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The single requests that took longest: when each of them was, and what its thread did.
 *
 * Their order is that of profile_request_ns(), an estimate within the bounds of request_stats.h, by
 * which view_filter.slower_than_ns selects them, too. A request is one of them if a sample of it is
 * selected. Its length is that of the whole request within the times that were read; its states are
 * those of its selected samples.
 *
 * Only as many as are asked for are kept, and 2 bytes for each request.
 */
#ifndef RBPF_VIEW_LONGEST_REQUESTS_H
#define RBPF_VIEW_LONGEST_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "view/request_stats.h"
#include "view/state.h"

struct err;
struct profile;
struct replay;
struct view_filter;

#define LONGEST_REQUESTS_MAX 500

struct longest_request {
	uint32_t id; /* in profile.requests */
	/*
	 * .most is 0 if it is not known: without waits a thread may have waited before its first
	 * sample and after its last one; and what is at an end of the recording may go beyond it.
	 */
	struct request_length length;
	/*
	 * There is no sample of its thread before it, or behind it: it may have begun before the
	 * recording, or gone on after it.
	 */
	bool begin_unknown, end_unknown;
	uint64_t samples, value; /* of its selected samples */
	uint64_t states[STATES]; /* ns of these, by their states; 0 without has_states */
};

struct longest_requests {
	struct longest_request *v; /* the longest first; owned */
	size_t n;
	bool has_states;
};

#define LONGEST_REQUESTS_INIT                                                                      \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Whether @f needs samples one by one here: what it selects depends on more than their thread and
 * their request. Then the recording is to be read with read_again.
 */
bool longest_requests_need_samples(const struct view_filter *f);

/*
 * At most @max (1 to LONGEST_REQUESTS_MAX) of @p, which is as for request_stats_build(), was read
 * from @from, and has kept its samples if its stacks were reshaped. Those of which no length is
 * known are left out: of one tick, without waits. Their states are known if the event is EVENT_WALL
 * and samples were kept (gvl_caused). @p must tell single requests apart: not meta.by_second.
 *
 * Returns 0, or -errno with @err set. @ret: longest_requests_deinit().
 */
int longest_requests_build(const struct profile *p, const struct view_filter *f,
			   const struct replay *from, size_t max, struct longest_requests *ret,
			   struct err *err);
void longest_requests_deinit(struct longest_requests *l);
#define _cleanup_longest_requests_ _cleanup_(longest_requests_deinit)

#endif
