/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/array.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_MIN_CAP 8

int array_room_raw(void **ptr, size_t *cap, size_t want, size_t elem)
{
	size_t max = PTRDIFF_MAX / elem;
	size_t new_cap;
	char *old, *v;

	if (want <= *cap)
		return 0;
	if (want > max)
		return -ENOMEM;
	new_cap = *cap > max / 2 ? max : *cap * 2;
	if (new_cap < ARRAY_MIN_CAP && ARRAY_MIN_CAP <= max)
		new_cap = ARRAY_MIN_CAP;
	if (new_cap < want)
		new_cap = want;

	/* *@ptr is really a struct x *: copying it as bytes keeps to the aliasing rules. */
	memcpy(&old, ptr, sizeof(old));
	v = realloc(old, new_cap * elem);
	if (!v)
		return -ENOMEM;
	memcpy(ptr, &v, sizeof(v));
	*cap = new_cap;
	return 0;
}

int array_reserve_raw(void **ptr, size_t *cap, size_t want, size_t elem)
{
	const size_t before = *cap;
	char *v;

	if (array_room_raw(ptr, cap, want, elem))
		return -ENOMEM;
	memcpy(&v, ptr, sizeof(v));
	if (*cap > before)
		memset(v + before * elem, 0, (*cap - before) * elem);
	return 0;
}

void array_recycle_raw(void **ptr, size_t *cap, size_t used)
{
	char *old, *none = NULL;

	if (used >= *cap / 4)
		return;
	memcpy(&old, ptr, sizeof(old));
	free(old);
	memcpy(ptr, &none, sizeof(none));
	*cap = 0;
}
