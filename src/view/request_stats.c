/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/request_stats.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"
#include "view/filter.h"
#include "view/request.h"

/* How long a request that was seen was, by one of its bounds. */
struct length {
	uint32_t kind;
	uint64_t ns;
};

/* Each bound of the lengths of all. */
struct lengths {
	struct length *least, *most; /* owned */
	size_t n;
};

static void lengths_deinit(struct lengths *l)
{
	free(l->least);
	free(l->most);
}

void request_stats_deinit(struct request_stats *stats)
{
	free(stats->rows);
	*stats = (struct request_stats)REQUEST_STATS_INIT;
}

static void add_aggregate(const struct profile_aggregate *a, bool caused, unsigned int state,
			  struct request_stats *stats)
{
	struct request_row *row = &stats->rows[a->request];

	if (caused) {
		profile_add(&row->gvl_caused, a->value);
		profile_add(&stats->gvl_caused, a->value);
		return;
	}
	row->samples += a->samples;
	profile_add(&row->value, a->value);
	profile_add(&row->states[state], a->value);
	if (a->flags & SAMPLE_GC)
		profile_add(&row->gc_value, a->value);
	if (a->flags & SAMPLE_GC_UNKNOWN) {
		profile_add(&row->gc_unknown, a->value);
		profile_add(&stats->gc_unknown, a->value);
	}
	stats->samples += a->samples;
	profile_add(&stats->value, a->value);
	profile_add(&stats->states[state], a->value);
}

/* @threads: those that have selected samples. @by_state: states were asked for. */
static int add_samples(const struct profile *p, const struct view_selection *sel, bool by_state,
		       struct request_stats *stats, bool *threads)
{
	_cleanup_free_ uint8_t *states = NULL;

	if (state_of_stacks(p, &states))
		return -ENOMEM;
	for (size_t i = 0; i < p->n_threads; i++)
		threads[i] = !p->by_thread && p->threads[i].samples;
	for (size_t i = 0; i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];
		const bool caused = a->event != p->event;

		/* What others waited meanwhile is of no state. */
		if (!view_selected(sel, a) || (caused && by_state))
			continue;
		add_aggregate(a, caused, state_of(states, a->stack, a->flags) & STATE_MASK, stats);
		if (p->by_thread)
			threads[a->thread] |= !caused;
	}
	return 0;
}

static int compare_lengths(const void *a, const void *b)
{
	const struct length *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

/* The smallest of @n ascending lengths that @percent of 100 do not exceed. */
static uint64_t percentile(const struct length *lengths, size_t n, unsigned int percent)
{
	return lengths[(n * percent + 99) / 100 - 1].ns;
}

static struct request_length lengths_at(const struct lengths *l, size_t first, size_t n,
					unsigned int percent)
{
	return (struct request_length) { percentile(&l->least[first], n, percent),
					 percentile(&l->most[first], n, percent) };
}

/* Both bounds are sorted by kind first, so that those of a kind are in the same place. */
static void add_lengths(struct request_stats *stats, const struct lengths *l)
{
	size_t i, end;

	if (!l->n)
		return;
	qsort(l->least, l->n, sizeof(*l->least), compare_lengths);
	qsort(l->most, l->n, sizeof(*l->most), compare_lengths);
	for (i = 0; i < l->n; i = end) {
		struct request_row *row = &stats->rows[l->least[i].kind];

		for (end = i; end < l->n && l->least[end].kind == l->least[i].kind; end++)
			;
		row->requests = end - i;
		row->p50 = lengths_at(l, i, end - i, 50);
		row->p95 = lengths_at(l, i, end - i, 95);
		row->p99 = lengths_at(l, i, end - i, 99);
	}
}

static int measure(const struct profile *p, const struct view_selection *sel, const bool *threads,
		   struct request_stats *stats)
{
	_cleanup_(lengths_deinit) struct lengths l = {
		.least = calloc(p->n_requests + 1, sizeof(*l.least)),
		.most = calloc(p->n_requests + 1, sizeof(*l.most)),
	};
	const bool bounded = profile_has_waits(p);

	if (!l.least || !l.most)
		return -ENOMEM;
	for (uint32_t i = 1; i < p->n_requests; i++) {
		const struct profile_request *r = &p->requests[i];

		if (!threads[r->thread] || !stats->rows[r->kind].samples || !r->samples ||
		    !view_one_request_selected(sel, i))
			continue;
		l.least[l.n] = (struct length) { r->kind, profile_request_least_ns(r) };
		l.most[l.n++] = (struct length) { r->kind,
						  bounded ? profile_request_most_ns(p, r) : 0 };
	}
	add_lengths(stats, &l);
	return 0;
}

/* A server whose threads also have requests of what it serves is seen before and after these. */
static int find_parts(const struct profile *p, struct request_stats *stats)
{
	_cleanup_free_ bool *serves = calloc(p->n_threads + 1, sizeof(*serves));

	if (!serves)
		return -ENOMEM;
	for (uint32_t i = 1; i < p->n_requests; i++)
		if (*request_framework(p, p->requests[i].kind) &&
		    !request_is_of_server(p, p->requests[i].kind))
			serves[p->requests[i].thread] = true;
	for (uint32_t i = 1; i < p->n_requests; i++)
		if (serves[p->requests[i].thread] && request_is_of_server(p, p->requests[i].kind))
			stats->rows[p->requests[i].kind].in_parts = true;
	return 0;
}

static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct request_row *x = a, *y = b;
	const uint32_t *ranks = arg;

	/*
	 * What is of no request may be mostly threads that are idle: it would hide what is asked
	 * for.
	 */
	if (!x->kind != !y->kind)
		return x->kind ? -1 : 1;
	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return (ranks[x->kind] > ranks[y->kind]) - (ranks[x->kind] < ranks[y->kind]);
}

static void drop_empty_rows(struct request_stats *stats)
{
	size_t n = 0;

	for (size_t i = 0; i < stats->n_rows; i++)
		if (stats->rows[i].samples || stats->rows[i].gvl_caused)
			stats->rows[n++] = stats->rows[i];
	stats->n_rows = n;
}

int request_stats_build(const struct profile *p, const struct view_filter *f,
			struct request_stats *ret)
{
	_cleanup_request_stats_ struct request_stats stats = REQUEST_STATS_INIT;
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	_cleanup_free_ uint32_t *ranks = NULL;
	_cleanup_free_ bool *threads = NULL;
	int r;

	if (!p->by_request || (!p->by_thread && f && view_filter_of_samples(f)))
		return -EINVAL;
	r = view_selection_new(p, f, &sel);
	if (!r)
		r = request_ranks(p, &ranks);
	if (r)
		return r;
	stats.n_rows = request_kinds(p);
	stats.rows = calloc(stats.n_rows, sizeof(*stats.rows));
	threads = calloc(p->n_threads + 1, sizeof(*threads));
	if (!stats.rows || !threads)
		return -ENOMEM;
	for (size_t i = 0; i < stats.n_rows; i++)
		stats.rows[i].kind = (uint32_t)i;
	r = add_samples(p, sel, f && view_filter_by_state(f), &stats, threads);
	if (!r)
		r = measure(p, sel, threads, &stats);
	if (!r)
		r = find_parts(p, &stats);
	if (r)
		return r;
	drop_empty_rows(&stats);
	qsort_r(stats.rows, stats.n_rows, sizeof(*stats.rows), compare_rows, ranks);
	*ret = stats;
	stats = (struct request_stats)REQUEST_STATS_INIT; /* owned by *ret now */
	return 0;
}
