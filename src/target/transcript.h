/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What was read of a process, piece by piece, where each piece tells the address of the next.
 * Whether all of it is still the same takes one read instead of many, and then what was made of it
 * is so, too.
 *
 * Not thread-safe.
 */
#ifndef RBPF_TARGET_TRANSCRIPT_H
#define RBPF_TARGET_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/memory.h"

#define TRANSCRIPT_SPANS 16u
#define TRANSCRIPT_BYTES 512u

struct transcript {
	const struct memory *from;
	struct {
		uint64_t addr;
		uint32_t len;
	} spans[TRANSCRIPT_SPANS];
	unsigned int n;
	uint8_t bytes[TRANSCRIPT_BYTES]; /* of the spans, one behind the other */
	size_t len;
	bool is_whole; /* all that was read is in it, and all could be read */
};

/*
 * Memory that is read from @from, which must outlive it, as must @t: what is read through it is
 * noted there.
 */
struct memory transcript_memory(struct transcript *t, const struct memory *from);

/*
 * Set @spans, of which there are TRANSCRIPT_SPANS, to read all of it again into @bytes, of which
 * there are TRANSCRIPT_BYTES. Returns how many spans that are.
 */
size_t transcript_again(const struct transcript *t, struct memory_span *spans, uint8_t *bytes);

#endif
