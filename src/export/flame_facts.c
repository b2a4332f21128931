/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/flame_facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "export/shown.h"
#include "profile/profile.h"
#include "view/filter.h"
#include "view/label.h"

/* Names in a list: a whole machine runs thousands of programs, and a title has one line. */
#define MAX_NAMES 6

static int add_distinct(struct intern *seen, const char *s, struct buf *list)
{
	bool is_new;
	uint32_t id;

	if (intern_add(seen, s, strlen(s), &id, &is_new))
		return -ENOMEM;
	if (is_new && id < MAX_NAMES) {
		buf_addstr(list, list->len ? ", " : "");
		buf_addstr(list, s);
	}
	return 0;
}

static void end_list(const struct intern *seen, struct buf *list)
{
	if (seen->count > MAX_NAMES)
		buf_addf(list, " and %zu more", seen->count - MAX_NAMES);
}

static int describe_processes(struct flame_facts *facts, const struct profile *p, const bool *used)
{
	_cleanup_intern_ struct intern programs = INTERN_INIT;
	_cleanup_intern_ struct intern rubies = INTERN_INIT;
	_cleanup_buf_ struct buf name = BUF_INIT;

	for (size_t i = 0; i < p->n_processes; i++) {
		const char *ruby = profile_str(p, p->processes[i].ruby_version);

		if (!used[i])
			continue;
		if (!facts->n_processes++)
			facts->process = (uint32_t)i;
		buf_reset(&name);
		label_process(p, (uint32_t)i, &name);
		if (buf_failed(&name) || add_distinct(&programs, buf_str(&name), &facts->programs))
			return -ENOMEM;
		if (*ruby && add_distinct(&rubies, ruby, &facts->rubies))
			return -ENOMEM;
	}
	end_list(&programs, &facts->programs);
	end_list(&rubies, &facts->rubies);
	facts->n_programs = programs.count;
	return 0;
}

static uint64_t shown_duration(const struct profile *p, const struct view_filter *f)
{
	uint64_t from, to;

	shown_time(p, f, &from, &to);
	return to - from;
}

static void add_defects(struct flame_facts *facts, const struct profile_aggregate *a)
{
	facts->truncated += a->flags & SAMPLE_TRUNCATED ? a->samples : 0;
	facts->unresolved += a->flags & SAMPLE_UNRESOLVED ? a->samples : 0;
	facts->failed += a->flags & SAMPLE_FAILED ? a->samples : 0;
	facts->gaps += a->flags & SAMPLE_GAP ? a->samples : 0;
	facts->frameless += a->stack ? 0 : a->samples;
	facts->gc_unknown += a->flags & SAMPLE_GC_UNKNOWN ? a->samples : 0;
}

int flame_facts_init(const struct profile *p, const struct view_filter *f, struct flame_facts *ret)
{
	_cleanup_flame_facts_ struct flame_facts facts = FLAME_FACTS_INIT;
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	_cleanup_free_ bool *threads = calloc(p->n_threads + 1, sizeof(*threads));
	_cleanup_free_ bool *processes = calloc(p->n_processes + 1, sizeof(*processes));
	struct view_sum sum;

	if (!threads || !processes || view_selection_new(p, f, &sel))
		return -ENOMEM;
	facts.all_samples = p->n_samples;
	facts.duration_ns = shown_duration(p, f);
	sum = view_selected_threads(sel, threads);
	facts.samples = sum.samples;
	facts.value = sum.value;
	for (size_t i = 0; i < p->n_aggregates; i++)
		if (view_selected(sel, &p->aggregates[i]))
			add_defects(&facts, &p->aggregates[i]);
	for (size_t i = 0; i < p->n_threads; i++) {
		facts.n_threads += threads[i];
		processes[p->threads[i].process] |= threads[i];
	}
	if (describe_processes(&facts, p, processes))
		return -ENOMEM;
	*ret = facts;
	facts = (struct flame_facts)FLAME_FACTS_INIT; /* owned by *ret now */
	return 0;
}

void flame_facts_deinit(struct flame_facts *facts)
{
	if (!facts)
		return;
	buf_deinit(&facts->programs);
	buf_deinit(&facts->rubies);
	*facts = (struct flame_facts)FLAME_FACTS_INIT;
}
