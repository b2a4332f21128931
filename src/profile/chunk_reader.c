/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stretches are a ring. The thread fills one when the caller is done with the chunks that were
 * in it before. Each waits for the other only if the ring is full or empty, so one condition is
 * enough.
 *
 * The thread ends at the first chunk that is the last whatever the caller makes of it, or when it
 * is told to. A read() from a slow pipe is waited for then: the caller would read on to the end
 * itself.
 */
#include "profile/chunk_reader.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/thread.h"
#include "profile/chunk.h"

/* ---- where the bytes come from ---- */

static int source_read(struct source *src, void *to, size_t want, size_t *ret_len)
{
	size_t got = 0;

	if (src->fd < 0) {
		got = src->mem_len - (size_t)src->pos;
		if (got > want)
			got = want;
		if (got)
			memcpy(to, src->mem + src->pos, got);
	}
	while (src->fd >= 0 && got < want) {
		ssize_t n = read(src->fd, (char *)to + got, want - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	src->pos += got;
	*ret_len = got;
	return 0;
}

/* ---- one chunk ---- */

/* Read the next chunk: @ret but for its payload, which is in cr->stored. */
static int read_chunk(struct chunk_reader *cr, struct chunk *ret)
{
	struct rbpf_chunk_header *h = &ret->header;
	uint8_t bytes[sizeof(*h)];
	size_t padded, len;
	int r;

	r = source_read(&cr->src, bytes, sizeof(bytes), &len);
	if (r)
		return r;
	if (len < sizeof(bytes))
		return len ? -EBADMSG : -ENODATA;
	r = chunk_header_unpack(bytes, h);
	if (r)
		return r;
	padded = h->stored_len + chunk_padding(h->stored_len);
	/* Here and below one more, so that there is memory for an empty payload, too. */
	if (array_reserve(cr->stored, cr->cap_stored, padded + 1))
		return -ENOMEM;
	r = source_read(&cr->src, cr->stored, padded, &len);
	if (r)
		return r;
	if (len < padded || chunk_crc(cr->stored, h->stored_len) != h->payload_crc)
		return -EBADMSG;
	ret->end = cr->src.pos;
	return 0;
}

/*
 * The output is bounded by raw_len, which the header's limits bound: a zip bomb just fails. So does
 * a stream that is shorter or longer than the header says, at either end.
 */
static int inflate_stored(struct chunk_reader *cr, const struct rbpf_chunk_header *h, uint8_t *to)
{
	size_t used;

	if (!cr->inflater)
		cr->inflater = libdeflate_alloc_decompressor();
	if (!cr->inflater)
		return -ENOMEM;
	if (libdeflate_zlib_decompress_ex(cr->inflater, cr->stored, h->stored_len, to, h->raw_len,
					  &used, NULL) != LIBDEFLATE_SUCCESS)
		return -EBADMSG;
	return used == h->stored_len ? 0 : -EBADMSG;
}

/* Append the payload that is in cr->stored, uncompressed, to the bytes of @st. */
static int add_payload(struct chunk_reader *cr, const struct rbpf_chunk_header *h,
		       struct stretch *st)
{
	uint8_t *to;
	int r = 0;

	if (!(h->flags & RBPF_CHUNK_ZLIB) && h->stored_len != h->raw_len)
		return -EBADMSG;
	if (array_reserve(st->bytes, st->cap_bytes, st->n_bytes + h->raw_len + 1))
		return -ENOMEM;
	to = st->bytes + st->n_bytes;
	if (h->flags & RBPF_CHUNK_ZLIB)
		r = inflate_stored(cr, h, to);
	else
		memcpy(to, cr->stored, h->raw_len);
	if (!r)
		st->n_bytes += h->raw_len;
	return r;
}

static bool is_known(const struct rbpf_chunk_header *h)
{
	return h->type >= RBPF_CHUNK_META && h->type <= RBPF_CHUNK_SOURCE &&
	       !(h->flags & ~(RBPF_CHUNK_ZLIB | RBPF_CHUNK_IGNORABLE));
}

/* Add the next chunk to @st. *@last is set if none may follow, whatever the caller makes of it. */
static int add_chunk(struct chunk_reader *cr, struct stretch *st, bool *last)
{
	struct chunk *chunk = &st->chunks[st->n_chunks];
	int r;

	*chunk = (struct chunk) { 0 };
	r = read_chunk(cr, chunk);
	if (r)
		return r;
	chunk->known = is_known(&chunk->header);
	st->offsets[st->n_chunks++] = st->n_bytes;
	if (chunk->known && chunk->header.type != RBPF_CHUNK_NOTE)
		chunk->payload_code = add_payload(cr, &chunk->header, st);
	*last = chunk->known && chunk->header.type == RBPF_CHUNK_TOTALS;
	return 0;
}

/* Fill @st with chunks until they have @enough bytes. Returns whether they are the last ones. */
static bool fill(struct chunk_reader *cr, struct stretch *st, size_t enough)
{
	bool last = false;

	st->n_chunks = st->n_taken = st->n_bytes = 0;
	do
		st->code = add_chunk(cr, st, &last);
	while (!st->code && !last && st->n_chunks < STRETCH_CHUNKS && st->n_bytes < enough);
	/* Only now they stay where they are. */
	for (size_t i = 0; i < st->n_chunks && st->bytes; i++)
		st->chunks[i].payload = st->bytes + st->offsets[i];
	return st->code || last;
}

/* ---- ahead of the caller ---- */

static struct stretch *stretch_of(struct chunk_reader *cr, uint64_t i)
{
	return &cr->stretches[i % CHUNK_READER_STRETCHES];
}

/*
 * The stretch to fill next, once the caller is done with what is in it; NULL if the thread is to
 * end.
 */
static struct stretch *wait_for_room(struct chunk_reader *cr)
{
	struct stretch *st;

	pthread_mutex_lock(&cr->lock);
	while (!cr->stop && cr->n_filled - cr->n_used == CHUNK_READER_STRETCHES)
		pthread_cond_wait(&cr->changed, &cr->lock);
	st = cr->stop ? NULL : stretch_of(cr, cr->n_filled);
	pthread_mutex_unlock(&cr->lock);
	return st;
}

static void *read_ahead(void *arg)
{
	struct chunk_reader *cr = arg;
	struct stretch *st;
	bool last = false;

	while (!last && (st = wait_for_room(cr))) {
		last = fill(cr, st, STRETCH_BYTES);
		pthread_mutex_lock(&cr->lock);
		cr->n_filled++;
		pthread_cond_signal(&cr->changed);
		pthread_mutex_unlock(&cr->lock);
	}
	return NULL;
}

/* The next stretch that the thread filled. The one before is free for it again. */
static struct stretch *wait_for_stretch(struct chunk_reader *cr)
{
	struct stretch *st;

	pthread_mutex_lock(&cr->lock);
	if (cr->current) {
		cr->n_used++;
		pthread_cond_signal(&cr->changed);
	}
	while (cr->n_filled == cr->n_used)
		pthread_cond_wait(&cr->changed, &cr->lock);
	st = stretch_of(cr, cr->n_used);
	pthread_mutex_unlock(&cr->lock);
	return st;
}

void chunk_reader_start(struct chunk_reader *cr)
{
	cr->current = NULL;
	cr->threaded = thread_begin(&cr->thread, read_ahead, cr);
}

static void end_thread(struct chunk_reader *cr)
{
	if (!cr->threaded)
		return;
	pthread_mutex_lock(&cr->lock);
	cr->stop = true;
	pthread_cond_signal(&cr->changed);
	pthread_mutex_unlock(&cr->lock);
	pthread_join(cr->thread, NULL);
	cr->threaded = false;
}

/* ---- for the caller ---- */

void chunk_reader_init(struct chunk_reader *cr, const struct source *src)
{
	*cr = (struct chunk_reader) { .src = *src };
	pthread_mutex_init(&cr->lock, NULL);
	pthread_cond_init(&cr->changed, NULL);
}

void chunk_reader_deinit(struct chunk_reader *cr)
{
	end_thread(cr);
	for (size_t i = 0; i < CHUNK_READER_STRETCHES; i++)
		free(cr->stretches[i].bytes);
	free(cr->stored);
	libdeflate_free_decompressor(cr->inflater);
	pthread_cond_destroy(&cr->changed);
	pthread_mutex_destroy(&cr->lock);
}

int chunk_reader_bytes(struct chunk_reader *cr, void *to, size_t want, size_t *ret_len)
{
	return source_read(&cr->src, to, want, ret_len);
}

int chunk_reader_next(struct chunk_reader *cr, const struct chunk **ret)
{
	struct stretch *st = cr->current;

	if (!st || st->n_taken == st->n_chunks) {
		if (st && st->code)
			return st->code;
		if (cr->threaded) {
			st = wait_for_stretch(cr);
		} else {
			st = &cr->stretches[0];
			fill(cr, st, 0);
		}
		cr->current = st;
		if (!st->n_chunks)
			return st->code;
	}
	*ret = &st->chunks[st->n_taken++];
	return 0;
}

int chunk_reader_drain(struct chunk_reader *cr, uint64_t *ret)
{
	char skipped[16384];
	size_t len;
	int r;

	end_thread(cr);
	do
		r = source_read(&cr->src, skipped, sizeof(skipped), &len);
	while (!r && len);
	if (!r)
		*ret = cr->src.pos;
	return r;
}
