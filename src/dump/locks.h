/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which threads wait for a Mutex or a Monitor, and which hold them. A lock that no thread is seen
 * to wait for is not looked for.
 */
#ifndef RBPF_DUMP_LOCKS_H
#define RBPF_DUMP_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

struct dump_doing;
struct dump_threads;
struct ruby_vm;

/*
 * The Mutex that a thread waits for, if what it does says so and @self is that of its innermost
 * frame; else 0.
 */
uint64_t locks_waited_for(const struct ruby_vm *vm, const struct dump_doing *doing, uint64_t self);

/*
 * Whether a thread may do it for longer than @doing->for_ns: the VM has one of those that wait for
 * the GVL or a Mutex look around about every 100 ms.
 */
bool locks_wake_waiters(const struct dump_doing *doing);

/*
 * Find who holds what the threads of process vm->pid wait for: fill in their owner and n_waiters,
 * of those that wait for it still. One for whom others wait is not idle.
 */
void locks_find_owners(const struct ruby_vm *vm, struct dump_threads *threads);

/*
 * Find who holds the GVL, of each ractor that has threads: fill in holds_gvl, and gvl_owner of
 * those that wait for it still.
 */
void locks_find_gvl_owners(const struct ruby_vm *vm, struct dump_threads *threads);

#endif
