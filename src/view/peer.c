/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/peer.h"

#include <errno.h>
#include <stdlib.h>

#include "profile/profile.h"
#include "profile/reason.h"
#include "view/filter.h"
#include "view/flat.h"

/*
 * By the name of the frame of a wait: rows have its string as their id. Of samples of CPU time the
 * id is beyond those of strings.
 */
uint32_t peer_row_id(const struct profile *p, const uint8_t *states,
		     const struct profile_aggregate *a)
{
	if (profile_stack_waits(p, a->stack))
		return p->frames[p->stacks[a->stack].frame].name;
	return (uint32_t)p->strings.count + state_of(states, a->stack, a->flags);
}

int peer_rows(const struct profile *p, const struct view_selection *sel, struct flat *flat)
{
	const size_t n = peer_row_ids(p);
	_cleanup_free_ struct flat_row *rows = calloc(n, sizeof(*rows));
	_cleanup_free_ uint8_t *states = NULL;
	int r = rows ? state_of_stacks(p, &states) : -ENOMEM;

	for (size_t i = 0; !r && i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];
		const struct view_sum sum = view_sum_at(p, i);
		const uint32_t id = peer_row_id(p, states, a);
		struct flat_row *row = &rows[id];

		if (!view_selected(sel, a))
			continue;
		row->id = id;
		row->frame = profile_stack_waits(p, a->stack) ? p->stacks[a->stack].frame
							      : PROFILE_NONE;
		flat_add_self(row, &sum);
		flat_add_total(row, &sum);
	}
	for (size_t i = 0; !r && i < n; i++)
		r = flat_add_row(flat, &rows[i]);
	return r;
}

enum thread_state peer_state(const struct profile *p, const struct flat_row *row)
{
	if (row->frame == PROFILE_NONE)
		return (enum thread_state)(row->id - (uint32_t)p->strings.count);
	return state_of_reason(p->frames[row->frame].reason);
}

void peer_name(const struct profile *p, const struct flat_row *row, struct buf *out)
{
	const struct profile_frame *f;
	const char *on;
	size_t n;

	if (row->frame == PROFILE_NONE)
		return;
	f = &p->frames[row->frame];
	on = wait_label_on(f->reason, profile_str(p, f->name), &n);
	buf_add(out, on, n);
}
