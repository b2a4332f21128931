/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Giving back must not fail, so extents_alloc() makes the room for it: with N parts allocated there
 * are at most N + 1 free ones between them, and at most N retired.
 */
#include "native/extents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/sorted.h"

int extents_init(struct extents *e, uint32_t size)
{
	*e = (struct extents) { 0 };
	if (array_reserve(e->v, e->cap, 1))
		return -ENOMEM;
	e->v[0] = (struct extent) { .first = 0, .n = size };
	e->n = size ? 1 : 0;
	return 0;
}

void extents_deinit(struct extents *e)
{
	free(e->v);
	free(e->retired);
	*e = (struct extents) { 0 };
}

/* The first free part of @n elements or more; e->n if there is none. */
static size_t first_fit(const struct extents *e, uint32_t n)
{
	size_t i = 0;

	while (i < e->n && e->v[i].n < n)
		i++;
	return i;
}

bool extents_fit(const struct extents *e, uint32_t n)
{
	return first_fit(e, n) < e->n || !n;
}

int extents_alloc(struct extents *e, uint32_t n, uint32_t *ret)
{
	size_t i = first_fit(e, n);

	if (i == e->n)
		return -ENOSPC;
	if (array_reserve(e->v, e->cap, e->allocated + 2) ||
	    array_reserve(e->retired, e->cap_retired, e->allocated + 1))
		return -ENOMEM;
	e->allocated++;
	*ret = e->v[i].first;
	e->v[i].first += n;
	e->v[i].n -= n;
	if (!e->v[i].n)
		memmove(&e->v[i], &e->v[i + 1], (--e->n - i) * sizeof(*e->v));
	return 0;
}

void extents_retire(struct extents *e, uint32_t first, uint32_t n, uint64_t now)
{
	e->retired[e->n_retired++] = (struct retired_extent) { { first, n }, now };
	e->retired_size += n;
}

static void set_free(struct extents *e, struct extent freed)
{
	const size_t i = sorted_below(e->v, e->n, first, freed.first);

	if (i < e->n && freed.first + freed.n == e->v[i].first) {
		e->v[i].first = freed.first;
		e->v[i].n += freed.n;
	} else {
		memmove(&e->v[i + 1], &e->v[i], (e->n++ - i) * sizeof(*e->v));
		e->v[i] = freed;
	}
	if (i && e->v[i - 1].first + e->v[i - 1].n == e->v[i].first) {
		e->v[i - 1].n += e->v[i].n;
		memmove(&e->v[i], &e->v[i + 1], (--e->n - i) * sizeof(*e->v));
	}
	e->allocated--;
}

bool extents_reclaim(struct extents *e, uint64_t now)
{
	size_t i = 0;

	while (i < e->n_retired && e->retired[i].since + EXTENTS_GRACE_NS <= now) {
		e->retired_size -= e->retired[i].extent.n;
		set_free(e, e->retired[i++].extent);
	}
	if (!i)
		return false;
	memmove(e->retired, e->retired + i, (e->n_retired - i) * sizeof(*e->retired));
	e->n_retired -= i;
	return true;
}
