/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/stack_times.h"

#include <string.h>

#include "profile/profile.h"
#include "view/filter.h"

/*
 * Whether @f leaves out some of what a thread does one after another, not only whole threads and
 * requests: then CPU time that no tick tells of may be such.
 */
static bool selects_moments(const struct view_filter *f)
{
	return f && (f->has_include || f->has_exclude || f->expr || f->states || f->no_gc);
}

enum stack_times_kind stack_times_kind(const struct profile *p, const struct view_filter *f)
{
	const struct profile_event *event = profile_event(p);

	if (!strcmp(event->name, EVENT_WALL))
		return selects_moments(f) ? STACK_TIMES_PART : STACK_TIMES_ALL;
	return event_is_cpu(event) || !strcmp(event->name, EVENT_WAIT) ? STACK_TIMES_PART
								       : STACK_TIMES_NONE;
}

/*
 * A tick is rarely exactly a period behind the one before, even of a thread that never waits, and
 * on a busy machine the thread waits for a CPU, too: only if it is more than another period late
 * there is a pause.
 */
static bool is_pause(const struct stack_times *t, enum stack_times_kind kind,
		     const struct stack_sample *s, uint64_t start)
{
	if (t->hidden)
		return start > t->end;
	return kind == STACK_TIMES_PART && start > t->end &&
	       (s->waits || start - t->end > s->value);
}

size_t stack_times_add(struct stack_times *t, enum stack_times_kind kind,
		       const struct stack_sample *s, struct timed_stack ret[STACK_TIMES_MAX])
{
	const uint64_t ts = s->ts > t->end ? s->ts : t->end;
	uint64_t start = s->ts > s->value ? s->ts - s->value : 0;
	size_t n = 0;

	if (kind == STACK_TIMES_NONE)
		start = ts;
	if (start < t->end)
		start = t->end;
	if (t->begun && kind != STACK_TIMES_NONE) {
		if (is_pause(t, kind, s, start))
			ret[n++] = (struct timed_stack) { .ts = t->end };
		else if (!s->waits)
			start = t->end;
		else if (t->waited && start > t->end)
			ret[n++] = (struct timed_stack) { .ts = t->end,
							  .stack = t->after_wait,
							  .runs = true };
	}
	ret[n++] = (struct timed_stack) {
		.ts = start,
		.value = s->value,
		.stack = s->stack,
		.runs = !s->waits,
	};
	*t = (struct stack_times) {
		.end = ts,
		.after_wait = s->after_wait,
		.waited = s->waits,
		.begun = true,
	};
	return n;
}

size_t stack_times_end(const struct stack_times *t, enum stack_times_kind kind,
		       struct timed_stack ret[STACK_TIMES_MAX])
{
	if (!t->begun || kind == STACK_TIMES_NONE)
		return 0;
	ret[0] = (struct timed_stack) { .ts = t->end };
	return 1;
}
