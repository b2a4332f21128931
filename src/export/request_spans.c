/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/request_spans.h"

#include <errno.h>
#include <stdlib.h>

#include "profile/profile.h"
#include "view/filter.h"
#include "view/state.h"

static bool is_shown(const struct profile *p, const struct view_selection *sel, uint32_t request)
{
	return p->requests[request].samples && view_one_request_selected(sel, request);
}

/* Sorted by counting; requests are defined in the order in which they begin. */
int request_spans_init(const struct profile *p, const struct view_selection *sel,
		       struct request_spans *ret)
{
	struct request_spans spans = { .ids = calloc(p->n_requests + 1, sizeof(*spans.ids)),
				       .first = calloc(p->n_threads + 2, sizeof(*spans.first)) };

	if (!spans.ids || !spans.first) {
		request_spans_deinit(&spans);
		return -ENOMEM;
	}
	/*
	 * How many the threads before have, one place further on, which is moved as they are put.
	 */
	for (uint32_t i = 1; i < p->n_requests; i++)
		if (is_shown(p, sel, i))
			spans.first[p->requests[i].thread + 2]++;
	for (size_t i = 2; i < p->n_threads + 2; i++)
		spans.first[i] += spans.first[i - 1];
	for (uint32_t i = 1; i < p->n_requests; i++)
		if (is_shown(p, sel, i))
			spans.ids[spans.first[p->requests[i].thread + 1]++] = i;
	*ret = spans;
	return 0;
}

void request_spans_deinit(struct request_spans *spans)
{
	free(spans->ids);
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
