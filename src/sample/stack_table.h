/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Maps the fingerprints that the BPF programs send to stacks of the recording.
 *
 * A Ruby stack and a native stack have a fingerprint each. The frames come in a definition, once in
 * each epoch (about a second) in which the stack is sampled, and are named when it is processed. A
 * sample refers to one fingerprint of each kind; the two stacks are merged when a sample first
 * refers to both. A fingerprint is valid for one process and one epoch, and what a definition
 * leaves out (ruby_stacks.h) was sent at most 2^RBPF_CHECKPOINT_SHIFT ns before: so nothing refers
 * to what is older, the table has two generations, and it drops the older one every few epochs.
 */
#ifndef RBPF_SAMPLE_STACK_TABLE_H
#define RBPF_SAMPLE_STACK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "rbpf_abi.h"
#include "profile/id_holder.h"
#include "sample/native_definitions.h"
#include "sample/ruby_stacks.h"
#include "target/waited_for.h"

struct sink;
struct tracked_process;

/* The stack of a sample, and its flags. */
struct sample_stack {
	uint32_t stack; /* id in the recording */
	uint16_t flags; /* SAMPLE_* */
	uint16_t rule;	/* frame_origin.rule of the innermost frame that tells a request; 0: none */
};

/* What the stacks of a sample or a wait are: as its record says. */
struct stacks_taken {
	uint64_t ruby, native;		/* fingerprints; 0: none */
	uint16_t status;		/* enum rbpf_status */
	uint16_t flags;			/* RBPF_SAMPLE_*, RBPF_WAIT_* */
	uint32_t wait;			/* 1 + enum rbpf_wait; 0: the thread was running */
	const struct rbpf_waits_on *on; /* what is behind the descriptor; NULL: not known */
};

struct stack_generation {
	struct ruby_generation ruby;
	struct native_generation native;
	struct intern pairs;	     /* struct stack_pair */
	struct sample_stack *merged; /* by id of its pair; owned */
	size_t cap_merged;
};

struct stack_table {
	struct stack_generation generations[2]; /* current, previous */
	uint64_t since_ns;			/* CLOCK_MONOTONIC: when the current one began */
	bool ended_early;      /* the one before, for it was large: see stack_table_keeps_all() */
	struct native *native; /* NULL: native stacks are not walked; not owned */
	bool peers;	       /* what is behind descriptors is told … */
	struct waited_for waited_for;			 /* … in these words */
	struct merge_buffers buffers;			 /* owned */
	struct ruby_stacks_buffers naming;		 /* owned */
	struct native_definitions_buffers naming_native; /* owned */
	struct ruby_frame *frames; /* of the Ruby stack that is merged; owned */
	size_t cap_frames;
	struct native_frame *native_frames; /* of the native one; owned */
	size_t cap_native_frames;
};

void stack_table_deinit(struct stack_table *t);

/*
 * Forget all stacks, or the native ones, whose frames have lost their names. Until they are defined
 * again, samples of them have none: engine_forget_stacks() must be called.
 */
void stack_table_forget(struct stack_table *t);
void stack_table_forget_native(struct stack_table *t);

/* Call @fn for the ids in it: see id_holder.h. */
void stack_table_ids(struct stack_table *t, id_fn *fn, void *arg);

/*
 * Whether all that the engine may refer to will stay known. If not, as a generation had to end
 * before its time, engine_forget_stacks() must be called; that is said once.
 */
bool stack_table_keeps_all(struct stack_table *t);

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
 * The stack of a sample of process @p: what @taken names, or a frame that says why there is none;
 * and upon it, what the thread waited for. @ruby_found: the Ruby had been attached to when the
 * sample came. If not, a sample without a known stack counts as one without Ruby, whatever its
 * status says, but for threads that exit. Returns 0 or -errno.
 */
int stack_table_of_sample(struct stack_table *t, struct sink *out, struct tracked_process *p,
			  const struct stacks_taken *taken, bool ruby_found,
			  struct sample_stack *ret);

/*
 * The stack in place of that of a waker which is in no followed process: a frame with its @comm and
 * @pid; 0: of an interrupt. Returns 0 or -errno.
 */
int stack_of_waker(struct sink *out, const char comm[RBPF_COMM_LEN], uint32_t pid, uint32_t *ret);

#endif
