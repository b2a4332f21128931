/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The Ruby stacks that the BPF programs have defined, named.
 *
 * A definition has the frames of a stack that lie inside of a checkpoint: of outermost frames that
 * an earlier definition had (bpf/checkpoints.bpf.h). So stacks form a tree here, too: of the outer
 * frames neither is a name looked up again, nor is anything stored. Naming goes from the root
 * inwards, and a frame may be hidden by the one that it calls; so the innermost frame of a
 * checkpoint is named anew with each definition that goes on from it.
 *
 * Frames are kept as they came, too. By these a checkpoint is named again: where it has a frame
 * that could not be named, where what naming it rests on was forgotten, and once for each
 * generation (stack_table.h), so that a generation never refers to the one before.
 */
#ifndef RBPF_SAMPLE_RUBY_STACKS_H
#define RBPF_SAMPLE_RUBY_STACKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/u64_map.h"
#include "native/merge.h"
#include "profile/id_holder.h"
#include "rbpf_abi.h"
#include "symbol/resolver.h"

struct sink;
struct tracked_process;

/* A frame of the VM's stack. */
struct ruby_frame {
	uint32_t frame; /* id in the recording */
	struct merge_ruby merge;
};

/* Frames are innermost first, here as everywhere. */
struct ruby_definition {
	size_t raw, named; /* where its own frames begin in the arrays of its generation */
	uint32_t n_raw, n_named;
	uint32_t outer; /* 1 + index of the checkpoint that they are inside of; 0: none */
	uint32_t n;	/* frames, with those of the checkpoint but its innermost */
	uint16_t flags; /* SAMPLE_*, of all of them */
	uint16_t rule;	/* frame_origin.rule of the innermost that has one */
};

/* The outermost frames of a definition. */
struct ruby_checkpoint {
	uint32_t definition;	 /* index */
	uint32_t n_raw, n_named; /* of its own frames; the innermost of n_raw is not in n_named */
	uint32_t n;		 /* with those of the definition's checkpoint: of named ones … */
	uint32_t n_all;		 /* … and of all */
	uint32_t names;		 /* tracked_process.names_made then */
	struct naming_state state; /* before its innermost frame was named */
	uint16_t flags, rule;	   /* as of a definition, of the named ones */
};

/* Both only grow, and refer to what is before them: an older entry stays valid. */
struct ruby_generation {
	struct u64_map stacks;		     /* by fingerprint: of definitions */
	struct ruby_definition *definitions; /* owned */
	size_t n_definitions, cap_definitions;
	struct u64_map outer;		     /* the same: of checkpoints */
	struct ruby_checkpoint *checkpoints; /* owned */
	size_t n_checkpoints, cap_checkpoints;
	struct rbpf_frame *raw; /* of all definitions; owned */
	size_t n_raw, cap_raw;
	struct ruby_frame *named; /* the same */
	size_t n_named, cap_named;
};

/* Room for one definition; zeroed at first. */
struct ruby_stacks_buffers {
	struct rbpf_frame *frames; /* owned */
	size_t n_frames, cap_frames;
	struct naming_point *points; /* owned */
	uint64_t *fingerprints;	     /* of the points; owned */
	size_t n_points, cap_points, cap_fingerprints;
};

void ruby_stacks_buffers_deinit(struct ruby_stacks_buffers *b);

void ruby_generation_deinit(struct ruby_generation *g);

/* Empty it, and keep what it took for the next one: see array_recycle(). */
void ruby_generation_recycle(struct ruby_generation *g);

/* Call @fn for the ids in it: see id_holder.h. */
void ruby_generation_ids(struct ruby_generation *g, id_fn *fn, void *arg);

/* Bytes of frames in it. */
size_t ruby_generation_bytes(const struct ruby_generation *g);

/*
 * Name the stack that @rec (of @len bytes) defines, with the resolver of its process @p, add it to
 * @g, and write what is new of it to @out. @previous: the generation before. Returns 0, -EPROTO,
 * -ENOMEM, or the failure of @out. If a checkpoint is not known any more, the stack is not defined.
 */
int ruby_stacks_define(struct ruby_generation *g, const struct ruby_generation *previous,
		       struct ruby_stacks_buffers *b, struct sink *out, struct tracked_process *p,
		       const struct rbpf_ring_stack *rec, size_t len);

/* The stack with this fingerprint; NULL if it is not defined in @g. */
const struct ruby_definition *ruby_stacks_find(const struct ruby_generation *g,
					       uint64_t fingerprint);

/* All @def->n frames of @def, a definition in @g, into @ret. */
void ruby_stacks_frames(const struct ruby_generation *g, const struct ruby_definition *def,
			struct ruby_frame *ret);

#endif
