/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `rbpf dump` of a process, as a text to be shown by top. It runs beside top, which goes on
 * meanwhile: reading the stacks of a thousand threads takes longer than a key may. Not thread-safe.
 */
#ifndef RBPF_CMD_TOP_DUMP_H
#define RBPF_CMD_TOP_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

struct err;

struct top_dump {
	pid_t pid;    /* whose stacks are read */
	pid_t child;  /* that reads them; 0: it has ended */
	int fd;	      /* its output; -1: it has ended */
	uint64_t end; /* CLOCK_MONOTONIC, ns: it is ended then */
	struct buf incoming, text;
	const char **lines; /* of the text, the first one top's own; owned, what it points to is the
			       text's */
	size_t n_lines;
	char title[64];
};

#define TOP_DUMP_INIT                                                                              \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/*
 * Begin to read the stacks of @pid, with its native ones if @native. The lines that are there stay
 * until all of the new ones have come. Returns 0 or a negative errno with @err set.
 */
int top_dump_start(struct top_dump *d, pid_t pid, bool native, struct err *err);

/*
 * Take what there is, without waiting. Returns 1 when it is all there, which is said once; 0 if
 * not; or -ENOMEM. What went wrong is in the text.
 */
int top_dump_poll(struct top_dump *d);

/* The line in which thread @tid is named; 0 if there is none. */
size_t top_dump_line_of(const struct top_dump *d, pid_t tid);

void top_dump_deinit(struct top_dump *d);

#endif
