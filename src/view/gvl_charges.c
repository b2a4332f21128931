/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/gvl_charges.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "profile/profile.h"

int gvl_charges_add(struct gvl_charges *c, const struct profile *p, const struct profile_sample *s,
		    uint32_t to)
{
	if (array_reserve(c->v, c->cap, c->n + 1))
		return -ENOMEM;
	c->v[c->n++] = (struct gvl_charge) {
		.ts = s->ts,
		.process = p->threads[s->thread].process,
		.to = to,
	};
	return 0;
}

static int compare_charges(const void *a, const void *b)
{
	const struct gvl_charge *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return (x->ts > y->ts) - (x->ts < y->ts);
}

void gvl_charges_sort(struct gvl_charges *c)
{
	if (c->n)
		qsort(c->v, c->n, sizeof(*c->v), compare_charges);
}

/* The first charge of @process after @ts; its index, or that of whatever comes there. */
static size_t first_after(const struct gvl_charges *c, uint32_t process, uint64_t ts)
{
	size_t low = 0, high = c->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct gvl_charge *one = &c->v[middle];

		if (one->process < process || (one->process == process && one->ts <= ts))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int gvl_charges_divide(const struct gvl_charges *c, uint32_t process, uint64_t since,
		       uint64_t until, gvl_part_fn *fn, void *arg)
{
	uint64_t at = since;
	int r = 0;

	for (size_t i = first_after(c, process, at);
	     !r && i < c->n && c->v[i].process == process && at < until; i++) {
		const uint64_t end = c->v[i].ts < until ? c->v[i].ts : until;

		r = fn(arg, c->v[i].to, end - at);
		at = end;
	}
	return r;
}

void gvl_charges_deinit(struct gvl_charges *c)
{
	free(c->v);
	*c = (struct gvl_charges)GVL_CHARGES_INIT;
}
