/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/request_stats.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"
#include "view/filter.h"
#include "view/request.h"

/* A request that was seen. */
struct length {
	uint32_t kind;
	uint64_t ns;
};

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

/* @threads: those that have selected samples. */
static int add_samples(const struct profile *p, const struct view_selection *sel,
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

		if (!view_selected(sel, a))
			continue;
		add_aggregate(a, caused,
			      state_of(states, a->stack, a->flags & SAMPLE_KERNEL) & STATE_MASK,
			      stats);
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

static void add_lengths(struct request_stats *stats, struct length *lengths, size_t n)
{
	size_t i, end;

	if (n)
		qsort(lengths, n, sizeof(*lengths), compare_lengths);
	for (i = 0; i < n; i = end) {
		struct request_row *row = &stats->rows[lengths[i].kind];

		for (end = i; end < n && lengths[end].kind == lengths[i].kind; end++)
			;
		row->requests = end - i;
		row->p50 = percentile(&lengths[i], end - i, 50);
		row->p95 = percentile(&lengths[i], end - i, 95);
		row->p99 = percentile(&lengths[i], end - i, 99);
	}
}

/*
 * Whether request @id, of a kind and a thread that have selected samples, is one of those that are
 * shown.
 */
static bool is_shown(const struct profile *p, const struct view_filter *f, uint32_t id)
{
	return p->requests[id].samples &&
	       (!f || !f->slower_than_ns || profile_request_is_slow(p, id) == !f->not_slower);
}

static int measure(const struct profile *p, const struct view_filter *f, const bool *threads,
		   struct request_stats *stats)
{
	_cleanup_free_ struct length *lengths = calloc(p->n_requests + 1, sizeof(*lengths));
	size_t n = 0;

	if (!lengths)
		return -ENOMEM;
	for (uint32_t i = 1; i < p->n_requests; i++) {
		const struct profile_request *r = &p->requests[i];

		if (threads[r->thread] && stats->rows[r->kind].samples && is_shown(p, f, i))
			lengths[n++] = (struct length) { r->kind, profile_request_ns(p, r) };
	}
	add_lengths(stats, lengths, n);
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
	r = add_samples(p, sel, &stats, threads);
	if (!r)
		r = measure(p, f, threads, &stats);
	if (r)
		return r;
	drop_empty_rows(&stats);
	qsort_r(stats.rows, stats.n_rows, sizeof(*stats.rows), compare_rows, ranks);
	*ret = stats;
	stats = (struct request_stats)REQUEST_STATS_INIT; /* owned by *ret now */
	return 0;
}
