/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What threads waited for behind a descriptor: who was at the other end of a socket, or which file.
 * Rows of it.
 */
#ifndef RBPF_VIEW_PEER_H
#define RBPF_VIEW_PEER_H

#include "base/buf.h"
#include "profile/profile.h"
#include "view/state.h"

struct flat;
struct flat_row;
struct view_selection;

/*
 * Append a row for each of these that has selected samples to @flat, in no order, and of other
 * samples one for each state. Returns 0 or -ENOMEM.
 */
int peer_rows(const struct profile *p, const struct view_selection *sel, struct flat *flat);

/*
 * The id of the row that samples of @a are in, @states: of state_of_stacks(); it is below
 * peer_row_ids().
 */
uint32_t peer_row_id(const struct profile *p, const uint8_t *states,
		     const struct profile_aggregate *a);

static inline size_t peer_row_ids(const struct profile *p)
{
	return p->strings.count + STATES;
}

/* The state of such a row. */
enum thread_state peer_state(const struct profile *p, const struct flat_row *row);

/* "10.0.0.5:5432"; nothing of a row of other samples. */
void peer_name(const struct profile *p, const struct flat_row *row, struct buf *out);

#endif
