/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The recording's stacks are themselves a prefix tree. The path of a stack goes on from that of its
 * callers, whose id is lower, so one pass finds the paths of all with one look-up each. An inverted
 * shape shares no prefixes with the recording: there each distinct stack is walked as a whole.
 *
 * Paths are found in the order of stacks. To bring them into that of the call tree, they are sorted
 * by the rank of their groups; going through them from the highest rank to the lowest and putting
 * each before its siblings leaves every list of children sorted, and a walk through the lists
 * numbers them.
 *
 * Nothing recurses: depth is the target's choice.
 */
#include "view/tree_shape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "profile/profile.h"
#include "view/filter.h"
#include "view/group.h"

/*
 * With so many groups for each path, it takes longer to count the paths of each than to compare
 * paths.
 */
#define MANY_GROUPS 16

struct shape_builder {
	const struct profile *profile;
	const struct view_selection *selection;
	const struct groups *groups;
	struct tree_limits *limits;
	struct prefix_tree found; /* paths, in the order in which they were found */
	uint32_t *of_stack;	  /* as the shape's, but of these */
};

/* ---- finding paths ---- */

/* *@path goes on with @frame, or stays if the frame is hidden. */
static int descend(struct shape_builder *b, uint32_t frame, uint32_t *path)
{
	struct tree_limits *l = b->limits;

	if (!view_frame_shown(b->selection, frame))
		return 0;
	if (b->found.n_nodes >= l->max_nodes || l->steps++ >= l->max_steps)
		return -E2BIG;
	return prefix_tree_child(&b->found, *path, b->groups->of_frame[frame], path);
}

/* Give the stacks of selected samples the empty path. */
static void mark_selected(struct shape_builder *b)
{
	const struct profile *p = b->profile;

	memset(b->of_stack, 0xff, (p->n_stacks + 1) * sizeof(*b->of_stack));
	for (size_t i = 0; i < p->n_aggregates; i++)
		if (view_selected(b->selection, &p->aggregates[i]))
			b->of_stack[p->aggregates[i].stack] = 0;
}

static int find_paths(struct shape_builder *b)
{
	const struct profile_stack *stacks = b->profile->stacks;
	const size_t n = b->profile->n_stacks;
	size_t met = 1;
	int r;

	for (size_t i = n; i-- > 1;) {
		if (b->of_stack[i] == SHAPE_NONE)
			continue;
		b->of_stack[stacks[i].parent] = 0;
		met++;
	}
	/* No more paths than stacks, and in most recordings about as many. */
	r = prefix_tree_reserve(&b->found, met < b->limits->max_nodes ? met : b->limits->max_nodes);
	for (size_t i = 1; i < n && !r; i++) {
		if (b->of_stack[i] == SHAPE_NONE)
			continue;
		b->of_stack[i] = b->of_stack[stacks[i].parent];
		r = descend(b, stacks[i].frame, &b->of_stack[i]);
	}
	return r;
}

static int find_inverted_paths(struct shape_builder *b)
{
	const struct profile_stack *stacks = b->profile->stacks;
	int r = 0;

	for (uint32_t i = 1; i < b->profile->n_stacks && !r; i++) {
		if (b->of_stack[i] == SHAPE_NONE)
			continue;
		for (uint32_t stack = i; stack && !r; stack = stacks[stack].parent)
			r = descend(b, stacks[stack].frame, &b->of_stack[i]);
	}
	return r;
}

/* Stacks of which no frame is shown get the path of the one that is shown instead. */
static int replace_hidden(struct shape_builder *b)
{
	const uint32_t instead = view_stack_instead(b->selection);
	uint32_t path = 0;
	int r;

	if (!instead)
		return 0;
	for (size_t i = 1; i < b->profile->n_stacks; i++) {
		if (b->of_stack[i])
			continue;
		r = path ? 0 : descend(b, b->profile->stacks[instead].frame, &path);
		if (r)
			return r;
		b->of_stack[i] = path;
	}
	return 0;
}

/* ---- their order ---- */

static uint32_t rank_of(const struct shape_builder *b, uint32_t path)
{
	return b->groups->rank[b->found.nodes[path].what];
}

static int compare_paths(const void *a, const void *b, void *arg)
{
	uint32_t x = rank_of(arg, *(const uint32_t *)a), y = rank_of(arg, *(const uint32_t *)b);

	return (x > y) - (x < y);
}

static void sort_by_comparing(struct shape_builder *b, uint32_t *sorted)
{
	const size_t n = b->found.n_nodes - 1;

	for (size_t i = 0; i < n; i++)
		sorted[i] = (uint32_t)i + 1;
	if (n)
		qsort_r(sorted, n, sizeof(*sorted), compare_paths, b);
}

static int sort_by_counting(const struct shape_builder *b, uint32_t *sorted)
{
	/* ends[rank] is first a count, then where the rank's paths end so far. */
	_cleanup_free_ size_t *ends = calloc(b->groups->n + 1, sizeof(*ends));

	if (!ends)
		return -ENOMEM;
	for (uint32_t i = 1; i < b->found.n_nodes; i++)
		ends[rank_of(b, i) + 1]++;
	for (size_t i = 1; i <= b->groups->n; i++)
		ends[i] += ends[i - 1];
	for (uint32_t i = 1; i < b->found.n_nodes; i++)
		sorted[ends[rank_of(b, i)]++] = i;
	return 0;
}

/* By path: its first child, and the next of its parent; 0 if there is none. */
struct lists {
	uint32_t *child, *next;
};

static int make_lists(struct shape_builder *b, const struct lists *lists)
{
	const struct prefix_node *found = b->found.nodes;
	size_t n = b->found.n_nodes - 1;
	_cleanup_free_ uint32_t *sorted = calloc(n + 1, sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	if (n < b->groups->n / MANY_GROUPS)
		sort_by_comparing(b, sorted);
	else if (sort_by_counting(b, sorted))
		return -ENOMEM;
	while (n--) {
		uint32_t path = sorted[n], parent = found[path].parent;

		lists->next[path] = lists->child[parent];
		lists->child[parent] = path;
	}
	return 0;
}

/* Copy the paths to @ret in their order. *@lists' children become the numbers that they get. */
static void number(const struct shape_builder *b, const struct lists *lists,
		   struct prefix_node *ret)
{
	const struct prefix_node *found = b->found.nodes;
	uint32_t n = 0, path = 0;

	do {
		uint32_t child = lists->child[path];

		ret[n] = (struct prefix_node) { .parent = n ? lists->child[found[path].parent] : 0,
						.what = found[path].what };
		lists->child[path] = n++;
		if (child) {
			path = child;
			continue;
		}
		while (path && !lists->next[path])
			path = found[path].parent;
		path = lists->next[path];
	} while (path);
}

static int put_in_order(struct shape_builder *b, struct tree_shape *ret)
{
	const size_t n = b->found.n_nodes;
	_cleanup_free_ uint32_t *child = calloc(n, sizeof(*child));
	_cleanup_free_ uint32_t *next = calloc(n, sizeof(*next));
	const struct lists lists = { child, next };
	struct prefix_node *paths;

	if (!child || !next || make_lists(b, &lists))
		return -ENOMEM;
	paths = calloc(n, sizeof(*paths));
	if (!paths)
		return -ENOMEM;
	number(b, &lists, paths);
	for (size_t i = 0; i < b->profile->n_stacks; i++)
		if (b->of_stack[i] != SHAPE_NONE)
			b->of_stack[i] = child[b->of_stack[i]];
	*ret = (struct tree_shape) {
		.paths = paths,
		.n_paths = n,
		.of_stack = take_ptr(b->of_stack),
	};
	return 0;
}

/* ---- both ---- */

static int build(struct shape_builder *b, bool inverted, struct tree_shape *ret)
{
	int r;

	b->of_stack = calloc(b->profile->n_stacks + 1, sizeof(*b->of_stack));
	if (!b->of_stack || prefix_tree_init(&b->found))
		return -ENOMEM;
	mark_selected(b);
	r = inverted ? find_inverted_paths(b) : find_paths(b);
	if (!r)
		r = replace_hidden(b);
	prefix_tree_drop_slots(&b->found);
	return r ? r : put_in_order(b, ret);
}

int tree_shape_init(const struct profile *p, const struct view_selection *sel,
		    const struct groups *groups, bool inverted, struct tree_limits *limits,
		    struct tree_shape *ret)
{
	struct shape_builder b = {
		.profile = p,
		.selection = sel,
		.groups = groups,
		.limits = limits,
	};
	int r = build(&b, inverted, ret);

	prefix_tree_deinit(&b.found);
	free(b.of_stack);
	return r;
}

void tree_shape_drop_stacks(struct tree_shape *s)
{
	free(s->of_stack);
	s->of_stack = NULL;
}

void tree_shape_deinit(struct tree_shape *s)
{
	free(s->paths);
	free(s->of_stack);
	*s = (struct tree_shape) { 0 };
}
