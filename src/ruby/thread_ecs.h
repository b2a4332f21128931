/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The execution contexts (ECs) of the threads of a process, by their thread pointers.
 *
 * While rbpf attaches, it is found out where a thread keeps its EC (tls.h; up to 2.7 there is one
 * variable for all threads, and a list of them in the VM), which @vm->walk then says. The layout
 * need not be known for that. Not thread-safe.
 */
#ifndef RBPF_RUBY_THREAD_ECS_H
#define RBPF_RUBY_THREAD_ECS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ruby/tls.h"

struct err;
struct rbpf_task;
struct ruby_vm;

struct ruby_thread_ecs {
	uint64_t *tps; /* thread pointers of the process' threads; owned */
	size_t n_tps;
	uint64_t *ecs; /* of those that have one; owned */
	size_t n_ecs;
	uint64_t first_tp; /* of the thread whose EC is ecs[0] */
	struct ruby_ec_shape shape;
	uint64_t *slots; /* by thread: where the code reads its EC from, once it was asked; owned */
	bool is_early; /* the process may have none yet: the code, which takes long, is not asked */
	bool no_thread; /* an EC was found that leads to no thread: too early, or another layout */
};

/*
 * Take the threads of @vm->pid among the @n @tasks. *@e is to be released with
 * ruby_thread_ecs_deinit() in any case. Returns 0 or -ENOMEM.
 */
int ruby_thread_ecs_init(struct ruby_thread_ecs *e, const struct ruby_vm *vm,
			 const struct rbpf_task *tasks, size_t n);
void ruby_thread_ecs_deinit(struct ruby_thread_ecs *e);

/*
 * Find where threads keep their ECs, for @vm->walk, and the ECs; add to @vm->checks. Returns 0 or
 * -EAGAIN (no thread has one yet), with @err set.
 */
int ruby_thread_ecs_find(struct ruby_thread_ecs *e, struct ruby_vm *vm, struct err *err);

/*
 * Read the ECs again: a thread may have switched to another fiber since, and the other may be gone.
 */
void ruby_thread_ecs_refresh(struct ruby_thread_ecs *e, const struct ruby_vm *vm);

/*
 * 2.7: find out how thread_id (a pthread_t) and thread pointer relate, for @vm->walk, once the
 * layout is known. Other Rubies do without. Returns 0 or -EPROTO, with @err set.
 */
int ruby_thread_ecs_match(const struct ruby_thread_ecs *e, struct ruby_vm *vm, struct err *err);

/*
 * The EC of the thread of @vm, which is proven, whose thread pointer is @tp. Returns 0, -ENOENT (it
 * has none) or -EFAULT.
 */
int ruby_thread_ec(const struct ruby_vm *vm, uint64_t tp, uint64_t *ret);

#endif
