/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The iseqs of one process that a rule names (request/rules.h), as frames of them are met: the BPF
 * programs are told of each, and what they then send of such a frame is proven by it. An entry is
 * of one version of the code cache's: of another iseq at that address nothing is known.
 *
 * Not thread-safe.
 */
#ifndef RBPF_SYMBOL_REQUEST_FRAMES_H
#define RBPF_SYMBOL_REQUEST_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "rbpf_abi.h"
#include "request/rules.h"
#include "symbol/code_cache.h"

/* An iseq that was found to have a rule. */
struct request_found {
	uint64_t iseq;
	struct rbpf_request_rule rule;
};

struct request_entry;

struct request_frames {
	const struct request_rules *rules; /* NULL: none; not owned */
	struct request_entry *v;	   /* by index of the iseq in the code cache; owned */
	size_t n, cap;
	struct request_found *found; /* since they were taken last; owned */
	size_t n_found, cap_found;
	uint64_t key_hash[RBPF_ENV_KEYS]; /* 0: not known yet */
	uint32_t env_tries;		  /* that did not find them */
};

void request_frames_deinit(struct request_frames *f);

/* The iseq of @ref, which is proven, has rule @rule. Returns 0 or -ENOMEM. */
int request_frames_note(struct request_frames *f, const struct code_cache *code,
			const struct code_ref *ref, uint32_t rule);

/*
 * The BPF programs met Rack's environment at @hash, but found no path in it: learn the hashes of
 * its keys, and let them be told. Returns 0 or -ENOMEM.
 */
int request_frames_learn(struct request_frames *f, const struct code_cache *code, uint64_t hash);

/* The rule of the iseq of @ref, if that is proven; or -1. */
int request_frames_rule(const struct request_frames *f, const struct code_cache *code,
			const struct code_ref *ref);

#endif
