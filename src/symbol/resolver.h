/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Resolves the raw frames of one process to names.
 *
 * An address alone says nothing: an iseq or method entry can be freed at any time, and another
 * object be allocated at its address. What cannot be proven to be the object that was there when
 * the stack was sampled (code_cache.h) becomes FRAME_UNKNOWN, never a wrong name.
 *
 * Not thread-safe. Names are valid UTF-8.
 */
#ifndef RBPF_SYMBOL_RESOLVER_H
#define RBPF_SYMBOL_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "rbpf_abi.h"
#include "symbol/code_cache.h"
#include "symbol/request_frames.h"

struct ruby_vm;
struct resolver;

/* A named frame; see struct profile_frame for the members. Strings live as long as the resolver. */
struct named_frame {
	enum frame_kind kind;
	const char *name;  /* what is recorded */
	const char *label; /* what is shown (frame_label.h) */
	const char *file;
	uint32_t line;
	uint32_t func_line;
	uint32_t flags; /* as of struct profile_frame */
	/* Numbers of rules + 1, 0: none: its own, and that of the frame that it calls. */
	uint16_t request, callee_request;
};

/* @vm must outlive the resolver. Returns 0 or -ENOMEM. */
int resolver_new(const struct ruby_vm *vm, struct resolver **ret);
void resolver_free(struct resolver *r);

/* From now on look for frames that @rules name; NULL: none. They must outlive the resolver. */
void resolver_set_requests(struct resolver *r, const struct request_rules *rules);

/*
 * Whether there may be machine code of iseqs, which is looked at then, as it is if this is not
 * called.
 */
void resolver_set_jit(struct resolver *r, bool possible);

/*
 * Bytes of memory that it takes; and how many objects it could not take a copy of since the last
 * call, because the process had used up CODE_CACHE_BYTES.
 */
size_t resolver_bytes(const struct resolver *r);
uint64_t resolver_refused(struct resolver *r);

/*
 * Begin a new round; the collector does at each poll that has stacks to name. Once in a round these
 * are read again: all entries if the era is not known, addresses where nothing usable was found,
 * owners that had no name, and whether iseqs are compiled.
 */
void resolver_revalidate(struct resolver *r);

/*
 * Take what the BPF programs copied in era @sampled, @len bytes of blocks, so that the stack that
 * follows can be named without the process. Returns 0, -EPROTO or -ENOMEM.
 */
int resolver_captured(struct resolver *r, const struct stack_era *sampled, const void *blocks,
		      size_t len);

/*
 * What naming a frame takes over from the frames outside of it. Zeroed: there are none. Valid as
 * long as the resolver.
 */
struct naming_state {
	uint32_t file, line;	 /* where C functions are shown that it calls */
	uint8_t unshown;	 /* activations that begin with hidden frames right outside of it */
	uint16_t callee_request; /* rule + 1 of the next Ruby frame */
	bool inside;		 /* the last frame that is shown outside of it is internal */
};

/* A frame before which naming can begin another time. */
struct naming_point {
	size_t frame;		   /* index */
	size_t n_outside;	   /* out: of the symbols, those of frames outside of it … */
	struct naming_state state; /* … and what it takes over from them */
};

/* Naming from a point, not from the root; all 0: from the root. */
struct naming_range {
	struct naming_state begin;
	struct naming_point *points; /* from the outermost one on, each another frame; not owned */
	size_t n_points;
};

/*
 * Name @n raw frames (innermost first) that were read in era @sampled. *@ids are the symbols of the
 * frames that Ruby itself would show, innermost first (there may be fewer than @n), and *@n_ids
 * their number; valid until the next call. @naming: NULL: as all 0. Returns 0 or -ENOMEM.
 */
int resolver_stack(struct resolver *r, const struct stack_era *sampled,
		   const struct rbpf_frame *frames, size_t n, struct naming_range *naming,
		   const uint32_t **ids, size_t *n_ids);

/* Properties of a frame that are no part of its name. */
struct frame_origin {
	uint64_t function; /* of a method in C: the address of its function; else 0 */
	uint8_t finish; /* activations that begin with it, or with hidden frames directly outside */
	uint16_t rule;	/* 1 + the number of the rule by which it tells a request; 0: none */
};

/* The properties of each of the frames that resolver_stack() returned last. */
const struct frame_origin *resolver_origins(const struct resolver *r);

/*
 * The iseqs that were found to have a rule since the last call, *@n of them; valid until the next
 * resolver_stack().
 */
const struct request_found *resolver_found_requests(struct resolver *r, size_t *n);

/* What a request is called; raw bytes, valid until the next call for this resolver. */
struct resolved_request {
	uint32_t rule;
	const char *klass;  /* NULL: none was read, or it could not be proven */
	const char *text;   /* the same */
	const char *method; /* the method of its frame, where the rule asks for that */
};

/*
 * Name what @rec has. Returns 0, -ENOENT (it cannot be proven that its frame has a rule) or
 * -ENOMEM.
 */
int resolver_request(struct resolver *r, const struct rbpf_ring_request *rec,
		     struct resolved_request *ret);

/*
 * Where instructions of the interpreter are implemented, by the first words of iseqs that were
 * named. Returns how many of @max are in @ret.
 */
size_t resolver_instructions(const struct resolver *r, uint64_t *ret, size_t max);

/* Symbol @id, as returned by resolver_stack(). Ids are dense, from 0. */
const struct named_frame *resolver_symbol(const struct resolver *r, uint32_t id);

#endif
