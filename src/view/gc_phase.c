/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/gc_phase.h"

#include <errno.h>
#include <stdlib.h>

#include "profile/profile.h"
#include "profile/reason.h"

static const char *const names[GC_PHASE_COUNT] = {
	[GC_NONE] = "none",	    [GC_MARKING] = "marking",
	[GC_SWEEPING] = "sweeping", [GC_COMPACTING] = "compacting",
	[GC_OTHER] = "other",
};

const char *gc_phase_name(enum gc_phase phase)
{
	return names[phase];
}

static enum gc_phase phase_of_frame(const struct profile_frame *frame)
{
	switch (frame->reason) {
	case REASON_GC_MARKING:
		return GC_MARKING;
	case REASON_GC_SWEEPING:
		return GC_SWEEPING;
	case REASON_GC_COMPACTING:
		return GC_COMPACTING;
	default:
		return GC_OTHER;
	}
}

int gc_phases_of_stacks(const struct profile *p, uint8_t **ret)
{
	uint8_t *of_stacks = calloc(p->n_stacks + 1, sizeof(*of_stacks));

	if (!of_stacks)
		return -ENOMEM;
	for (size_t i = 1; i < p->n_stacks; i++) {
		const struct profile_frame *frame = &p->frames[p->stacks[i].frame];

		of_stacks[i] = frame->kind == FRAME_GC ? (uint8_t)phase_of_frame(frame)
						       : of_stacks[p->stacks[i].parent];
	}
	*ret = of_stacks;
	return 0;
}

enum gc_phase gc_phase_of(const uint8_t *of_stacks, const struct profile_aggregate *a)
{
	if (of_stacks[a->stack] == GC_NONE && a->flags & SAMPLE_GC)
		return GC_OTHER;
	return of_stacks[a->stack];
}
