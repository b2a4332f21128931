/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/wait_percentiles.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/histogram.h"
#include "profile/profile.h"
#include "profile/replay.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/peer.h"
#include "view/state.h"

struct wait_rows {
	const struct profile *profile;
	struct view_selection *sel; /* owned, as are the others */
	unsigned int by;	    /* enum flat_by */
	uint8_t *states;	    /* by stack (state.h) */
	uint32_t *row_of;	    /* by id of a row: its place in .rows + 1; 0: there is none */
	struct histogram *rows;	    /* by place of the row */
	size_t n_rows;
	struct err *err;
};

static void wait_rows_deinit(struct wait_rows *w)
{
	view_selection_free(w->sel);
	free(w->states);
	free(w->row_of);
	for (size_t i = 0; w->rows && i < w->n_rows; i++)
		histogram_deinit(&w->rows[i]);
	free(w->rows);
}
#define _cleanup_wait_rows_ _cleanup_(wait_rows_deinit)

static int wait_rows_init(struct wait_rows *w, const struct view_filter *f, const struct flat *flat)
{
	const struct profile *p = w->profile;
	int r = view_selection_new(p, f, &w->sel);

	if (r)
		return r;
	w->n_rows = flat->n_rows;
	w->rows = calloc(flat->n_rows + 1, sizeof(*w->rows));
	w->row_of = calloc(w->by == FLAT_BY_PEER ? peer_row_ids(p) : STATE_SETS,
			   sizeof(*w->row_of));
	if (!w->rows || !w->row_of || state_of_stacks(p, &w->states))
		return -ENOMEM;
	for (size_t i = 0; i < flat->n_rows; i++)
		w->row_of[flat->rows[i].id] = (uint32_t)i + 1;
	return 0;
}

static int add_wait(void *arg, const struct profile_sample *wait)
{
	const struct wait_rows *w = arg;
	const struct profile_aggregate alike = profile_aggregate_of(w->profile, wait);
	uint32_t id, row;

	if (!view_selected(w->sel, &alike))
		return 0;
	id = w->by == FLAT_BY_PEER ? peer_row_id(w->profile, w->states, &alike)
				   : state_of(w->states, alike.stack, alike.flags);
	row = w->row_of[id];
	if (!row)
		return 0;
	return histogram_add(&w->rows[row - 1], wait->value) ? err_oom(w->err) : 0;
}

int wait_percentiles(const struct profile *p, const struct replay *from,
		     const struct view_filter *f, unsigned int by, struct flat *flat,
		     struct err *err)
{
	_cleanup_wait_rows_ struct wait_rows w = { .profile = p, .by = by, .err = err };
	int r = wait_rows_init(&w, f, flat);

	if (r)
		return err_code(err, r);
	r = profile_each_wait(p, from, add_wait, &w, err);
	for (size_t i = 0; i < flat->n_rows && !r; i++)
		flat->rows[i].percentiles = (struct wait_percentiles) {
			.n = w.rows[i].n,
			.p50 = histogram_percentile(&w.rows[i], 50),
			.p95 = histogram_percentile(&w.rows[i], 95),
			.p99 = histogram_percentile(&w.rows[i], 99),
		};
	return r;
}
