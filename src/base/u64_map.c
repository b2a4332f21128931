/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/u64_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define SLOTS_MIN 64u

static size_t n_slots(const struct u64_map *m)
{
	return m->slots ? m->mask + 1 : 0;
}

void u64_map_deinit(struct u64_map *m)
{
	free(m->slots);
	*m = (struct u64_map) { 0 };
}

void u64_map_recycle(struct u64_map *m)
{
	if (m->count < n_slots(m) / 4) {
		u64_map_deinit(m);
		return;
	}
	if (m->count)
		memset(m->slots, 0, n_slots(m) * sizeof(*m->slots));
	m->count = 0;
}

/* The slot of @key, or the free one where it belongs. Needs a free slot. */
static struct u64_map_slot *find_slot(const struct u64_map *m, uint64_t key)
{
	size_t at = hash_mix(key ^ m->seed) & m->mask;

	while (m->slots[at].used && m->slots[at].key != key)
		at = (at + 1) & m->mask;
	return &m->slots[at];
}

static int grow(struct u64_map *m)
{
	const size_t n = n_slots(m);
	struct u64_map larger = { .count = m->count, .seed = m->seed ?: hash_seed() };
	size_t i;

	larger.mask = (n ? n * 2 : SLOTS_MIN) - 1;
	larger.slots = calloc(larger.mask + 1, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		if (m->slots[i].used)
			*find_slot(&larger, m->slots[i].key) = m->slots[i];
	free(m->slots);
	*m = larger;
	return 0;
}

bool u64_map_get(const struct u64_map *m, uint64_t key, uint32_t *ret)
{
	const struct u64_map_slot *slot = m->slots ? find_slot(m, key) : NULL;

	if (!slot || !slot->used)
		return false;
	*ret = slot->value;
	return true;
}

int u64_map_set(struct u64_map *m, uint64_t key, uint32_t value)
{
	struct u64_map_slot *slot;

	if (m->count >= n_slots(m) / 4 * 3 && grow(m))
		return -ENOMEM;
	slot = find_slot(m, key);
	m->count += !slot->used;
	*slot = (struct u64_map_slot) { .key = key, .value = value, .used = 1 };
	return 0;
}

/*
 * Those behind a slot that gets free move up, unless they are not behind where they belong: a
 * search for them would end at the free slot.
 */
void u64_map_remove(struct u64_map *m, uint64_t key)
{
	struct u64_map_slot *slot = m->slots ? find_slot(m, key) : NULL;
	size_t hole, at;

	if (!slot || !slot->used)
		return;
	hole = (size_t)(slot - m->slots);
	for (at = (hole + 1) & m->mask; m->slots[at].used; at = (at + 1) & m->mask) {
		const size_t home = hash_mix(m->slots[at].key ^ m->seed) & m->mask;

		if (((at - home) & m->mask) < ((at - hole) & m->mask))
			continue;
		m->slots[hole] = m->slots[at];
		hole = at;
	}
	m->slots[hole] = (struct u64_map_slot) { 0 };
	m->count--;
}

size_t u64_map_bytes(const struct u64_map *m)
{
	return n_slots(m) * sizeof(*m->slots);
}
