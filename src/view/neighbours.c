/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An edge is a pair of groups, one of which called the other. Each stack whose innermost frame is
 * shown has one, to the nearest shown frame outside of it. Edges with neither end in a method that
 * was asked for are left out. A walk over the stacks then adds up, for each edge, the samples below
 * its outermost places.
 */
#include "view/neighbours.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/intern.h"
#include "profile/profile.h"
#include "view/label.h"
#include "view/stack_forest.h"

struct edge {
	uint32_t caller; /* group; PROFILE_NONE if nothing called it */
	uint32_t callee; /* group */
};

struct edges {
	const struct profile *profile;
	struct view_selection *selection; /* owned, as all below */
	struct groups groups;
	struct stack_forest forest;
	uint32_t *shown;	    /* stacks_shown() */
	bool *asked;		    /* by group: it is a method that was asked for */
	uint32_t *method_of;	    /* the same groups by frame id, for group_totals() */
	struct group_total *totals; /* by group */
	struct intern keys;	    /* of struct edge */
	uint32_t *of_stack;	    /* by stack id: its edge + 1, 0 if none */
	uint32_t *on_path;	    /* by edge */
	struct plain_sum *sums;	    /* by edge */
	struct view_sum all;	    /* selected samples */
};

static void free_array(uint32_t **array)
{
	free(*array);
	*array = NULL;
}

/* What is as large as all stacks is of no use once the samples are added up. */
static void forget_stacks(struct edges *e)
{
	stack_forest_deinit(&e->forest);
	free_array(&e->shown);
	free_array(&e->of_stack);
	free_array(&e->on_path);
}

static void edges_deinit(struct edges *e)
{
	forget_stacks(e);
	view_selection_free(e->selection);
	groups_deinit(&e->groups);
	intern_deinit(&e->keys);
	free(e->asked);
	free(e->method_of);
	free(e->totals);
	free(e->sums);
}

static void find_methods(struct edges *e, const regex_t *method)
{
	const struct groups *g = &e->groups;

	for (size_t i = 0; i < g->n; i++)
		e->asked[i] = !regexec(method, label_frame(e->profile, g->frame[i]), 0, NULL, 0);
	for (size_t i = 0; i < e->profile->n_frames; i++)
		e->method_of[i] = e->asked[g->of_frame[i]] ? g->of_frame[i] : PROFILE_NONE;
}

/* The group of the frame that is shown where @shown is the stack of it; PROFILE_NONE of 0. */
static uint32_t group_of_stack(const struct edges *e, uint32_t shown)
{
	return shown ? e->groups.of_frame[e->profile->stacks[shown].frame] : PROFILE_NONE;
}

static bool is_asked(const struct edges *e, uint32_t group)
{
	return group != PROFILE_NONE && e->asked[group];
}

static int find_edges(struct edges *e)
{
	const struct profile *p = e->profile;

	for (size_t i = 1; i < p->n_stacks; i++) {
		struct edge edge;
		uint32_t id;

		if (e->shown[i] != i)
			continue;
		edge.caller = group_of_stack(e, e->shown[p->stacks[i].parent]);
		edge.callee = group_of_stack(e, (uint32_t)i);
		if (!is_asked(e, edge.caller) && !is_asked(e, edge.callee))
			continue;
		if (intern_add(&e->keys, &edge, sizeof(edge), &id, NULL))
			return -ENOMEM;
		e->of_stack[i] = id + 1;
	}
	e->on_path = calloc(e->keys.count + 1, sizeof(*e->on_path));
	e->sums = calloc(e->keys.count + 1, sizeof(*e->sums));
	return e->on_path && e->sums ? 0 : -ENOMEM;
}

static void enter(void *arg, uint32_t stack)
{
	struct edges *e = arg;
	uint32_t edge = e->of_stack[stack];

	if (edge && e->on_path[edge - 1]++ == 0)
		plain_sum_add(&e->sums[edge - 1], &e->forest.below[stack]);
}

static void leave(void *arg, uint32_t stack)
{
	struct edges *e = arg;

	if (e->of_stack[stack])
		e->on_path[e->of_stack[stack] - 1]--;
}

/* Stacks of which nothing is shown count as one of a frame that nothing called. */
static void add_hidden_stacks(struct edges *e)
{
	uint32_t instead = view_stack_instead(e->selection), i;

	if (!instead || !e->of_stack[instead])
		return;
	for (i = 1; i < e->profile->n_stacks; i++)
		if (!e->shown[i])
			plain_sum_add(&e->sums[e->of_stack[instead] - 1], &e->forest.self[i]);
}

static int edges_init(struct edges *e, const struct profile *p, const struct view_filter *f,
		      enum group_by by, const regex_t *method)
{
	int r;

	*e = (struct edges) { .profile = p };
	r = view_selection_new(p, f, &e->selection);
	if (r)
		return r;
	if (groups_init(p, by, &e->groups))
		return -ENOMEM;
	e->asked = calloc(e->groups.n + 1, sizeof(*e->asked));
	e->method_of = calloc(p->n_frames + 1, sizeof(*e->method_of));
	e->totals = calloc(e->groups.n + 1, sizeof(*e->totals));
	if (!e->asked || !e->method_of || !e->totals)
		return -ENOMEM;
	find_methods(e, method);
	/* It has a forest of its own, which is gone before the one below is made. */
	if (group_totals(p, e->selection, e->method_of, e->groups.n, e->totals) ||
	    stacks_shown(p, e->selection, &e->shown))
		return -ENOMEM;
	e->of_stack = calloc(p->n_stacks + 1, sizeof(*e->of_stack));
	if (!e->of_stack || find_edges(e) || stack_forest_init(p, e->selection, &e->forest))
		return -ENOMEM;
	stack_forest_walk(&e->forest, enter, leave, e);
	add_hidden_stacks(e);
	e->all = stack_forest_below(&e->forest, 0);
	e->all.unequal = profile_samples_differ(p);
	forget_stacks(e);
	return 0;
}

static int compare_ranks(const struct groups *g, uint32_t a, uint32_t b)
{
	uint32_t x, y;

	if (a == PROFILE_NONE || b == PROFILE_NONE)
		return (a == PROFILE_NONE) - (b == PROFILE_NONE);
	x = g->rank[g->of_frame[a]];
	y = g->rank[g->of_frame[b]];
	return (x > y) - (x < y);
}

static int compare_sums(const struct plain_sum *a, const struct plain_sum *b)
{
	if (a->value != b->value)
		return a->value < b->value ? 1 : -1;
	return (a->samples < b->samples) - (a->samples > b->samples);
}

static int compare_neighbours(const void *a, const void *b, void *arg)
{
	const struct neighbour *x = a, *y = b;
	int diff = compare_sums(&x->sum, &y->sum);

	return diff ? diff : compare_ranks(arg, x->frame, y->frame);
}

static int compare_methods(const void *a, const void *b, void *arg)
{
	const struct method_neighbours *x = a, *y = b;
	int diff = compare_sums(&x->time.total.plain, &y->time.total.plain);

	return diff ? diff : compare_ranks(arg, x->frame, y->frame);
}

/* Calls @fn with each list that edge @i belongs to, and the group at its other end. */
static void each_list(const struct edges *e, const uint32_t *index, const struct neighbours *n,
		      uint32_t i,
		      void (*fn)(const struct groups *g, struct neighbour_list *list,
				 uint32_t group, const struct plain_sum *sum))
{
	const struct edge *edge = intern_get(&e->keys, i, NULL);
	const struct plain_sum *sum = &e->sums[i];

	if (!sum->samples)
		return;
	if (is_asked(e, edge->callee))
		fn(&e->groups, &n->methods[index[edge->callee]].callers, edge->caller, sum);
	if (is_asked(e, edge->caller))
		fn(&e->groups, &n->methods[index[edge->caller]].callees, edge->callee, sum);
}

static void count_neighbour(const struct groups *g, struct neighbour_list *list, uint32_t group,
			    const struct plain_sum *sum)
{
	(void)g, (void)group, (void)sum;
	list->cap++;
}

static void add_neighbour(const struct groups *g, struct neighbour_list *list, uint32_t group,
			  const struct plain_sum *sum)
{
	list->rows[list->n++] = (struct neighbour) {
		.frame = group == PROFILE_NONE ? PROFILE_NONE : g->frame[group],
		.sum = *sum,
	};
}

static int make_list(struct neighbour_list *list)
{
	list->rows = calloc(list->cap + 1, sizeof(*list->rows));
	return list->rows ? 0 : -ENOMEM;
}

/*
 * Give each method its edges; @index has its place in @ret by group. A pattern may match all
 * methods, which have millions of edges: lists are made as long as they get.
 */
static int add_edges(const struct edges *e, const uint32_t *index, struct neighbours *ret)
{
	for (uint32_t i = 0; i < e->keys.count; i++)
		each_list(e, index, ret, i, count_neighbour);
	for (size_t i = 0; i < ret->n_methods; i++) {
		struct method_neighbours *m = &ret->methods[i];

		m->callees.cap++; /* itself */
		if (make_list(&m->callers) || make_list(&m->callees))
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < e->keys.count; i++)
		each_list(e, index, ret, i, add_neighbour);
	return 0;
}

static void free_lists(struct method_neighbours *m)
{
	free(m->callers.rows);
	free(m->callees.rows);
}

static void sort_list(struct edges *e, struct neighbour_list *list)
{
	if (list->n)
		qsort_r(list->rows, list->n, sizeof(*list->rows), compare_neighbours, &e->groups);
}

static int collect(struct edges *e, struct neighbours *ret)
{
	const struct groups *g = &e->groups;
	_cleanup_free_ uint32_t *index = calloc(g->n + 1, sizeof(*index));
	size_t i;

	ret->methods = calloc(g->n + 1, sizeof(*ret->methods));
	if (!index || !ret->methods)
		return -ENOMEM;
	ret->all = e->all;
	for (i = 0; i < g->n; i++) {
		if (!e->asked[i])
			continue;
		index[i] = (uint32_t)ret->n_methods++;
		ret->methods[index[i]].frame = g->frame[i];
		ret->methods[index[i]].time = e->totals[i];
	}
	if (add_edges(e, index, ret))
		return -ENOMEM;
	for (i = 0; i < ret->n_methods; i++) {
		struct method_neighbours *m = &ret->methods[i];

		if (m->time.self.samples)
			add_neighbour(g, &m->callees, PROFILE_NONE, &m->time.self.plain);
		sort_list(e, &m->callers);
		sort_list(e, &m->callees);
	}
	if (ret->n_methods)
		qsort_r(ret->methods, ret->n_methods, sizeof(*ret->methods), compare_methods,
			&e->groups);
	/* Those without samples are last. */
	while (ret->n_methods && !ret->methods[ret->n_methods - 1].time.total.samples)
		free_lists(&ret->methods[--ret->n_methods]);
	return 0;
}

int neighbours_build(const struct profile *p, const struct view_filter *f, enum group_by by,
		     const regex_t *method, struct neighbours *ret)
{
	_cleanup_neighbours_ struct neighbours n = NEIGHBOURS_INIT;
	struct edges edges;
	int r;

	r = edges_init(&edges, p, f, by, method);
	if (!r)
		r = collect(&edges, &n);
	edges_deinit(&edges);
	if (r)
		return r;
	*ret = n;
	n = (struct neighbours)NEIGHBOURS_INIT; /* owned by *ret now */
	return 0;
}

void neighbours_deinit(struct neighbours *n)
{
	if (!n)
		return;
	for (size_t i = 0; n->methods && i < n->n_methods; i++)
		free_lists(&n->methods[i]);
	free(n->methods);
	*n = (struct neighbours)NEIGHBOURS_INIT;
}
