/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory of another process, read a page at a time and kept for a while.
 *
 * To find out what a process is made of takes thousands of reads of a word or two, nearly all of
 * them from a few hundred pages, and each read is a system call, or two switches to the process
 * that makes it (remote.h). Here a page is read when the first word of it is asked for.
 *
 * What is kept is a copy as of then. memory_refresh() drops it: a reader that looks again at what
 * changes calls that first. A page is read as a whole or not at all, as the kernel maps it. Pieces
 * longer than PAGE_CACHE_PIECE are read from the memory below. Not thread-safe.
 */
#ifndef RBPF_TARGET_PAGE_CACHE_H
#define RBPF_TARGET_PAGE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

struct memory;

#define PAGE_CACHE_PAGES 1024u /* a power of 2 */
#define PAGE_CACHE_PIECE 8192u

struct page_cache {
	const struct memory *below;	 /* not owned */
	uint64_t addr[PAGE_CACHE_PAGES]; /* of the page in each slot, with bit 0 set; 0: none */
	bool whole[PAGE_CACHE_PAGES];	 /* it could be read */
	uint8_t *bytes;			 /* of the slots; owned */
};

/* @below must outlive @c. Returns 0 or -ENOMEM. */
int page_cache_init(struct page_cache *c, const struct memory *below);
void page_cache_deinit(struct page_cache *c);

/* The memory to be read from; @c must outlive it. */
struct memory page_cache_memory(struct page_cache *c);

#endif
