/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which samples were taken while their thread collected garbage, and in which phase.
 *
 * It knows how a recording says so (profile.h), not what views make of it (gc.h).
 */
#ifndef RBPF_VIEW_GC_PHASE_H
#define RBPF_VIEW_GC_PHASE_H

#include <stdint.h>

struct profile;
struct profile_aggregate;

enum gc_phase {
	GC_NONE, /* no garbage collection */
	GC_MARKING,
	GC_SWEEPING,
	GC_COMPACTING,
	GC_OTHER, /* between these, or it is not known */
	GC_PHASE_COUNT,
};

/* The word used in reports, "marking"; "none" of GC_NONE. */
const char *gc_phase_name(enum gc_phase phase);

/*
 * The phase of each stack, by id, as its innermost FRAME_GC tells it. @ret: free(). Returns 0 or
 * -ENOMEM.
 */
int gc_phases_of_stacks(const struct profile *p, uint8_t **ret);

/* The phase of samples, @of_stacks being what gc_phases_of_stacks() gave. */
enum gc_phase gc_phase_of(const uint8_t *of_stacks, const struct profile_aggregate *a);

#endif
