/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The native stacks that the BPF programs have defined, named.
 *
 * As of Ruby stacks (ruby_stacks.h), a definition has the frames that lie inside of a checkpoint,
 * so that these form a tree. Each frame is named by itself: those of a checkpoint are taken as they
 * are, unless they might be named otherwise by now, or are of the generation before. Then they are
 * named again.
 */
#ifndef RBPF_SAMPLE_NATIVE_DEFINITIONS_H
#define RBPF_SAMPLE_NATIVE_DEFINITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/u64_map.h"
#include "native/native_stacks.h"
#include "rbpf_abi.h"

/* Of a native stack, beyond SAMPLE_*: its outer end is missing. */
#define NATIVE_CUT (1u << 15)

/* Frames are innermost first, here as everywhere. */
struct native_definition {
	size_t word, frame; /* where its own begin in the arrays of its generation */
	uint32_t n_words, n_frames;
	uint32_t outer; /* 1 + index of the checkpoint that they are inside of; 0: none */
	uint32_t n;	/* frames, with those of the checkpoint */
	uint16_t flags; /* SAMPLE_*, NATIVE_CUT */
};

/* The outermost frames of a definition. */
struct native_checkpoint {
	uint32_t definition;	    /* index */
	uint32_t n_words, n_frames; /* of its own */
	uint32_t n;		    /* with those of the definition's checkpoint: of frames … */
	uint32_t n_all;		    /* … and of words */
	uint16_t flags;		    /* as of a definition */
	uint64_t age;		    /* native_names_age() then; UINT64_MAX: symbols were missing */
};

/* An older entry refers to what is before it, and stays valid. All 0: nothing. */
struct native_generation {
	struct u64_map stacks;		       /* by fingerprint: of definitions */
	struct native_definition *definitions; /* owned */
	size_t n_definitions, cap_definitions;
	struct u64_map outer;		       /* the same: of checkpoints */
	struct native_checkpoint *checkpoints; /* owned */
	size_t n_checkpoints, cap_checkpoints;
	uint64_t *words; /* of all definitions, as they came; owned */
	size_t n_words, cap_words;
	struct native_frames frames; /* the same, named; owned */
};

/* Where in a definition a checkpoint ends. */
struct native_point {
	uint64_t fingerprint;
	size_t word, frame; /* the innermost that it has, of the definition's own */
};

/* Room for one definition; zeroed at first. */
struct native_definitions_buffers {
	uint64_t *words; /* owned */
	size_t n_words, cap_words;
	struct native_point *points; /* from the outermost one on; owned */
	size_t n_points, cap_points;
};

void native_definitions_buffers_deinit(struct native_definitions_buffers *b);

void native_generation_deinit(struct native_generation *g);

/* Empty it, and keep what it took for the next one: see array_recycle(). */
void native_generation_recycle(struct native_generation *g);

/* Bytes of frames in it. */
size_t native_generation_bytes(const struct native_generation *g);

/* Of whom a stack is, and how it is named: see native_frames(). */
struct native_naming {
	struct native *native;
	struct native_process *process;
	bool no_wait;
};

/*
 * Name the stack that @rec (of @len bytes) defines, and add it to @g. @previous: the generation
 * before. Returns 0, -EPROTO or -ENOMEM. If its checkpoint is not known any more, the stack is not
 * defined.
 */
int native_define(struct native_generation *g, const struct native_generation *previous,
		  struct native_definitions_buffers *b, const struct native_naming *naming,
		  const struct rbpf_ring_native *rec, size_t len);

/* The stack with this fingerprint; NULL if it is not defined in @g. */
const struct native_definition *native_definition_find(const struct native_generation *g,
						       uint64_t fingerprint);

/* All @def->n frames of @def, a definition in @g, into @ret. */
void native_definition_frames(const struct native_generation *g,
			      const struct native_definition *def, struct native_frame *ret);

#endif
