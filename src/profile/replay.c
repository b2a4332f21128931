/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/replay.h"

#include <errno.h>
#include <stdbool.h>

#include "base/err.h"

/* Guards against a file that has changed since it was read. */
struct guard {
	const struct profile *profile;
	sample_fn *fn;
	void *arg;
	uint64_t left; /* samples that are still to come */
	int code;      /* what @fn returned */
	bool ended;    /* by the guard */
};

static int take(void *arg, const struct profile_sample *s)
{
	struct guard *g = arg;

	/* The recording goes on: what came after it was read first is left out. */
	g->ended = !g->left || s->thread >= g->profile->n_threads ||
		   s->stack >= g->profile->n_stacks || s->event >= g->profile->meta.n_events ||
		   (s->request && s->request >= g->profile->n_requests) ||
		   s->span > g->profile->spans.count;
	if (g->ended)
		return -ECANCELED;
	g->left--;
	g->code = g->fn(g->arg, s);
	return g->code ? -ECANCELED : 0;
}

static int read_again(struct guard *g, const struct replay *from, bool all, struct err *err)
{
	struct read_options opts = from->options;
	_cleanup_profile_ struct profile again = PROFILE_INIT;
	struct read_report report;
	struct err why = { 0 };
	int r;

	opts.by_thread = opts.by_process = opts.by_span = opts.keep_samples = opts.read_again =
		false;
	/* So that spans have the ids that they have in the profile. */
	opts.span_marks = g->profile->span_marks;
	opts.n_span_marks = g->profile->n_span_marks;
	opts.take = take;
	opts.take_arg = g;
	opts.take_all = all;
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
	if (!p->n_kept)
		return g.left ? read_again(&g, from, all, err) : 0;
	for (size_t i = 0; i < p->n_kept && !r; i++)
		if (all || p->samples[i].event == p->event)
			r = fn(arg, &p->samples[i]);
	return r;
}

int profile_each_sample(const struct profile *p, const struct replay *from, sample_fn *fn,
			void *arg, struct err *err)
{
	return each_sample(p, from, false, fn, arg, err);
}

int profile_each_of_all(const struct profile *p, const struct replay *from, sample_fn *fn,
			void *arg, struct err *err)
{
	return each_sample(p, from, !from->options.event, fn, arg, err);
}
