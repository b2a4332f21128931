/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/call_counts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/intern.h"
#include "export/shown.h"
#include "profile/profile.h"
#include "view/filter.h"

int stack_counts(const struct shown *shown, struct stack_count **ret)
{
	const struct profile *p = shown->profile;
	struct stack_count *counts = calloc(p->n_stacks + 1, sizeof(*counts));

	if (!counts)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];
		struct stack_count *c = &counts[shown_stack(shown, a->stack)];

		if (!view_selected(shown->selection, a))
			continue;
		c->samples += a->samples;
		profile_add(&c->value, a->value);
	}
	*ret = counts;
	return 0;
}

uint64_t stack_counts_of_time(const struct profile *p, struct stack_count *counts)
{
	const struct profile_event *event = profile_event(p);
	uint64_t interval = event->period, rest, sum = 0;

	if (!event_has_durations(event) && !profile_samples_differ(p))
		return interval;
	for (size_t i = 0; i < p->n_stacks; i++)
		profile_add(&sum, counts[i].value);
	if (event_has_durations(event))
		interval = sum < NSEC_PER_SEC ? NSEC_PER_USEC : NSEC_PER_MSEC;
	rest = interval / 2; /* what the stacks so far have more than their counts */
	for (size_t i = 0; i < p->n_stacks; i++) {
		rest += counts[i].value % interval;
		counts[i].samples = counts[i].value / interval + rest / interval;
		rest %= interval;
	}
	return interval;
}

/* ---- calls ---- */

static uint32_t group_at(const struct shown *shown, const uint32_t *group_of, uint32_t stack)
{
	return stack ? group_of[shown->profile->stacks[stack].frame] : CALLS_ROOT;
}

/*
 * Add what @samples have in common: the innermost frame of @stack and its call, unless the callers
 * of
 * @stack have them already. Then they were counted there.
 */
static void add_stack(const struct shown *shown, const uint32_t *group_of, uint32_t stack,
		      uint64_t samples, struct call_counts *c)
{
	uint32_t at = shown_callers(shown, stack), callers;
	const uint32_t group = group_at(shown, group_of, stack);
	const uint32_t caller = group_at(shown, group_of, at);
	bool again = false, called_again = false;

	for (; at && !called_again; at = callers) {
		callers = shown_callers(shown, at);
		if (group_at(shown, group_of, at) != group)
			continue;
		again = true;
		called_again = group_at(shown, group_of, callers) == caller;
	}
	if (!again)
		c->total[group] += samples;
	if (!called_again)
		c->edges[c->n_edges++] = (struct call_edge) { caller, group, samples };
}

static int compare_edges(const void *a, const void *b)
{
	const struct call_edge *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

static void merge_edges(struct call_counts *c)
{
	size_t n = 0;

	qsort(c->edges, c->n_edges, sizeof(*c->edges), compare_edges);
	for (size_t i = 0; i < c->n_edges; i++) {
		if (n && !compare_edges(&c->edges[n - 1], &c->edges[i]))
			c->edges[n - 1].samples += c->edges[i].samples;
		else
			c->edges[n++] = c->edges[i];
	}
	c->n_edges = n;
}

int call_counts_init(const struct shown *shown, const struct stack_count *counts,
		     const uint32_t *group_of, size_t n, struct call_counts *ret)
{
	const struct profile *p = shown->profile;
	_cleanup_free_ uint64_t *below = calloc(p->n_stacks + 1, sizeof(*below));
	struct call_counts c = { .self = calloc(n + 1, sizeof(*c.self)),
				 .total = calloc(n + 1, sizeof(*c.total)),
				 .edges = calloc(p->n_stacks + 1, sizeof(*c.edges)) };

	if (!below || !c.self || !c.total || !c.edges) {
		call_counts_deinit(&c);
		return -ENOMEM;
	}
	/* Samples of a stack and of those that it calls, whose ids are above its own. */
	for (uint32_t i = (uint32_t)p->n_stacks; i-- > 1;) {
		below[i] += counts[i].samples;
		if (!below[i])
			continue;
		c.self[group_at(shown, group_of, i)] += counts[i].samples;
		below[shown_callers(shown, i)] += below[i];
		add_stack(shown, group_of, i, below[i], &c);
	}
	if (counts[0].samples) {
		c.self[n] = c.total[n] = counts[0].samples;
		c.edges[c.n_edges++] = (struct call_edge) { CALLS_ROOT, (uint32_t)n,
							    counts[0].samples };
	}
	merge_edges(&c);
	*ret = c;
	return 0;
}

void call_counts_deinit(struct call_counts *c)
{
	free(c->self);
	free(c->total);
	free(c->edges);
	*c = (struct call_counts)CALL_COUNTS_INIT;
}

/* ---- lines ---- */

int line_groups_init(const struct profile *p, const uint32_t *function_of, struct line_groups *ret)
{
	_cleanup_intern_ struct intern lines = INTERN_INIT;
	struct line_groups g = { .of_frame = calloc(p->n_frames + 1, sizeof(*g.of_frame)),
				 .frame = calloc(p->n_frames + 1, sizeof(*g.frame)) };

	if (!g.of_frame || !g.frame)
		goto nomem;
	for (uint32_t i = 0; i < p->n_frames; i++) {
		/* Those of a method in C are its callers'. */
		const bool has_line = p->frames[i].kind != FRAME_CFUNC;
		const uint32_t key[] = { function_of[i], has_line ? p->frames[i].line : 0 };

		if (intern_add(&lines, key, sizeof(key), &g.of_frame[i], NULL))
			goto nomem;
		if (g.of_frame[i] == g.n)
			g.frame[g.n++] = i;
	}
	*ret = g;
	return 0;
nomem:
	line_groups_deinit(&g);
	return -ENOMEM;
}

void line_groups_deinit(struct line_groups *g)
{
	free(g->of_frame);
	free(g->frame);
	*g = (struct line_groups) { 0 };
}
