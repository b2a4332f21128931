/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What can be read of another process: its memory, and its files in /proc. Nothing else in src/
 * reads them, because the process may keep the reader waiting for ever (proxy.h). Here it is waited
 * for as long as its user may be (debts.h); then it is given up, all of this fails for it at once,
 * and it is counted for the summary.
 *
 * Like the process that does the reading, what is known of others is one for the whole of rbpf. Not
 * thread-safe.
 */
#ifndef RBPF_TARGET_REMOTE_H
#define RBPF_TARGET_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct memory_span;

/* Why a process was given up, for messages. */
#define REMOTE_HANGS	 "who reads it waits for ever in the kernel"

#define REMOTE_NAMES	 4 /* of processes that were given up, that are kept */
#define REMOTE_NAME_SIZE 64

struct remote_losses {
	uint64_t processes;			    /* given up */
	char names[REMOTE_NAMES][REMOTE_NAME_SIZE]; /* the first of them: "PID (NAME)" */
	size_t n_names;
};

/*
 * Whether rbpf reads memory itself from now on, at a half of the cost or less: then a process can
 * block it (doc/worker.md). At first it does not.
 */
void remote_set_direct(bool direct);

/* memory_read_spans() of the live process @pid; @program: see memory_files_read(). */
void remote_read_memory(pid_t pid, uint64_t program, struct memory_span *spans, size_t n);

/*
 * Append all of /proc/@pid/@name to @buf, at most @max bytes (-EFBIG). Returns 0 or -errno;
 * -ETIMEDOUT if @pid was given up. After a failure @buf is as it was before.
 */
int remote_read_file(pid_t pid, const char *name, size_t max, struct buf *buf);

/*
 * Read a file that is longer in pieces: up to @size bytes of its beginning, and of what follows.
 * Nothing else of this header may be called in between. Returns how many bytes, 0 at the end, or
 * -errno as above.
 */
ssize_t remote_read_first(pid_t pid, const char *name, char *to, size_t size);
ssize_t remote_read_next(pid_t pid, char *to, size_t size);

/* readlink(2) of /proc/@pid/@name. Returns the length, at most @size, or -errno as above. */
ssize_t remote_read_link(pid_t pid, const char *name, char *to, size_t size);

/*
 * For how many ns @pid may be waited for by another process of ours. 0: it was given up, or its
 * user holds too many of them in the kernel.
 */
uint64_t remote_patience(pid_t pid);

/*
 * Another process of ours slept for @slept_ns because of @pid. @left: and it was killed, and is
 * still there; 0 if not. @give_up: no more is to be read of @pid.
 */
void remote_note_wait(pid_t pid, uint64_t slept_ns, pid_t left, bool give_up);

/* CPU time in ns that the processes that read have used. */
uint64_t remote_cpu_ns(void);

/*
 * Make those processes now, when there is little that they are a copy of. If that fails, it is
 * tried again when they are needed.
 */
void remote_prepare(void);

/* The processes that were given up so far. */
const struct remote_losses *remote_losses(void);

/* End the process that reads, and forget who was given up. For tests. */
void remote_reset(void);

#endif
