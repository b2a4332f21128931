/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/shown.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "view/filter.h"

int shown_init(const struct profile *p, const struct view_filter *f, struct shown *ret)
{
	struct shown s = { .profile = p, .nearest = calloc(p->n_stacks + 1, sizeof(*s.nearest)) };
	int r = s.nearest ? view_selection_new(p, f, &s.selection) : -ENOMEM;

	if (r) {
		shown_deinit(&s);
		return r;
	}
	s.all = true;
	for (size_t i = 1; i < p->n_stacks; i++) {
		bool is_shown = view_frame_shown(s.selection, p->stacks[i].frame);

		s.nearest[i] = is_shown ? (uint32_t)i : s.nearest[p->stacks[i].parent];
		s.all &= is_shown;
	}
	*ret = s;
	return 0;
}

void shown_deinit(struct shown *s)
{
	view_selection_free(s->selection);
	free(s->nearest);
	*s = (struct shown)SHOWN_INIT;
}

void shown_time(const struct profile *p, const struct view_filter *f, uint64_t *from, uint64_t *to)
{
	uint64_t first, last;

	profile_time_range(p, &first, &last);
	*from = 0;
	*to = last - first;
	if (f && f->to_ns && f->to_ns < *to)
		*to = f->to_ns;
	if (f)
		*from = f->from_ns < *to ? f->from_ns : *to;
}

uint32_t shown_stack(const struct shown *s, uint32_t stack)
{
	/* There may be many: their order is not that of memory, which would be waited for. */
	if (s->all)
		return stack;
	return stack && !s->nearest[stack] ? view_stack_instead(s->selection) : s->nearest[stack];
}

uint32_t shown_without_wait(const struct shown *s, uint32_t stack)
{
	/* Also what says that it has the GVL meanwhile is of this kind. */
	while (profile_stack_waits(s->profile, stack))
		stack = shown_callers(s, stack);
	return stack;
}

bool shown_sample(const struct shown *s, const struct profile_sample *sample)
{
	const struct profile_aggregate alike = profile_aggregate_of(s->profile, sample);

	return view_selected(s->selection, &alike);
}

int shown_frames(const struct shown *s, uint32_t stack, uint32_t **frames, size_t *cap, size_t *ret)
{
	size_t n = 0;

	for (; stack; stack = shown_callers(s, stack)) {
		if (array_reserve(*frames, *cap, n + 1))
			return -ENOMEM;
		(*frames)[n++] = s->profile->stacks[stack].frame;
	}
	*ret = n;
	return 0;
}
