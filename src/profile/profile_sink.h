/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A sink that makes a profile in memory: what views and exports start from, without a recording
 * between. It adds samples up as the reader does. Not thread-safe.
 *
 *	struct profile_sink out;
 *
 *	profile_sink_init(&out, &(struct profile_sink_options) { .by_thread = true });
 *	collector_start(c, &out.sink, &err);
 *	…
 *	tree_build(&out.profile, …);
 *	profile_sink_deinit(&out);
 */
#ifndef RBPF_PROFILE_PROFILE_SINK_H
#define RBPF_PROFILE_PROFILE_SINK_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/intern.h"
#include "profile/aggregate.h"
#include "profile/profile.h"
#include "profile/sink.h"

struct profile_sink_options {
	bool by_thread;	   /* aggregates tell threads apart … */
	bool by_request;   /* … and kinds of requests */
	bool keep_samples; /* one by one, too */
	bool by_event;	   /* … and events; needs by_thread */
	uint32_t event;	   /* else samples of another are counted in the totals and left out */
};

struct profile_sink {
	struct sink sink;
	/* Whole at any moment. Its meta is the caller's to fill in; its totals are counted. */
	struct profile profile;
	bool keep_samples;
	struct intern modules;
	struct intern frames;
	struct intern stacks; /* struct profile_stack; id + 1 is the stack's */
	uint32_t *depths;     /* by stack id; owned */
	size_t cap_depths;
	struct aggregate_index aggregates;
	struct buf clean; /* scratch: a sanitised string */
};

/* Returns 0 or -ENOMEM. */
int profile_sink_init(struct profile_sink *out, const struct profile_sink_options *opts);
void profile_sink_deinit(struct profile_sink *out);

#endif
