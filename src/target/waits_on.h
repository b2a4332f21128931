/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a thread waits for in its system call, as the arguments of that tell: a file, or a child.
 * The arguments lead to memory of the process, which runs on: what is read counts only if the
 * thread has not run meanwhile, as its reader has to find out.
 *
 * Not thread-safe.
 */
#ifndef RBPF_TARGET_WAITS_ON_H
#define RBPF_TARGET_WAITS_ON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rbpf_abi.h"

struct memory;
struct thread_syscall;

#define WAITS_ON_FILE_CHARS 120 /* characters of a file that are kept, of 4 bytes at most */

struct waits_on {
	int fd;	       /* of the process; -1: it waits for none, or that is not known */
	int highest;   /* of those of a select(); else as fd */
	size_t n_more; /* so many others that it waits for, too */
	/* valid UTF-8: as /proc has it, "pipe:[1234]", cut; "" if not known */
	char file[4 * WAITS_ON_FILE_CHARS + 1];
	struct rbpf_waits_on peer; /* of a socket: who is at its other end */
	pid_t child;		   /* -1: any; 0: it waits for none, or that is not known */
};

#define WAITS_ON_NOTHING                                                                           \
	{                                                                                          \
		.fd = -1, .highest = -1                                                            \
	}

/* Of @call, which a thread of process @mem->pid is in. */
struct waits_on waits_on_read(const struct memory *mem, const struct thread_syscall *call);

/*
 * Whether @call is a poll() or select(): what their descriptors are is in memory, so the kernel
 * side knows it only of the current task.
 */
bool waits_on_is_polled(const struct thread_syscall *call);

/* Whether the descriptor is a socket. */
bool waits_on_socket(const struct waits_on *w);

#endif
