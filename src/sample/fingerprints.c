/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/fingerprints.h"

#include <stdlib.h>

#include "base/array.h"

void fingerprints_deinit(struct fingerprints *f)
{
	intern_deinit(&f->ids);
	free(f->latest);
	*f = (struct fingerprints) { 0 };
}

void fingerprints_recycle(struct fingerprints *f)
{
	array_recycle(f->latest, f->cap, f->ids.count);
	intern_recycle(&f->ids);
}

int fingerprints_set(struct fingerprints *f, uint64_t fingerprint, size_t index)
{
	uint32_t id;
	int r;

	r = intern_add(&f->ids, &fingerprint, sizeof(fingerprint), &id, NULL);
	if (!r)
		r = array_reserve(f->latest, f->cap, id + 1);
	if (!r)
		f->latest[id] = (uint32_t)index;
	return r;
}

bool fingerprints_find(const struct fingerprints *f, uint64_t fingerprint, size_t *index)
{
	uint32_t id;

	if (intern_find(&f->ids, &fingerprint, sizeof(fingerprint), &id))
		return false;
	*index = f->latest[id];
	return true;
}
