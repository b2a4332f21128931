/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The records of DATA chunks, put into chunks.
 *
 * Records are appended to one buffer, the open chunk, which is written when it is large or old. Its
 * age is looked at where that costs nothing: when the time of a sample says so, and in
 * record_writer_flush(), which covers the quiet programs.
 *
 * It knows how fields are encoded, not which a record has: record_encoder.h does. The first failure
 * is kept in chunks.err, and nothing is written after it. Not thread-safe.
 */
#ifndef RBPF_PROFILE_RECORD_WRITER_H
#define RBPF_PROFILE_RECORD_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "profile/chunk_writer.h"
#include "profile/profile.h"
#include "rbpf_file.h"

struct record_writer {
	struct chunk_writer chunks; /* to be opened by the caller: chunk_writer_init() */
	struct buf chunk;	    /* records of the open chunk */
	uint64_t opened_ns;	    /* CLOCK_MONOTONIC when the chunk got its first record */
	uint64_t first_ts;	    /* time of its first sample; valid if has_sample */
	bool has_sample;
	uint64_t base_ts; /* what the next time is relative to, see rbpf_file.h */
};

/* @base_ts: start of the recording, CLOCK_MONOTONIC. */
void record_writer_init(struct record_writer *w, uint64_t base_ts);
void record_writer_deinit(struct record_writer *w);

/*
 * Write the open chunk if it is a second old (RBPF_FILE_CHUNK_AGE_NS), or in any case with @force.
 * Returns 0 or the failure that is kept.
 */
int record_writer_flush(struct record_writer *w, bool force);

/*
 * A sample of time @ts comes next: write the chunk if its first sample is a second older. Returns
 * as record_writer_flush().
 */
int record_writer_sample(struct record_writer *w, uint64_t ts);

/* Append a STRING. Returns 0 or the failure that is kept. */
int record_write_string(struct record_writer *w, const char *s, size_t len);

#define RECORD_MAX_FIELDS 12
#define RECORD_MAX_VARINT 10

/* A record of numbers, built on the stack: its kind, its length in one byte, its fields. */
struct record {
	uint8_t bytes[2 + RECORD_MAX_FIELDS * RECORD_MAX_VARINT];
	size_t len;
};

_Static_assert(RECORD_MAX_FIELDS *RECORD_MAX_VARINT < 0x80,
	       "the length of a record takes one byte");

static inline struct record record_begin(enum rbpf_file_record kind)
{
	return (struct record) { .bytes[0] = kind, .len = 2 };
}

/* Add a field; at most RECORD_MAX_FIELDS. */
static inline void record_put(struct record *r, uint64_t v)
{
	while (v >= 0x80) {
		r->bytes[r->len++] = (uint8_t)v | 0x80;
		v >>= 7;
	}
	r->bytes[r->len++] = (uint8_t)v;
}

/* Add @len bytes as they are: no more than the fields that there is no other room for. */
static inline void record_put_bytes(struct record *r, const void *bytes, size_t len)
{
	memcpy(r->bytes + r->len, bytes, len);
	r->len += len;
}

/* "opt": 0 is none. */
static inline void record_put_opt(struct record *r, uint32_t v)
{
	record_put(r, v == PROFILE_NONE ? 0 : (uint64_t)v + 1);
}

/* The next time in the file; the record must then be written. */
static inline void record_put_time(struct record_writer *w, struct record *r, uint64_t ts)
{
	int64_t delta = (int64_t)(ts - w->base_ts);

	record_put(r, ((uint64_t)delta << 1) ^ (delta < 0 ? UINT64_MAX : 0));
	w->base_ts = ts;
}

/* Append @r. Returns 0 or the failure that is kept. */
int record_end(struct record_writer *w, struct record *r);

#endif
