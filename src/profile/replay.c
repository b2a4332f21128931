/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/replay.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Puts waits into the order of their thread. */
struct late {
	struct profile_sample
		*waits; /* by thread, in the order of time; owned, as are the others */
	size_t n, met;	/* how many there are; how many of them were met in the file */
	uint32_t *next; /* by thread: the one that is to come, in @waits … */
	uint64_t *last; /* … and the latest time of those in the file so far */
};

/* Guards against a file that has changed since it was read. */
struct guard {
	const struct profile *profile;
	struct late late;
	sample_fn *fn;
	void *arg;
	uint64_t left; /* samples that are still to come */
	int code;      /* what @fn returned */
	bool ended;    /* by the guard */
};

static int compare_late(const void *a, const void *b)
{
	const struct profile_sample *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->ts > y->ts) - (x->ts < y->ts);
}

static int late_init(const struct profile *p, struct late *l)
{
	if (!p->n_late)
		return 0;
	l->waits = calloc(p->n_late, sizeof(*l->waits));
	l->next = calloc(p->n_threads, sizeof(*l->next));
	l->last = calloc(p->n_threads, sizeof(*l->last));
	if (!l->waits || !l->next || !l->last)
		return -ENOMEM;
	l->n = p->n_late;
	memcpy(l->waits, p->late, l->n * sizeof(*l->waits));
	qsort(l->waits, l->n, sizeof(*l->waits), compare_late);
	for (size_t i = l->n; i--;)
		l->next[l->waits[i].thread] = (uint32_t)i;
	return 0;
}

static void late_deinit(struct late *l)
{
	free(l->waits);
	free(l->next);
	free(l->last);
}

/* The next late wait of the thread of @s, if it was before @s; NULL if there is none. */
static const struct profile_sample *next_late(const struct late *l, const struct profile_sample *s)
{
	const uint32_t i = l->next[s->thread];

	return i < l->n && l->waits[i].thread == s->thread && l->waits[i].ts < s->ts ? &l->waits[i]
										     : NULL;
}

/* @s is the next one in the file. */
static int pass_on(struct guard *g, const struct profile_sample *s)
{
	struct late *l = &g->late;
	const struct profile_sample *wait;
	int r = 0;

	if (!l->n)
		return g->fn(g->arg, s);
	/* As profile_note_late() found them, in the same order. */
	if (l->met < l->n && s->ts < l->last[s->thread] &&
	    profile_stack_waits(g->profile, s->stack)) {
		l->met++;
		return 0;
	}
	while (!r && (wait = next_late(l, s))) {
		l->next[s->thread]++;
		r = g->fn(g->arg, wait);
	}
	if (s->ts > l->last[s->thread])
		l->last[s->thread] = s->ts;
	return r ? r : g->fn(g->arg, s);
}

/* Whether all ids of @s are those of something in @p. */
static bool is_known(const struct profile *p, const struct profile_sample *s)
{
	return s->thread < p->n_threads && s->stack < p->n_stacks && s->event < p->meta.n_events &&
	       (!s->request || s->request < p->n_requests) && s->span <= p->spans.count;
}

static int take(void *arg, const struct profile_sample *s)
{
	struct guard *g = arg;

	/* The recording goes on: what came after it was read first is left out. */
	g->ended = !g->left || !is_known(g->profile, s);
	if (g->ended)
		return -ECANCELED;
	g->left--;
	g->code = pass_on(g, s);
	return g->code ? -ECANCELED : 0;
}

/* A wait that went on when the recording was read first may be longer now. */
static int take_wait(void *arg, const struct profile_sample *wait)
{
	struct guard *g = arg;

	if (!g->left || !is_known(g->profile, wait))
		return 0;
	g->left--;
	g->code = g->fn(g->arg, wait);
	return g->code ? -ECANCELED : 0;
}

/* What is read again, and how it is given to @g. */
enum second_reading { OF_EVENT, OF_ALL, WAITS };

static int read_again(struct guard *g, const struct replay *from, enum second_reading what,
		      struct err *err)
{
	struct read_options opts = from->options;
	_cleanup_profile_ struct profile again = PROFILE_INIT;
	struct read_report report;
	struct err why = { 0 };
	int r;

	opts.by_thread = opts.by_process = opts.by_span = opts.keep_samples = opts.read_again =
		false;
	opts.lengths = opts.whole_waits = opts.keep_waits = false;
	/* So that spans have the ids that they have in the profile. */
	opts.span_marks = g->profile->span_marks;
	opts.n_span_marks = g->profile->n_span_marks;
	opts.take = what == WAITS ? NULL : take;
	opts.take_wait = what == WAITS ? take_wait : NULL;
	opts.take_arg = g;
	opts.take_all = what == OF_ALL;
	r = profile_read(from->path, &opts, &again, &report, &why);
	if (g->code)
		return g->code;
	if (r && !g->ended) {
		if (err)
			*err = why;
		return r;
	}
	if (g->left)
		return err_set(err, -ESTALE, ERR_PROFILE, "%s has changed while it was read",
			       from->path);
	return 0;
}

static int each_sample(const struct profile *p, const struct replay *from, bool all, sample_fn *fn,
		       void *arg, struct err *err)
{
	struct guard g = { .profile = p, .fn = fn, .arg = arg };
	int r = 0;

	for (size_t i = 0; i < p->n_aggregates; i++)
		if (p->aggregates[i].event == p->event)
			g.left += p->aggregates[i].samples;
	if (all)
		g.left = p->n_in_time;
	if (!all && late_init(p, &g.late))
		r = err_oom(err);
	if (!r && !p->n_kept && g.left)
		r = read_again(&g, from, all ? OF_ALL : OF_EVENT, err);
	for (size_t i = 0; i < p->n_kept && !r; i++)
		if (all || p->samples[i].event == p->event)
			r = pass_on(&g, &p->samples[i]);
	late_deinit(&g.late);
	return r;
}

int profile_each_sample(const struct profile *p, const struct replay *from, sample_fn *fn,
			void *arg, struct err *err)
{
	return each_sample(p, from, false, fn, arg, err);
}

struct placing {
	struct profile_sample *to;
	size_t n;
};

static int place(void *arg, const struct profile_sample *s)
{
	struct placing *placed = arg;

	placed->to[placed->n++] = *s;
	return 0;
}

int profile_place_late(struct profile *p)
{
	_cleanup_free_ struct profile_sample *to = NULL;
	struct placing placed;
	struct guard g = { .profile = p, .fn = place, .arg = &placed };
	int r = 0;

	if (!p->n_late || !p->n_kept)
		return 0;
	/* What is late was kept, too, so that n_kept would do; but nothing is to depend on it. */
	to = calloc(p->n_kept + p->n_late, sizeof(*to));
	placed = (struct placing) { .to = to };
	if (!to || late_init(p, &g.late))
		r = -ENOMEM;
	for (size_t i = 0; i < p->n_kept && !r; i++)
		r = p->samples[i].event == p->event ? pass_on(&g, &p->samples[i])
						    : place(&placed, &p->samples[i]);
	late_deinit(&g.late);
	if (r)
		return r;
	free(p->samples);
	p->samples = take_ptr(to);
	p->cap_kept = p->n_kept + p->n_late;
	p->n_kept = placed.n;
	p->n_late = 0;
	return 0;
}

int profile_each_of_all(const struct profile *p, const struct replay *from, sample_fn *fn,
			void *arg, struct err *err)
{
	return each_sample(p, from, !from->options.event, fn, arg, err);
}

int profile_each_wait(const struct profile *p, const struct replay *from, sample_fn *fn, void *arg,
		      struct err *err)
{
	struct guard g = { .profile = p, .fn = fn, .arg = arg };
	int r = 0;

	for (size_t i = 0; i < p->n_aggregates; i++)
		g.left += p->aggregate_waits[i].n;
	if (!p->n_waits && g.left)
		return read_again(&g, from, WAITS, err);
	for (size_t i = 0; i < p->n_waits && !r; i++)
		r = fn(arg, &p->waits[i]);
	return r;
}
