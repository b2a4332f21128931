/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/live_threads.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

void live_threads_deinit(struct live_threads *t)
{
	free(t->v);
	u64_map_deinit(&t->at);
	*t = (struct live_threads) { 0 };
}

int live_threads_add(struct live_threads *t, uint32_t id, uint32_t process)
{
	if (array_reserve(t->v, t->cap, t->n + 1) || u64_map_set(&t->at, id, (uint32_t)t->n))
		return -ENOMEM;
	t->v[t->n++] = (struct live_thread) { .id = id, .process = process };
	return 0;
}

struct live_thread *live_threads_find(const struct live_threads *t, uint32_t id)
{
	uint32_t i;

	return u64_map_get(&t->at, id, &i) ? &t->v[i] : NULL;
}

/* The last one takes its place, which for one that is in the map needs no memory. */
void live_threads_remove(struct live_threads *t, uint32_t id)
{
	uint32_t i;

	if (!u64_map_get(&t->at, id, &i))
		return;
	u64_map_remove(&t->at, id);
	if (i != --t->n) {
		t->v[i] = t->v[t->n];
		u64_map_set(&t->at, t->v[i].id, i);
	}
}
