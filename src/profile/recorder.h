/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writing a recording as it happens.
 *
 * The file (include/rbpf_file.h, rbpf-file(5)) is a header and a row of checksummed chunks in which
 * every definition precedes its use: each prefix that ends at a chunk boundary is a whole
 * recording, so a killed rbpf costs at most the chunk that was open (at most 1 s or 256 KiB), and
 * what waits for a slow disk if a thread writes (recorder_options.behind).
 * Nothing is ever written behind the end, so the output may be a pipe.
 *
 * The recorder remembers definitions (strings, frames, stacks, …) so that each is written once, and
 * no samples: memory grows with the variety of a program, not with time, and sink_forget() and
 * sink_forget_stacks() give it back. Of processes and threads it remembers those of which samples
 * may still come: sink_process_gone(), sink_thread_gone(). Not thread-safe.
 *
 * Failures to write are sticky: the first is kept, later calls return it at once. The process must
 * ignore SIGPIPE, so that a reader of a pipe that goes away is one of them (-EPIPE).
 */
#ifndef RBPF_PROFILE_RECORDER_H
#define RBPF_PROFILE_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"
#include "profile/sink.h"

struct err;
struct recorder;
struct source_heat;

/*
 * Of so many requests, the newest, it is known which thread they are of. A sample of an older one
 * is taken if the one before of its thread was of it, too.
 */
#define RECORDER_REQUESTS_KEPT 65536

struct recorder_options {
	const char *path;   /* "-" is stdout; or if it is NULL: */
	int memory;	    /* a descriptor, which stays open; nothing is compressed then */
	bool force;	    /* overwrite a file that is no recording */
	bool sync;	    /* fdatasync() about once a second, against power loss */
	bool behind;	    /* a thread writes: chunk_writer_write_behind() */
	bool sources;	    /* find out which source files have samples */
	uint64_t max_bytes; /* recorder_full() beyond so many; 0: none */
};

/*
 * Create the file, with mode 0600 and owned by the user who ran sudo, and write the header and
 * @meta, whose strings are not kept. It gets its name with the first samples, or when it is
 * complete (output_take_name()): until then what has that name stays. Samples are of the events of
 * @meta. Unless that is CPU time alone, the file has a format version that an rbpf which knows only
 * CPU time refuses (rbpf_file.h).
 *
 * An older recording of that name is kept as PATH.old, an empty file is replaced, and any other
 * file is refused (-EEXIST) unless forced; so is a PATH.old that would be lost and is no recording.
 * A recording that is being written is refused, too, as is a PATH.old (-EBUSY).
 * A symbolic link is never followed (-ELOOP). A device or fifo is written in place. A file system
 * that has no space left but for root is refused (-ENOSPC).
 */
int recorder_open(const struct recorder_options *opts, const struct profile_meta *meta,
		  struct recorder **ret, struct err *err);

/*
 * Write TOTALS and close. @totals NULL leaves the recording marked as interrupted; without samples
 * it is removed then.
 * Always frees @rec (which may be NULL), also on error.
 */
int recorder_close(struct recorder *rec, const struct profile_totals *totals, struct err *err);

/*
 * What takes the definitions and samples of the recording, valid until it is closed. A process and
 * a thread can be amended by it; all other definitions are written once.
 */
struct sink *recorder_sink(struct recorder *rec);

/*
 * Which source files have samples, by process: of what the sink was given so far. Whoever reads
 * them looks at it often, for what is of processes that ended is only dropped by
 * source_heat_collect(). NULL without recorder_options.sources.
 */
struct source_heat *recorder_source_heat(struct recorder *rec);

/*
 * Keep the @len bytes of @text as those of the source file @path, as frames name it. Returns 0,
 * -E2BIG (more than RBPF_FILE_MAX_SOURCE, or with those before than RBPF_FILE_MAX_SOURCES), -ENOSPC
 * (the space that is left is needed for samples) or the sticky failure.
 */
int recorder_source(struct recorder *rec, const char *path, const char *text, size_t len);

/*
 * Close the open chunk if it is older than 1 s (or always, with @force). To be called a few times a
 * second, also when nothing happens: how often decides what a kill can cost beyond that second.
 */
int recorder_flush(struct recorder *rec, bool force);

/*
 * Whether it is time to close the recording, as it has reached max_bytes (-EFBIG) or its file
 * system has little space left (-ENOSPC): see file_limit.h. No failure: it still takes all that it
 * is given. Looked at with each chunk that is written. Returns 0 or why; @err says it in words.
 */
int recorder_full(struct recorder *rec, struct err *err);

/* The sticky failure, whose message is for people, or 0. */
int recorder_error(const struct recorder *rec, struct err *err);

/* Bytes written so far, or to be written. */
uint64_t recorder_bytes(const struct recorder *rec);

#endif
