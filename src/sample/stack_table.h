/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From the fingerprints of the kernel side to stacks of the recording.
 *
 * A stack is named when its definition arrives, which is once an epoch (about a second) as long as it is
 * seen. A fingerprint belongs to its process and epoch, so what was defined some epochs ago is never named
 * again by a sample: the table has two generations, and the older one is dropped every few epochs.
 */
#ifndef RBPF_SAMPLE_STACK_TABLE_H
#define RBPF_SAMPLE_STACK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "rbpf_abi.h"

struct recorder;
struct tracked_process;

/* What a sample says of its stack. */
struct sample_stack {
	uint32_t stack; /* id in the recording */
	uint16_t flags; /* SAMPLE_* */
};

struct stack_generation {
	struct intern fingerprints;
	struct sample_stack *stacks; /* by id; owned */
	size_t cap;
};

struct stack_table {
	struct stack_generation generations[2]; /* current, previous */
	uint64_t since_ns;			/* CLOCK_MONOTONIC: when the current one began */
	uint32_t placeholders[RBPF_STATUS_COUNT + 1]; /* id + 1 of what stands for no stack */
};

void stack_table_deinit(struct stack_table *t);

/*
 * Name the stack that @rec (of @len bytes) defines, with the resolver of its process @p, and write what is
 * new of it to @out. Returns 0 or -errno.
 */
int stack_table_define(struct stack_table *t, struct recorder *out, struct tracked_process *p,
		       const struct rbpf_rec_stack *rec, size_t len);

/*
 * The stack of a sample: the one it names, or one frame that says why there is none. @ruby_found
 * tells whether the layout that the process was walked with is proven, and not only what its
 * executable had before: if not, a walk that failed says no more than that it has not started yet.
 * Returns 0 or -errno.
 */
int stack_table_of_sample(struct stack_table *t, struct recorder *out,
			  const struct rbpf_rec_sample *rec, bool ruby_found,
			  struct sample_stack *ret);

#endif
