/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/seconds.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "profile/replay.h"
#include "profile/sample_parts.h"
#include "view/filter.h"
#include "view/flat.h"

uint32_t second_of(const struct profile *p, const struct profile_sample *sample)
{
	uint64_t start = p->meta.start_monotonic_ns;
	/* The buffers of the kernel may hold samples of just before the start. */
	uint64_t second = sample->ts > start ? (sample->ts - start) / NSEC_PER_SEC : 0;

	return second < UINT32_MAX ? (uint32_t)second : UINT32_MAX;
}

static int compare_seconds(const void *a, const void *b)
{
	const struct flat_row *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* Rows of the same second become one. */
static void unite(struct flat *flat)
{
	size_t n = 0;

	for (size_t i = 0; i < flat->n_rows; i++) {
		struct flat_row *row = &flat->rows[i], *last = n ? &flat->rows[n - 1] : NULL;
		struct view_sum self;

		if (!last || last->id != row->id) {
			flat->rows[n++] = *row;
			continue;
		}
		self = flat_self(row);
		flat_add_self(last, &self);
	}
	flat->n_rows = n;
	for (size_t i = 0; i < n; i++) {
		const struct view_sum self = flat_self(&flat->rows[i]);

		flat_add_total(&flat->rows[i], &self);
	}
}

struct seconds {
	const struct profile *profile;
	const struct view_selection *sel;
	struct flat *flat;
	uint32_t first; /* with what is selected */
	struct err *err;
};

/* @s is of one second. */
static int add_to_second(void *arg, const struct profile_sample *s)
{
	const struct seconds *to = arg;
	struct profile_aggregate alike = profile_aggregate_of(to->profile, s);
	struct flat *flat = to->flat;
	const uint32_t second = second_of(to->profile, s);
	/* A part that begins with the times that are selected may seem to begin a ns before. */
	struct flat_row row = { .frame = PROFILE_NONE,
				.id = second > to->first ? second : to->first };
	struct flat_row *last = flat->n_rows ? &flat->rows[flat->n_rows - 1] : NULL;
	struct view_sum sum;

	if (!view_selected(to->sel, &alike))
		return 0;
	/* Samples are nearly in the order of time: few rows are made twice. */
	if (!last || last->id != row.id) {
		if (array_reserve(flat->rows, flat->cap_rows, flat->n_rows + 1))
			return err_oom(to->err);
		last = &flat->rows[flat->n_rows++];
		*last = row;
	}
	alike.samples = 1;
	alike.value = s->value;
	sum = view_sum_of(to->profile, &alike);
	flat_add_self(last, &sum);
	return 0;
}

static int add_sample(void *arg, const struct profile_sample *sample)
{
	const struct seconds *to = arg;

	return sample_parts_by_second(to->profile, *sample, SAMPLE_MAX_PARTS, add_to_second, arg);
}

int seconds_rows(const struct profile *p, const struct replay *from,
		 const struct view_selection *sel, struct flat *flat, struct err *err)
{
	struct seconds to = { .profile = p,
			      .sel = sel,
			      .flat = flat,
			      .first = (uint32_t)(from->options.from_ns / NSEC_PER_SEC),
			      .err = err };
	int r = profile_each_sample(p, from, add_sample, &to, err);

	if (r)
		return r;
	if (flat->n_rows)
		qsort(flat->rows, flat->n_rows, sizeof(*flat->rows), compare_seconds);
	unite(flat);
	return 0;
}
