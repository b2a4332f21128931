/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Byte strings to small dense ids: equal bytes, equal id, in the order of first appearance.
 *
 * It interns names as well as fixed-size records (a zero-padded struct is a byte string). Ids start
 * at 0 and are never reused. Not thread-safe.
 */
#ifndef RBPF_BASE_INTERN_H
#define RBPF_BASE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct intern_block;
struct intern_entry;

struct intern {
	struct intern_entry *entries; /* by id; owned */
	size_t count;
	size_t cap;
	uint32_t *slots; /* open addressing: hash_slot() of id + 1, 0 is free; owned */
	size_t slot_mask;
	uint64_t seed;		     /* hash_seed(), once there are slots */
	struct intern_block *blocks; /* the bytes; owned */
	size_t block_bytes;	     /* of all blocks */
};

#define INTERN_INIT                                                                                \
	{                                                                                          \
		0                                                                                  \
	}
#define INTERN_MAX (1u << 28) /* ids; the limit of the recording format too */

void intern_deinit(struct intern *in);

/*
 * Forget all ids. What they took is kept for those that come, if it was in use: as array_recycle()
 * does.
 */
void intern_recycle(struct intern *in);
#define _cleanup_intern_ _cleanup_(intern_deinit)

/*
 * The id of these bytes, added if new (then *@is_new, which may be NULL, is true).
 * The bytes are copied. Returns 0, -ENOMEM, or -E2BIG past INTERN_MAX ids
 * and for 4 GiB (less a byte) or more; on failure nothing changed.
 */
int intern_add(struct intern *in, const void *data, size_t len, uint32_t *ret, bool *is_new);
int intern_str(struct intern *in, const char *s, uint32_t *ret);

/* Look up without adding. Returns 0 or -ENOENT. */
int intern_find(const struct intern *in, const void *data, size_t len, uint32_t *ret);

/*
 * The bytes of @id (which must be valid), followed by a NUL; @len may be NULL. Aligned for any
 * struct of members up to 8 bytes. Valid, at the same address, until intern_deinit() or
 * intern_recycle().
 */
const void *intern_get(const struct intern *in, uint32_t id, size_t *len);

/* Bytes of memory that @in takes. */
size_t intern_bytes(const struct intern *in);

#endif
