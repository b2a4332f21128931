/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What top shows, as rows: made from the window for what the user has chosen. It knows nothing of
 * terminals. Not thread-safe.
 */
#ifndef RBPF_TOP_MODEL_H
#define RBPF_TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "profile/window.h"
#include "top/choice.h"

struct top_row {
	/*
	 * The same for the same process, thread, method, … each time that rows are made; of nodes
	 * of the tree, of the same path. Never 0.
	 */
	uint64_t key;
	size_t label, where; /* offsets in the model's text; where may be "" */
	uint64_t self_ns, total_ns;
	uint32_t pid, tid; /* 0: none */
	uint32_t depth;	   /* of nodes of the tree: 0 and up */
	bool has_children, open;
};

struct top_model {
	struct top_row *rows; /* sorted; owned */
	size_t n_rows, cap_rows;
	struct buf text; /* of all rows */
	struct window_range range;
	uint64_t window_ns; /* how long that is */
	uint64_t samples;   /* in it, of CPU time or of what is shown in its place … */
	bool only_waits;    /* there are none, but others */
	uint64_t cpu_ns;
	uint64_t gc_ns;		/* of cpu_ns … */
	uint64_t gc_unknown_ns; /* … and what may be garbage collection or not */
	uint64_t lost;		/* samples */
	size_t n_hidden;	/* rows that the filter hides */
};

void top_model_deinit(struct top_model *m);

/*
 * Make the rows for @choice. States are those of threads if @w has waits, else of CPU time alone.
 * Returns 0 or -ENOMEM; what @m had is gone in any case.
 */
int top_model_build(struct top_model *m, struct window *w, const struct top_choice *choice);

static inline const char *top_label(const struct top_model *m, const struct top_row *row)
{
	return m->text.data + row->label;
}

static inline const char *top_where(const struct top_model *m, const struct top_row *row)
{
	return m->text.data + row->where;
}

/*
 * window_profile(), with what the views need for samples of which they show no frame: as
 * stack_mode_prepare().
 */
int top_profile(struct window *w, struct window_range range, uint32_t event,
		const struct profile **ret);

/* The seconds that @choice asks for, of those that @w has. */
struct window_range top_range(const struct window *w, const struct top_choice *choice);

#endif
