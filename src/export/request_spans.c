/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/request_spans.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "profile/profile.h"
#include "profile/replay.h"
#include "view/filter.h"
#include "view/state.h"

/* ---- what is next to a request ---- */

/* Where the samples of other requests, or of none, next to those of a request leave it room. */
struct room {
	bool known;	 /* there was a sample of it */
	uint64_t after;	 /* 0: there is no sample before */
	uint64_t before; /* 0: there is none behind */
};

/* The last sample of a thread. */
struct last_sample {
	uint64_t ts; /* 0: there was none */
	uint32_t request;
	bool waits;
};

struct rooms {
	const struct profile *profile;
	struct room *of;	  /* by request id; owned */
	struct last_sample *last; /* by thread id; owned */
};

static void rooms_deinit(struct rooms *rooms)
{
	free(rooms->of);
	free(rooms->last);
}

/* Where between the ends of two samples what the second one tells begins, at the earliest. */
static uint64_t border(const struct last_sample *last, uint64_t ts, bool waits, uint64_t start)
{
	if (waits)
		return start;
	return last->waits || ts < last->ts ? last->ts : last->ts + (ts - last->ts) / 2;
}

static int take_sample(void *arg, const struct profile_sample *s)
{
	struct rooms *rooms = arg;
	struct last_sample *last = &rooms->last[s->thread];
	const bool waits = profile_is_wait(rooms->profile, s);
	uint64_t start = waits && s->ts > s->value ? s->ts - s->value : s->ts;

	if (start < last->ts)
		start = last->ts;
	if (s->request && !rooms->of[s->request].known)
		rooms->of[s->request] = (struct room) {
			.known = true,
			.after = last->ts ? border(last, s->ts, waits, start) : 0,
		};
	if (last->request && last->request != s->request)
		rooms->of[last->request].before = border(last, s->ts, waits, start);
	last->ts = s->ts > last->ts ? s->ts : last->ts;
	last->request = s->request;
	last->waits = waits;
	return 0;
}

static int find_rooms(const struct profile *p, const struct replay *from, struct rooms *ret,
		      struct err *err)
{
	*ret = (struct rooms) {
		.profile = p,
		.of = calloc(p->n_requests + 1, sizeof(*ret->of)),
		.last = calloc(p->n_threads + 1, sizeof(*ret->last)),
	};
	if (!ret->of || !ret->last)
		return -ENOMEM;
	return p->n_requests > 1 ? profile_each_sample(p, from, take_sample, ret, err) : 0;
}

/* ---- spans ---- */

/*
 * @room is known from samples of the event, and others of the request may be beyond it. Nor is a
 * neighbour what two CPUs have written in the wrong order.
 */
static struct request_span span_of(const struct profile *p, uint32_t id, const struct room *room)
{
	const struct profile_request *r = &p->requests[id];
	const uint64_t half = profile_request_period(p, r) / 2;
	const uint64_t begin = p->meta.start_monotonic_ns;
	uint64_t start = r->first_ts, end = r->last_ts;

	if (!r->first_waits)
		start = start > half ? start - half : 0;
	if (start < begin)
		start = begin;
	if (start < room->after && room->after <= r->first_ts)
		start = room->after;
	if (start < r->after_ts && r->after_ts <= r->first_ts)
		start = r->after_ts;
	if (!r->last_waits)
		profile_add(&end, half);
	if (end > room->before && room->before >= r->last_ts)
		end = room->before;
	if (end > r->until_ts && r->until_ts >= r->last_ts)
		end = r->until_ts;
	return (struct request_span) {
		.id = id,
		.start = start < r->last_ts ? start : r->last_ts,
		.end = end,
	};
}

/* Where between the samples of two requests of a thread the first one ends. */
static uint64_t border_of(const struct profile_request *first, const struct profile_request *second)
{
	if (first->last_waits || second->first_ts <= first->last_ts)
		return first->last_ts;
	if (second->first_waits)
		return second->first_ts;
	return first->last_ts + (second->first_ts - first->last_ts) / 2;
}

/* What is between them need not be of the event from whose samples the room of each is known. */
static void separate(const struct profile *p, struct request_span *first,
		     struct request_span *second)
{
	uint64_t border = border_of(&p->requests[first->id], &p->requests[second->id]);

	if (second->start >= first->end)
		return;
	if (border > first->end)
		border = first->end;
	if (border < first->start)
		border = first->start;
	first->end = second->start = border;
	if (second->end < border)
		second->end = border;
}

static int by_end(const void *a, const void *b)
{
	const struct request_span *x = a, *y = b;

	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* Put the @n spans of a thread into the order of time, in which they do not overlap. */
static void order_spans(const struct profile *p, struct request_span *spans, size_t n)
{
	if (n)
		qsort(spans, n, sizeof(*spans), by_end);
	for (size_t i = 1; i < n; i++)
		separate(p, &spans[i - 1], &spans[i]);
}

static bool is_shown(const struct profile *p, const struct view_selection *sel, uint32_t request)
{
	return p->requests[request].samples && view_one_request_selected(sel, request);
}

/* Those of each thread together, by counting, and then by time. */
static void sort_spans(const struct profile *p, const struct view_selection *sel,
		       const struct room *rooms, struct request_spans *spans)
{
	/*
	 * How many the threads before have, one place further on, which is moved as they are put.
	 */
	for (uint32_t i = 1; i < p->n_requests; i++)
		if (is_shown(p, sel, i))
			spans->first[p->requests[i].thread + 2]++;
	for (size_t i = 2; i < p->n_threads + 2; i++)
		spans->first[i] += spans->first[i - 1];
	for (uint32_t i = 1; i < p->n_requests; i++)
		if (is_shown(p, sel, i))
			spans->spans[spans->first[p->requests[i].thread + 1]++] =
				span_of(p, i, &rooms[i]);
	for (size_t i = 0; i < p->n_threads; i++)
		order_spans(p, &spans->spans[spans->first[i]],
			    spans->first[i + 1] - spans->first[i]);
}

int request_spans_init(const struct profile *p, const struct view_selection *sel,
		       const struct replay *from, struct request_spans *ret, struct err *err)
{
	struct request_spans spans = { .spans = calloc(p->n_requests + 1, sizeof(*spans.spans)),
				       .first = calloc(p->n_threads + 2, sizeof(*spans.first)) };
	struct rooms rooms = { 0 };
	int r = spans.spans && spans.first ? find_rooms(p, from, &rooms, err) : -ENOMEM;

	if (!r)
		sort_spans(p, sel, rooms.of, &spans);
	rooms_deinit(&rooms);
	if (r)
		request_spans_deinit(&spans);
	else
		*ret = spans;
	return r;
}

void request_spans_deinit(struct request_spans *spans)
{
	free(spans->spans);
	free(spans->first);
	*spans = (struct request_spans)REQUEST_SPANS_INIT;
}

bool spans_in_samples(const struct profile *p)
{
	if (profile_has_waits(p))
		return true;
	for (size_t i = 0; i < p->n_aggregates; i++)
		if (p->aggregates[i].flags & SAMPLE_GC)
			return true;
	return false;
}
