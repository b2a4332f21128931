/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory of another process as the BPF programs copied it at a sample (RBPF_RING_MEMORY): blocks,
 * from which it can be read like the live one, though only what the blocks hold.
 *
 * Nothing is copied again: the record must outlive the struct. Not thread-safe.
 */
#ifndef RBPF_TARGET_CAPTURED_H
#define RBPF_TARGET_CAPTURED_H

#include <stddef.h>
#include <stdint.h>

#include "rbpf_abi.h"

struct memory;

struct captured_block {
	uint64_t addr;
	uint64_t reach; /* where this one, or one of those before it, ends, whichever is furthest */
	const uint8_t *bytes;
	uint32_t len;
	uint32_t kind; /* enum rbpf_block_kind */
};

struct captured {
	struct captured_block *blocks; /* by address; owned */
	size_t n, cap;
	const struct memory *below; /* read where they have nothing; NULL: none */
};

#define CAPTURED_INIT                                                                              \
	{                                                                                          \
		NULL, 0, 0, NULL                                                                   \
	}

/*
 * Take the @len bytes of blocks at @data in the place of what @c holds. Returns 0, -EPROTO (they
 * are cut short) or -ENOMEM; @c is empty then.
 */
int captured_set(struct captured *c, const void *data, size_t len);
void captured_deinit(struct captured *c);

/*
 * The memory that consists of these blocks, with what is below; @c must outlive it. A span that is
 * read must lie within one block.
 */
struct memory captured_memory(const struct captured *c);

#endif
