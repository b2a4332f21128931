/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a thread waits for in its system call, as the arguments of that tell: a file, or a child.
 * Which thread has the lock that it waits for is in locks.h.
 */
#ifndef RBPF_DUMP_WAITS_ON_H
#define RBPF_DUMP_WAITS_ON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct dump_doing;
struct memory;
struct thread_syscall;

#define DUMP_FILE_CHARS 120 /* characters of a file that are kept, of 4 bytes at most */

struct dump_waits_on {
	int fd;	       /* of the process; -1: it waits for none, or that is not known */
	size_t n_more; /* so many others that it waits for, too */
	/* valid UTF-8: as /proc has it, "pipe:[1234]", cut; "" if not known */
	char file[4 * DUMP_FILE_CHARS + 1];
	pid_t child; /* -1: any; 0: it waits for none, or that is not known */
};

#define DUMP_WAITS_ON_NOTHING                                                                      \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/*
 * Of @call, which a thread of process @mem->pid is in. The process runs on: it counts only if the
 * thread has not run.
 */
struct dump_waits_on dump_waits_on_read(const struct memory *mem,
					const struct thread_syscall *call);

/*
 * Whether that is what @doing waits for: not if it waits for what the VM keeps itself, such as a
 * Queue. The VM may do so in poll() with a descriptor of its own, by which it is told of signals.
 */
bool dump_waits_on_counts(const struct dump_doing *doing);

/* Append it in words: "descriptor 7, a pipe", "child 4711"; nothing if it is not known. */
void dump_waits_on_add(struct buf *out, const struct dump_waits_on *w);

#endif
