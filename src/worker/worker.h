/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One worker process, and one request at a time to it: sending it, waiting for the answer without
 * waiting for ever, and making another process when that one is of no use any more. What requests
 * and answers mean is file_worker.h's.
 *
 * A worker is given up when it uses more CPU time than a request may take (by its own clock, so a
 * busy machine is no reason), when it neither answers nor uses CPU time nor waits for a CPU (the
 * file is on something that does not answer), when it says what nobody asked for, and when it ends.
 * It is killed then and not waited for: one that hangs in the kernel is left behind, and only so
 * many are.
 *
 * Not thread-safe.
 */
#ifndef RBPF_WORKER_WORKER_H
#define RBPF_WORKER_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "elf/debug_file.h"
#include "worker/channel.h"

#define WORKER_MAX_CPU_NS 5000000000ull	 /* of a request */
#define WORKER_STALL_NS	  2000000000ull	 /* without an answer or the use of CPU time */
#define WORKER_LIFE_NS	  60000000000ull /* of CPU time, after which there is a new one */
#define WORKER_MAX_OPENS  64		 /* other files that a request may ask for */
#define WORKER_MAX_STUCK  8		 /* killed, but not gone yet */

/* Why there is no answer. */
enum worker_failure {
	WORKER_OK,
	WORKER_CRASHED,
	WORKER_TOO_LONG,
	WORKER_HUNG,
	WORKER_TOO_MUCH, /* memory, or an answer that is too large */
	WORKER_LIED,
	WORKER_STOPPED,	    /* rbpf is to end: it says nothing of the file */
	WORKER_UNAVAILABLE, /* no process could be made */
};

/* A new process with @sock and @memfd; as fork_server_spawn(). */
typedef int worker_spawn_fn(void *arg, int sock, int memfd, pid_t *ret);

struct worker_options {
	worker_spawn_fn *spawn;
	void *spawn_arg;
	debug_file_open_fn *open; /* for files that a request asks for; NULL: none */
	void *open_arg;
	uint64_t max_cpu_ns, stall_ns; /* 0: as above */
};

struct worker {
	struct worker_options opts;
	pid_t pid; /* -1: none */
	int sock, memfd;
	pid_t stuck[WORKER_MAX_STUCK]; /* 0: none */
	uint64_t ended_ns;	       /* CPU time of processes before this one */

	/* The request that is not answered yet. */
	bool busy;
	char root[32]; /* of the target */
	const char *roots[2];
	uid_t owner; /* of the file; -1: not known */
	size_t n_roots, n_opens;
	size_t max_answer;
	uint64_t max_cpu_ns;
	uint64_t cpu_ns;     /* CPU time of the process when it began … */
	uint64_t seen_ns;    /* … and when it was last seen to have used some … */
	uint64_t seen_at_ns; /* … which was then, CLOCK_MONOTONIC */
};

/* Make @w one that has no process yet. */
void worker_init(struct worker *w, const struct worker_options *opts);
void worker_deinit(struct worker *w);

/* A request. Nothing in it is needed after worker_send(). */
struct worker_call {
	enum worker_op op;
	uint64_t number, other;
	int fd;		  /* -1: none; stays the caller's */
	const char *path; /* of fd as its process sees it; NULL: no other files are to be had */
	pid_t pid;	  /* whose root other files are in */
	const void *args;
	size_t args_size;
	size_t max_answer;   /* bytes */
	uint64_t max_cpu_ns; /* 0: that of the options */
};

struct worker_answer {
	int result; /* 0 or -errno, as the worker says */
	void *data; /* owned by the caller; NULL if size is 0 */
	size_t size;
};

/* Make its process now, if it has none. Returns 0 or -errno. */
int worker_prepare(struct worker *w);

/*
 * Ask. The worker must not be busy. Returns WORKER_OK, and it is busy; WORKER_UNAVAILABLE,
 * WORKER_CRASHED or WORKER_TOO_MUCH.
 */
enum worker_failure worker_send(struct worker *w, const struct worker_call *call);

/*
 * See whether there is an answer, and wait for at most @timeout ms for one. Returns 0, -EAGAIN if
 * there is none yet, or -EIO with the reason in *@why. But for -EAGAIN it is not busy then.
 */
int worker_receive(struct worker *w, int timeout, struct worker_answer *ret,
		   enum worker_failure *why);

/* CPU time in ns of all of its processes so far. */
uint64_t worker_cpu_ns(const struct worker *w);

/* Give up what it is busy with. */
void worker_abandon(struct worker *w);

#endif
