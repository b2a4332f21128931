/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The frames that rbpf dump prints of a thread: its Ruby frames, its native ones, or both as one
 * stack. Not thread-safe.
 */
#ifndef RBPF_CMD_DUMP_NATIVE_H
#define RBPF_CMD_DUMP_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rbpf_abi.h"

struct dump_native;
struct native_name;
struct native_stack;
struct resolver;
struct ruby_vm;
struct symbol;

struct dump_frame {
	const struct symbol *ruby;	  /* NULL: a native frame */
	const struct native_name *native; /* NULL: a Ruby frame */
	uint64_t pc;   /* native: in the process, where it goes on or is; 0: a gap's */
	bool internal; /* the frames next to it tell what it is there for */
};

/* A thread's Ruby frames as resolver_stack() has named them last, innermost first. */
struct dump_ruby {
	struct resolver *resolver;
	const uint32_t *symbols;
	size_t n;
};

/* @vm must outlive what is made. Returns 0 or -errno. */
int dump_native_new(const struct ruby_vm *vm, struct dump_native **ret);
void dump_native_free(struct dump_native *d); /* accepts NULL */

/* As native_here_walk(). */
int dump_native_walk(struct dump_native *d, uint64_t ec, const struct rbpf_regs *regs,
		     struct native_stack *ret);

/*
 * Both stacks as one, innermost frame first; what is missing at the outer end of @native is a frame,
 * too. *@ret is the caller's to free; what its frames point to lives as long as @d and the resolver.
 * Returns 0 or -ENOMEM.
 */
int dump_native_weave(struct dump_native *d, const struct dump_ruby *ruby,
		      const struct native_stack *native, struct dump_frame **ret, size_t *n);

/* The word of machine output for @end: "outermost", "no-table", …. */
const char *dump_native_end(enum rbpf_native_end end);

#endif
