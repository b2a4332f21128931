/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Maps the fingerprints that the BPF programs send to stacks of the recording.
 *
 * A Ruby stack and a native stack have a fingerprint each. The frames come in a definition, once in
 * each epoch (about a second) in which the stack is sampled, and are named when it is processed. A
 * sample refers to one fingerprint of each kind; the two stacks are merged when a sample first
 * refers to both. A fingerprint is valid for one process and one epoch, so no sample refers to an
 * old one again: the table has two generations, and drops the older one every few epochs.
 */
#ifndef RBPF_SAMPLE_STACK_TABLE_H
#define RBPF_SAMPLE_STACK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "rbpf_abi.h"
#include "native/native_stacks.h"

struct sink;
struct ruby_frame;
struct tracked_process;

/* The stack of a sample, and its flags. */
struct sample_stack {
	uint32_t stack; /* id in the recording */
	uint16_t flags; /* SAMPLE_* */
};

/* Frames of a definition, innermost first. */
struct stack_frames {
	size_t first;
	uint32_t n;
	uint16_t flags; /* SAMPLE_* */
};

/* Definitions of one kind, by id of their fingerprint. */
struct stack_definitions {
	struct intern fingerprints;
	struct stack_frames *v; /* owned */
	size_t cap;
};

struct stack_generation {
	struct stack_definitions ruby, native;
	struct ruby_frame *ruby_frames; /* of all definitions; owned */
	size_t n_ruby, cap_ruby;
	struct native_frames native_frames; /* the same; owned */
	struct intern pairs;		    /* struct stack_pair */
	struct sample_stack *merged;	    /* by id of its pair; owned */
	size_t cap_merged;
};

struct stack_table {
	struct stack_generation generations[2]; /* current, previous */
	uint64_t since_ns;			/* CLOCK_MONOTONIC: when the current one began */
	struct native *native;			/* NULL: native stacks are not walked; not owned */
	struct merge_buffers buffers;		/* owned */
};

void stack_table_deinit(struct stack_table *t);

/* Forget all stacks: until they are defined again, in the next epoch, samples of them have none. */
void stack_table_forget(struct stack_table *t);

/* The native frames that were defined have lost their names: until they are defined again, in the
 * next epoch, samples have none. */
void stack_table_forget_native(struct stack_table *t);

/*
 * Name the stack that @rec (of @len bytes) defines, with the resolver of its process @p, and write
 * what is new of it to @out. Returns 0 or -errno.
 */
int stack_table_define(struct stack_table *t, struct sink *out, struct tracked_process *p,
		       const struct rbpf_ring_stack *rec, size_t len);

/* The same for a native stack. */
int stack_table_define_native(struct stack_table *t, struct tracked_process *p, bool no_wait,
			      const struct rbpf_ring_native *rec, size_t len);

/*
 * The stack of a sample of process @p: what it names, or a frame that says why there is none.
 * @ruby_found: the Ruby had been attached to when the sample came. If not, a sample without a known
 * stack counts as one without Ruby, whatever its status says, but for threads that exit. Returns 0
 * or -errno.
 */
int stack_table_of_sample(struct stack_table *t, struct sink *out, const struct tracked_process *p,
			  const struct rbpf_ring_sample *rec, bool ruby_found,
			  struct sample_stack *ret);

#endif
