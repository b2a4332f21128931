/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/sample_kind.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "view/stack_mode.h"

/* Whether @frame, called by the stack whose samples @outer tells the kind of, tells it instead. */
static bool tells(const struct profile *p, uint32_t outer, uint32_t frame)
{
	if (outer == PROFILE_NONE || p->frames[frame].kind == FRAME_GC)
		return true;
	if (p->frames[outer].kind == FRAME_GC)
		return false;
	/* Where there are only internal frames, the innermost one tells it. */
	return stack_mode_shows(STACK_MIXED, p, frame) || !stack_mode_shows(STACK_MIXED, p, outer);
}

int sample_frames(const struct profile *p, uint32_t **ret)
{
	uint32_t *frames = calloc(p->n_stacks + 1, sizeof(*frames));

	if (!frames)
		return -ENOMEM;
	frames[0] = PROFILE_NONE;
	for (size_t i = 1; i < p->n_stacks; i++) {
		uint32_t outer = frames[p->stacks[i].parent];

		frames[i] = tells(p, outer, p->stacks[i].frame) ? p->stacks[i].frame : outer;
	}
	*ret = frames;
	return 0;
}

enum frame_kind sample_kind(const struct profile *p, const uint32_t *frames,
			    const struct profile_aggregate *a)
{
	uint32_t frame = frames[a->stack];

	if (a->flags & SAMPLE_GC)
		return FRAME_GC;
	return frame == PROFILE_NONE ? FRAME_UNKNOWN : p->frames[frame].kind;
}

enum code_origin sample_origin(const struct profile *p, const uint32_t *frames,
			       const struct profile_aggregate *a)
{
	uint32_t frame = frames[a->stack];

	if (a->flags & SAMPLE_GC)
		return ORIGIN_GC;
	return frame == PROFILE_NONE ? ORIGIN_UNKNOWN : label_origin(p, frame);
}
