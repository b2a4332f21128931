/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From the two stacks of a sample, the VM's and the machine's, to the one that a person would draw.
 *
 * rb_vm_exec() runs a Ruby frame and all that it calls, until C code calls Ruby again, which is
 * another activation of rb_vm_exec(). The VM marks the frame that each begins with (FINISH), so:
 *
 *	native, outermost first		Ruby, outermost first
 *	_start main ruby_run_node
 *	rb_vm_exec vm_exec_core		<main> Foo#bar Array#each	a segment
 *	  vm_call_cfunc rb_ary_each
 *	  rb_yield
 *	rb_vm_exec vm_exec_core		block in Foo#bar Zlib.deflate	another, from FINISH on
 *	  deflate memcpy
 *
 * The methods in Ruby of a segment run in its vm_exec_core(), or in what a JIT has made of it; then
 * come its methods in C, each where the native frame of its function is. Pure: it knows neither
 * processes nor names.
 */
#ifndef RBPF_NATIVE_MERGE_H
#define RBPF_NATIVE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A frame of the VM's stack. */
struct merge_ruby {
	uint64_t function; /* of a method in C: the address of its C function; else 0 */
	uint8_t finish;	   /* so many activations of rb_vm_exec() begin with it */
	bool is_cut;	   /* it stands for frames that were cut */
	bool is_fiber; /* a mark: what follows, further out, is of the fiber that resumed this */
};

/* Properties of a native frame: the bits of struct merge_native.is. */
#define MERGE_VM_EXEC  (1u << 0) /* rb_vm_exec() */
#define MERGE_CORE     (1u << 1) /* vm_exec_core(), or compiled Ruby code */
#define MERGE_VM       (1u << 2) /* code of the VM: the two above, and what else is in its file … */
#define MERGE_GLUE     (1u << 3) /* … that calls methods, or may well do so, having no name */
#define MERGE_START    (1u << 4) /* of what programs and threads are started with */
#define MERGE_GC       (1u << 5) /* begins a garbage collection */
#define MERGE_OTHER    (1u << 6) /* a gap, or of the kernel */
#define MERGE_NAMELESS (1u << 7) /* of the VM, without a name that tells what it is */
#define MERGE_ALLOC                                                                                \
	(1u << 8) /* of the VM, allocates: a collection may be below it, none calls it */

struct merge_native {
	uint64_t function; /* where it begins; 0 if unknown */
	uint32_t is;	   /* MERGE_* */
};

/* A frame of the merged stack. */
struct merged_frame {
	uint32_t index; /* in the stack that it is of */
	bool native;
	bool internal; /* of the interpreter: it does the work of the Ruby frames next to it */
};

struct merge {
	const struct merge_ruby *ruby; /* innermost first, as native is */
	size_t n_ruby;
	const struct merge_native *native;
	size_t n_native;
	bool complete; /* the native stack reaches the thread's outermost frame */
	/*
	 * Whether @function may end in a tail call of @other, whose frame then replaces its own.
	 * NULL: tail calls are not considered.
	 */
	bool (*makes_tail_call)(void *arg, uint64_t function, uint64_t other);
	void *arg;
};

/* Room for merge_stacks(): for what it takes and what it gives. Owned; all 0 is empty. */
struct merge_buffers {
	struct merge_ruby *ruby;
	size_t cap_ruby;
	struct merge_native *native;
	size_t cap_native;
	struct merged_frame *merged;
	size_t cap_merged;
};

/* Returns 0 or -ENOMEM. */
int merge_buffers_reserve(struct merge_buffers *b, size_t n_ruby, size_t n_native);
void merge_buffers_deinit(struct merge_buffers *b);

/*
 * Merge into @out, which has room for all frames of both, outermost first; returns how many there
 * are. *@gc is the index in @out before which the frames of a garbage collection that is going on
 * belong; if it is not less than the returned number, they belong to the end. What called the
 * collection is outside of them, its own functions are inside. Of functions without a name that may
 * be either it is taken that they are its own: of those between what allocates and the collection
 * most are.
 */
size_t merge_stacks(const struct merge *w, struct merged_frame *out, size_t *gc);

#endif
