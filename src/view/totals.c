/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/totals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"
#include "view/stack_forest.h"

struct totals_walk {
	const struct profile *profile;
	const uint32_t *group_of;
	struct stack_forest forest;
	uint32_t *shown;   /* stacks_shown(); owned */
	uint32_t *on_path; /* by group: its frames on the current path; owned */
	uint32_t instead;  /* view_stack_instead() */
	struct group_total *ret;
};

static uint32_t group_of_stack(const struct totals_walk *w, uint32_t stack)
{
	return w->group_of[w->profile->stacks[stack].frame];
}

static void enter(void *arg, uint32_t stack)
{
	struct totals_walk *w = arg;
	uint32_t charged = w->shown[stack] ? w->shown[stack] : w->instead, group;
	struct view_sum sum;

	if (w->shown[stack] == stack) {
		group = group_of_stack(w, stack);
		if (group != PROFILE_NONE && w->on_path[group]++ == 0) {
			sum = stack_forest_below(&w->forest, stack);
			view_sum_add(&w->ret[group].total, &sum);
		}
	}
	group = charged ? group_of_stack(w, charged) : PROFILE_NONE;
	if (group == PROFILE_NONE)
		return;
	sum = stack_forest_self(&w->forest, stack);
	view_sum_add(&w->ret[group].self, &sum);
	if (!w->shown[stack])
		view_sum_add(&w->ret[group].total, &sum);
}

static void leave(void *arg, uint32_t stack)
{
	struct totals_walk *w = arg;
	uint32_t group = group_of_stack(w, stack);

	if (w->shown[stack] == stack && group != PROFILE_NONE)
		w->on_path[group]--;
}

int group_totals(const struct profile *p, const struct view_selection *sel,
		 const uint32_t *group_of, size_t n_groups, struct group_total *ret)
{
	_cleanup_free_ uint32_t *shown = NULL;
	_cleanup_free_ uint32_t *on_path = calloc(n_groups + 1, sizeof(*on_path));
	struct totals_walk w = {
		.profile = p,
		.group_of = group_of,
		.on_path = on_path,
		.instead = view_stack_instead(sel),
		.ret = ret,
	};

	if (!on_path || stacks_shown(p, sel, &shown) || stack_forest_init(p, sel, &w.forest))
		return -ENOMEM;
	w.shown = shown;
	memset(ret, 0, n_groups * sizeof(*ret));
	stack_forest_walk(&w.forest, enter, leave, &w);
	stack_forest_deinit(&w.forest);
	return 0;
}
