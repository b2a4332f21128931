/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/intern.h"
#include "profile/profile.h"
#include "view/gem.h"
#include "view/label.h"

/* What makes two frames the same: all members. Those that do not matter are 0. */
struct key {
	uint32_t kind;
	uint32_t name; /* string; of packages and gems: in an intern of their own */
	uint32_t file; /* string: source file or module */
	uint32_t func_line;
	uint32_t line;
	uint32_t approximate; /* the line is */
};

static uint32_t module_path(const struct profile *p, const struct profile_frame *frame)
{
	return frame->module == PROFILE_NONE ? 0 : p->modules[frame->module].path;
}

static struct key function_key(const struct profile *p, const struct profile_frame *frame)
{
	struct key key = { .kind = frame->kind, .name = frame->name };

	switch (frame->kind) {
	case FRAME_CFUNC:
		break;
	case FRAME_RUBY:
		key.file = frame->file;
		key.func_line = frame->func_line;
		break;
	default:
		key.file = frame->file ? frame->file : module_path(p, frame);
		key.func_line = frame->func_line;
	}
	return key;
}

/* @names is added to. Returns 0 or -ENOMEM. */
static int named_key(const struct profile *p, uint32_t frame, enum group_by by,
		     struct intern *names, struct key *ret)
{
	_cleanup_buf_ struct buf name = BUF_INIT;
	struct gem gem;

	*ret = (struct key) { 0 };
	if (by == GROUP_BY_GEM) {
		gem_of_frame(p, frame, &gem);
		gem_label(&gem, &name);
		ret->kind = gem.origin;
	} else {
		label_package(p, frame, &name);
	}
	return buf_failed(&name) || intern_str(names, buf_str(&name), &ret->name) ? -ENOMEM : 0;
}

static struct key key_of(const struct profile *p, const struct profile_frame *frame,
			 enum group_by by)
{
	struct key key = { 0 };

	switch (by) {
	case GROUP_BY_FUNCTION:
		return function_key(p, frame);
	case GROUP_BY_LINE:
		key = function_key(p, frame);
		key.line = frame->line;
		key.approximate = frame->flags & FRAME_LINE_APPROXIMATE;
		if (frame->kind == FRAME_CFUNC)
			key.file = frame->file;
		return key;
	case GROUP_BY_FILE:
		key.file = frame->file ? frame->file : module_path(p, frame);
		if (!key.file)
			key.kind = frame->kind;
		return key;
	case GROUP_BY_PACKAGE:
	case GROUP_BY_GEM:
		return key;
	}
	return key;
}

struct group_order {
	const struct profile *profile;
	const struct intern *keys;
	const struct intern *names; /* what struct key's name is in */
};

static int compare_u32(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

static int compare_groups(const void *a, const void *b, void *arg)
{
	const struct group_order *order = arg;
	const struct profile *p = order->profile;
	const struct key *x = intern_get(order->keys, *(const uint32_t *)a, NULL);
	const struct key *y = intern_get(order->keys, *(const uint32_t *)b, NULL);
	int diff = 0;

	if (x->name != y->name)
		diff = strcmp(intern_get(order->names, x->name, NULL),
			      intern_get(order->names, y->name, NULL));
	if (!diff && x->file != y->file)
		diff = strcmp(profile_str(p, x->file), profile_str(p, y->file));
	if (!diff)
		diff = compare_u32(x->func_line, y->func_line);
	if (!diff)
		diff = compare_u32(x->line, y->line);
	if (!diff)
		diff = compare_u32(x->approximate, y->approximate);
	if (!diff)
		diff = compare_u32(x->kind, y->kind);
	return diff;
}

static int rank_groups(struct groups *g, struct group_order *order)
{
	_cleanup_free_ uint32_t *sorted = calloc(g->n + 1, sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < g->n; i++)
		sorted[i] = (uint32_t)i;
	qsort_r(sorted, g->n, sizeof(*sorted), compare_groups, order);
	for (size_t i = 0; i < g->n; i++)
		g->rank[sorted[i]] = (uint32_t)i;
	return 0;
}

int groups_init(const struct profile *p, enum group_by by, struct groups *ret)
{
	_cleanup_intern_ struct intern keys = INTERN_INIT, names = INTERN_INIT;
	const bool by_name = by == GROUP_BY_PACKAGE || by == GROUP_BY_GEM;
	struct group_order order = { .profile = p, .keys = &keys, .names = &p->strings };
	_cleanup_groups_ struct groups g = GROUPS_INIT;

	g.of_frame = calloc(p->n_frames + 1, sizeof(*g.of_frame));
	g.frame = calloc(p->n_frames + 1, sizeof(*g.frame));
	g.rank = calloc(p->n_frames + 1, sizeof(*g.rank));
	if (!g.of_frame || !g.frame || !g.rank)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_frames; i++) {
		struct key key = key_of(p, &p->frames[i], by);
		bool is_new;

		if (by_name && named_key(p, (uint32_t)i, by, &names, &key))
			return -ENOMEM;
		if (intern_add(&keys, &key, sizeof(key), &g.of_frame[i], &is_new))
			return -ENOMEM;
		if (is_new)
			g.frame[g.of_frame[i]] = (uint32_t)i;
	}
	g.n = keys.count;
	if (by_name)
		order.names = &names;
	if (rank_groups(&g, &order))
		return -ENOMEM;
	*ret = g;
	g = (struct groups)GROUPS_INIT; /* owned by *ret now */
	return 0;
}

void groups_deinit(struct groups *groups)
{
	if (!groups)
		return;
	free(groups->of_frame);
	free(groups->frame);
	free(groups->rank);
	*groups = (struct groups)GROUPS_INIT;
}
