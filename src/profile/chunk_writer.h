/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The output of a recorder: chunks, compressed, checksummed and written one after the other.
 *
 * It knows nothing of what is inside a chunk. The first failure is kept: a failed write leaves a
 * partial chunk at the end of the file, which readers drop, and nothing can be appended behind it.
 * That a limit was reached (file_limit.h) is no failure: its owner has to look, and to come to an
 * end. Not thread-safe; the thread that it may have is its own business.
 */
#ifndef RBPF_PROFILE_CHUNK_WRITER_H
#define RBPF_PROFILE_CHUNK_WRITER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "base/err.h"
#include "profile/file_limit.h"
#include "profile/output.h"
#include "rbpf_file.h"

struct buf;
struct write_behind;

/* What happened in the thread that writes. */
struct chunk_written {
	pthread_mutex_t lock; /* for what is below */
	uint64_t left;	      /* bytes that are to be written */
	uint64_t bytes;	      /* that were */
	uint64_t sampled;     /* when so many are, samples are among them; 0: none were given */
	uint64_t free;	      /* as of file_limit_free(), when a chunk was written last */
	struct err err;	      /* a failure, and … */
	struct err full;      /* … that there is little space left; code 0: none */
};

struct chunk_writer {
	struct output_file out;
	char *name; /* for messages; owned */
	bool sync;
	uint64_t bytes;	 /* written, or to be written; after a failure, those that were */
	struct err err;	 /* the first failure; code 0 while all is well */
	struct err full; /* the limit that was reached first; code 0: none was */
	struct file_limit limit;
	uint64_t synced_ns; /* CLOCK_MONOTONIC: last; for whoever writes alone */
	struct chunk_written written;
	struct write_behind *behind; /* the thread; NULL: the caller writes; owned */
	z_stream zlib;
	bool zlib_ready; /* if not, nothing is compressed */
	uint8_t *stored; /* room for a compressed chunk; owned */
	size_t cap_stored;
};

/* Where chunks go. */
struct chunk_output {
	const char *path; /* as output_open() opens it; or if it is NULL: */
	int memory; /* a copy of this descriptor; chunks are not compressed then, for who reads them
		       does so at once */
	bool force; /* as of output_open() */
	bool sync;  /* sync what was written, about once a second */
	uint64_t max_bytes; /* see file_limit.h; 0: any number */
};

/*
 * Open @out, and write the header of a file of format version @major. A regular file gets its name
 * when the first samples have been written.
 * Whatever the result, @w must then be released with chunk_writer_deinit().
 * Returns 0 or -errno; @w->err tells.
 */
int chunk_writer_init(struct chunk_writer *w, const struct chunk_output *out, uint16_t major,
		      uint64_t start_realtime_ns, uint64_t start_monotonic_ns);

/*
 * Close, if chunk_writer_close() has not, and release all. A file without its name is removed.
 */
void chunk_writer_deinit(struct chunk_writer *w);

/*
 * From now on a thread writes, so that who makes chunks does not wait for a slow disk, while that
 * is no more than CHUNK_WRITER_BEHIND bytes behind. Failures are told by a later call then, the
 * last ones by chunk_writer_close(). Returns 0 or -ENOMEM, as @w->err tells.
 */
#define CHUNK_WRITER_BEHIND (16u << 20)
int chunk_writer_write_behind(struct chunk_writer *w);

/* Take what happened in the thread meanwhile: @w->err and @w->full tell. Returns @w->err.code. */
int chunk_writer_poll(struct chunk_writer *w);

/* Write @raw, of at most RBPF_FILE_MAX_CHUNK bytes, as one chunk. Returns 0 or -errno. */
int chunk_writer_write(struct chunk_writer *w, enum rbpf_chunk_type type, const struct buf *raw,
		       bool has_samples);

/*
 * Whether the file system has room for @bytes that can be left out, as of the last chunk that was
 * written: file_limit_has_room().
 */
bool chunk_writer_has_room(struct chunk_writer *w, uint64_t bytes);

/*
 * Wait until all is written and close the file, for the errors that only this reports. @complete:
 * it gets its name also without samples. Returns w->err.code.
 */
int chunk_writer_close(struct chunk_writer *w, bool complete);

/* Make -ENOMEM the failure that is kept, and return it. */
int chunk_writer_oom(struct chunk_writer *w);

#endif
