/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/record_writer.h"

#include "base/clock.h"

void record_writer_init(struct record_writer *w, uint64_t base_ts)
{
	*w = (struct record_writer) { .chunks.out = OUTPUT_INIT, .base_ts = base_ts };
}

void record_writer_deinit(struct record_writer *w)
{
	chunk_writer_deinit(&w->chunks);
	buf_deinit(&w->chunk);
}

static int close_chunk(struct record_writer *w)
{
	int r;

	if (w->chunks.err.code)
		return w->chunks.err.code;
	if (!w->chunk.len)
		return 0;
	r = chunk_writer_write(&w->chunks, RBPF_CHUNK_DATA, &w->chunk, w->has_sample);
	buf_reset(&w->chunk);
	w->has_sample = false;
	return r;
}

int record_writer_flush(struct record_writer *w, bool force)
{
	if (chunk_writer_poll(&w->chunks))
		return w->chunks.err.code;
	if (!w->chunk.len)
		return 0;
	if (!force && clock_ns(CLOCK_MONOTONIC) - w->opened_ns < RBPF_FILE_CHUNK_AGE_NS)
		return 0;
	return close_chunk(w);
}

int record_writer_sample(struct record_writer *w, uint64_t ts)
{
	int r = 0;

	if (w->has_sample && ts > w->first_ts && ts - w->first_ts >= RBPF_FILE_CHUNK_AGE_NS)
		r = close_chunk(w);
	if (r)
		return r;
	if (!w->has_sample) {
		w->first_ts = ts;
		w->has_sample = true;
	}
	return 0;
}

/* After bytes were added to the chunk, which had @old_len bytes before. */
static int chunk_grew(struct record_writer *w, size_t old_len)
{
	if (buf_failed(&w->chunk))
		return chunk_writer_oom(&w->chunks);
	if (!old_len)
		w->opened_ns = clock_ns(CLOCK_MONOTONIC);
	return w->chunk.len >= RBPF_FILE_CHUNK_BYTES ? close_chunk(w) : 0;
}

int record_write_string(struct record_writer *w, const char *s, size_t len)
{
	size_t old_len = w->chunk.len;

	buf_add_varint(&w->chunk, RBPF_FILE_REC_STRING);
	buf_add_varint(&w->chunk, len);
	buf_add(&w->chunk, s, len);
	return chunk_grew(w, old_len);
}

int record_end(struct record_writer *w, struct record *r)
{
	size_t old_len = w->chunk.len;

	r->bytes[1] = (uint8_t)(r->len - 2);
	buf_add(&w->chunk, r->bytes, r->len);
	return chunk_grew(w, old_len);
}
