/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The last minutes in memory: a sink that adds samples up by second, and gives the profile of any
 * of the seconds that it still has.
 *
 * Seconds are counted from when it was made. A sample belongs to the second of its time, and a wait
 * to all in which it was, to each with its part of it; in the newest second, samples of one thread,
 * stack, request and flags are one entry. What is told of a wait when a second has ended is in that
 * one, too, so whoever shows a second as soon as it has ended has them told then. The ring has a
 * fixed number of seconds, and fewer if all together would take more than max_bytes: then the
 * oldest ones go first. Frames, stacks, threads and processes that are in no second, and that
 * whoever fills the sink does not hold, are dropped by window_collect().
 *
 * It tells kinds of requests apart, not single requests. Not thread-safe.
 */
#ifndef RBPF_PROFILE_WINDOW_H
#define RBPF_PROFILE_WINDOW_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/id_holder.h"
#include "profile/profile.h"

struct err;
struct sink;
struct window;

#define WINDOW_MAX_SECONDS 86400u

struct window_options {
	uint32_t seconds; /* in the ring, 1 to WINDOW_MAX_SECONDS */
	size_t max_bytes; /* that entries and definitions may take after a collection */
	/*
	 * Of the profiles it gives; its strings are not taken. start_monotonic_ns: when second 0
	 * begins.
	 */
	const struct profile_meta *meta;
	/*
	 * Which waits are idle, too, in the profiles it gives (idle_pattern.h), but not in what
	 * window_replay() tells; NULL: none are. Not owned.
	 */
	const regex_t *idle;
};

/* Returns 0 or -ENOMEM. */
int window_new(const struct window_options *opts, struct window **ret);
void window_free(struct window *w); /* accepts NULL */

/* The sink, @w's. Its operations return what those of profile_sink.h do. */
struct sink *window_sink(struct window *w);

/*
 * Let second 0 begin at @start_ns (CLOCK_MONOTONIC) instead, while it is the only one; samples from
 * before are of it, too.
 */
void window_set_start(struct window *w, uint64_t start_ns);

/* Seconds with numbers from @from on and before @to. */
struct window_range {
	uint64_t from, to;
};

/*
 * Let the seconds begin that have begun at @now (CLOCK_MONOTONIC), also without samples. Drops the
 * oldest ones beyond the limits.
 */
void window_advance(struct window *w, uint64_t now);

/* The seconds that it has and that had ended when it was last advanced. */
struct window_range window_seconds(const struct window *w);

/*
 * The profile of the seconds in @range, as far as it has them, of the samples of event @event (its
 * number in meta.events; PROFILE_NONE: of all that are in ns but for the time that others were made
 * to wait): by thread and by request. Its totals are those of these seconds.
 *
 * *@ret is @w's, and valid until anything else is done with @w. Returns 0, -ENOMEM or -E2BIG.
 */
int window_profile(struct window *w, struct window_range range, uint32_t event,
		   const struct profile **ret);

/*
 * Give @out what is in @range: each entry as so many samples as it is made of, spread over their
 * second, waits so that all of them are in it. Returns 0 or what an operation of @out failed with.
 */
int window_replay(const struct window *w, struct window_range range, struct sink *out);

/* How many samples that would be. */
uint64_t window_samples(const struct window *w, struct window_range range);

/*
 * Whether there is so much to drop that window_collect() is worth its time: in proportion to all.
 */
bool window_collection_due(const struct window *w);

/*
 * Drop what nobody needs: ids change, those of @holder, too. Returns 0; or -ENOMEM, and then
 * nothing has changed.
 */
int window_collect(struct window *w, const struct id_holder *holder);

/* Bytes that entries and definitions take. */
size_t window_bytes(const struct window *w);

#endif
