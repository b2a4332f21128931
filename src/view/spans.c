/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/spans.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define FIRST_WIDTH 1024ull	 /* ns */
#define LAST_WIDTH  (1ull << 62) /* ns: everything is in the first two intervals */

/*
 * When a thread ran, as far as no sample has claimed it yet. It rarely waits more often between two
 * ticks of its clock; what is older is forgotten.
 */
#define MAX_GAPS    64

struct span_gap {
	uint64_t from, to; /* ns */
};

/* How far behind the last span of a thread another of the same interval is looked for. */
#define MAX_LOOK_BACK 32

int spans_init(size_t n_threads, size_t max, struct spans *ret)
{
	struct span_list *threads = calloc(n_threads + 1, sizeof(*threads));

	if (!threads)
		return -ENOMEM;
	*ret = (struct spans) { .threads = threads, .n_threads = n_threads, .max = max };
	return 0;
}

void spans_deinit(struct spans *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_threads; i++) {
		free(s->threads[i].v);
		free(s->threads[i].gaps);
	}
	free(s->threads);
	*s = (struct spans)SPANS_INIT;
}

/* Add @from to @to, which is in the same interval and state. */
static void merge(struct time_span *to, const struct time_span *from, uint64_t width)
{
	to->start = to->start / width * width;
	to->len = width;
	to->merged = true;
	if (__builtin_add_overflow(to->value, from->value, &to->value))
		to->value = UINT64_MAX;
	if (__builtin_add_overflow(to->samples, from->samples, &to->samples))
		to->samples = UINT32_MAX;
	/* The stack that has the majority is left when all others have voted it down. */
	if (to->stack == from->stack) {
		if (__builtin_add_overflow(to->votes, from->votes, &to->votes))
			to->votes = UINT64_MAX;
	} else if (from->votes > to->votes) {
		to->stack = from->stack;
		to->votes = from->votes - to->votes;
	} else {
		to->votes -= from->votes;
	}
}

static bool may_merge(const struct time_span *span, uint64_t width)
{
	return width && (span->merged || span->len < width);
}

/* The span among the last of @v that @span is merged with; NULL: there is none. */
static struct time_span *find_partner(struct time_span *v, size_t n, const struct time_span *span,
				      uint64_t width)
{
	const uint64_t begin = span->start / width * width;

	for (size_t i = n; i && n - i < MAX_LOOK_BACK; i--) {
		struct time_span *other = &v[i - 1];

		if (other->start >= begin && other->start - begin < width &&
		    other->state == span->state && other->gc == span->gc && may_merge(other, width))
			return other;
	}
	return NULL;
}

/*
 * Merge @span into one of the last of @v, if it can be: all of it, or what is before the end of its
 * interval; then *@span is what is left. Returns whether nothing is left.
 */
static bool merge_into(struct time_span *v, size_t n, struct time_span *span, uint64_t width)
{
	const uint64_t end = may_merge(span, width) ? (span->start / width + 1) * width : 0;
	struct time_span *partner = end ? find_partner(v, n, span, width) : NULL;
	struct time_span first = *span;

	if (!partner)
		return false;
	if (span->merged || span->start + span->len <= end) {
		merge(partner, span, width);
		return true;
	}
	first.len = end - span->start;
	first.value = (uint64_t)((unsigned __int128)span->value * first.len / span->len);
	first.votes = first.value;
	first.samples = 0; /* it ends in the rest */
	span->start = end;
	span->len -= first.len;
	span->value -= first.value;
	span->votes = span->value;
	merge(partner, &first, width);
	return merge_into(v, n, span, width);
}

static int compare_spans(const void *va, const void *vb)
{
	const struct time_span *a = va, *b = vb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->state != b->state)
		return a->state < b->state ? -1 : 1;
	return a->len < b->len ? -1 : a->len > b->len;
}

/* Those of one interval are behind each other: at most two for each state can be merged ones. */
static size_t merge_list(struct span_list *list, uint64_t width)
{
	size_t n = 0;

	if (!list->n)
		return 0;
	qsort(list->v, list->n, sizeof(*list->v), compare_spans);
	for (size_t i = 0; i < list->n; i++) {
		struct time_span span = list->v[i];

		if (merge_into(list->v, n, &span, width))
			continue;
		if (span.merged) { /* it is as wide as the intervals are now */
			span.start = span.start / width * width;
			span.len = width;
		}
		list->v[n++] = span;
	}
	qsort(list->v, n, sizeof(*list->v), compare_spans);
	list->n = n;
	return n;
}

static void merge_all(struct spans *s)
{
	s->n = 0;
	for (size_t i = 0; i < s->n_threads; i++)
		s->n += merge_list(&s->threads[i], s->width);
}

void spans_coarsen(struct spans *s)
{
	if (s->width >= LAST_WIDTH)
		return;
	s->width = s->width ? 2 * s->width : FIRST_WIDTH;
	merge_all(s);
}

void spans_finish(struct spans *s)
{
	merge_all(s);
}

int spans_add(struct spans *s, uint32_t thread, const struct time_span *span)
{
	struct span_list *list = &s->threads[thread];
	struct time_span rest = *span;

	if (merge_into(list->v, list->n, &rest, s->width))
		return 0;
	if (array_reserve(list->v, list->cap, list->n + 1))
		return -ENOMEM;
	list->v[list->n++] = rest;
	if (++s->n <= s->max)
		return 0;
	/* By a quarter, or the next span would be one too many again. */
	while (s->n > s->max / 4 * 3 && s->width < LAST_WIDTH)
		spans_coarsen(s);
	/* Threads and states alone are more than max: no more can be done. */
	if (s->n > s->max)
		s->max = 2 * s->n;
	return 0;
}

/* The thread ran up to @to, as far as is known. */
static int add_gap(struct span_list *list, uint64_t to)
{
	if (to <= list->known_to)
		return 0;
	if (!list->gaps) {
		list->gaps = calloc(MAX_GAPS, sizeof(*list->gaps));
		if (!list->gaps)
			return -ENOMEM;
	}
	if (list->n_gaps == MAX_GAPS) {
		memmove(list->gaps, list->gaps + 1, (MAX_GAPS - 1) * sizeof(*list->gaps));
		list->n_gaps--;
	}
	list->gaps[list->n_gaps++] = (struct span_gap) { list->known_to, to };
	list->known_to = to;
	return 0;
}

int spans_add_wait(struct spans *s, uint32_t thread, uint64_t ts, const struct time_span *like)
{
	struct span_list *list = &s->threads[thread];
	struct time_span span = *like;

	span.start = ts > like->value ? ts - like->value : 0;
	if (!list->known_to)
		list->known_to = span.start;
	if (add_gap(list, span.start))
		return -ENOMEM;
	/* Of a recording that was made to hurt, waits overlap. */
	if (span.start < list->known_to)
		span.start = list->known_to < ts ? list->known_to : ts;
	span.len = ts - span.start;
	span.votes = span.value;
	span.samples = 1;
	span.merged = false;
	if (ts > list->known_to)
		list->known_to = ts;
	return spans_add(s, thread, &span);
}

int spans_add_cpu(struct spans *s, uint32_t thread, uint64_t ts, const struct time_span *like)
{
	struct span_list *list = &s->threads[thread];
	uint64_t left = like->value, start = ts;
	struct time_span span = *like;
	size_t first;
	int r = 0;

	if (!list->known_to)
		list->known_to = ts > left ? ts - left : 0;
	if (add_gap(list, ts))
		return -ENOMEM;
	/* The gaps that it takes, the first of them perhaps in part. */
	for (first = list->n_gaps; first && left; first--) {
		const struct span_gap *gap = &list->gaps[first - 1];
		uint64_t len = gap->to - gap->from;

		start = len > left ? gap->to - left : gap->from;
		left -= gap->to - start;
	}
	span.merged = false;
	for (size_t i = first; i < list->n_gaps && !r; i++) {
		const bool last = i + 1 == list->n_gaps;

		span.start = i == first ? start : list->gaps[i].from;
		span.len = list->gaps[i].to - span.start;
		span.value = span.len + (last ? left : 0);
		span.votes = span.value;
		span.samples = last;
		r = spans_add(s, thread, &span);
	}
	if (!r && first == list->n_gaps) { /* it ran when it is known to have done other things */
		span.start = ts;
		span.len = 0;
		span.value = span.votes = like->value;
		span.samples = 1;
		r = spans_add(s, thread, &span);
	}
	list->n_gaps = 0;
	return r;
}
