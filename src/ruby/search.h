/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RUBY_FROM_SEARCH: the layout from the shape of the live data, with no symbol, no code and no
 * version.
 *
 * Each fact is found by a property that only the right offset has, on as many objects as are at
 * hand: an EC's thread points back at it; the last slot of a VM stack has a dummy frame's flags; a
 * method's iseq is its own local iseq; Object's class holds a String "Object".
 */
#ifndef RBPF_RUBY_SEARCH_H
#define RBPF_RUBY_SEARCH_H

#include <stddef.h>
#include <stdint.h>

#include "ruby/layout.h"

struct memory;
struct ruby_binary;

struct ruby_search {
	struct ruby_layout layout; /* RUBY_UNKNOWN for what was not found */
	uint64_t symbols;	   /* address of ruby_global_symbols; 0: not found */
};

/*
 * @ecs: the ECs of @n threads (see ruby/tls.h). Addresses that are no EC, or not the current one of
 * a thread, are ignored. At least one thread must run Ruby code; with more, more is found. Nothing
 * fails: what has not exactly one answer is left unknown. The process runs on meanwhile; a fact
 * counts only if all objects that could be read agree.
 *
 * Never found are vm_objspace, objspace_*, th_ready, the queues and owner of the GVL, builtin_attrs
 * and jit_entry, and only while a fiber that another one resumed is running, fiber_prev.
 */
void ruby_search(const struct memory *mem, const struct ruby_binary *bin, const uint64_t *ecs,
		 size_t n, struct ruby_search *ret);

#endif
