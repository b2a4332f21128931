/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/forecast.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "export/shown.h"
#include "view/filter.h"

/* By shown stack: the bytes of its frames. */
static int measure_stacks(const struct shown *shown, frame_bytes_fn *of_frame, uint64_t **ret)
{
	const struct profile *p = shown->profile;
	uint64_t *bytes = calloc(p->n_stacks + 1, sizeof(*bytes));

	if (!bytes)
		return -ENOMEM;
	for (uint32_t i = 1; i < p->n_stacks; i++)
		if (shown->nearest[i] == i)
			bytes[i] = bytes[shown_callers(shown, i)] + of_frame(p, p->stacks[i].frame);
	*ret = bytes;
	return 0;
}

int forecast_bytes(const struct profile *p, const struct view_filter *f, size_t per_sample,
		   frame_bytes_fn *of_frame, uint64_t *ret)
{
	_cleanup_shown_ struct shown shown = SHOWN_INIT;
	_cleanup_free_ uint64_t *bytes = NULL;
	uint64_t sum = 0;
	int r = shown_init(p, f, &shown);

	if (!r)
		r = measure_stacks(&shown, of_frame, &bytes);
	if (r)
		return r;
	for (size_t i = 0; i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];
		uint64_t all;

		if (!view_selected(shown.selection, a))
			continue;
		if (__builtin_mul_overflow(a->samples,
					   per_sample + bytes[shown_stack(&shown, a->stack)], &all))
			all = UINT64_MAX;
		profile_add(&sum, all);
	}
	*ret = sum;
	return 0;
}
