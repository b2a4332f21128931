/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the validation (validate*.c) have in common; of no use to others.
 */
#ifndef RBPF_RUBY_VALIDATE_PARTS_H
#define RBPF_RUBY_VALIDATE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

struct ruby_vm;

/* Whether @ec is an EC whose thread has it as the current one. */
bool validate_is_current_ec(const struct ruby_vm *vm, uint64_t ec);

/*
 * validate_gc.c. Set @vm->walk.gc_* if the collector is known, and the thread that collects; add to
 * @vm->checks. @tp is the thread pointer of a thread with an EC, @th the rb_thread_t of one.
 */
void validate_gc(struct ruby_vm *vm, uint64_t tp, uint64_t th);

#endif
