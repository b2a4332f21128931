/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finding the layout of a Ruby: what each source says (enum ruby_source), and a layout made of it.
 */
#ifndef RBPF_RUBY_DISCOVER_H
#define RBPF_RUBY_DISCOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ruby/layout.h"

struct ruby_vm;

/* The layouts of one binary by their sources. Addresses are of the live process, 0 if unknown. */
struct ruby_findings {
	struct ruby_layout layout[RUBY_SOURCES];
	bool known[RUBY_SOURCES]; /* the source says anything at all */
	char dwarf_file[256];	  /* where debug information was found */
	uint64_t current_vm;	  /* address of ruby_current_vm_ptr */
	uint64_t symbols;	  /* address of ruby_global_symbols */
};

/*
 * Ask the @sources (1 << enum ruby_source) about the Ruby of @vm, of which pid, mem and binary are
 * set. @tp is the thread pointer of the thread that has ecs[0]; @ecs are the ECs of all @n threads.
 */
void ruby_discover(const struct ruby_vm *vm, unsigned int sources, uint64_t tp, const uint64_t *ecs,
		   size_t n, struct ruby_findings *ret);

/*
 * Set @vm->layout and source: each fact from the most trusted of @sources that knows it. Returns 0,
 * or -EPROTO if a fact that rbpf needs is known to none of them; @err names the first such fact.
 */
int ruby_layout_merge(struct ruby_vm *vm, const struct ruby_findings *found, unsigned int sources,
		      struct err *err);

#define RUBY_ALL_SOURCES ((1u << RUBY_SOURCES) - 1)

/*
 * Set @vm->layout to the first one for which @prove returns 0: from all of @sources, then without
 * some of them, as a source can be wrong (a patched Ruby has other offsets than the table; debug
 * information may be of another build). @prove gets @vm and @arg, and returns -EPROTO for a layout
 * that is wrong; it adds to @vm->checks.
 *
 * Returns 0; -EPROTO if no layout is right, with what was said of the first one in @vm->checks and
 * @err; or what else @prove returns.
 */
int ruby_layout_settle(struct ruby_vm *vm, const struct ruby_findings *found, unsigned int sources,
		       int (*prove)(struct ruby_vm *vm, void *arg, struct err *err), void *arg,
		       struct err *err);

#endif
