/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/gvl_pairs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/intern.h"
#include "profile/profile.h"
#include "view/filter.h"
#include "view/gvl_charges.h"
#include "view/state.h"

/* Parts of waits: a second or so of work. */
#define MAX_PARTS 500000000u

struct blame {
	const struct profile *profile;
	const struct view_selection *selection;
	struct gvl_charges charges; /* to kinds of requests; owned, as all below */
	uint8_t *states;	    /* by stack (state.h) */
	struct intern kinds;	    /* of pairs: waiting, holding */
	struct gvl_pair *v;	    /* by id of these */
	size_t cap;
	uint64_t parts;
	bool *serves; /* by thread: it has requests */
	uint64_t waited, between;
};

static void blame_deinit(struct blame *b)
{
	gvl_charges_deinit(&b->charges);
	free(b->states);
	free(b->serves);
	intern_deinit(&b->kinds);
	free(b->v);
}

void gvl_pairs_deinit(struct gvl_pairs *pairs)
{
	free(pairs->v);
	*pairs = (struct gvl_pairs)GVL_PAIRS_INIT;
}

/* ---- who is charged ---- */

static int take_charges(struct blame *b)
{
	const struct profile *p = b->profile;

	for (size_t i = 0; i < p->n_kept; i++) {
		const struct profile_sample *s = &p->samples[i];

		if (s->event == p->event)
			continue;
		if (gvl_charges_add(&b->charges, p, s, profile_sample_kind(p, s)))
			return -ENOMEM;
	}
	gvl_charges_sort(&b->charges);
	return 0;
}

/* ---- who waits ---- */

static int add(struct blame *b, uint32_t waiting, uint32_t holding, uint64_t ns)
{
	const uint32_t key[2] = { waiting, holding };
	bool is_new;
	uint32_t id;

	if (intern_add(&b->kinds, key, sizeof(key), &id, &is_new) ||
	    array_reserve(b->v, b->cap, (size_t)id + 1))
		return -ENOMEM;
	if (is_new)
		b->v[id] = (struct gvl_pair) { .waiting = waiting, .holding = holding };
	profile_add(&b->v[id].ns, ns);
	return 0;
}

/* A wait that is being divided. */
struct divided {
	struct blame *blame;
	uint32_t waiting; /* kind of request */
};

static int add_part(void *arg, uint32_t holding, uint64_t ns)
{
	const struct divided *d = arg;

	if (++d->blame->parts > MAX_PARTS)
		return -E2BIG;
	return add(d->blame, d->waiting, holding, ns);
}

static int divide(struct blame *b, const struct profile_sample *s)
{
	const struct profile *p = b->profile;
	struct divided d = { .blame = b, .waiting = profile_sample_kind(p, s) };

	return gvl_charges_divide(&b->charges, p->threads[s->thread].process,
				  s->ts > s->value ? s->ts - s->value : 0, s->ts, add_part, &d);
}

static int find_serving(struct blame *b)
{
	const struct profile *p = b->profile;

	b->serves = calloc(p->n_threads + 1, sizeof(*b->serves));
	if (!b->serves)
		return -ENOMEM;
	for (uint32_t i = 1; i < p->n_requests; i++)
		b->serves[p->requests[i].thread] = true;
	return 0;
}

static int take_wait(struct blame *b, const struct profile_sample *s)
{
	profile_add(&b->waited, s->value);
	if (!s->request && b->serves[s->thread])
		profile_add(&b->between, s->value);
	return divide(b, s);
}

static int take_waits(struct blame *b)
{
	const struct profile *p = b->profile;
	int r = 0;

	for (size_t i = 0; i < p->n_kept && !r; i++) {
		const struct profile_aggregate alike = profile_aggregate_of(p, &p->samples[i]);

		if (p->samples[i].event == p->event &&
		    (b->states[alike.stack] & STATE_MASK) == STATE_GVL &&
		    view_selected(b->selection, &alike))
			r = take_wait(b, &p->samples[i]);
	}
	return r;
}

static int compare_pairs(const void *a, const void *b)
{
	const struct gvl_pair *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->waiting != y->waiting)
		return x->waiting < y->waiting ? -1 : 1;
	return (x->holding > y->holding) - (x->holding < y->holding);
}

int gvl_pairs_build(const struct profile *p, const struct view_filter *f, struct gvl_pairs *ret)
{
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	_cleanup_(blame_deinit) struct blame b = { .profile = p };
	int r;

	if (!p->by_request)
		return -EINVAL;
	r = view_selection_new(p, f, &sel);
	if (r)
		return r;
	b.selection = sel;
	r = state_of_stacks(p, &b.states);
	if (!r)
		r = take_charges(&b);
	if (!r)
		r = find_serving(&b);
	if (!r)
		r = take_waits(&b);
	if (r)
		return r;
	if (b.kinds.count)
		qsort(b.v, b.kinds.count, sizeof(*b.v), compare_pairs);
	*ret = (struct gvl_pairs) {
		.v = b.v, .n = b.kinds.count, .waited = b.waited, .between = b.between
	};
	b.v = NULL; /* owned by *ret now */
	return 0;
}
