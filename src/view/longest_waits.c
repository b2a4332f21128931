/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/longest_waits.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "profile/profile.h"
#include "profile/replay.h"
#include "view/filter.h"
#include "view/gvl_holders.h"
#include "view/state.h"

struct wait_listing {
	const struct profile *profile;
	struct view_selection *selection; /* owned, as are … */
	uint8_t *states;		  /* … this: by stack (state.h) … */
	struct longest_wait *v;		  /* … and this, with room for 2 * max */
	size_t n, max;
	uint64_t enough; /* ns: so many as there may be are as long as this or longer */
	uint64_t waits, idle, joins;
	bool with_all;
};

static void wait_listing_deinit(struct wait_listing *l)
{
	view_selection_free(l->selection);
	free(l->states);
	free(l->v);
}

static int longest_first(const void *a, const void *b)
{
	const struct longest_wait *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->begin_ts != y->begin_ts)
		return x->begin_ts < y->begin_ts ? -1 : 1;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

static void keep_longest(struct wait_listing *l)
{
	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), longest_first);
	if (l->n < l->max)
		return;
	l->n = l->max;
	l->enough = l->v[l->n - 1].ns;
}

/* Whether it tells where in the code a thread waits, and not what for or between what. */
static bool is_code(enum frame_kind kind)
{
	return kind != FRAME_WAIT && kind != FRAME_GC && kind != FRAME_FIBER && kind != FRAME_GAP;
}

static uint32_t method_of(const struct wait_listing *l, uint32_t stack)
{
	const struct profile *p = l->profile;

	for (; stack; stack = p->stacks[stack].parent) {
		const uint32_t frame = p->stacks[stack].frame;

		if (is_code(p->frames[frame].kind) && view_frame_shown(l->selection, frame))
			return frame;
	}
	stack = view_stack_instead(l->selection);
	return stack ? p->stacks[stack].frame : PROFILE_NONE;
}

static int take_wait(void *arg, const struct profile_sample *wait)
{
	struct wait_listing *l = arg;
	const struct profile_aggregate alike = profile_aggregate_of(l->profile, wait);
	const uint8_t state = l->states[wait->stack];

	if (!view_selected(l->selection, &alike))
		return 0;
	if (!l->with_all && (state & STATE_MASK) == STATE_IDLE) {
		l->idle++;
		return 0;
	}
	if (!l->with_all && (state & STATE_MASK) == STATE_JOIN) {
		l->joins++;
		return 0;
	}
	l->waits++;
	if (wait->value < l->enough)
		return 0;
	l->v[l->n++] = (struct longest_wait) {
		.begin_ts = wait->ts - wait->value,
		.ns = wait->value,
		.thread = wait->thread,
		.request = alike.request,
		.frame = l->profile->stacks[wait->stack].frame,
		.method = method_of(l, wait->stack),
		.state = state,
		.holder = PROFILE_NONE,
		.began_before = wait->flags & SAMPLE_BEFORE,
		.went_on = wait->flags & SAMPLE_AFTER,
	};
	if (l->n == 2 * l->max)
		keep_longest(l);
	return 0;
}

static int wait_listing_init(struct wait_listing *l, const struct view_filter *f)
{
	int r = view_selection_new(l->profile, f, &l->selection);

	if (!r)
		r = state_of_stacks(l->profile, &l->states);
	l->v = calloc(2 * l->max, sizeof(*l->v));
	return !r && !l->v ? -ENOMEM : r;
}

int longest_waits_build(const struct profile *p, const struct view_filter *f,
			const struct replay *from, size_t max, bool with_all,
			struct longest_waits *ret, struct err *err)
{
	_cleanup_(wait_listing_deinit) struct wait_listing l = { .profile = p,
								 .max = max,
								 .with_all = with_all };
	int r = wait_listing_init(&l, f);

	if (r)
		return err_code(err, r);
	r = profile_each_wait(p, from, take_wait, &l, err);
	if (r)
		return r;
	keep_longest(&l);
	if (!p->n_waits)
		r = gvl_holders_find(p, from, l.v, l.n, err);
	if (r)
		return r;
	*ret = (struct longest_waits) { .v = l.v,
					.n = l.n,
					.selected = view_selected_sum(l.selection).plain,
					.waits = l.waits,
					.idle = l.idle,
					.joins = l.joins };
	l.v = NULL; /* owned by *ret now */
	return 0;
}

void longest_waits_deinit(struct longest_waits *l)
{
	free(l->v);
	*l = (struct longest_waits)LONGEST_WAITS_INIT;
}
