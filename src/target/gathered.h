/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory of another process, read for many readers at once.
 *
 * A reader that follows pointers makes a call for each of them, since what it has read says where
 * to read next. Here many readers share the calls. What one asks for and is not there yet is noted,
 * and cannot be read; gathered_fetch() reads all that was noted in as few calls as possible; then
 * each reader that missed something begins again, and gets further. So there are about as many
 * calls as the longest chain of pointers has members, however many readers there are.
 *
 * What is there is a copy as of the time of the call that read it. Who has to prove that something
 * is still the same reads the memory below. A copy is kept until gathered_deinit(): use one for
 * what is read together, and then another.
 *
 * Blocks of GATHERED_BLOCK bytes are read; they never cross a page. Where one cannot be read as a
 * whole, and once there are GATHERED_BLOCKS, the memory below is read at once. Not thread-safe.
 */
#ifndef RBPF_TARGET_GATHERED_H
#define RBPF_TARGET_GATHERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"

struct memory;
struct memory_span;

#define GATHERED_BLOCK	4096u
#define GATHERED_BLOCKS 1024u

struct gathered {
	const struct memory *below; /* not owned */
	struct intern addrs;	    /* of blocks: the id is the index of … */
	bool *whole;		    /* whether it could be read; owned */
	size_t cap_whole;
	uint8_t *bytes; /* of the blocks that were fetched; owned */
	size_t cap_bytes;
	size_t n_fetched;
	struct memory_span *spans; /* owned */
	size_t cap_spans;
	bool missed; /* something was not there; to be cleared before a reader begins */
};

/* @below must outlive @g. */
void gathered_init(struct gathered *g, const struct memory *below);
void gathered_deinit(struct gathered *g);

/* The memory to be read from; @g must outlive it. */
struct memory gathered_memory(struct gathered *g);

/* Read what was missed. Returns 0 or -ENOMEM. */
int gathered_fetch(struct gathered *g);

#endif
