/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The two functions that interpret Ruby code, in the file of the VM: vm_exec_core(), which executes
 * instructions, and rb_vm_exec(), which calls it and catches exceptions. A native frame of
 * vm_exec_core() runs Ruby frames; one of rb_vm_exec() begins an activation (vm.c, all versions).
 *
 * Most files do not name them. But the first word of an iseq's code is the address of an
 * instruction's implementation, which is in vm_exec_core(); and only rb_vm_exec() calls that. It
 * knows nothing of processes: addresses are the file's own.
 */
#ifndef RBPF_RUBY_INTERPRETER_H
#define RBPF_RUBY_INTERPRETER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_headers;
struct file_worker;
struct elf_symbols;

/* Their names in symbol tables; their frames get the same names if the file has none. */
#define INTERPRETER_CORE  "vm_exec_core"
#define INTERPRETER_EXEC  "rb_vm_exec"

#define INTERPRETER_PARTS 4 /* of a function, which compilers may put in several places */

/* Where functions begin. */
struct interpreter_function {
	uint64_t starts[INTERPRETER_PARTS];
	size_t n;
};

struct interpreter {
	struct interpreter_function core; /* vm_exec_core() */
	struct interpreter_function exec; /* rb_vm_exec() */
};

/*
 * Find them in the ELF file @fd, which @worker reads as file_worker_read() does, with these headers
 * and symbols. @label is the address of an instruction's implementation; 0 if none is known.
 * Returns 0, -ENOENT, -EIO or -ENOMEM.
 */
int interpreter_find(struct file_worker *worker, int fd, const struct elf_headers *headers,
		     const struct elf_symbols *symbols, uint64_t label, struct interpreter *ret);

/* Whether a function, which begins at @start, is @f. */
bool interpreter_is(const struct interpreter_function *f, uint64_t start);

#endif
