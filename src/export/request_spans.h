/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The requests of each thread in the order of time, for formats that show them as spans.
 *
 * A request is known by its samples alone. One that begins or ends with a wait has done so exactly
 * there; from a tick it is half a period of the clock on average, as profile_request_ns() reckons,
 * so that one with a single tick has a length, too. A span does not go beyond a wait next to it,
 * nor further than half of the way to a tick next to it, whichever event is shown: spans of a
 * thread must not overlap.
 */
#ifndef RBPF_EXPORT_REQUEST_SPANS_H
#define RBPF_EXPORT_REQUEST_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct profile;
struct replay;
struct view_selection;

struct request_span {
	uint32_t id;	     /* of the request */
	uint64_t start, end; /* ns, CLOCK_MONOTONIC */
};

struct request_spans {
	struct request_span *spans; /* by thread; owned */
	size_t *first; /* by thread id: its first one in @spans; those of the next thread follow;
			  owned */
};

#define REQUEST_SPANS_INIT                                                                         \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Requests that have samples and whose names and lengths @sel selects; other filters take away
 * threads, but no request of a thread that is shown. Reads the samples of @p, if there are any.
 * Returns 0, -ENOMEM, or what profile_each_sample() does. @ret: request_spans_deinit().
 */
int request_spans_init(const struct profile *p, const struct view_selection *sel,
		       const struct replay *from, struct request_spans *ret, struct err *err);
void request_spans_deinit(struct request_spans *spans);

/*
 * Whether samples tell of other spans: waits, and garbage collections from the first to the last of
 * successive samples in one. Most recordings have none, and need not be read for them.
 */
bool spans_in_samples(const struct profile *p);

#endif
