/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RUBY_FROM_CODE: what the machine code of small exported functions tells of a VM's layout.
 *
 * A stripped libruby names none of its globals, but its accessors (rb_during_gc, rb_thread_main …)
 * are compiled to a handful of loads whose displacements are the offsets. The functions are not
 * matched against patterns: they are run, instruction by instruction, on the live process' memory,
 * with each register remembering which load its value came from (see emulate.h). So a register
 * spilled to the stack, another compiler or a call that was not inlined make no difference.
 *
 * A fact counts only if all paths through a function give the same value. Not thread-safe.
 */
#ifndef RBPF_RUBY_CODE_H
#define RBPF_RUBY_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "ruby/layout.h"

struct emu_machine;
struct memory;
struct ruby_binary;

struct ruby_code {
	struct ruby_layout layout; /* RUBY_UNKNOWN for what the code does not tell */
	uint64_t current_vm;	   /* address of the variable ruby_current_vm_ptr; 0: not found */
	uint64_t symbols;	   /* address of ruby_global_symbols; 0: not found */
	/*
	 * Address of the EC slot in the TLS of the thread given. 0: not found, as when that is no
	 * Ruby thread or the EC is in no TLS (2.7).
	 */
	uint64_t ec_slot;
	/*
	 * Where each ractor has an objspace of its own: its offset in the rb_ractor_t, 0 if the VM
	 * has the one of all; and the address of the variable ruby_single_main_ractor, 0 if it was
	 * not read.
	 */
	uint64_t ractor_objspace, single_ractor;
	uint8_t during_gc_bit; /* its number in objspace_flags; see rbpf_gc_flags() */
	bool gc_in_module;     /* bin->gc_name is the collector, whose code tells objspace_* */
	/*
	 * The collector's functions are in code that was not run: objspace_* are not known, and
	 * what other sources say of them may be about another collector than the one that runs.
	 */
	bool gc_elsewhere;
};

/*
 * Run the functions that @bin exports, as the thread with thread pointer @tp would. Whatever is not
 * understood is left unknown; there is nothing that fails.
 */
void ruby_code_read(const struct memory *mem, const struct ruby_binary *bin, uint64_t tp,
		    struct ruby_code *ret);

/*
 * The same of the collector alone: current_vm, gc_*, and vm_objspace, objspace_flags and
 * objspace_count. Unlike other facts these are a process' own, not its file's: from 3.4 on,
 * RUBY_GC_LIBRARY names the collector.
 */
void ruby_code_read_gc(const struct memory *mem, const struct ruby_binary *bin, uint64_t tp,
		       struct ruby_code *ret);

/* ruby_code_read() for a process of another @machine, for tests. */
void ruby_code_read_machine(const struct emu_machine *machine, const struct memory *mem,
			    const struct ruby_binary *bin, uint64_t tp, struct ruby_code *ret);

#endif
