/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copies of the iseqs and method entries of one process, and the proof that a copy is of the object
 * that was at its address when a stack was sampled.
 *
 * An object can be freed, or moved by compaction, and another one stand in its place by the time
 * its address is looked at. What decides is the era of the heap (rbpf_gc_era()), which the kernel
 * side reads along with the stack: an object that is on a stack is freed at the earliest when the
 * next era begins. Hence, for a stack sampled in era S and a copy that was read or compared, and
 * found to be the same, in eras from F to L, the question is whether the copy is of the object that was on
 * the stack. It is:
 *
 *   - F <= S <= L: always. (Nothing need be read.)
 *   - S > L: if the object, compared now, is still the same.
 *   - S < F: if the object, now in era N, is an old one and N - S <= 1, for it takes three
 *     collections to become old (RVALUE_OLD_AGE; from 3.3 on, before that an old object proves
 *     nothing here), the last of which may have begun; and if it
 *     cannot have been moved there: the pc of the frame lies in the code of that iseq, or the method
 *     entry is of that iseq.
 *   - If the process is gone, and nothing can be compared any more: if it was an old one.
 *   - In any case if it holds what it held then, by the check of its words and label that
 *     the kernel side sends along when it sends an iseq that is not old for the first time in an
 *     era. That holds for all of era S. A copy it fits is therefore not compared any more; one it
 *     does not fit is no longer believed when the process is gone.
 *
 * Of a young process the kernel side sends, ahead of a stack, what naming its iseqs and method
 * entries reads, copied when the stack was sampled (RBPF_RING_MEMORY). An entry read from such a copy
 * was read in era S itself, F = L = S, of an object that was on the stack; it needs no proof, and
 * the process need not be there any more. Each object is copied once (unless another takes its
 * place): stacks of later eras are of it by the rules above, and where the process is gone by the
 * check, which is taken of old iseqs, too, in a young process.
 *
 * While objects are being moved an address may be an old or a new one, and equal eras prove
 * nothing, nor do copies made then: only pc and check decide. A Ruby whose collector was not found
 * is compared once a round, and believed.
 */
#ifndef RBPF_SYMBOL_CODE_CACHE_H
#define RBPF_SYMBOL_CODE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "rbpf_abi.h"
#include "ruby/iseq.h"
#include "ruby/method.h"

struct ruby_vm;

/* When the addresses of a stack were read. */
struct code_moment {
	uint64_t gc_era; /* 0: unknown */
	bool unsettled;	 /* RBPF_STACK_UNSETTLED */
};

struct cached_iseq {
	struct ruby_iseq iseq;
	uint64_t compiled_round; /* in which was looked whether it is compiled by now */
	uint64_t first, last;	 /* eras between which it is known to be the same */
	uint64_t checked;	 /* an era of which a check has shown the same; 0: none */
	uint64_t round;		 /* last looked at in; 0: never */
	uint64_t stamp;		 /* number of the comparison (look_once()) that queued it last */
	uint32_t generation;	 /* changes when something else is found there; 0: nothing usable */
	bool unsure; /* an era ended while it was read: it is of last or earlier, and first means
			       * nothing */
};

struct cached_method {
	struct ruby_method method;
	uint64_t first, last;
	uint64_t checked;
	uint64_t round;
	uint64_t stamp;
	uint32_t generation;
	bool unsure;
};

/* The cache entries of one frame. Indices are PROFILE_NONE where there is none. */
struct code_ref {
	uint32_t iseq;	 /* of cached_iseq */
	uint32_t method; /* of cached_method */
	bool iseq_ok;	 /* proven */
	bool method_ok;
};

struct code_cache {
	const struct ruby_vm *vm;
	uint64_t round;
	uint64_t stamp;
	uint32_t generation; /* last one given */
	bool compacts;	     /* objects of this process have been seen moving */
	size_t bytes;	     /* of memory that the copies own */
	uint64_t refused;    /* copies not made, for there were CODE_CACHE_BYTES already */
	struct intern iseq_addrs;
	struct cached_iseq *iseqs;
	size_t cap_iseqs;
	struct intern method_addrs;
	struct cached_method *methods;
	size_t cap_methods;
	struct memory_span *spans; /* of one code_cache_look() */
	size_t cap_spans;
	struct pending *pending;
	size_t cap_pending;
};

/*
 * Bytes of copies of one process. At this limit no new copies are made, and what is not known has no name,
 * until the caller replaces the cache.
 */
#define CODE_CACHE_BYTES (16u << 20)

/* Bytes of memory that the cache takes. */
size_t code_cache_bytes(const struct code_cache *c);

/* @vm must outlive the cache. */
void code_cache_init(struct code_cache *c, const struct ruby_vm *vm);
void code_cache_deinit(struct code_cache *c);

/*
 * Take what the kernel side copied at @moment (RBPF_RING_MEMORY): @len bytes of @blocks, which name
 * frames of the stack that comes next. Returns 0, -EPROTO or -ENOMEM.
 */
int code_cache_captured(struct code_cache *c, const struct code_moment *moment, const void *blocks,
			size_t len);

/*
 * Fill in @refs for the @n @frames of a stack that was sampled at @moment: what is known and can be
 * proven is used, the rest is read, all together in as few calls as possible. Returns 0 or -ENOMEM.
 */
int code_cache_look(struct code_cache *c, const struct code_moment *moment,
		    const struct rbpf_frame *frames, size_t n, struct code_ref *refs);

static inline const struct ruby_iseq *code_iseq(const struct code_cache *c,
						const struct code_ref *ref)
{
	return ref->iseq_ok ? &c->iseqs[ref->iseq].iseq : NULL;
}

static inline const struct ruby_method *code_method(const struct code_cache *c,
						    const struct code_ref *ref)
{
	return ref->method_ok ? &c->methods[ref->method].method : NULL;
}

#endif
