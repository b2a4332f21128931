/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The requests of each thread in the order of time, for formats that show them as spans.
 *
 * A request is known by its samples alone: it has begun at the first one, and ended after the last.
 */
#ifndef RBPF_EXPORT_REQUEST_SPANS_H
#define RBPF_EXPORT_REQUEST_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;
struct view_selection;

struct request_spans {
	uint32_t *ids; /* of requests, by thread; owned */
	size_t *first; /* by thread id: its first one in @ids; those of the next thread follow;
			  owned */
};

#define REQUEST_SPANS_INIT                                                                         \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Requests that have samples and whose names and lengths @sel selects; other filters take away
 * threads, but no request of a thread that is shown. Returns 0 or -ENOMEM. @ret:
 * request_spans_deinit().
 */
int request_spans_init(const struct profile *p, const struct view_selection *sel,
		       struct request_spans *ret);
void request_spans_deinit(struct request_spans *spans);

/*
 * Whether samples tell of other spans: waits, and garbage collections from the first to the last of
 * successive samples in one. Most recordings have none, and need not be read for them.
 */
bool spans_in_samples(const struct profile *p);

#endif
