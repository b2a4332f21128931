/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/gc_phase.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"

static const struct {
	const char *name;
	const char *frame; /* name of the frame that says so; NULL: there is none */
} phases[GC_PHASE_COUNT] = {
	[GC_NONE] = { "none", NULL },
	[GC_MARKING] = { "marking", "(marking)" },
	[GC_SWEEPING] = { "sweeping", "(sweeping)" },
	[GC_COMPACTING] = { "compacting", "(compacting)" },
	[GC_OTHER] = { "other", NULL },
};

const char *gc_phase_name(enum gc_phase phase)
{
	return phases[phase].name;
}

static enum gc_phase phase_of_frame(const char *name)
{
	for (unsigned int i = 0; i < GC_PHASE_COUNT; i++)
		if (phases[i].frame && !strcmp(phases[i].frame, name))
			return i;
	return GC_OTHER;
}

int gc_phases_of_stacks(const struct profile *p, uint8_t **ret)
{
	uint8_t *of_stacks = calloc(p->n_stacks + 1, sizeof(*of_stacks));

	if (!of_stacks)
		return -ENOMEM;
	for (size_t i = 1; i < p->n_stacks; i++) {
		const struct profile_frame *frame = &p->frames[p->stacks[i].frame];

		of_stacks[i] = frame->kind == FRAME_GC
				       ? (uint8_t)phase_of_frame(profile_str(p, frame->name))
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
