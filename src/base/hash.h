/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hashes, and the slots of open-addressing tables. What is looked up in a table mostly comes from a
 * process that is watched or from a recording: with a seed that nobody knows, whoever wrote it
 * cannot choose what collides.
 */
#ifndef RBPF_BASE_HASH_H
#define RBPF_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A 64-bit hash of @data: FNV-1a with a final mix; stable across runs and machines. */
uint64_t hash_bytes(const void *data, size_t len);

/* The seed of tables, of this process: random, the same all the time. Thread-safe. */
uint64_t hash_seed(void);

/*
 * A 64-bit hash of @data, for a table with this seed: another one in each run. Faster than
 * hash_bytes() from 16 bytes on.
 */
uint64_t hash_seeded(uint64_t seed, const void *data, size_t len);

/* The finaliser of MurmurHash3: each bit of @h has to do with each bit of the result. */
static inline uint64_t hash_mix(uint64_t h)
{
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdull;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53ull;
	return h ^ h >> 33;
}

/*
 * A slot: a number, not 0, and some bits of the hash of what it stands for, its tag. So hardly any
 * other than the one that is looked for has to be looked at, each of which would come from far away
 * in memory. The tag is of the highest bits of the half @hash, the place in a table of up to 2^29
 * slots of the lower ones.
 */
#define HASH_SLOT_BITS 29 /* of the number */

static inline uint32_t hash_slot(uint32_t hash, uint32_t number)
{
	return hash >> HASH_SLOT_BITS << HASH_SLOT_BITS | number;
}

static inline uint32_t hash_slot_number(uint32_t slot)
{
	return slot & ((1u << HASH_SLOT_BITS) - 1);
}

/* Whether it may be the slot of @hash. */
static inline bool hash_slot_fits(uint32_t slot, uint32_t hash)
{
	return !((slot ^ hash) >> HASH_SLOT_BITS);
}

#endif
