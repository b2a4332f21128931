/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A Ruby VM found in a live process: its layout row, proven, and the addresses that names are read
 * from.
 *
 * Attaching only reads memory. It tells nothing of threads or stacks; see walk.h, iseq.h, method.h.
 */
#ifndef RBPF_RUBY_VM_H
#define RBPF_RUBY_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ruby/binary.h"
#include "ruby/layout.h"
#include "target/memory.h"

struct err;

/* What attaching found out, for rbpf doctor: one line a check. */
#define RUBY_VM_CHECKS 12
struct ruby_vm_check {
	const char *name;
	char detail[160];
	bool ok;
};

struct ruby_vm {
	struct memory mem;
	pid_t pid;
	struct ruby_binary binary;
	const struct ruby_layout *layout;
	struct rbpf_layout walk; /* complete, with the TLS members of this process */
	uint64_t symbols; /* address of ruby_global_symbols; 0 if it was not found: no C names */
	uint64_t
		key_classpath; /* RUBY_CLASS_IV_TBL: the IDs under which a class keeps its name … */
	uint64_t key_attached; /* … and a singleton class its object */
	struct ruby_vm_check checks[RUBY_VM_CHECKS];
	size_t n_checks;
};

#define RUBY_VM_INIT                                                                               \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Find the Ruby of process @pid and prove its layout. @tasks are the threads of that process
 * (others are skipped) with their thread pointers.
 *
 * Returns 0, or with ERR_TARGET: -ENOENT (no Ruby VM in it), -ENOTSUP (a version without a layout),
 * -EAGAIN (a VM that has not started yet), -EPROTO (the self-check failed; the message names the
 * field).
 * @ret->checks is filled as far as it went in every case; release with ruby_vm_deinit() in every
 * case.
 */
int ruby_vm_attach(pid_t pid, const struct rbpf_task *tasks, size_t n_tasks, struct ruby_vm *ret,
		   struct err *err);
void ruby_vm_deinit(struct ruby_vm *vm);

/*
 * The VM of @pid, a child that was forked from the process of @parent and has not executed another
 * program: the same addresses, nothing to prove again. Returns 0 or -ENOMEM.
 */
int ruby_vm_fork(const struct ruby_vm *parent, pid_t pid, struct ruby_vm *ret);

/* The EC of the thread whose thread pointer is @tp. Returns 0, -ENOENT (it has none) or -EFAULT. */
int ruby_vm_thread_ec(const struct ruby_vm *vm, uint64_t tp, uint64_t *ret);

#endif
