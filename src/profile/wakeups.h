/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which wait a wakeup ended, so that wakeups can be selected by what was waited for.
 *
 * A wakeup is as long as the wait was until then, so it tells when that began, to the nanosecond:
 * as the first sample of the wait does. Where who ended it is not recorded, its thread is the one
 * that waited, and must be that of the wait, too. If waits for different things began in the same
 * nanosecond, or none is recorded that began then, it is not known which one was ended.
 *
 * A wait comes into the recording after the wakeup that ended it, so wakeups are put off until all
 * of it was read. Not thread-safe.
 */
#ifndef RBPF_PROFILE_WAKEUPS_H
#define RBPF_PROFILE_WAKEUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;
struct profile_sample;
struct wakeups_wait;

/* Waits: sets of 1 << enum frame_reason. */
struct wait_set {
	uint64_t held; /* of those in which the thread held the GVL … */
	uint64_t free; /* … and in which it did not */
};

static inline bool wait_set_any(const struct wait_set *r)
{
	return r->held || r->free;
}

struct wakeups {
	struct wait_set reasons;    /* none: of all waits, none is put off; the caller's */
	struct wakeups_wait *waits; /* owned, as is … */
	size_t n_waits, cap_waits;
	struct profile_sample *samples; /* … this: those that were put off */
	size_t n_samples, cap_samples;
};

#define WAKEUPS_INIT                                                                               \
	{                                                                                          \
		0                                                                                  \
	}

void wakeups_deinit(struct wakeups *w);

/*
 * Note @s of @p, of EVENT_WAIT, of which @ns are in the time that is selected. Returns 0 or
 * -ENOMEM.
 */
int wakeups_note_wait(struct wakeups *w, struct profile *p, const struct profile_sample *s,
		      uint64_t ns);

/* Note @s of @p, of EVENT_WAKEUP, in that time. Returns 0 or -ENOMEM. */
int wakeups_note(struct wakeups *w, struct profile *p, const struct profile_sample *s);

/*
 * Once all is noted, and the causes of waits are found (wait_cause.h): leave only those in
 * w->samples, in their order, that ended a wait for one of w->reasons. Sets waited_ns, ended_ns and
 * wakeups_unknown of @p.
 */
void wakeups_choose(struct wakeups *w, struct profile *p);

#endif
