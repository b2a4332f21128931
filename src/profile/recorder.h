/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writing a recording as it happens.
 *
 * The file (include/rbpf_file.h, rbpf-file(5)) is a header and a row of checksummed chunks in which
 * every definition precedes its use: each prefix that ends at a chunk boundary is a whole
 * recording, so a killed rbpf costs at most the chunk that was open (at most 1 s or 256 KiB).
 * Nothing is ever written behind the end, so the output may be a pipe.
 *
 * The recorder remembers definitions (strings, frames, stacks, …) so that each is written once, and
 * no samples: memory grows with the variety of a program, not with time, and recorder_forget() gives
 * it back. Not thread-safe.
 *
 * Failures to write are sticky: the first is kept, later calls return it at once. The process must
 * ignore SIGPIPE, so that a reader of a pipe that goes away is one of them (-EPIPE).
 */
#ifndef RBPF_PROFILE_RECORDER_H
#define RBPF_PROFILE_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"

struct err;
struct recorder;

struct recorder_options {
	const char *path; /* "-" is stdout */
	bool force;	  /* overwrite a file that is no recording */
	bool sync;	  /* fdatasync() each chunk, against power loss */
};

/*
 * Create the file, with mode 0600 and owned by the user who ran sudo, and write the header and
 * @meta, whose strings are not kept. Samples are of the events of @meta. Unless that is CPU time
 * alone, the file has a format version that an rbpf which knows only CPU time refuses (rbpf_file.h).
 *
 * An older recording of that name is kept as PATH.old, an empty file is replaced, and any other
 * file is refused (-EEXIST) unless forced; so is a PATH.old that would be lost and is no recording.
 * A symbolic link is never followed (-ELOOP). A device or fifo is written in place.
 */
int recorder_open(const struct recorder_options *opts, const struct profile_meta *meta,
		  struct recorder **ret, struct err *err);

/*
 * Write TOTALS and close. @totals NULL leaves the recording marked as interrupted.
 * Always frees @rec (which may be NULL), also on error.
 */
int recorder_close(struct recorder *rec, const struct profile_totals *totals, struct err *err);

/*
 * Definitions. The returned ids are those of profile.h. All return 0, -ENOMEM, -E2BIG (there are
 * RBPF_FILE_MAX_IDS already, or the stack is deeper than RBPF_FILE_MAX_DEPTH), -EINVAL (an id in
 * @def was not returned by this recorder), or the sticky failure; *@ret is written only on success.
 *
 * recorder_string() sanitises, and cuts what is longer than RBPF_FILE_MAX_STRING.
 */
int recorder_string(struct recorder *rec, const char *s, size_t len, uint32_t *ret);
int recorder_process(struct recorder *rec, const struct profile_process *def, uint32_t *ret);
int recorder_thread(struct recorder *rec, uint32_t process, uint32_t tid, uint32_t name,
		    uint32_t *ret);
int recorder_module(struct recorder *rec, const struct profile_module *def, uint32_t *ret);
int recorder_frame(struct recorder *rec, const struct profile_frame *def, uint32_t *ret);
int recorder_stack(struct recorder *rec, uint32_t parent, uint32_t frame, uint32_t *ret);

/*
 * Changes to what was defined. Processes and threads are not interned (each call of
 * recorder_process and recorder_thread makes a new id); these amend an existing one, for all of the
 * recording. The exit of a process is taken from recorder_process_exit() alone; @status is what
 * wait(2) gives, -1 if unknown.
 */
int recorder_process_update(struct recorder *rec, uint32_t process,
			    const struct profile_process *def); /* after exec, or Ruby found */
int recorder_thread_name(struct recorder *rec, uint32_t thread, uint32_t name);
int recorder_thread_cpu(struct recorder *rec, uint32_t thread, uint64_t cpu_ns);
int recorder_process_exit(struct recorder *rec, uint32_t process, uint64_t ts, int status);

/* Samples, each of an event of the recording (else -EINVAL), and losses. */
int recorder_sample(struct recorder *rec, const struct profile_sample *sample);
int recorder_lost(struct recorder *rec, const struct profile_lost *lost);

/*
 * Close the open chunk if it is older than 1 s (or always, with @force). To be called a few times a
 * second, also when nothing happens: how often decides what a kill can cost beyond that second.
 */
int recorder_flush(struct recorder *rec, bool force);

/*
 * Forget what was defined, to give its memory back: what is defined again gets new ids. Those from
 * before stay valid.
 */
void recorder_forget(struct recorder *rec);

/* The sticky failure, whose message is for people, or 0. */
int recorder_error(const struct recorder *rec, struct err *err);

/* Bytes written so far. */
uint64_t recorder_bytes(const struct recorder *rec);

#endif
