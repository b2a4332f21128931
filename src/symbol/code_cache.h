/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copies of the iseqs and method entries of one process, and the proof that a copy is of the object
 * that was at its address when a stack was sampled.
 *
 * code_proof.h has the rules of the proof. What cannot be proven by what is known is read or
 * compared here, and once more if an era ended meanwhile.
 */
#ifndef RBPF_SYMBOL_CODE_CACHE_H
#define RBPF_SYMBOL_CODE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/u64_map.h"
#include "rbpf_abi.h"
#include "ruby/iseq.h"
#include "ruby/method.h"

struct ruby_vm;

/* The era of the heap that a stack was sampled in (rbpf_gc_era()). */
struct stack_era {
	uint64_t gc_era;    /* 0: unknown */
	uint64_t gc_major;  /* rbpf_gc_major(); 0: unknown */
	bool gc_transition; /* RBPF_STACK_GC_TRANSITION */
};

/* That an object was old in an era, after so many major collections; major 0: that is not known. */
struct old_since {
	uint64_t era, major;
};

/* What is known of the object at an address, and when: code_proof.h says what follows. */
struct code_known {
	uint64_t first, last; /* eras between which it is known to be the same */
	uint64_t held; /* the last era in which it was read for a stack of that same era; 0: none */
	uint64_t checked; /* an era of which a check has shown the same; 0: none */
	struct old_since old;
	uint64_t revalidated; /* the revalidation it was last compared in; 0: never */
	uint64_t batch;	      /* number of the batch that it was last in */
	uint32_t version;     /* changes when something else is found there; 0: nothing usable */
	bool unsure; /* an era ended while it was read: of last or earlier; first is not valid */
};

struct cached_iseq {
	uint64_t addr;
	uint64_t check; /* ruby_iseq_words_check() */
	struct code_known known;
	struct ruby_iseq iseq;
	uint64_t compiled_revalidation; /* in which it was last checked whether it is compiled */
};

struct cached_method {
	uint64_t addr;
	struct code_known known;
	uint64_t ask_name; /* from which revalidation on its owner is asked for a name */
	uint64_t nameless; /* the one since which it is asked in vain, of the same method */
	bool with_name;	   /* that it is asked for */
	struct ruby_method method;
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
	uint64_t revalidation;	/* counts resolver_revalidate() */
	uint64_t batches;	/* read so far */
	uint32_t version;	/* last one given */
	bool compacts;		/* objects of this process have been seen moving */
	size_t bytes;		/* of memory that the copies own */
	uint64_t refused;	/* copies not made, for there were CODE_CACHE_BYTES already */
	struct u64_map iseq_at; /* by address */
	struct cached_iseq *iseqs;
	size_t n_iseqs, cap_iseqs;
	struct u64_map method_at; /* by address, one with its name and one without */
	struct cached_method *methods;
	size_t n_methods, cap_methods;
	struct memory_span *spans; /* of one code_cache_lookup() */
	size_t cap_spans;
	struct pending *pending;
	size_t cap_pending;
};

/*
 * Bytes of copies of one process. At this limit no new copies are made, and what is not known has
 * no name, until the caller replaces the cache.
 */
#define CODE_CACHE_BYTES (16u << 20)

/* Bytes of memory that the cache takes. */
size_t code_cache_bytes(const struct code_cache *c);

/* @vm must outlive the cache. */
void code_cache_init(struct code_cache *c, const struct ruby_vm *vm);
void code_cache_deinit(struct code_cache *c);

/*
 * Take what the BPF programs copied in era @sampled (RBPF_RING_MEMORY): @len bytes of @blocks,
 * which name frames of the stack that comes next. Returns 0, -EPROTO or -ENOMEM.
 */
int code_cache_captured(struct code_cache *c, const struct stack_era *sampled, const void *blocks,
			size_t len);

/*
 * Fill in @refs for the @n @frames of a stack that was sampled in era @sampled: what is known and
 * can be proven is used, the rest is read, all together in as few calls as possible. Returns 0 or
 * -ENOMEM.
 */
int code_cache_lookup(struct code_cache *c, const struct stack_era *sampled,
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
