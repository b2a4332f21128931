/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Holds native stacks and samples of one process while the files that name those stacks are being
 * read. They are processed later, in their order. What must not wait, Ruby stacks above all, is
 * processed meanwhile.
 */
#ifndef RBPF_SAMPLE_HELD_H
#define RBPF_SAMPLE_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct held_record {
	uint32_t size; /* of the record that follows, in bytes; the next one is at the next multiple
			  of 8 */
	uint32_t with_ruby; /* of a sample: whether a Ruby was known in its process when it came */
};

/* All zero: nothing is held. */
struct held {
	uint64_t *words; /* owned */
	size_t first, n; /* words: where the first one is, and where the last one ends */
	size_t cap;
};

/* Hold a copy of the @size bytes of @rec. Returns 0 or -ENOMEM. */
int held_add(struct held *h, const void *rec, size_t size, bool with_ruby);

/*
 * The head of the oldest record, which follows it; NULL: nothing is held. Valid until held_add().
 */
const struct held_record *held_first(const struct held *h);

/*
 * Forget the oldest record. Its memory is used again when half of all is such, and given back with
 * the last record.
 */
void held_pop(struct held *h);

/* What is held still takes so much. */
size_t held_bytes(const struct held *h);
void held_deinit(struct held *h);

#endif
