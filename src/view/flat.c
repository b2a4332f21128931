/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Self time belongs to the innermost frame that is shown, total time to each function that is
 * anywhere in the stack, once a sample even if it is there ten times.
 *
 * The recording's stacks are a tree, so totals need no walk along each stack: a node's total is the
 * sum over what is below it, and a function's total is the sum over its outermost nodes, those
 * without another node of the same function above. One traversal finds them by counting how often
 * each function is on the current path.
 */
#include "view/flat.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/err.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "profile/profile.h"
#include "view/filter.h"
#include "view/gem.h"
#include "view/group.h"
#include "view/peer.h"
#include "view/sample_kind.h"
#include "view/request.h"
#include "view/seconds.h"
#include "view/stack_forest.h"
#include "view/stack_mode.h"
#include "view/state.h"
#include "view/trace.h"

/* The traversal of the recording's stacks, for rows that are groups of frames. */
struct flat_walk {
	const struct profile *profile;
	const struct view_selection *selection;
	enum group_by by;
	struct groups groups;
	struct stack_forest forest;
	uint32_t *innermost; /* by stack id: the stack of its innermost frame in a row; 0 if none */
	uint32_t *charged;   /* by stack id: that whose frame has its self time; 0 if none */
	uint8_t *claims;     /* by group, see claim_of() */
	uint32_t *on_path;   /* by group: its frames on the current path */
	struct flat_row *rows; /* by group */
};

static void walk_deinit(struct flat_walk *w)
{
	groups_deinit(&w->groups);
	stack_forest_deinit(&w->forest);
	free(w->innermost);
	free(w->charged);
	free(w->claims);
	free(w->on_path);
	free(w->rows);
}

static int walk_init(struct flat_walk *w, const struct profile *p, const struct view_selection *sel,
		     enum group_by by)
{
	size_t n = p->n_stacks + 1;

	*w = (struct flat_walk) { .profile = p, .selection = sel, .by = by };
	if (groups_init(p, by, &w->groups) || stack_forest_init(p, sel, &w->forest))
		return -ENOMEM;
	w->innermost = calloc(n, sizeof(*w->innermost));
	w->charged = calloc(n, sizeof(*w->charged));
	w->claims = calloc(w->groups.n + 1, sizeof(*w->claims));
	w->on_path = calloc(w->groups.n + 1, sizeof(*w->on_path));
	w->rows = calloc(w->groups.n + 1, sizeof(*w->rows));
	if (!w->innermost || !w->charged || !w->claims || !w->on_path || !w->rows)
		return -ENOMEM;
	for (size_t i = 0; i < w->groups.n; i++)
		w->rows[i].frame = w->groups.frame[i];
	return 0;
}

/* Rows of gems: the time of a stack is that of its innermost frame among those with the most. */
static unsigned int claim_of(const struct flat_walk *w, uint32_t stack)
{
	return w->claims[w->groups.of_frame[w->profile->stacks[stack].frame]];
}

static void find_claims(struct flat_walk *w)
{
	struct gem gem;

	for (size_t i = 0; w->by == GROUP_BY_GEM && i < w->groups.n; i++) {
		gem_of_frame(w->profile, w->groups.frame[i], &gem);
		w->claims[i] = (uint8_t)gem_claim(gem.origin);
	}
}

/* Whether the row of the innermost frame of @stack has total time of it. */
static bool counts(const struct flat_walk *w, uint32_t stack)
{
	if (w->by == GROUP_BY_GEM)
		return claim_of(w, stack) > 0;
	return view_frame_shown(w->selection, w->profile->stacks[stack].frame);
}

/* Whether the time of @stack is its innermost frame's, where that of its callers' is @charged's. */
static bool takes_over(const struct flat_walk *w, uint32_t charged, uint32_t stack)
{
	const struct profile *p = w->profile;

	if (w->by == GROUP_BY_GEM)
		return !charged || claim_of(w, stack) >= claim_of(w, charged);
	if (!view_frame_shown(w->selection, p->stacks[stack].frame))
		return false;
	/* The time of a wait is the method's that waits. */
	if (charged && p->frames[p->stacks[stack].frame].kind == FRAME_WAIT)
		return false;
	/* Of what the collector does, the time is the module's that stands for it. */
	return w->by != GROUP_BY_PACKAGE || !charged ||
	       p->frames[p->stacks[charged].frame].kind != FRAME_GC;
}

/* Fill in what is known of each stack from its callers' stacks. */
static void walk_prepare(struct flat_walk *w)
{
	const struct profile *p = w->profile;

	for (size_t i = 1; i < p->n_stacks; i++) {
		uint32_t stack = (uint32_t)i, parent = p->stacks[i].parent;

		w->innermost[i] = counts(w, stack) ? stack : w->innermost[parent];
		w->charged[i] = takes_over(w, w->charged[parent], stack) ? stack
									 : w->charged[parent];
	}
}

void flat_add_self(struct flat_row *row, const struct view_sum *self)
{
	row->self_value += self->value;
	row->samples += self->samples;
	row->exact_value += self->exact_value;
	row->exact_samples += self->exact_samples;
}

void flat_add_total(struct flat_row *row, const struct view_sum *total)
{
	row->total_value += total->value;
	row->total_samples += total->samples;
	row->exact_total_value += total->exact_value;
	row->exact_total_samples += total->exact_samples;
	wait_sum_add(&row->waits, &total->waits);
}

static struct flat_row *row_of(struct flat_walk *w, uint32_t stack)
{
	return &w->rows[w->groups.of_frame[w->profile->stacks[stack].frame]];
}

static void walk_enter(void *arg, uint32_t stack)
{
	struct flat_walk *w = arg;
	uint32_t group = w->groups.of_frame[w->profile->stacks[stack].frame];
	/* Of a stack of which nothing is shown there may be one to show instead. */
	uint32_t charged = w->charged[stack] ? w->charged[stack] : view_stack_instead(w->selection);
	struct view_sum sum;

	if (w->innermost[stack] == stack && w->on_path[group]++ == 0) {
		sum = stack_forest_below(&w->forest, stack);
		flat_add_total(&w->rows[group], &sum);
	}
	if (!charged)
		return;
	sum = stack_forest_self(&w->forest, stack);
	flat_add_self(row_of(w, charged), &sum);
	if (!w->innermost[stack])
		flat_add_total(row_of(w, charged), &sum);
}

static void walk_leave(void *arg, uint32_t stack)
{
	struct flat_walk *w = arg;

	if (w->innermost[stack] == stack)
		w->on_path[w->groups.of_frame[w->profile->stacks[stack].frame]]--;
}

int flat_add_row(struct flat *flat, const struct flat_row *row)
{
	if (!row->total_samples)
		return 0;
	if (array_reserve(flat->rows, flat->cap_rows, flat->n_rows + 1))
		return -ENOMEM;
	flat->rows[flat->n_rows++] = *row;
	return 0;
}

int flat_add_rows(struct flat *flat, struct flat_row *rows, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		rows[i].frame = PROFILE_NONE;
		rows[i].id = (uint32_t)i;
		r = flat_add_row(flat, &rows[i]);
	}
	return r;
}

/* What the order of rows needs besides the rows. */
struct flat_order {
	const struct groups *groups; /* rows of frames */
	const uint32_t *ranks;	     /* of owners */
	enum flat_by by;
	enum flat_sort sort;
};

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_names(const struct flat_order *order, const struct flat_row *a,
			 const struct flat_row *b)
{
	const struct groups *g = order->groups;

	if (g)
		return compare_u64(g->rank[g->of_frame[a->frame]], g->rank[g->of_frame[b->frame]]);
	if (order->ranks)
		return compare_u64(order->ranks[a->id], order->ranks[b->id]);
	return compare_u64(a->id, b->id);
}

static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct flat_row *x = a, *y = b;
	const struct flat_order *order = arg;
	int by_self = compare_u64(y->self_value, x->self_value);
	int by_total = compare_u64(y->total_value, x->total_value);
	int first = order->sort == FLAT_SORT_SELF ? by_self : by_total;
	int second = order->sort == FLAT_SORT_SELF ? by_total : by_self;

	if (order->sort == FLAT_SORT_TIME)
		return compare_u64(x->id, y->id);
	if (first)
		return first;
	return second ? second : compare_names(order, x, y);
}

static void sort_rows(struct flat *flat, struct flat_order *order)
{
	if (flat->n_rows)
		qsort_r(flat->rows, flat->n_rows, sizeof(*flat->rows), compare_rows, order);
}

static int build_from_frames(const struct profile *p, const struct view_selection *sel,
			     struct flat_order *order, struct flat *flat)
{
	static const enum group_by group_by[] = {
		[FLAT_BY_FUNCTION] = GROUP_BY_FUNCTION, [FLAT_BY_LINE] = GROUP_BY_LINE,
		[FLAT_BY_FILE] = GROUP_BY_FILE,		[FLAT_BY_MODULE] = GROUP_BY_PACKAGE,
		[FLAT_BY_GEM] = GROUP_BY_GEM,
	};
	struct flat_walk w;
	int err;

	err = walk_init(&w, p, sel, group_by[order->by]);
	if (err)
		goto out;
	find_claims(&w);
	walk_prepare(&w);
	stack_forest_walk(&w.forest, walk_enter, walk_leave, &w);
	for (size_t i = 0; i < w.groups.n && !err; i++)
		err = flat_add_row(flat, &w.rows[i]);
	if (err)
		goto out;
	order->groups = &w.groups;
	sort_rows(flat, order);
out:
	walk_deinit(&w);
	return err;
}

/* ---- rows of kinds ---- */

/* By stack id: a bit for each kind of frame in it, without the interpreter's own. @ret: free(). */
static int find_kinds(const struct profile *p, uint32_t **ret)
{
	uint32_t *kinds = calloc(p->n_stacks + 1, sizeof(*kinds));

	if (!kinds)
		return -ENOMEM;
	for (size_t i = 1; i < p->n_stacks; i++) {
		uint32_t frame = p->stacks[i].frame;

		kinds[i] = kinds[p->stacks[i].parent];
		if (stack_mode_shows(STACK_MIXED, p, frame))
			kinds[i] |= 1u << p->frames[frame].kind;
	}
	*ret = kinds;
	return 0;
}

static void add_kinds(const struct view_sum *a, enum frame_kind self, uint32_t kinds,
		      struct flat_row *rows)
{
	flat_add_self(&rows[self], a);
	for (size_t i = 0; i < FRAME_KIND_COUNT; i++) {
		if (!((kinds | 1u << self) & 1u << i))
			continue;
		flat_add_total(&rows[i], a);
	}
}

/* A row of @kind, the last one, of which nothing is known. */
static int add_unknown(struct flat *flat, enum frame_kind kind)
{
	int r = array_reserve(flat->rows, flat->cap_rows, flat->n_rows + 1);

	if (!r)
		flat->rows[flat->n_rows++] =
			(struct flat_row) { .frame = PROFILE_NONE, .id = kind, .unknown = true };
	return r;
}

static int build_from_kinds(const struct profile *p, const struct view_selection *sel,
			    struct flat_order *order, struct flat *flat)
{
	_cleanup_free_ uint32_t *frames = NULL, *kinds = NULL;
	struct flat_row rows[FRAME_KIND_COUNT] = { 0 };
	struct view_sum sum;

	if (sample_frames(p, &frames) || find_kinds(p, &kinds))
		return -ENOMEM;
	for (size_t i = 0; i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];

		if (!view_selected(sel, a))
			continue;
		sum = view_sum_at(p, i);
		add_kinds(&sum, sample_kind(p, frames, a), kinds[a->stack], rows);
		if (a->flags & SAMPLE_GC_UNKNOWN)
			profile_add(&flat->gc_unknown, a->value);
	}
	if (flat_add_rows(flat, rows, FRAME_KIND_COUNT))
		return -ENOMEM;
	sort_rows(flat, order);
	if (flat->gc_unknown && !rows[FRAME_GC].total_samples)
		return add_unknown(flat, FRAME_GC);
	return 0;
}

static int build_from_states(const struct profile *p, const struct view_selection *sel,
			     struct flat_order *order, struct flat *flat)
{
	struct flat_row rows[STATE_SETS] = { 0 };
	_cleanup_free_ uint8_t *states = NULL;
	int r = state_of_stacks(p, &states);

	for (size_t i = 0; !r && i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];
		const struct view_sum sum = view_sum_at(p, i);
		struct flat_row *row;

		if (!view_selected(sel, a))
			continue;
		row = &rows[state_of(states, a->stack, a->flags)];
		flat_add_self(row, &sum);
		flat_add_total(row, &sum);
	}
	if (!r)
		r = flat_add_rows(flat, rows, ARRAY_SIZE(rows));
	if (!r)
		sort_rows(flat, order);
	return r;
}

static int build_from_peers(const struct profile *p, const struct view_selection *sel,
			    struct flat_order *order, struct flat *flat)
{
	int r = peer_rows(p, sel, flat);

	if (!r)
		sort_rows(flat, order);
	return r;
}

static int build_from_requests(const struct profile *p, const struct view_selection *sel,
			       struct flat_order *order, struct flat *flat)
{
	_cleanup_free_ uint32_t *ranks = NULL;
	int r = request_ranks(p, &ranks);

	if (!r)
		r = request_rows(p, sel, flat);
	order->ranks = ranks;
	if (!r)
		sort_rows(flat, order);
	return r;
}

static int build_from_traces(const struct profile *p, const struct view_selection *sel,
			     struct flat_order *order, struct flat *flat)
{
	int r = trace_rows(p, sel, flat);

	if (!r)
		sort_rows(flat, order);
	return r;
}

/* ---- rows of owners ---- */

bool flat_by_owner(enum flat_by by, enum owner_kind *ret)
{
	switch (by) {
	case FLAT_BY_PROCESS:
		*ret = OWNER_PROCESS;
		return true;
	case FLAT_BY_THREAD:
		*ret = OWNER_THREAD;
		return true;
	case FLAT_BY_CONTAINER:
		*ret = OWNER_CONTAINER;
		return true;
	case FLAT_BY_RUBY:
		*ret = OWNER_RUBY;
		return true;
	default:
		return false;
	}
}

bool flat_by_thread(enum flat_by by)
{
	enum owner_kind kind;

	return flat_by_owner(by, &kind);
}

static int build_from_owners(const struct profile *p, const struct view_selection *sel,
			     enum owner_kind kind, struct flat_order *order, struct flat *flat)
{
	_cleanup_free_ uint32_t *ranks = NULL;
	int r = owner_ranks(p, kind, &ranks);

	if (!r)
		r = owner_rows(p, sel, kind, flat);
	order->ranks = ranks;
	if (!r)
		sort_rows(flat, order);
	return r;
}

struct view_sum flat_self(const struct flat_row *row)
{
	return (struct view_sum) { .samples = row->samples,
				   .value = row->self_value,
				   .exact_samples = row->exact_samples,
				   .exact_value = row->exact_value };
}

struct view_sum flat_total(const struct flat_row *row)
{
	return (struct view_sum) { .samples = row->total_samples,
				   .value = row->total_value,
				   .exact_samples = row->exact_total_samples,
				   .exact_value = row->exact_total_value,
				   .waits = row->waits };
}

struct view_sum flat_all(const struct flat *flat)
{
	return (struct view_sum) { .samples = flat->samples,
				   .value = flat->value,
				   .exact_samples = flat->exact_samples,
				   .exact_value = flat->exact_value,
				   .unequal = flat->unequal };
}

static void add_errors(struct flat *flat)
{
	const struct view_sum all = flat_all(flat);

	for (size_t i = 0; i < flat->n_rows; i++) {
		const struct view_sum self = flat_self(&flat->rows[i]);
		const struct view_sum total = flat_total(&flat->rows[i]);

		if (!total.samples)
			continue;
		flat->rows[i].total_error = view_sum_error(&total, &all);
		flat->rows[i].self_error = view_self_error(&self, &total, &all);
	}
}

static void add_sums(const struct view_selection *sel, struct flat *flat)
{
	const struct view_sum sum = view_selected_sum(sel);

	flat->value = sum.value;
	flat->samples = sum.samples;
	flat->exact_value = sum.exact_value;
	flat->exact_samples = sum.exact_samples;
	flat->unequal = sum.unequal;
}

int flat_build_selected(const struct profile *p, const struct view_selection *sel, enum flat_by by,
			enum flat_sort sort, struct flat *ret)
{
	_cleanup_flat_ struct flat flat = FLAT_INIT;
	struct flat_order order = { .by = by, .sort = sort };
	enum owner_kind kind;
	int err;

	add_sums(sel, &flat);
	if (by == FLAT_BY_TIME || (flat_by_thread(by) && !p->by_thread))
		return -EINVAL;
	if (flat_by_owner(by, &kind))
		err = build_from_owners(p, sel, kind, &order, &flat);
	else if (by == FLAT_BY_KIND)
		err = build_from_kinds(p, sel, &order, &flat);
	else if (by == FLAT_BY_STATE)
		err = build_from_states(p, sel, &order, &flat);
	else if (by == FLAT_BY_PEER)
		err = build_from_peers(p, sel, &order, &flat);
	else if (by == FLAT_BY_REQUEST)
		err = build_from_requests(p, sel, &order, &flat);
	else if (by == FLAT_BY_TRACE)
		err = build_from_traces(p, sel, &order, &flat);
	else
		err = build_from_frames(p, sel, &order, &flat);
	if (err)
		return err;
	add_errors(&flat);
	*ret = flat;
	flat = (struct flat)FLAT_INIT; /* owned by *ret now */
	return 0;
}

int flat_build(const struct profile *p, const struct view_filter *f, enum flat_by by,
	       enum flat_sort sort, struct flat *ret)
{
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	int err;

	err = view_selection_new(p, f, &sel);
	return err ? err : flat_build_selected(p, sel, by, sort, ret);
}

int flat_build_time(const struct profile *p, const struct replay *from, const struct view_filter *f,
		    enum flat_sort sort, struct flat *ret, struct err *err)
{
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	_cleanup_flat_ struct flat flat = FLAT_INIT;
	struct flat_order order = { .by = FLAT_BY_TIME, .sort = sort };
	int r;

	r = view_selection_new(p, f, &sel);
	if (r)
		return err_code(err, r);
	add_sums(sel, &flat);
	r = seconds_rows(p, from, sel, &flat, err);
	if (r)
		return r;
	sort_rows(&flat, &order);
	add_errors(&flat);
	*ret = flat;
	flat = (struct flat)FLAT_INIT; /* owned by *ret now */
	return 0;
}

void flat_deinit(struct flat *flat)
{
	if (!flat)
		return;
	free(flat->rows);
	*flat = (struct flat)FLAT_INIT;
}
