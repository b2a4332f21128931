/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/native.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "profile/profile.h"

/* By stack id: the reason of its innermost gap, REASON_NONE if it has none. */
static int gaps_of_stacks(const struct profile *p, uint8_t **ret)
{
	uint8_t *reasons = calloc(p->n_stacks + 1, sizeof(*reasons));

	if (!reasons)
		return -ENOMEM;
	for (size_t i = 1; i < p->n_stacks; i++) {
		const struct profile_frame *frame = &p->frames[p->stacks[i].frame];

		reasons[i] = frame->kind == FRAME_GAP ? (uint8_t)frame->reason
						      : reasons[p->stacks[i].parent];
	}
	*ret = reasons;
	return 0;
}

static int compare_gaps(const void *a, const void *b)
{
	const struct native_gap *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	return strcmp(frame_reason_why(x->reason), frame_reason_why(y->reason));
}

int native_stacks_count(const struct profile *p, struct native_stacks *ret)
{
	struct native_stacks n = { 0 };
	_cleanup_free_ uint8_t *gaps = NULL;

	if (gaps_of_stacks(p, &gaps))
		return -ENOMEM;
	for (unsigned int i = 0; i < FRAME_REASON_COUNT; i++)
		n.gaps[i].reason = i;
	for (size_t i = 0; i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];

		if (!(a->flags & SAMPLE_NATIVE))
			continue;
		n.samples += a->samples;
		if (a->flags & SAMPLE_GAP)
			n.gaps[gaps[a->stack]].samples += a->samples;
		else
			n.complete += a->samples;
	}
	qsort(n.gaps, FRAME_REASON_COUNT, sizeof(*n.gaps), compare_gaps);
	while (n.n_gaps < FRAME_REASON_COUNT && n.gaps[n.n_gaps].samples)
		n.n_gaps++;
	*ret = n;
	return 0;
}
