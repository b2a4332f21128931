/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs the native walk of the BPF programs (bpf/native_walk.bpf.h) in user space, over the memory
 * of a process with a Ruby: for rbpf dump, and for comparing its result with a debugger's.
 *
 * Registers come from engine_read_registers(). The target runs on meanwhile: what is walked is a
 * stack only if its thread has not run since they were taken. Not thread-safe.
 */
#ifndef RBPF_NATIVE_NATIVE_USER_WALK_H
#define RBPF_NATIVE_NATIVE_USER_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rbpf_abi.h"

struct native_frames;
struct native_user_walk;
struct native_name;
struct rbpf_regs;
struct resolver;
struct ruby_vm;

/* For the process of @vm, which must outlive what is made. Returns 0 or -errno. */
int native_user_walk_new(const struct ruby_vm *vm, struct native_user_walk **ret);
void native_user_walk_free(struct native_user_walk *h); /* accepts NULL */

/* The result of a walk: the words of RBPF_RING_NATIVE, and why the walk ended. */
struct native_stack {
	uint64_t *words; /* innermost first; owned */
	uint32_t n_words;
	enum rbpf_native_end end;
};

/*
 * Walk the stack of the thread that has @regs; its EC is at @ec, 0 if it has none. Mappings and
 * unwind tables that the walk needs and that were not read yet are read. Returns 0 or -ENOMEM.
 * @ret: native_stack_deinit().
 */
int native_user_walk_run(struct native_user_walk *h, uint64_t ec, const struct rbpf_regs *regs,
			 struct native_stack *ret);
void native_stack_deinit(struct native_stack *stack);

/*
 * As native_process_interpreter(), for names that are asked for from now on. Returns 0 or -ENOMEM.
 */
int native_user_walk_interpreter(struct native_user_walk *h, const struct resolver *names);

/*
 * As native_frames() (without inlined functions: one a word) and native_frame_name(), of
 * native_stacks.h.
 */
int native_user_walk_frames(struct native_user_walk *h, const uint64_t *words, size_t n_words,
			    struct native_frames *ret);
/* As struct merge.makes_tail_call; @arg is @h. */
bool native_user_walk_makes_tail_call(void *arg, uint64_t function, uint64_t other);
const struct native_name *native_user_walk_name(const struct native_user_walk *h, uint32_t name);

#endif
