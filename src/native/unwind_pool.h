/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pool that the words of unwind tables are in, for all files: memory that the BPF programs
 * read. Files with the same words, as a library has in each of thirty containers of one image, have
 * them there once. That they are the same is told by the words themselves and by nothing that a
 * file says of itself, such as its build ID: what a hostile container names its files is of no
 * consequence for others.
 *
 * What is dropped stays what it was for the grace of extents.h. Times are ns of CLOCK_MONOTONIC and
 * never less than those given before. Not thread-safe.
 */
#ifndef RBPF_NATIVE_UNWIND_POOL_H
#define RBPF_NATIVE_UNWIND_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/extents.h"

struct cfi_table;

#define UNWIND_STAY_NS 10000000000ull

/* Words of the pool. Counts are the caller's to keep. */
struct pooled_table {
	uint32_t first_chunk;
	uint32_t chunks;
	uint32_t pages, n_words; /* as in struct cfi_table */
	uint64_t hash;		 /* of the words that it was made from */
	uint64_t since;		 /* when it was put there */
	size_t files;		 /* that have it, at least one */
	size_t uses;		 /* ranges of all of them that BPF programs may look at */
};

struct unwind_pool {
	uint32_t *words;
	uint32_t n_chunks;
	struct extents chunks;
	struct pooled_table **v; /* owned, as they are */
	size_t n, cap;
};

/* @n_words words at @words, which must outlive it. Returns 0 or -ENOMEM. */
int unwind_pool_init(struct unwind_pool *pool, uint32_t *words, uint32_t n_words);
void unwind_pool_deinit(struct unwind_pool *pool);

/* Chunks that the words of @table take. */
uint32_t unwind_pool_chunks(const struct cfi_table *table);

/* What unwind_pool_put() finds the words of @table by; never 0. */
uint64_t unwind_pool_hash(const struct cfi_table *table);

/* Whether a table with @hash may be there. */
bool unwind_pool_has(const struct unwind_pool *pool, uint64_t hash);

/*
 * The words of @from, of which @hash is that, are in the pool, and one more file has them: those
 * that are there already if they are the same. Rules from @n_rules on are left out.
 * *@ret is valid until it is dropped. Returns 0, -ENOSPC or -ENOMEM.
 */
int unwind_pool_put(struct unwind_pool *pool, const struct cfi_table *from, uint64_t hash,
		    uint32_t n_rules, uint64_t now, struct pooled_table **ret);

/*
 * The one to be dropped next: one that no range uses or, if there is none, the one that has been
 * there longest, but for UNWIND_STAY_NS at least: else code that does not fit in all at once would
 * be loaded over and over. NULL if there is none, or if all of them together and what is on its way
 * to be free are less than @chunks.
 */
struct pooled_table *unwind_pool_next(const struct unwind_pool *pool, uint32_t chunks,
				      uint64_t now);

/* No file has @table any more. */
void unwind_pool_drop(struct unwind_pool *pool, struct pooled_table *table, uint64_t now);

#endif
