/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Self and total of groups of frames, whatever the groups are.
 */
#ifndef RBPF_VIEW_TOTALS_H
#define RBPF_VIEW_TOTALS_H

#include <stddef.h>
#include <stdint.h>

#include "view/filter.h"

struct profile;

struct group_total {
	struct view_sum self;  /* samples whose innermost shown frame is of the group */
	struct view_sum total; /* samples with a shown frame of it anywhere, each counted once */
};

/*
 * @group_of has the group of each frame by id, below @n_groups, or PROFILE_NONE where it is in
 * none.
 * @ret has room for all groups. Returns 0 or -ENOMEM.
 */
int group_totals(const struct profile *p, const struct view_selection *sel,
		 const uint32_t *group_of, size_t n_groups, struct group_total *ret);

#endif
