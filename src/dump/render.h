/* SPDX-License-Identifier: GPL-2.0-only */
/* The threads of a process as text and as JSON, which is one line. */
#ifndef RBPF_DUMP_RENDER_H
#define RBPF_DUMP_RENDER_H

#include "view/stack_mode.h"

struct buf;
struct dump;
struct process;

/*
 * Read each thread of @d, which is of @process, and append its stacks to @out. @stack: which
 * frames are shown; JSON has the interpreter's own also with STACK_MIXED, marked as internal.
 * Returns 0 or -ENOMEM.
 */
int dump_text(struct dump *d, const struct process *process, enum stack_mode stack,
	      struct buf *out);
int dump_json(struct dump *d, const struct process *process, enum stack_mode stack,
	      struct buf *out);

#endif
