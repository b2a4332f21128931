/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/flame_gems.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"
#include "view/gem.h"
#include "view/tree.h"

/* Of @inner and the frames outside of it, of which @outer has the time: the one that has it. */
static uint32_t gem_frame(const struct profile *p, uint32_t outer, uint32_t inner)
{
	struct gem of_outer, of_inner;

	if (outer == PROFILE_NONE || inner == PROFILE_NONE)
		return outer == PROFILE_NONE ? inner : outer;
	gem_of_frame(p, outer, &of_outer);
	gem_of_frame(p, inner, &of_inner);
	return gem_claim(of_inner.origin) >= gem_claim(of_outer.origin) ? inner : outer;
}

/* In an inverted tree the callers of a node are above it: the one with the most time; 0: none. */
static uint32_t main_caller(const struct tree *t, uint32_t node)
{
	uint32_t most = 0;

	for (uint32_t i = t->nodes[node].first_child; i; i = t->nodes[i].next_sibling)
		if (!most || t->nodes[i].total_value > t->nodes[most].total_value)
			most = i;
	return most;
}

/* @frames is PROFILE_NONE for all. */
static void find_frames(const struct tree *t, uint32_t *frames)
{
	const struct profile *p = t->profile;

	if (!t->opts.inverted) {
		for (uint32_t i = 1; i < t->n_nodes; i++)
			frames[i] = gem_frame(p, frames[t->nodes[i].parent], t->nodes[i].frame);
		return;
	}
	for (uint32_t i = (uint32_t)t->n_nodes; i-- > 1;) {
		const uint32_t caller = main_caller(t, i);

		frames[i] = gem_frame(p, caller ? frames[caller] : PROFILE_NONE, t->nodes[i].frame);
	}
}

int flame_gem_frames(const struct tree *t, uint32_t **ret)
{
	uint32_t *frames = malloc(t->n_nodes * sizeof(*frames));

	if (!frames)
		return -ENOMEM;
	memset(frames, 0xff, t->n_nodes * sizeof(*frames));
	find_frames(t, frames);
	*ret = frames;
	return 0;
}
