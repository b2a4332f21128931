/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Validation of a layout: it is used only after it has led, on the live process, to what only the
 * right one leads to. If a check fails that rbpf needs, the Ruby is refused. If another fails, rbpf
 * works without that feature.
 */
#ifndef RBPF_RUBY_VALIDATE_H
#define RBPF_RUBY_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct rbpf_task;
struct ruby_vm;

/*
 * Validate @vm->layout on the stacks and objects of the process, with @ecs the ECs of @n threads,
 * the first of which has thread pointer @tp; add to @vm->checks, and complete @vm->walk, symbols
 * and class_keys. @current_vm is the address of ruby_current_vm_ptr and @symbols that of
 * ruby_global_symbols, or 0. @known: the same layout was valid in another process of this file, so
 * that only what is of this process needs to be validated in full.
 *
 * Returns 0, -EAGAIN (no thread runs Ruby code yet), -EPROTO (refused; the message names the
 * field) or -ENOMEM.
 */
int ruby_validate(struct ruby_vm *vm, const uint64_t *ecs, size_t n, uint64_t tp,
		  uint64_t current_vm, uint64_t symbols, bool known, struct err *err);

#endif
