/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A render: a command of rbpf that runs in a process of its own, with a recording as its only open
 * file, until it has written its output, or its time is up.
 *
 * A process that ran out of memory or time is one answer lost; the process that started it goes on.
 * The caller must be confined (confine.h): a render has its user and its limit of memory.
 */
#ifndef RBPF_SERVE_RENDER_H
#define RBPF_SERVE_RENDER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SERVE_RENDER_MAX_NS	(20ull * 1000000000)
#define SERVE_RENDER_MAX_MEMORY (1ull << 30)   /* bytes of address space beyond what there is */
#define SERVE_RENDER_MAX_OUTPUT (256ull << 20) /* bytes */
#define SERVE_RENDER_PATH	"/dev/fd/3"    /* the recording */

/*
 * Run a command, with @arg of who started it, argv[0] to argv[argc - 1], and return its exit
 * status. In the new process.
 */
typedef int serve_run_fn(void *arg, int argc, char **argv);

struct serve_render {
	pid_t pid;
	int pidfd;	      /* owned, as are: */
	int out, why;	      /* memfds: its standard output and standard error */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
};

#define SERVE_RENDER_INIT                                                                          \
	{                                                                                          \
		.pid = -1, .pidfd = -1, .out = -1, .why = -1                                       \
	}

/*
 * Start @run with the @len bytes of @words, each of which ends in a NUL, and with the recording
 * @fd, which stays the caller's. Returns 0 or -errno; @ret is written only on success.
 */
int serve_render_start(serve_run_fn *run, void *arg, const char *words, size_t len, int fd,
		       struct serve_render *ret);

/*
 * Whether it has ended; one whose time is up is killed first. Returns -EAGAIN if not, the exit
 * status if it ended by itself, or -ETIMEDOUT (time is up), -EPERM (a forbidden system call),
 * -ECANCELED (by another signal).
 */
int serve_render_ended(struct serve_render *r, uint64_t now);

/* Kill it if it runs, and close all. Accepts SERVE_RENDER_INIT. */
void serve_render_deinit(struct serve_render *r);

#endif
