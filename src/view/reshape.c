/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The new stacks are a prefix tree, too. The new stack of an old one is made of that of its
 * callers, whose id is lower, so that one pass over the old ones makes them all.
 */
#include "view/reshape.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/prefix_tree.h"
#include "profile/profile.h"
#include "profile/replay.h"
#include "view/expr.h"
#include "view/filter.h"
#include "view/group.h"
#include "view/label.h"

#define NOT_IN UINT32_MAX /* of a stack: outside of all subtrees */

struct reshape {
	struct profile *profile;
	const struct reshape_options *opts;
	struct view_selection *selection; /* owned, as all below */
	struct groups groups;
	struct prefix_tree ids;	      /* the new stacks, by parent and frame */
	struct profile_stack *stacks; /* the new ones */
	size_t n_stacks, cap_stacks;
	uint32_t *shown; /* by new stack: itself or the nearest whose frame is shown; 0 */
	size_t cap_shown;
	uint32_t *becomes; /* by old stack: the new one, or NOT_IN */
	uint8_t *is_root;  /* by name: 0 unknown, 1 no, 2 yes */
};

static void reshape_deinit(struct reshape *r)
{
	view_selection_free(r->selection);
	groups_deinit(&r->groups);
	prefix_tree_deinit(&r->ids);
	free(r->stacks);
	free(r->shown);
	free(r->becomes);
	free(r->is_root);
}

static int reshape_init(struct reshape *r, struct profile *p, const struct view_filter *f,
			const struct reshape_options *opts)
{
	int ret;

	*r = (struct reshape) { .profile = p, .opts = opts };
	ret = view_selection_new(p, f, &r->selection);
	if (ret)
		return ret;
	r->becomes = calloc(p->n_stacks + 1, sizeof(*r->becomes));
	r->is_root = calloc(p->strings.count + 1, sizeof(*r->is_root));
	if (!r->becomes || !r->is_root || groups_init(p, GROUP_BY_FUNCTION, &r->groups) ||
	    prefix_tree_init(&r->ids) || array_reserve(r->stacks, r->cap_stacks, 1) ||
	    array_reserve(r->shown, r->cap_shown, 1))
		return -ENOMEM;
	r->stacks[0] = (struct profile_stack) { .frame = PROFILE_NONE };
	r->n_stacks = 1;
	r->becomes[0] = opts->has_root ? NOT_IN : 0;
	return 0;
}

static bool is_root(struct reshape *r, uint32_t frame)
{
	uint32_t name = r->profile->frames[frame].name;

	if (!r->is_root[name])
		r->is_root[name] =
			regexec(&r->opts->root, label_frame(r->profile, frame), 0, NULL, 0) ? 1 : 2;
	return r->is_root[name] == 2;
}

/* The new stack of @frame upon @parent, a new one. */
static int push(struct reshape *r, uint32_t parent, uint32_t frame, uint32_t *ret)
{
	bool shown = view_frame_shown(r->selection, frame);
	uint32_t id;

	if (prefix_tree_child(&r->ids, parent, frame, &id))
		return -ENOMEM;
	if (id == r->n_stacks) {
		if (array_reserve(r->stacks, r->cap_stacks, r->n_stacks + 1) ||
		    array_reserve(r->shown, r->cap_shown, r->n_stacks + 1))
			return -ENOMEM;
		r->stacks[id] = (struct profile_stack) { .parent = parent, .frame = frame };
		r->shown[id] = shown ? id : r->shown[parent];
		r->n_stacks++;
	}
	*ret = id;
	return 0;
}

/* The callers of the frame of which @frame, called by @parent, is a recursion; else @parent. */
static uint32_t before_recursion(const struct reshape *r, uint32_t parent, uint32_t frame)
{
	uint32_t last = r->shown[parent];

	if (!r->opts->collapse_recursion || !last || !view_frame_shown(r->selection, frame) ||
	    r->groups.of_frame[r->stacks[last].frame] != r->groups.of_frame[frame])
		return parent;
	return r->stacks[last].parent;
}

static int reshape_stack(struct reshape *r, uint32_t stack)
{
	const struct profile_stack *old = &r->profile->stacks[stack];
	uint32_t parent = r->becomes[old->parent];

	if (parent == NOT_IN && !is_root(r, old->frame)) {
		r->becomes[stack] = NOT_IN;
		return 0;
	}
	parent = parent == NOT_IN ? 0 : before_recursion(r, parent, old->frame);
	return push(r, parent, old->frame, &r->becomes[stack]);
}

/* What @stack has become, of which there are no samples if it is outside of all subtrees; or 0. */
static uint32_t new_stack(const struct reshape *r, uint32_t stack)
{
	return r->becomes[stack] == NOT_IN ? 0 : r->becomes[stack];
}

static bool stays(const struct reshape *r, const struct profile_aggregate *a)
{
	return r->becomes[a->stack] != NOT_IN && view_selected(r->selection, a);
}

/* Those of @n samples that stay move up in @samples. Returns how many they are. */
static size_t reshape_kept(const struct reshape *r, struct profile_sample *samples, size_t n)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++) {
		const struct profile_aggregate alike = profile_aggregate_of(r->profile,
									    &samples[i]);

		if (!stays(r, &alike))
			continue;
		samples[left] = samples[i];
		samples[left++].stack = r->becomes[alike.stack];
	}
	return left;
}

static void reshape_samples(struct reshape *r)
{
	struct profile *p = r->profile;
	size_t n = 0, i;

	for (i = 0; i < p->n_aggregates; i++) {
		if (!stays(r, &p->aggregates[i]))
			continue;
		p->aggregates[n] = p->aggregates[i];
		p->aggregates[n].stack = r->becomes[p->aggregates[n].stack];
		if (p->by_span)
			p->aggregate_spans[n] = p->aggregate_spans[i];
		if (p->with_lengths)
			p->aggregate_waits[n] = p->aggregate_waits[i];
		n++;
	}
	p->n_aggregates = n;
	p->n_kept = reshape_kept(r, p->samples, p->n_kept);
	p->n_waits = reshape_kept(r, p->waits, p->n_waits);
	for (i = 0; i < p->n_threads; i++) {
		p->threads[i].began_before = new_stack(r, p->threads[i].began_before);
		p->threads[i].went_on = new_stack(r, p->threads[i].went_on);
	}
}

static void take_stacks(struct reshape *r)
{
	struct profile *p = r->profile;

	free(p->stacks);
	p->stacks = take_ptr(r->stacks);
	p->n_stacks = r->n_stacks;
	p->cap_stacks = r->cap_stacks;
}

static void drop_patterns(struct view_filter *f, const struct reshape_options *opts)
{
	f->applied.include = f->has_include;
	f->applied.exclude = f->has_exclude;
	f->applied.expr = f->expr;
	f->applied.root = opts->has_root;
	f->applied.in_part = opts->has_root || f->has_include || f->has_exclude ||
			     (f->expr && !view_expr_is_of_threads(f->expr));
	f->applied.collapse_recursion = opts->collapse_recursion;
	if (f->has_include)
		regfree(&f->include);
	if (f->has_exclude)
		regfree(&f->exclude);
	f->has_include = f->has_exclude = false;
	view_expr_free(f->expr);
	f->expr = NULL;
}

int profile_reshape(struct profile *p, struct view_filter *f, const struct reshape_options *opts)
{
	struct reshape r;
	int ret;

	if (!opts->has_root && !opts->collapse_recursion)
		return 0;
	ret = profile_place_late(p);
	if (ret)
		return ret;
	ret = reshape_init(&r, p, f, opts);
	for (size_t i = 1; !ret && i < p->n_stacks; i++)
		ret = reshape_stack(&r, (uint32_t)i);
	if (!ret) {
		reshape_samples(&r);
		take_stacks(&r);
		drop_patterns(f, opts);
	}
	reshape_deinit(&r);
	return ret;
}
