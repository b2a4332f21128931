/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Aggregates tell kinds of requests apart, not single ones. So the states of single requests are
 * added up from the samples one by one, once it is known which requests are listed. Where a filter
 * looks at more than threads and requests, the samples are gone through once before, to find the
 * requests that have selected ones.
 */
#include "view/longest_requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "profile/profile.h"
#include "profile/replay.h"
#include "view/expr.h"
#include "view/filter.h"

/* ---- which requests are the longest ---- */

struct candidate {
	uint64_t ns; /* estimate of its length */
	uint64_t first_ts;
	uint32_t id;
};

struct candidates {
	struct candidate *v; /* room for 2 * max; owned */
	size_t n, max;
	uint64_t enough; /* ns: so many as there may be are as long as this or longer */
};

static int longest_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->first_ts != y->first_ts)
		return x->first_ts < y->first_ts ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static void keep_longest(struct candidates *c)
{
	if (c->n)
		qsort(c->v, c->n, sizeof(*c->v), longest_first);
	if (c->n < c->max)
		return;
	c->n = c->max;
	c->enough = c->v[c->n - 1].ns;
}

static void add_candidate(struct candidates *c, const struct candidate *one)
{
	if (one->ns < c->enough)
		return;
	c->v[c->n++] = *one;
	if (c->n == 2 * c->max)
		keep_longest(c);
}

/* ---- samples one by one ---- */

/* What is known of a request: not yet anything, it has a selected sample, or its place. */
#define NOT_SELECTED 0
#define SELECTED     UINT16_MAX
_Static_assert(LONGEST_REQUESTS_MAX < SELECTED, "a place and one are no mark");

struct request_listing {
	const struct profile *profile;
	struct view_selection *selection; /* owned, as are … */
	uint8_t *states;	   /* … this: by stack (state.h); NULL: not asked for … */
	uint16_t *places;	   /* … and this: by request, its index in @v and 1, or a mark */
	struct longest_request *v; /* as in the result */
};

static void request_listing_deinit(struct request_listing *l)
{
	view_selection_free(l->selection);
	free(l->states);
	free(l->places);
}

static bool is_selected(const struct request_listing *l, const struct profile_sample *s)
{
	const struct profile_aggregate alike = profile_aggregate_of(l->profile, s);

	return view_selected(l->selection, &alike);
}

static int mark_request(void *arg, const struct profile_sample *s)
{
	struct request_listing *l = arg;

	if (s->request && l->places[s->request] == NOT_SELECTED && is_selected(l, s))
		l->places[s->request] = SELECTED;
	return 0;
}

static int add_sample(void *arg, const struct profile_sample *s)
{
	const struct request_listing *l = arg;
	const uint16_t place = l->places[s->request];
	struct longest_request *one;

	if (place == NOT_SELECTED || !is_selected(l, s))
		return 0;
	one = &l->v[place - 1];
	one->samples++;
	profile_add(&one->value, s->value);
	if (l->states)
		profile_add(&one->states[state_of(l->states, s->stack, s->flags) & STATE_MASK],
			    s->value);
	return 0;
}

/* Mark those with a selected sample, by a filter that looks at no more than these two. */
static void mark_by_thread(struct request_listing *l)
{
	const struct profile *p = l->profile;

	for (uint32_t i = 1; i < p->n_requests; i++) {
		const struct profile_aggregate of = {
			.thread = p->requests[i].thread,
			.request = p->requests[i].kind,
			.event = (uint16_t)p->event,
			.slow = profile_request_is_slow(p, i),
		};

		if (p->requests[i].samples && view_selected(l->selection, &of))
			l->places[i] = SELECTED;
	}
}

/* ---- the list ---- */

static struct longest_request length_of(const struct profile *p, uint32_t id)
{
	const struct profile_request *r = &p->requests[id];
	struct longest_request ret = {
		.id = id,
		.length.least = profile_request_least_ns(r),
		.begin_unknown = !r->after_ts,
		.end_unknown = !r->until_ts,
	};

	if (profile_has_waits(p) && !ret.begin_unknown && !ret.end_unknown)
		ret.length.most = profile_request_most_ns(p, r);
	return ret;
}

/* Returns 0 or -ENOMEM. */
static int choose(struct request_listing *l, size_t max, struct longest_requests *ret)
{
	const struct profile *p = l->profile;
	_cleanup_free_ struct candidate *room = calloc(2 * max, sizeof(*room));
	struct candidates c = { .v = room, .max = max };

	if (!room)
		return -ENOMEM;
	for (uint32_t i = 1; i < p->n_requests; i++) {
		const struct longest_request one = length_of(p, i);

		if (l->places[i] == SELECTED && (one.length.least || one.length.most))
			add_candidate(&c, &(struct candidate) {
						  .ns = profile_request_ns(p, &p->requests[i]),
						  .first_ts = p->requests[i].first_ts,
						  .id = i });
	}
	keep_longest(&c);
	ret->v = calloc(c.n + 1, sizeof(*ret->v));
	if (!ret->v)
		return -ENOMEM;
	memset(l->places, 0, (p->n_requests + 1) * sizeof(*l->places));
	for (ret->n = 0; ret->n < c.n; ret->n++) {
		ret->v[ret->n] = length_of(p, c.v[ret->n].id);
		l->places[c.v[ret->n].id] = (uint16_t)(ret->n + 1);
	}
	return 0;
}

bool longest_requests_need_samples(const struct view_filter *f)
{
	return f && (f->has_include || f->has_exclude || f->no_gc || f->states ||
		     (f->expr && !view_expr_is_empty(f->expr)) || f->applied.include ||
		     f->applied.exclude || f->applied.expr || f->applied.root);
}

static int request_listing_init(struct request_listing *l, const struct profile *p,
				const struct view_filter *f, bool has_states)
{
	int r = view_selection_new(p, f, &l->selection);

	l->profile = p;
	if (!r && has_states)
		r = state_of_stacks(p, &l->states);
	l->places = calloc(p->n_requests + 1, sizeof(*l->places));
	return !r && !l->places ? -ENOMEM : r;
}

/* What the listed requests did. */
static int add_up(struct request_listing *l, const struct replay *from, bool by_samples,
		  struct longest_requests *list, struct err *err)
{
	const struct profile *p = l->profile;

	l->v = list->v;
	if (list->n && (by_samples || list->has_states))
		return profile_each_sample(p, from, add_sample, l, err);
	for (size_t i = 0; i < list->n; i++) {
		list->v[i].samples = p->requests[list->v[i].id].samples;
		list->v[i].value = p->requests[list->v[i].id].value;
	}
	return 0;
}

int longest_requests_build(const struct profile *p, const struct view_filter *f,
			   const struct replay *from, size_t max, struct longest_requests *ret,
			   struct err *err)
{
	const bool by_samples = longest_requests_need_samples(f);
	_cleanup_longest_requests_ struct longest_requests list = {
		.has_states = !strcmp(profile_event(p)->name, EVENT_WALL) && p->n_kept,
	};
	_cleanup_(request_listing_deinit) struct request_listing l = { 0 };
	int r = request_listing_init(&l, p, f, list.has_states);

	if (r)
		return err_code(err, r);
	if (by_samples)
		r = profile_each_sample(p, from, mark_request, &l, err);
	else
		mark_by_thread(&l);
	if (r)
		return r;
	if (choose(&l, max, &list))
		return err_oom(err);
	r = add_up(&l, from, by_samples, &list, err);
	if (r)
		return r;
	*ret = list;
	list = (struct longest_requests)LONGEST_REQUESTS_INIT; /* owned by *ret now */
	return 0;
}

void longest_requests_deinit(struct longest_requests *l)
{
	free(l->v);
	*l = (struct longest_requests)LONGEST_REQUESTS_INIT;
}
