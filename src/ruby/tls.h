/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds where a thread keeps its execution context (EC).
 *
 * That depends on how libruby was linked and loaded, and stripped builds of 3.3 on do not name the
 * variable; so the slot is found by its contents. The thread pointer leads to the DTV, which lists
 * the thread's TLS blocks, one a module; and an EC is easily recognised. If the block lies next to
 * the thread pointer (static TLS, as usual), the slot is at the same distance in each thread.
 *
 * Nothing here needs a layout, a version or a symbol. Not thread-safe.
 */
#ifndef RBPF_RUBY_TLS_H
#define RBPF_RUBY_TLS_H

#include <stdbool.h>
#include <stdint.h>

#include "rbpf_abi.h"

struct memory;

/* The facts about an EC that are known before the layout: 0 means "to be found". */
struct ruby_ec_shape {
	uint16_t ec_thread_ptr;
	uint16_t th_ec;
	uint16_t cf_size;
};

/*
 * Whether there is an EC at @ec whose stack can be walked, and that is its thread's current one.
 * *@shape says what is known of it and, if the answer is yes, receives the rest: thread_ptr is
 * looked for in the first 128 bytes, th_ec in the first 128 of the thread, then farther and farther
 * off, up to RUBY_EC_BYTES and RUBY_TH_BYTES, cf_size by the flags of the stack's last slot. If two
 * shapes fit, the answer is no.
 */
bool ruby_is_ec(const struct memory *mem, uint64_t ec, struct ruby_ec_shape *shape);

/* Whether what is at @ec has a VM stack like that of an EC, also if its thread cannot be found. */
bool ruby_has_vm_stack(const struct memory *mem, uint64_t ec);

enum ruby_tls_found {
	RUBY_TLS_NONE, /* the thread has no EC, or none where it was looked for */
	RUBY_TLS_FOUND,
	RUBY_TLS_SEVERAL, /* two places could be the slot: another thread may tell */
};

/*
 * Find the EC slot of the thread with thread pointer @tp and set the tls_* and dtv_* members of
 * @l. If it is not found *@shape and *@l are untouched. Rubies with one EC pointer for all threads
 * (RBPF_TLS_GLOBAL) have no slot.
 */
enum ruby_tls_found ruby_tls_find(const struct memory *mem, uint64_t tp,
				  struct ruby_ec_shape *shape, struct rbpf_layout *l);

/*
 * Whether a word of the thread with thread pointer @tp, where ruby_tls_find() looks, leads to
 * something that has a VM stack. Then the thread has an EC, be its layout another one, or its
 * thread just not to be found.
 */
bool ruby_tls_has_stack(const struct memory *mem, uint64_t tp);

/*
 * The EC of the thread with thread pointer @tp, as its slot has it: it may be stale, see
 * ruby_is_ec(). With RBPF_TLS_GLOBAL it is the EC of the thread that held the GVL last, if that is
 * this thread. Returns 0, -ENOENT (it has none) or -EFAULT.
 */
int ruby_tls_read(const struct memory *mem, const struct rbpf_layout *l, uint64_t tp,
		  uint64_t *ret);

#endif
