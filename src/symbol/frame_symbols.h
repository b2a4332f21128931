/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The symbols of frames: a frame whose code is what it was when one with the same pc was named has
 * the same. A slot is half a cache line, and is all that is touched. Not thread-safe.
 */
#ifndef RBPF_SYMBOL_FRAME_SYMBOLS_H
#define RBPF_SYMBOL_FRAME_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

struct frame_key {
	uint64_t pc;
	/* of the code cache: no two of its entries ever have the same; 0: there is none */
	uint32_t iseq_version, method_version;
	uint32_t file;	      /* C functions: their caller's, … */
	uint32_t line : 31;   /* … modulo 2^31 */
	uint32_t unsaved : 1; /* compiled code may not have saved its pc */
};

struct frame_symbol {
	struct frame_key key;
	uint32_t symbol; /* 1 + it; 0: the slot is free */
};

/* All 0: empty. */
struct frame_symbols {
	struct frame_symbol *slots; /* open addressing, at most 3/4 full; owned */
	size_t mask;		    /* slots - 1 */
	size_t count;
	uint64_t seed; /* hash_seed(), once there are slots */
};

void frame_symbols_deinit(struct frame_symbols *s);

/* Bytes of memory that it takes. */
size_t frame_symbols_bytes(const struct frame_symbols *s);

/* Returns 0, or -ENOENT: no frame with this key has been named. */
int frame_symbols_get(const struct frame_symbols *s, const struct frame_key *key, uint32_t *ret);

/* It is @symbol, less than UINT32_MAX, of one that has been given none. Returns 0 or -ENOMEM. */
int frame_symbols_add(struct frame_symbols *s, const struct frame_key *key, uint32_t symbol);

#endif
