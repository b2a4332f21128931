/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/wait_lengths.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct open_wait {
	uint64_t since, until;		/* ns, CLOCK_MONOTONIC; until is 0 if there was none */
	uint16_t reason;		/* enum frame_reason: what for */
	uint16_t edges;			/* SAMPLE_BEFORE and SAMPLE_AFTER of all its samples */
	bool counts;			/* a sample of it was selected: … */
	struct profile_sample selected; /* … the last one */
};

void wait_lengths_deinit(struct wait_lengths *w)
{
	free(w->threads);
	*w = (struct wait_lengths)WAIT_LENGTHS_INIT;
}

static int reserve(struct wait_lengths *w, uint32_t thread)
{
	if (thread < w->n)
		return 0;
	if (array_reserve(w->threads, w->cap, (size_t)thread + 1))
		return -ENOMEM;
	memset(w->threads + w->n, 0, (w->cap - w->n) * sizeof(*w->threads));
	w->n = w->cap;
	return 0;
}

/* @wait is over. */
static int tell(const struct wait_lengths *w, struct open_wait *wait)
{
	if (!wait->counts)
		return 0;
	wait->counts = false;
	wait->selected.value = wait->until - wait->since;
	wait->selected.ts = wait->until;
	wait->selected.flags |= wait->edges;
	return w->fn(w->arg, &wait->selected);
}

int wait_lengths_note(struct wait_lengths *w, const struct profile *p,
		      const struct profile_sample *recorded, const struct profile_sample *selected)
{
	const uint64_t since = recorded->ts > recorded->value ? recorded->ts - recorded->value : 0;
	uint16_t reason;
	struct open_wait *wait;
	int r = 0;

	if (!profile_stack_waits(p, recorded->stack))
		return 0;
	if (reserve(w, recorded->thread))
		return -ENOMEM;
	wait = &w->threads[recorded->thread];
	reason = p->frames[p->stacks[recorded->stack].frame].reason;
	if (wait->until != since || wait->reason != reason) {
		r = tell(w, wait);
		wait->since = since;
		wait->reason = reason;
		wait->edges = 0;
	}
	wait->until = recorded->ts;
	wait->edges |= recorded->flags & (SAMPLE_BEFORE | SAMPLE_AFTER);
	if (selected) {
		wait->counts = true;
		wait->selected = *selected;
	}
	return r;
}

int wait_lengths_end(struct wait_lengths *w)
{
	int r = 0;

	for (size_t i = 0; i < w->n && !r; i++)
		r = tell(w, &w->threads[i]);
	return r;
}
