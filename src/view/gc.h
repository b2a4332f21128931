/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Garbage collection: how much of the time it took, in which phases, whose time, and who caused it.
 *
 * A collection is caused by the method that happened to allocate when it was due. Of one collection
 * that says little, of many it says who allocates.
 */
#ifndef RBPF_VIEW_GC_H
#define RBPF_VIEW_GC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "view/flat.h"
#include "view/gc_phase.h"

struct profile;
struct view_filter;

struct gc_time {
	uint64_t samples;
	uint64_t value;
};

struct gc_report {
	struct gc_time all;	/* what was selected */
	struct gc_time gc;	/* … and is garbage collection … */
	struct gc_time unknown; /* … or may be: the collector is not known */
	struct gc_time phases[GC_PHASE_COUNT];

	/*
	 * Of the time of garbage collection, a row for each method (or line): as self time what it
	 * caused directly, being the innermost Ruby frame below the collection; as total what was
	 * caused by it and all it called.
	 */
	struct flat causes;
	struct gc_time uncaused;	/* the part in no row, for there was no Ruby frame below */
	struct flat processes, threads; /* the same by who collected */
	uint64_t *process_value;	/* by process id: its time in .all; owned */
	uint64_t *thread_value;		/* by thread id; owned */
};

#define GC_REPORT_INIT                                                                             \
	{                                                                                          \
		0                                                                                  \
	}

/* Whether nothing is known of garbage collection, rather than that there was none. */
static inline bool gc_report_is_unknown(const struct gc_report *gc)
{
	return !gc->gc.samples && gc->unknown.samples;
}

/*
 * Of the samples that @f selects (NULL: of all). @by is FLAT_BY_FUNCTION or FLAT_BY_LINE and makes
 * the rows of .causes, @sort orders them.
 *
 * Returns 0, -ENOMEM, or -EINVAL if @p is not by_thread. @ret: gc_report_deinit().
 */
int gc_report_build(const struct profile *p, const struct view_filter *f, enum flat_by by,
		    enum flat_sort sort, struct gc_report *ret);
void gc_report_deinit(struct gc_report *gc);
#define _cleanup_gc_report_ _cleanup_(gc_report_deinit)

#endif
