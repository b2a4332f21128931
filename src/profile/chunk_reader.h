/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads the chunks of a recording, one after the other: checks and uncompresses them.
 *
 * To uncompress chunks takes about as long as to decode what is in them, so a thread can do it
 * ahead of the caller. What the caller gets, in which order, does not depend on that.
 *
 * It knows nothing of records and JSON. A chunk_reader is for one thread; its own thread touches
 * nothing but the chunk_reader and what is read.
 */
#ifndef RBPF_PROFILE_CHUNK_READER_H
#define RBPF_PROFILE_CHUNK_READER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rbpf_file.h"

struct libdeflate_decompressor;

/* Where the bytes come from. */
struct source {
	int fd;		    /* -1: memory; not owned */
	const uint8_t *mem; /* not owned */
	size_t mem_len;
	uint64_t pos; /* bytes read */
};

struct chunk {
	struct rbpf_chunk_header header;
	bool known;	  /* its type and flags are among those of rbpf_file.h */
	int payload_code; /* 0; -EBADMSG if the payload is not of header.raw_len bytes, -ENOMEM */
	/* header.raw_len bytes, unless payload_code is not 0, it is a NOTE or not known */
	const uint8_t *payload;
	uint64_t end; /* bytes of the file up to the end of this chunk */
};

/*
 * Successive chunks, of STRETCH_BYTES or a little more in all: with one chunk each second, threads
 * that took turns for each chunk would do little else.
 */
#define STRETCH_CHUNKS 64u
#define STRETCH_BYTES  (256u << 10)

struct stretch {
	struct chunk chunks[STRETCH_CHUNKS];
	size_t offsets[STRETCH_CHUNKS]; /* of the payloads in bytes */
	size_t n_chunks;
	size_t n_taken; /* of these, what chunk_reader_next() gave */
	int code;	/* what it returns after the last one; 0: there are more stretches */
	uint8_t *bytes; /* owned */
	size_t n_bytes, cap_bytes;
};

/* One is the caller's, one is being filled, the third evens out who is faster. */
#define CHUNK_READER_STRETCHES 3u

struct chunk_reader {
	struct source src;			  /* the thread's while it runs, as what follows */
	struct libdeflate_decompressor *inflater; /* owned; NULL until it is needed */
	uint8_t *stored;			  /* a payload as stored; owned */
	size_t cap_stored;

	struct stretch stretches[CHUNK_READER_STRETCHES];
	struct stretch *current; /* that the caller has; NULL before the first */

	pthread_t thread;
	bool threaded;	      /* thread is to be joined */
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	uint64_t n_filled; /* stretch i is stretches[i % CHUNK_READER_STRETCHES] */
	uint64_t n_used;   /* stretches that the caller is done with */
	bool stop;	   /* the thread is to end */
};

/* Read chunks of @src from where it is. Release with chunk_reader_deinit(). */
void chunk_reader_init(struct chunk_reader *cr, const struct source *src);
void chunk_reader_deinit(struct chunk_reader *cr);

/*
 * Read up to @want bytes of what comes next, fewer only at the end. Not after chunk_reader_start().
 */
int chunk_reader_bytes(struct chunk_reader *cr, void *to, size_t want, size_t *ret_len);

/*
 * Read ahead from now on; the chunk before is then no longer valid. If there can be no further
 * thread, all goes on without. To be called once at most.
 */
void chunk_reader_start(struct chunk_reader *cr);

/*
 * The next chunk, valid until the next call. Returns 0; -ENODATA at the end of the file, -EBADMSG
 * if what comes is no whole chunk, -ENOMEM, and other errors of reading. After a failure or TOTALS
 * there must be no further call.
 */
int chunk_reader_next(struct chunk_reader *cr, const struct chunk **ret);

/*
 * Read no chunk any more, but go to the end; *@ret is then the length of it all. Returns 0 or
 * -errno.
 */
int chunk_reader_drain(struct chunk_reader *cr, uint64_t *ret);

#endif
