/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Opening files that may be on a file system whose server does not answer, as FUSE and NFS have
 * one: any system call on such a file may block for ever, in the kernel, where not even SIGKILL
 * ends it. So another process does it, a copy of this one without its files, and who wants the file
 * waits while that process works. One that sleeps for longer than the user of the target has credit
 * for (remote.h) is killed and left behind; then nothing of that root is opened for
 * OPEN_HELPER_HUNG_NS.
 *
 * Not thread-safe.
 */
#ifndef RBPF_TARGET_OPEN_HELPER_H
#define RBPF_TARGET_OPEN_HELPER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct target_file_request;

#define OPEN_HELPER_SLICE_MS 50	 /* between two checks of what the process does */
#define OPEN_HELPER_MAX_HUNG 32u /* roots that hang; of more, the first are tried again */
#define OPEN_HELPER_HUNG_NS  60000000000ull /* for which a root that hangs is left alone */
#define OPEN_HELPER_MAX_ROOT 256u	    /* bytes of a root and of a path, with their NULs */
#define OPEN_HELPER_MAX_PATH 4096u

typedef int open_helper_fn(const struct target_file_request *req);

struct open_helper_hung {
	char root[OPEN_HELPER_MAX_ROOT];
	uint64_t until_ns; /* CLOCK_MONOTONIC */
};

struct open_helper {
	open_helper_fn *open; /* what the process calls */
	pid_t owner;	      /* who has started it: not a process that was forked since */
	pid_t pid;	      /* 0: there is none yet */
	int sock;
	struct open_helper_hung hung[OPEN_HELPER_MAX_HUNG];
	size_t n_hung;
};

#define OPEN_HELPER_INIT(fn)                                                                       \
	{                                                                                          \
		.open = (fn)                                                                       \
	}

/* End the process. */
void open_helper_deinit(struct open_helper *p);

/*
 * Have the process call p->open() for @req. Returns the descriptor or the error that this returns;
 * -ETIMEDOUT (it was left behind, or the root hangs), -ENAMETOOLONG, or the error of starting a
 * process.
 */
int open_helper_run(struct open_helper *p, const struct target_file_request *req);

#endif
