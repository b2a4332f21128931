/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/thread_samples.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/err.h"
#include "export/shown.h"
#include "profile/profile.h"
#include "profile/replay.h"
#include "view/filter.h"
#include "view/owner.h"
#include "view/state.h"

/* Where the samples of a thread are among those that are kept. */
struct place {
	size_t first, n;
};

struct thread_samples {
	const struct shown *shown;
	const struct replay *from;
	size_t max;
	uint32_t *threads; /* those with samples, in their order; owned */
	size_t n;
	size_t first, end;	       /* whose samples are kept, in @threads */
	struct thread_sample *samples; /* owned */
	uint8_t *states;	       /* by stack (state.h); NULL if there are no waits; owned */
	struct place *places;	       /* by thread id; owned */
	bool *kept;		       /* by thread id; owned */
};

void thread_samples_free(struct thread_samples *t)
{
	if (!t)
		return;
	free(t->threads);
	free(t->samples);
	free(t->states);
	free(t->places);
	free(t->kept);
	free(t);
}

static int compare_ranks(const void *a, const void *b, void *arg)
{
	const uint32_t *ranks = arg;
	uint32_t x = ranks[*(const uint32_t *)a], y = ranks[*(const uint32_t *)b];

	return (x > y) - (x < y);
}

static int find_threads(struct thread_samples *t)
{
	const struct profile *p = t->shown->profile;
	_cleanup_free_ bool *selected = calloc(p->n_threads + 1, sizeof(*selected));
	_cleanup_free_ uint32_t *ranks = NULL;

	if (!selected || owner_ranks(p, OWNER_THREAD, &ranks))
		return -ENOMEM;
	view_selected_threads(t->shown->selection, selected);
	for (size_t i = 0; i < p->n_threads; i++)
		if (selected[i])
			t->threads[t->n++] = (uint32_t)i;
	if (t->n)
		qsort_r(t->threads, t->n, sizeof(*t->threads), compare_ranks, ranks);
	return 0;
}

int thread_samples_new(const struct shown *shown, const struct replay *from, size_t max,
		       struct thread_samples **ret)
{
	size_t n = shown->profile->n_threads + 1;
	struct thread_samples *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->shown = shown;
	t->from = from;
	t->max = max;
	t->threads = calloc(n, sizeof(*t->threads));
	t->places = calloc(n, sizeof(*t->places));
	t->kept = calloc(n, sizeof(*t->kept));
	if (!t->threads || !t->places || !t->kept || find_threads(t) ||
	    (profile_has_waits(shown->profile) && state_of_stacks(shown->profile, &t->states))) {
		thread_samples_free(t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

size_t thread_samples_count(const struct thread_samples *t)
{
	return t->n;
}

uint32_t thread_samples_thread(const struct thread_samples *t, size_t i)
{
	return t->threads[i];
}

static unsigned int state_of_sample(const struct thread_samples *t, const struct profile_sample *s)
{
	const bool in_kernel = s->flags & SAMPLE_KERNEL;

	if (!t->states)
		return in_kernel ? STATE_SYSTEM : STATE_USER;
	return state_of(t->states, s->stack, in_kernel) & STATE_MASK;
}

/* Also of a file that was made to hurt the times of a thread do not go back. */
static struct thread_sample make_sample(const struct thread_samples *t,
					const struct profile_sample *s, uint64_t not_before)
{
	return (struct thread_sample) {
		.ts = s->ts > not_before ? s->ts : not_before,
		.value = s->value,
		.stack = shown_stack(t->shown, s->stack),
		.cpu = s->cpu,
		.flags = s->flags & SAMPLE_FLAGS,
		.state = state_of_sample(t, s) & STATE_MASK,
	};
}

static int keep(void *arg, const struct profile_sample *s)
{
	struct thread_samples *t = arg;
	struct place *place = &t->places[s->thread];
	struct thread_sample *to;

	if (!t->kept[s->thread] || !shown_sample(t->shown, s))
		return 0;
	to = &t->samples[place->first + place->n];
	*to = make_sample(t, s, place->n ? to[-1].ts : 0);
	place->n++;
	return 0;
}

/* Keep the samples of the threads from @i on, as many as there is room for; it may be none. */
static int load(struct thread_samples *t, size_t i, struct err *err)
{
	const struct profile_thread *threads = t->shown->profile->threads;
	size_t n = 0;

	for (size_t k = t->first; k < t->end; k++)
		t->kept[t->threads[k]] = false;
	t->first = t->end = i;
	for (; t->end < t->n && threads[t->threads[t->end]].samples <= t->max - n; t->end++) {
		uint32_t thread = t->threads[t->end];

		t->kept[thread] = true;
		t->places[thread] = (struct place) { .first = n };
		n += threads[thread].samples;
	}
	free(t->samples);
	t->samples = NULL;
	if (t->end == i)
		return 0;
	t->samples = calloc(n, sizeof(*t->samples));
	if (!t->samples)
		return err_oom(err);
	return profile_each_sample(t->shown->profile, t->from, keep, t, err);
}

/* Passes on the samples of one thread. */
struct pass {
	const struct thread_samples *t;
	uint32_t thread;
	uint64_t last_ts;
	thread_sample_fn *fn;
	void *arg;
};

static int pass_on(void *arg, const struct profile_sample *s)
{
	struct pass *pass = arg;
	struct thread_sample sample;

	if (s->thread != pass->thread || !shown_sample(pass->t->shown, s))
		return 0;
	sample = make_sample(pass->t, s, pass->last_ts);
	pass->last_ts = sample.ts;
	return pass->fn(pass->arg, &sample);
}

int thread_samples_each(struct thread_samples *t, size_t i, thread_sample_fn *fn, void *arg,
			struct err *err)
{
	struct pass pass = { .t = t, .thread = t->threads[i], .fn = fn, .arg = arg };
	const struct place *place = &t->places[t->threads[i]];
	int r = 0;

	if (i < t->first || i >= t->end)
		r = load(t, i, err);
	if (r)
		return r;
	if (i == t->end)
		return profile_each_sample(t->shown->profile, t->from, pass_on, &pass, err);
	for (size_t k = 0; k < place->n && !r; k++)
		r = fn(arg, &t->samples[place->first + k]);
	return r;
}
