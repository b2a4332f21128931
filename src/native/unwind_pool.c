/* SPDX-License-Identifier: GPL-2.0-only */
#include "native/unwind_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "elf/cfi.h"
#include "rbpf_abi.h"
#include "rbpf_cfi.h"

int unwind_pool_init(struct unwind_pool *pool, uint32_t *words, uint32_t n_words)
{
	*pool = (struct unwind_pool) { .words = words, .n_chunks = n_words / RBPF_POOL_CHUNK };
	return extents_init(&pool->chunks, pool->n_chunks);
}

void unwind_pool_deinit(struct unwind_pool *pool)
{
	size_t i;

	for (i = 0; i < pool->n; i++)
		free(pool->v[i]);
	free(pool->v);
	extents_deinit(&pool->chunks);
}

uint32_t unwind_pool_chunks(const struct cfi_table *table)
{
	return (table->n_words + RBPF_POOL_CHUNK - 1) / RBPF_POOL_CHUNK;
}

uint64_t unwind_pool_hash(const struct cfi_table *table)
{
	return hash_seeded(hash_seed(), table->words, table->n_words * sizeof(*table->words)) | 1;
}

bool unwind_pool_has(const struct unwind_pool *pool, uint64_t hash)
{
	size_t i;

	for (i = 0; i < pool->n; i++)
		if (pool->v[i]->hash == hash)
			return true;
	return false;
}

static uint32_t *words_of(const struct unwind_pool *pool, const struct pooled_table *table)
{
	return pool->words + (size_t)table->first_chunk * RBPF_POOL_CHUNK;
}

/* The one with the words of @from. One that lacks rules differs from what it was made from. */
static struct pooled_table *find_same(const struct unwind_pool *pool, const struct cfi_table *from,
				      uint64_t hash)
{
	size_t i;

	for (i = 0; i < pool->n; i++) {
		struct pooled_table *table = pool->v[i];

		if (table->hash == hash && table->n_words == from->n_words &&
		    table->pages == from->pages &&
		    !memcmp(words_of(pool, table), from->words,
			    from->n_words * sizeof(*from->words)))
			return table;
	}
	return NULL;
}

static void write_words(const struct cfi_table *from, uint32_t n_rules, uint32_t *to)
{
	uint32_t i;

	memcpy(to, from->words, from->n_words * sizeof(*to));
	for (i = from->pages + 1; i < from->n_words; i++)
		if (to[i] >> 16 >= n_rules)
			to[i] = RBPF_CFI_RULE_NONE << 16 | (to[i] & RBPF_CFI_PAGE_MASK);
}

static int add(struct unwind_pool *pool, const struct cfi_table *from, uint64_t now,
	       struct pooled_table **ret)
{
	uint32_t chunks = unwind_pool_chunks(from), first;
	struct pooled_table *table;
	int r;

	if (array_reserve(pool->v, pool->cap, pool->n + 1))
		return -ENOMEM;
	table = calloc(1, sizeof(*table));
	if (!table)
		return -ENOMEM;
	r = extents_alloc(&pool->chunks, chunks, &first);
	if (r) {
		free(table);
		return r;
	}
	*table = (struct pooled_table) { .first_chunk = first,
					 .chunks = chunks,
					 .pages = from->pages,
					 .n_words = from->n_words,
					 .since = now };
	*ret = pool->v[pool->n++] = table;
	return 0;
}

int unwind_pool_put(struct unwind_pool *pool, const struct cfi_table *from, uint64_t hash,
		    uint32_t n_rules, uint64_t now, struct pooled_table **ret)
{
	struct pooled_table *table = find_same(pool, from, hash);
	int r;

	if (!table) {
		r = add(pool, from, now, &table);
		if (r)
			return r;
		table->hash = hash;
		write_words(from, n_rules, words_of(pool, table));
	}
	table->files++;
	*ret = table;
	return 0;
}

/* ---- room ---- */

/* Whether its chunks may be given to another one at @now. */
static bool may_drop(const struct pooled_table *table, uint64_t now)
{
	return !table->uses || now - table->since >= UNWIND_STAY_NS;
}

static bool goes_before(const struct pooled_table *a, const struct pooled_table *b)
{
	if (!a->uses != !b->uses)
		return !a->uses;
	return a->since < b->since;
}

struct pooled_table *unwind_pool_next(const struct unwind_pool *pool, uint32_t chunks, uint64_t now)
{
	uint64_t possible = pool->chunks.retired_size;
	struct pooled_table *next = NULL;
	size_t i;

	for (i = 0; i < pool->n; i++) {
		if (!may_drop(pool->v[i], now))
			continue;
		possible += pool->v[i]->chunks;
		if (!next || goes_before(pool->v[i], next))
			next = pool->v[i];
	}
	return possible < chunks ? NULL : next;
}

void unwind_pool_drop(struct unwind_pool *pool, struct pooled_table *table, uint64_t now)
{
	size_t i;

	for (i = 0; pool->v[i] != table; i++)
		;
	pool->v[i] = pool->v[--pool->n];
	extents_retire(&pool->chunks, table->first_chunk, table->chunks, now);
	free(table);
}
