/* SPDX-License-Identifier: GPL-2.0-only */
/* The GVL: the lock without which no thread of a ractor runs Ruby. */
#ifndef RBPF_RUBY_GVL_H
#define RBPF_RUBY_GVL_H

#include <stdint.h>

struct ruby_vm;

/*
 * Tell the walk, in @vm->walk, where the GVL of each thread is, if the queue of that of thread @th
 * (an rb_thread_t) proves to be one; add to @vm->checks.
 */
void ruby_gvl_validate(struct ruby_vm *vm, uint64_t th);

/*
 * Whether the thread that runs EC @ec is in the queue of those that wait for the GVL of its ractor
 * (of its process, up to 2.7). The process runs on meanwhile, so the answer counts only if the
 * thread has not run. Returns 1, 0, -ENOENT (not known in this Ruby) or -EFAULT.
 */
int ruby_gvl_waits(const struct ruby_vm *vm, uint64_t ec);

/*
 * Where the VM keeps which thread holds the GVL of the ractor of thread @th (an rb_thread_t); the
 * same for all threads of a ractor. Returns 0 if that is not known.
 */
uint64_t ruby_gvl_owner_at(const struct ruby_vm *vm, uint64_t th);

#endif
