/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/trace.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/intern.h"
#include "profile/profile.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/stack_forest.h"

void trace_label(const struct profile *p, uint32_t span, struct buf *out)
{
	const struct profile_span *of = span ? profile_span(p, span) : NULL;
	char digits[2 * sizeof(of->trace_id) + 1];

	if (!of) {
		buf_addstr(out, "[no trace]");
		return;
	}
	hex_of_bytes(of->trace_id, sizeof(of->trace_id), digits);
	buf_addstr(out, digits);
}

/* What a trace did for one kind of request. */
struct trace_part {
	uint32_t span; /* the first one of its trace */
	uint32_t request;
	struct view_sum sum;
};

/* By span id: the first span of the same trace. *@ret: free(). */
static int find_traces(const struct profile *p, uint32_t **ret)
{
	_cleanup_free_ uint32_t *first_of = calloc(p->spans.count + 1, sizeof(*first_of));
	_cleanup_free_ uint32_t *first = calloc(p->spans.count + 1, sizeof(*first));
	struct intern traces = INTERN_INIT;
	uint32_t trace;
	bool is_new;
	int r = first_of && first ? 0 : -ENOMEM;

	for (uint32_t i = 1; !r && i <= p->spans.count; i++) {
		const struct profile_span *span = profile_span(p, i);

		r = intern_add(&traces, span->trace_id, sizeof(span->trace_id), &trace, &is_new);
		if (r)
			break;
		if (is_new)
			first[trace] = i;
		first_of[i] = first[trace];
	}
	intern_deinit(&traces);
	if (!r)
		*ret = take_ptr(first_of);
	return r;
}

static int compare_parts(const void *a, const void *b)
{
	const struct trace_part *x = a, *y = b;

	if (x->span != y->span)
		return x->span < y->span ? -1 : 1;
	return (x->request > y->request) - (x->request < y->request);
}

/* The parts of the selected samples, in order, those that are alike added up. Returns how many. */
static size_t find_parts(const struct profile *p, const struct view_selection *sel,
			 const uint32_t *first_of, struct trace_part *parts)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];

		if (view_selected(sel, a))
			parts[n++] = (struct trace_part) { .span = first_of[p->aggregate_spans[i]],
							   .request = a->request,
							   .sum = view_sum_at(p, i) };
	}
	if (n)
		qsort(parts, n, sizeof(*parts), compare_parts);
	for (size_t i = 0; i < n; i++) {
		if (kept && !compare_parts(&parts[kept - 1], &parts[i]))
			view_sum_add(&parts[kept - 1].sum, &parts[i].sum);
		else
			parts[kept++] = parts[i];
	}
	return kept;
}

/* The row of the trace that @parts begin with; *@n: how many of them are of it. */
static struct flat_row row_of(const struct trace_part *parts, size_t left, size_t *n)
{
	struct flat_row row = { .frame = PROFILE_NONE, .id = parts->span };
	uint64_t most = 0;

	for (*n = 0; *n < left && parts[*n].span == parts->span; ++*n) {
		const struct trace_part *part = &parts[*n];

		flat_add_self(&row, &part->sum);
		flat_add_total(&row, &part->sum);
		if (!*n || part->sum.value > most) {
			most = part->sum.value;
			row.request = part->request;
		}
	}
	return row;
}

int trace_rows(const struct profile *p, const struct view_selection *sel, struct flat *flat)
{
	_cleanup_free_ struct trace_part *parts = NULL;
	_cleanup_free_ uint32_t *first_of = NULL;
	size_t n, of_row;
	int r;

	if (!p->by_span || !p->by_request)
		return -EINVAL;
	parts = calloc(p->n_aggregates + 1, sizeof(*parts));
	r = parts ? find_traces(p, &first_of) : -ENOMEM;
	if (r)
		return r;
	n = find_parts(p, sel, first_of, parts);
	for (size_t i = 0; !r && i < n; i += of_row) {
		const struct flat_row row = row_of(&parts[i], n - i, &of_row);

		r = flat_add_row(flat, &row);
	}
	return r;
}
