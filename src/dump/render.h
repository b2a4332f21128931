/* SPDX-License-Identifier: GPL-2.0-only */
/* The threads of a process as text and as JSON, which is one line. */
#ifndef RBPF_DUMP_RENDER_H
#define RBPF_DUMP_RENDER_H

#include <stdbool.h>

#include "view/stack_mode.h"

struct buf;
struct dump;
struct process;

/* What is shown of a process' threads. */
struct dump_view {
	enum stack_mode stack; /* JSON has the interpreter's own frames also with STACK_MIXED,
				* marked as internal */
	bool fold;	       /* text: threads with the same stack are shown as one */
};

/*
 * Read each thread of @d, which is of @process, and append its stacks to @out. Returns 0 or
 * -ENOMEM.
 */
int dump_text(struct dump *d, const struct process *process, const struct dump_view *view,
	      struct buf *out);
int dump_json(struct dump *d, const struct process *process, const struct dump_view *view,
	      struct buf *out);

#endif
