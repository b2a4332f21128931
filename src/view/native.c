/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/native.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "profile/profile.h"

/* By stack id: the name of its innermost gap, 0 if it has none. */
static int gaps_of_stacks(const struct profile *p, uint32_t **ret)
{
	uint32_t *names = calloc(p->n_stacks + 1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	for (size_t i = 1; i < p->n_stacks; i++) {
		const struct profile_frame *frame = &p->frames[p->stacks[i].frame];

		names[i] = frame->kind == FRAME_GAP ? frame->name : names[p->stacks[i].parent];
	}
	*ret = names;
	return 0;
}

static int add_gap(struct native_stacks *n, uint32_t name, uint64_t samples)
{
	size_t i = 0;

	while (i < n->n_gaps && n->gaps[i].name != name)
		i++;
	if (i == n->n_gaps) {
		if (array_reserve(n->gaps, n->cap_gaps, n->n_gaps + 1))
			return -ENOMEM;
		n->gaps[n->n_gaps++] = (struct native_gap) { .name = name };
	}
	n->gaps[i].samples += samples;
	return 0;
}

static int compare_gaps(const void *a, const void *b, void *arg)
{
	const struct native_gap *x = a, *y = b;
	const struct profile *p = arg;

	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	return strcmp(profile_str(p, x->name), profile_str(p, y->name));
}

int native_stacks_init(const struct profile *p, struct native_stacks *ret)
{
	_cleanup_native_stacks_ struct native_stacks n = NATIVE_STACKS_INIT;
	_cleanup_free_ uint32_t *gaps = NULL;

	if (gaps_of_stacks(p, &gaps))
		return -ENOMEM;
	for (size_t i = 0; i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];

		if (!(a->flags & SAMPLE_NATIVE))
			continue;
		n.samples += a->samples;
		if (!(a->flags & SAMPLE_GAP))
			n.complete += a->samples;
		else if (add_gap(&n, gaps[a->stack], a->samples))
			return -ENOMEM;
	}
	if (n.n_gaps)
		qsort_r(n.gaps, n.n_gaps, sizeof(*n.gaps), compare_gaps, (void *)p);
	*ret = n;
	n = (struct native_stacks)NATIVE_STACKS_INIT; /* owned by *ret now */
	return 0;
}

void native_stacks_deinit(struct native_stacks *n)
{
	if (!n)
		return;
	free(n->gaps);
	*n = (struct native_stacks)NATIVE_STACKS_INIT;
}

void native_gap_reason(const struct profile *p, const struct native_gap *gap, struct buf *out)
{
	const char *name = profile_str(p, gap->name);
	const char *reason = strstr(name, ": ");
	size_t len = strlen(name);

	if (*name == '[' && name[len - 1] == ']' && reason)
		buf_add(out, reason + 2, (size_t)(name + len - 1 - (reason + 2)));
	else
		buf_addstr(out, len ? name : "not recorded");
}
