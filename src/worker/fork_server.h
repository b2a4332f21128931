/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes worker processes. It is a process that is forked before rbpf has anything that a worker is
 * not to have: BPF maps in shared memory, descriptors, the names of other users' programs. It has
 * dropped all privileges (sandbox.h) and reads nothing but rbpf's requests. A worker is a fork of
 * it, but rbpf's child (CLONE_PARENT), so that rbpf can wait for it, and knows that its pid is not
 * another process's.
 *
 * Not thread-safe.
 */
#ifndef RBPF_WORKER_FORK_SERVER_H
#define RBPF_WORKER_FORK_SERVER_H

#include <stdint.h>
#include <sys/types.h>

struct fork_server {
	pid_t pid; /* -1: none */
	int sock;  /* owned */
};

#define FORK_SERVER_INIT                                                                           \
	{                                                                                          \
		.pid = -1, .sock = -1                                                              \
	}

/* The main function of a worker, called in the new process, which ends when it returns. */
typedef void fork_server_main_fn(int sock, int memfd, uint64_t max_memory);

/*
 * Make @k, FORK_SERVER_INIT before, one whose workers are @worker_main, which may take @max_memory
 * bytes each. Returns 0 or -errno.
 */
int fork_server_start(struct fork_server *k, fork_server_main_fn *worker_main, uint64_t max_memory);

/* End it, and wait for that. Its workers do not end by this. Accepts FORK_SERVER_INIT. */
void fork_server_stop(struct fork_server *k);

/*
 * Make a worker that has @sock and @memfd, which stay the caller's. *@ret is a child of this
 * process. Returns 0 or -errno.
 */
int fork_server_spawn(struct fork_server *k, int sock, int memfd, pid_t *ret);

#endif
