/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Charges of all of a recording may be too many to be kept. Those are that fell due in one of the
 * waits, and the first one after each, with which the end of the wait is charged.
 */
#include "view/gvl_holders.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"
#include "profile/profile.h"
#include "profile/replay.h"
#include "view/gvl_charges.h"
#include "view/longest_waits.h"
#include "view/state.h"

struct gvl_wait {
	struct longest_wait *of;
	uint64_t since, until; /* ns, CLOCK_MONOTONIC */
	uint64_t wanted;       /* charges up to this time are kept: the first one after .until */
	uint32_t process;
};

struct gvl_holding {
	const struct profile *profile;
	struct gvl_wait *waits; /* owned, as all below */
	size_t n;
	struct gvl_charges charges; /* to threads */
	uint64_t *held;		    /* by thread id: ns, of the wait that is divided */
	uint32_t event;		    /* number of EVENT_GVL; PROFILE_NONE if there is none */
	struct gvl_wait *divided;
	struct err *err;
};

static void gvl_holding_deinit(struct gvl_holding *h)
{
	free(h->waits);
	free(h->held);
	gvl_charges_deinit(&h->charges);
}

static int take_charge(void *arg, const struct profile_sample *s)
{
	struct gvl_holding *h = arg;
	const uint32_t process = h->profile->threads[s->thread].process;
	bool wanted = false;

	if (s->event != h->event)
		return 0;
	for (size_t i = 0; i < h->n; i++) {
		struct gvl_wait *w = &h->waits[i];

		if (w->process != process || s->ts <= w->since || s->ts > w->wanted)
			continue;
		wanted = true;
		if (s->ts >= w->until)
			w->wanted = s->ts;
	}
	return wanted && gvl_charges_add(&h->charges, h->profile, s, s->thread) ? err_oom(h->err)
										: 0;
}

/* A thread cannot have the GVL while it waits for it: it is charged with what came later. */
static int add_held(void *arg, uint32_t thread, uint64_t ns)
{
	const struct gvl_holding *h = arg;

	if (thread != h->divided->of->thread)
		h->held[thread] += ns;
	return 0;
}

static int choose_holder(void *arg, uint32_t thread, uint64_t ns)
{
	const struct gvl_holding *h = arg;
	struct longest_wait *of = h->divided->of;

	(void)ns;
	if (h->held[thread] > of->held_ns) {
		of->holder = thread;
		of->held_ns = h->held[thread];
	}
	h->held[thread] = 0;
	return 0;
}

static void divide(struct gvl_holding *h, struct gvl_wait *w)
{
	h->divided = w;
	gvl_charges_divide(&h->charges, w->process, w->since, w->until, add_held, h);
	gvl_charges_divide(&h->charges, w->process, w->since, w->until, choose_holder, h);
}

/* When the charges begin that are read: before that who had the GVL is not known. */
static uint64_t begin_of_charges(const struct profile *p, const struct replay *from)
{
	struct read_options options = from->options;

	read_options_find_times(&options, p->meta.start_realtime_ns);
	return p->meta.start_monotonic_ns + options.from_ns;
}

static int gvl_holding_init(struct gvl_holding *h, uint64_t begin, struct longest_wait *waits,
			    size_t n)
{
	const struct profile *p = h->profile;

	h->event = profile_event_named(p, EVENT_GVL);
	h->waits = calloc(n + 1, sizeof(*h->waits));
	h->held = calloc(p->n_threads + 1, sizeof(*h->held));
	if (!h->waits || !h->held)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if ((waits[i].state & STATE_MASK) == STATE_GVL)
			h->waits[h->n++] = (struct gvl_wait) {
				.of = &waits[i],
				.since = waits[i].begin_ts > begin ? waits[i].begin_ts : begin,
				.until = waits[i].begin_ts + waits[i].ns,
				.wanted = UINT64_MAX,
				.process = p->threads[waits[i].thread].process,
			};
	return 0;
}

int gvl_holders_find(const struct profile *p, const struct replay *from, struct longest_wait *waits,
		     size_t n, struct err *err)
{
	_cleanup_(gvl_holding_deinit) struct gvl_holding h = { .profile = p, .err = err };
	struct replay all = *from;
	int r;

	if (gvl_holding_init(&h, begin_of_charges(p, from), waits, n))
		return err_oom(err);
	if (!h.n || h.event == PROFILE_NONE)
		return 0;
	all.options.event = NULL;
	all.options.wall = false;
	r = profile_each_of_all(p, &all, take_charge, &h, err);
	if (r)
		return r;
	gvl_charges_sort(&h.charges);
	for (size_t i = 0; i < h.n; i++)
		divide(&h, &h.waits[i]);
	return 0;
}
