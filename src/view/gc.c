/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/gc.h"

#include <errno.h>
#include <stdlib.h>

#include "profile/profile.h"
#include "view/filter.h"

static void add_samples(struct gc_time *to, const struct profile_aggregate *a)
{
	to->samples += a->samples;
	to->value += a->value;
}

static int add_times(struct gc_report *gc, const struct profile *p,
		     const struct view_selection *sel)
{
	_cleanup_free_ uint8_t *of_stacks = NULL;

	if (gc_phases_of_stacks(p, &of_stacks))
		return -ENOMEM;
	for (size_t i = 0; i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];
		enum gc_phase phase;

		if (!view_selected(sel, a))
			continue;
		phase = gc_phase_of(of_stacks, a);
		add_samples(&gc->all, a);
		add_samples(&gc->phases[phase], a);
		if (phase != GC_NONE)
			add_samples(&gc->gc, a);
		else if (a->flags & SAMPLE_GC_UNKNOWN)
			add_samples(&gc->unknown, a);
		gc->thread_value[a->thread] += a->value;
		gc->process_value[p->threads[a->thread].process] += a->value;
	}
	return 0;
}

static int add_rows(struct gc_report *gc, const struct profile *p, const struct view_selection *sel,
		    enum flat_by by, enum flat_sort sort)
{
	int r;

	r = flat_build_selected(p, sel, by, sort, &gc->causes);
	if (!r)
		r = flat_build_selected(p, sel, FLAT_BY_PROCESS, FLAT_SORT_SELF, &gc->processes);
	if (!r)
		r = flat_build_selected(p, sel, FLAT_BY_THREAD, FLAT_SORT_SELF, &gc->threads);
	return r;
}

/* After the causes are known. */
static void add_uncaused(struct gc_report *gc)
{
	gc->uncaused = gc->gc;
	for (size_t i = 0; i < gc->causes.n_rows; i++) {
		gc->uncaused.samples -= gc->causes.rows[i].samples;
		gc->uncaused.value -= gc->causes.rows[i].self_value;
	}
}

int gc_report_build(const struct profile *p, const struct view_filter *f, enum flat_by by,
		    enum flat_sort sort, struct gc_report *ret)
{
	_cleanup_view_selection_ struct view_selection *all = NULL;
	_cleanup_view_selection_ struct view_selection *collecting = NULL;
	_cleanup_gc_report_ struct gc_report gc = GC_REPORT_INIT;

	if (!p->by_thread)
		return -EINVAL;
	gc.process_value = calloc(p->n_processes + 1, sizeof(*gc.process_value));
	gc.thread_value = calloc(p->n_threads + 1, sizeof(*gc.thread_value));
	if (!gc.process_value || !gc.thread_value || view_selection_new(p, f, &all) ||
	    view_selection_new_gc(p, f, &collecting) || add_times(&gc, p, all) ||
	    add_rows(&gc, p, collecting, by, sort))
		return -ENOMEM;
	add_uncaused(&gc);
	*ret = gc;
	gc = (struct gc_report)GC_REPORT_INIT; /* owned by *ret now */
	return 0;
}

void gc_report_deinit(struct gc_report *gc)
{
	if (!gc)
		return;
	flat_deinit(&gc->causes);
	flat_deinit(&gc->processes);
	flat_deinit(&gc->threads);
	free(gc->process_value);
	free(gc->thread_value);
	*gc = (struct gc_report)GC_REPORT_INIT;
}
