/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A process that reads other processes for rbpf: their memory, and their files in /proc. Such a
 * read may wait for a program of any user: a page of memory may be that of a file whose server does
 * not answer, and the kernel has locks that a process can hold for as long as it likes, above all
 * while it executes another program. The wait ends only with the reader. So the reader is a process
 * that rbpf can do without: a copy of it that keeps no file of it open and no privilege but those
 * to read.
 *
 * One request at a time, in memory that both share. A reader that is left behind keeps that memory;
 * the next one gets new memory, so that nothing changes under who reads the answers.
 *
 * Not thread-safe.
 */
#ifndef RBPF_TARGET_PROXY_H
#define RBPF_TARGET_PROXY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROXY_MAX_SPANS 64u
#define PROXY_MAX_BYTES (256u << 10) /* of an answer */
#define PROXY_MAX_NAME	64u	     /* of a file in /proc/PID, with its NUL */

/* A process may sleep for so long in a read before it is looked at who is waited for. */
#define PROXY_FIRST_NS	5000000ull
#define PROXY_SLICE_NS	50000000ull /* between two looks after that */

enum proxy_op {
	PROXY_MEMORY, /* the spans, one behind the other in bytes */
	PROXY_OPEN,   /* up to len bytes of /proc/PID/name from its beginning; it stays open */
	PROXY_READ,   /* up to len bytes that follow */
	PROXY_LINK,   /* where the link /proc/PID/name leads */
};

struct proxy_span {
	uint64_t addr;
	uint32_t len;
	uint32_t ok; /* 1: all of it was read */
};

struct proxy_request {
	enum proxy_op op;
	pid_t pid;
	uint32_t pad;
	uint64_t program; /* see memory_files_read() */
	uint32_t n;	  /* spans; together at most PROXY_MAX_BYTES */
	uint32_t len;	  /* at most PROXY_MAX_BYTES */
	/*
	 * The answer to the others than PROXY_MEMORY: the number of bytes, fewer than len only at
	 * the end; or -errno.
	 */
	int32_t result;
	struct proxy_span spans[PROXY_MAX_SPANS];
	char name[PROXY_MAX_NAME];
	char bytes[PROXY_MAX_BYTES];
};

struct proxy_shared;

struct proxy {
	pid_t owner;		     /* who has started it: not a process that was forked since */
	pid_t pid;		     /* 0: there is none */
	struct proxy_shared *shared; /* owned; NULL: none yet */
	uint64_t ended_ns;	     /* CPU time of those that were left behind */
	uint64_t awake_ns;	     /* CPU time and time without a CPU of it when last looked at */
};

#define PROXY_INIT                                                                                 \
	{                                                                                          \
		.pid = 0                                                                           \
	}

/* For how many ns @pid may be waited for; asked for once it has been for PROXY_FIRST_NS. */
typedef uint64_t proxy_patience_fn(void *arg, pid_t pid);

/*
 * The request to be filled in, valid until the next proxy_run() or proxy_deinit(); with the process
 * that will execute it. NULL: no memory, or no process can be made.
 */
struct proxy_request *proxy_prepare(struct proxy *p);

/*
 * Have the request executed. @slept_ns: how long the process slept for it, 0 if less than
 * PROXY_FIRST_NS. Returns 0 (the request tells the rest), or
 *
 *	-ETIMEDOUT	it sleeps for longer than @patience permits: the process was killed, and
 **@left is its pid if that did not end it -EINTR		stop_overdue(); the same holds
 *	-EPIPE		somebody has killed the process, twice
 */
int proxy_run(struct proxy *p, proxy_patience_fn *patience, void *arg, uint64_t *slept_ns,
	      pid_t *left);

/* CPU time in ns of the processes so far. */
uint64_t proxy_cpu_ns(const struct proxy *p);

void proxy_deinit(struct proxy *p);

#endif
