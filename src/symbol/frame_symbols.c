/* SPDX-License-Identifier: GPL-2.0-only */
#include "symbol/frame_symbols.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/hash.h"

#define SLOTS_MIN 64u

_Static_assert(sizeof(struct frame_symbol) == 32, "two to a cache line");

static size_t n_slots(const struct frame_symbols *s)
{
	return s->slots ? s->mask + 1 : 0;
}

void frame_symbols_deinit(struct frame_symbols *s)
{
	free(s->slots);
	*s = (struct frame_symbols) { 0 };
}

size_t frame_symbols_bytes(const struct frame_symbols *s)
{
	return n_slots(s) * sizeof(*s->slots);
}

static bool is_key(const struct frame_key *a, const struct frame_key *b)
{
	return a->pc == b->pc && a->iseq_version == b->iseq_version &&
	       a->method_version == b->method_version && a->file == b->file && a->line == b->line &&
	       a->unsaved == b->unsaved;
}

/* The slot of @key, or the free one where it belongs. Needs a free slot. */
static struct frame_symbol *find_slot(const struct frame_symbols *s, const struct frame_key *key)
{
	uint64_t hash = hash_mix(s->seed ^ key->pc);
	size_t at;

	hash = hash_mix(hash ^ ((uint64_t)key->iseq_version << 32 | key->method_version));
	if (key->file)
		hash = hash_mix(hash ^ ((uint64_t)key->file << 32 | key->line));
	for (at = hash & s->mask; s->slots[at].symbol; at = (at + 1) & s->mask)
		if (is_key(&s->slots[at].key, key))
			break;
	return &s->slots[at];
}

static int grow(struct frame_symbols *s)
{
	const size_t n = n_slots(s);
	struct frame_symbols larger = { .count = s->count, .seed = s->seed ?: hash_seed() };
	size_t i;

	larger.mask = (n ? n * 2 : SLOTS_MIN) - 1;
	larger.slots = calloc(larger.mask + 1, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		if (s->slots[i].symbol)
			*find_slot(&larger, &s->slots[i].key) = s->slots[i];
	free(s->slots);
	*s = larger;
	return 0;
}

int frame_symbols_get(const struct frame_symbols *s, const struct frame_key *key, uint32_t *ret)
{
	const struct frame_symbol *slot = s->slots ? find_slot(s, key) : NULL;

	if (!slot || !slot->symbol)
		return -ENOENT;
	*ret = slot->symbol - 1;
	return 0;
}

int frame_symbols_add(struct frame_symbols *s, const struct frame_key *key, uint32_t symbol)
{
	if (s->count >= n_slots(s) / 4 * 3 && grow(s))
		return -ENOMEM;
	*find_slot(s, key) = (struct frame_symbol) { .key = *key, .symbol = symbol + 1 };
	s->count++;
	return 0;
}
