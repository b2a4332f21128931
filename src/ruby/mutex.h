/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who holds a Mutex or a Monitor. The process runs on meanwhile: an answer is of the moment in
 * which it was read, and of use only if a thread is known to wait for the object then.
 */
#ifndef RBPF_RUBY_MUTEX_H
#define RBPF_RUBY_MUTEX_H

#include <stdint.h>

struct ruby_vm;

/* self of the innermost control frame of EC @ec. Returns 0 or -EFAULT. */
int ruby_innermost_self(const struct ruby_vm *vm, uint64_t ec, uint64_t *ret);

/* The Mutex in Monitor @monitor. Returns 0, -EINVAL (it has none) or -EFAULT. */
int ruby_monitor_mutex(const struct ruby_vm *vm, uint64_t monitor, uint64_t *ret);

/*
 * The address of the rb_thread_t that holds Mutex @mutex. Returns 0, -ENOENT (none does), -EINVAL
 * (it is no Mutex, as far as that can be seen) or -EFAULT.
 */
int ruby_mutex_owner(const struct ruby_vm *vm, uint64_t mutex, uint64_t *ret);

/*
 * The Mutex, or that of the Monitor, for which thread @th with EC @ec waits where it is: its
 * rb_mutex_t, and the rb_thread_t that holds it, 0 if none does. Returns 0; -ENOENT if it waits for
 * none: a thread that lets a Mutex sleep, as a ConditionVariable does, is not in its queue; or
 * -EFAULT.
 */
int ruby_mutex_waited_for(const struct ruby_vm *vm, uint64_t ec, uint64_t th, uint64_t *mutex,
			  uint64_t *owner);

#endif
