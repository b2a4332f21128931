/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/hash.h"

#include <pthread.h>
#include <string.h>
#include <sys/random.h>

static uint64_t seed;

uint64_t hash_bytes(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	return hash_mix(h); /* FNV leaves its low bits poorly mixed */
}

static void make_seed(void)
{
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = hash_mix((uintptr_t)&seed); /* where the kernel has put this program */
	seed |= 1;
}

uint64_t hash_seed(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_seed);
	return seed;
}

static uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/*
 * Each word is multiplied by a number that only this process knows, and both halves of the product
 * are used.
 */
uint64_t hash_seeded(uint64_t seed_of_table, const void *data, size_t len)
{
	const uint64_t factor = seed_of_table | 1;
	const char *p = data;
	uint64_t h = (seed_of_table >> 32 | seed_of_table << 32) ^ len, word;

	for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = fold(h ^ word, factor);
	}
	word = 0;
	for (size_t i = 0; i < len; i++)
		word |= (uint64_t)(uint8_t)p[i] << 8 * i;
	return fold(h ^ word, factor);
}
