/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/wakeups.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/sorted.h"
#include "profile/profile.h"
#include "profile/reason.h"

struct wakeups_wait {
	uint64_t since; /* ns, CLOCK_MONOTONIC: when it, or this part of it, began */
	uint64_t value; /* ns; 0 if it is not of the selected time */
	uint32_t thread;
	uint32_t stack;
};

void wakeups_deinit(struct wakeups *w)
{
	free(w->waits);
	free(w->samples);
	*w = (struct wakeups)WAKEUPS_INIT;
}

/* What samples with @stack waited for; REASON_NONE if they did not. */
static enum frame_reason reason_of(const struct profile *p, uint32_t stack)
{
	return profile_stack_waits(p, stack) ? p->frames[p->stacks[stack].frame].reason
					     : REASON_NONE;
}

static uint64_t since(const struct profile_sample *s)
{
	return s->ts > s->value ? s->ts - s->value : 0;
}

int wakeups_note_wait(struct wakeups *w, struct profile *p, const struct profile_sample *s,
		      uint64_t ns)
{
	const enum frame_reason reason = reason_of(p, s->stack);

	/* Nobody ends the waiting for a CPU. */
	if (reason == REASON_WAIT_CPU || reason == REASON_WAIT_THROTTLED)
		return 0;
	if (!wait_set_any(&w->reasons)) {
		profile_add(&p->waited_ns, ns);
		return 0;
	}
	if (array_reserve(w->waits, w->cap_waits, w->n_waits + 1))
		return -ENOMEM;
	w->waits[w->n_waits++] = (struct wakeups_wait) {
		.since = since(s), .value = ns, .thread = s->thread, .stack = s->stack
	};
	return 0;
}

int wakeups_note(struct wakeups *w, struct profile *p, const struct profile_sample *s)
{
	if (!wait_set_any(&w->reasons)) {
		profile_add(&p->ended_ns, s->value);
		return 0;
	}
	if (array_reserve(w->samples, w->cap_samples, w->n_samples + 1))
		return -ENOMEM;
	w->samples[w->n_samples++] = *s;
	return 0;
}

static int compare_waits(const void *a, const void *b)
{
	const struct wakeups_wait *x = a, *y = b;

	return (x->since > y->since) - (x->since < y->since);
}

/* The first wait that began at @at or later. */
static size_t first_since(const struct wakeups *w, uint64_t at)
{
	return sorted_below(w->waits, w->n_waits, since, at);
}

/* Samples with @stack as such a set, of one member; of none if they did not wait. */
static struct wait_set wait_of(const struct profile *p, uint32_t stack)
{
	const enum frame_reason reason = reason_of(p, stack);
	const uint64_t set = reason == REASON_NONE ? 0 : 1ull << reason;

	return profile_stack_held_gvl(p, stack) ? (struct wait_set) { .held = set }
						: (struct wait_set) { .free = set };
}

/* What the wait was that @s ended; none if that is not known. */
static struct wait_set ended_by(const struct wakeups *w, const struct profile *p,
				const struct profile_sample *s)
{
	const bool of_thread = profile_stack_not_recorded(p, s->stack);
	struct wait_set found = { 0 };

	for (size_t i = first_since(w, since(s)); i < w->n_waits; i++) {
		const struct wakeups_wait *wait = &w->waits[i];
		const struct wait_set of = wait_of(p, wait->stack);

		if (wait->since != since(s))
			break;
		if (of_thread && wait->thread != s->thread)
			continue;
		if (wait_set_any(&found) && (found.held != of.held || found.free != of.free))
			return (struct wait_set) { 0 };
		found = of;
	}
	return found;
}

static bool is_chosen(const struct wakeups *w, const struct wait_set *of)
{
	return w->reasons.held & of->held || w->reasons.free & of->free;
}

_Static_assert(FRAME_REASON_COUNT <= 64, "a set of reasons has 64 bits");

void wakeups_choose(struct wakeups *w, struct profile *p)
{
	size_t n = 0;

	if (w->n_waits)
		qsort(w->waits, w->n_waits, sizeof(*w->waits), compare_waits);
	for (size_t i = 0; i < w->n_waits; i++) {
		const struct wait_set of = wait_of(p, w->waits[i].stack);

		if (is_chosen(w, &of))
			profile_add(&p->waited_ns, w->waits[i].value);
	}
	for (size_t i = 0; i < w->n_samples; i++) {
		const struct profile_sample s = w->samples[i];
		const struct wait_set of = ended_by(w, p, &s);

		p->wakeups_unknown += !wait_set_any(&of);
		if (!is_chosen(w, &of))
			continue;
		profile_add(&p->ended_ns, s.value);
		w->samples[n++] = s;
	}
	w->n_samples = n;
}
