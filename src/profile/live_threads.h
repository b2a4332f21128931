/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a recorder knows of the threads that samples may still come of, by their ids in the
 * recording. A thread is removed when no more can come, so that the memory is that of the most that
 * were there at once, however many there were in all. Not thread-safe.
 */
#ifndef RBPF_PROFILE_LIVE_THREADS_H
#define RBPF_PROFILE_LIVE_THREADS_H

#include <stddef.h>
#include <stdint.h>

#include "base/u64_map.h"

struct live_thread {
	uint32_t id;
	uint32_t process;
	uint32_t request, span; /* what was said of its samples last; 0: none */
};

/* All zero: there are none. */
struct live_threads {
	struct live_thread *v; /* in any order; owned */
	size_t n, cap;
	struct u64_map at; /* indexes in v, by id */
};

void live_threads_deinit(struct live_threads *t);

/* Add thread @id, which is not in it. Returns 0 or -ENOMEM. */
int live_threads_add(struct live_threads *t, uint32_t id, uint32_t process);

/* Thread @id, valid until one is added or removed; NULL: it is not in it. */
struct live_thread *live_threads_find(const struct live_threads *t, uint32_t id);

/* Remove thread @id, which may not be in it. */
void live_threads_remove(struct live_threads *t, uint32_t id);

#endif
