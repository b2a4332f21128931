/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * 64-bit numbers, such as addresses and fingerprints, to 32-bit ones. To find one takes one access
 * to memory that is far away, where an intern (intern.h) takes three. Not thread-safe.
 */
#ifndef RBPF_BASE_U64_MAP_H
#define RBPF_BASE_U64_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct u64_map_slot {
	uint64_t key;
	uint32_t value;
	uint32_t used; /* 0: free */
};

/* All 0: empty. */
struct u64_map {
	struct u64_map_slot
		*slots; /* open addressing with linear probing, at most 3/4 full; owned */
	size_t mask;	/* slots - 1 */
	size_t count;
	uint64_t seed; /* hash_seed(), once there are slots */
};

void u64_map_deinit(struct u64_map *m);

/* Empty it, and keep what it took if it was in use: as array_recycle() does. */
void u64_map_recycle(struct u64_map *m);

/* Whether @key stands for something, which is *@ret. */
bool u64_map_get(const struct u64_map *m, uint64_t key, uint32_t *ret);

/* Let @key stand for @value from now on. Returns 0 or -ENOMEM, and then nothing has changed. */
int u64_map_set(struct u64_map *m, uint64_t key, uint32_t value);

/* Let @key, which may be unknown, stand for nothing. Its room is for others; none is given back. */
void u64_map_remove(struct u64_map *m, uint64_t key);

/* Bytes of memory that it takes. */
size_t u64_map_bytes(const struct u64_map *m);

#endif
