/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/thread_states.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "profile/profile.h"
#include "profile/sample_parts.h"
#include "view/expr.h"
#include "view/filter.h"
#include "view/seconds.h"

/* All time that is not idle. */
static uint64_t busy(const struct thread_states *t)
{
	return t->sum_ns - t->ns[STATE_IDLE];
}

static int compare(const void *a, const void *b)
{
	const struct thread_states *x = a, *y = b;

	if (busy(x) != busy(y))
		return busy(x) < busy(y) ? 1 : -1;
	return x->id < y->id ? -1 : x->id > y->id;
}

void thread_states_add(struct thread_states *to, unsigned int state, uint64_t ns)
{
	profile_add(&to->ns[state & STATE_MASK], ns);
	if (state & STATE_HELD)
		profile_add(&to->held_ns, ns);
	if (state & STATE_TURN)
		profile_add(&to->turn_ns, ns);
}

static void add(struct thread_states *to, const struct thread_states *t)
{
	to->n_threads += t->n_threads;
	profile_add(&to->elapsed_ns, t->elapsed_ns);
	profile_add(&to->held_ns, t->held_ns);
	profile_add(&to->turn_ns, t->turn_ns);
	profile_add(&to->sum_ns, t->sum_ns);
	for (size_t i = 0; i < STATES; i++)
		profile_add(&to->ns[i], t->ns[i]);
}

static void take_samples(const struct profile *p, const struct view_selection *sel,
			 const uint8_t *states, struct thread_states *v)
{
	for (size_t i = 0; i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];
		unsigned int state = state_of(states, a->stack, a->flags);

		if (!view_selected(sel, a))
			continue;
		thread_states_add(&v[a->thread], state, a->value);
	}
}

/* Count the wait with @stack in *@n, and by its state; 0: there is none. */
static void count_cut(const struct profile *p, const uint8_t *states, uint32_t stack, uint32_t *n,
		      struct thread_states_table *t)
{
	if (!stack || stack >= p->n_stacks)
		return;
	(*n)++;
	t->cut[states[stack] & STATE_MASK]++;
}

/* Of the threads that have rows. */
static void count_all_cut(const struct profile *p, const uint8_t *states,
			  struct thread_states_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct profile_thread *thread = &p->threads[t->v[i].id];

		count_cut(p, states, thread->began_before, &t->began_before, t);
		count_cut(p, states, thread->went_on, &t->went_on, t);
	}
}

/*
 * CPU time by the kernel's account: it is exact, and what is known of the samples is only how they
 * divide.
 */
static void take_account(const struct profile_thread *thread, struct thread_states *t)
{
	unsigned __int128 sampled = 0;
	uint64_t rest = thread->cpu_ns;

	for (size_t i = 0; i < STATE_WAIT_CPU; i++)
		sampled += t->ns[i];
	if (!thread->cpu_known || !sampled)
		return;
	for (size_t i = STATE_USER + 1; i < STATE_WAIT_CPU; i++) {
		t->ns[i] = (uint64_t)((unsigned __int128)thread->cpu_ns * t->ns[i] / sampled);
		rest -= t->ns[i];
	}
	t->ns[STATE_USER] = rest;
}

/* Whether @f asks more of the samples of a thread than their time and state. */
static bool selects_by_stack(const struct view_filter *f)
{
	return view_filter_by_request(f) || f->has_include || f->has_exclude || f->no_gc ||
	       (f->expr && !view_expr_is_of_threads(f->expr)) || f->applied.in_part;
}

/* Whether @f leaves out part of the CPU time of the threads that it selects. */
static bool selects_in_part(const struct view_filter *f)
{
	const uint32_t cpu = STATE_SET_CPU & STATE_SET_FREE;

	return f->from_ns || f->to_ns || f->from.given || f->to.given || selects_by_stack(f) ||
	       (f->states && (f->states & cpu) != cpu);
}

void thread_states_finish(const struct profile *p, const struct view_filter *f, bool account,
			  struct thread_states *v, struct thread_states_table *ret)
{
	size_t n = 0;

	*ret = (struct thread_states_table) { .all.id = PROFILE_NONE, .v = v };
	ret->in_part = f && (selects_by_stack(f) || f->states);
	for (size_t i = 0; i < p->n_threads; i++) {
		struct thread_states t = v[i];

		t.id = (uint32_t)i;
		t.n_threads = 1;
		t.elapsed_ns = p->threads[i].last_ns - p->threads[i].first_ns;
		if (account && (!f || !selects_in_part(f)))
			take_account(&p->threads[i], &t);
		for (size_t s = 0; s < STATES; s++)
			profile_add(&t.sum_ns, t.ns[s]);
		if (!t.sum_ns)
			continue;
		add(&ret->all, &t);
		v[n++] = t;
	}
	qsort(v, n, sizeof(*v), compare);
	ret->n = n;
}

int thread_states_build(const struct profile *p, const struct view_filter *f,
			struct thread_states_table *ret)
{
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	_cleanup_free_ struct thread_states *v = NULL;
	_cleanup_free_ uint8_t *states = NULL;

	*ret = (struct thread_states_table)THREAD_STATES_INIT;
	v = calloc(p->n_threads + 1, sizeof(*v));
	if (!v || view_selection_new(p, f, &sel) || state_of_stacks(p, &states))
		return -ENOMEM;
	take_samples(p, sel, states, v);
	thread_states_finish(p, f, true, take_ptr(v), ret);
	count_all_cut(p, states, ret);
	return 0;
}

int thread_states_by_owner(const struct profile *p, enum owner_kind kind,
			   struct thread_states_table *t)
{
	_cleanup_free_ uint32_t *rows = calloc(owner_limit(p, kind) + 1, sizeof(*rows));
	size_t n = 0;

	if (!rows)
		return -ENOMEM;
	/* Rows of owners are never more than those of threads before them. */
	for (size_t i = 0; i < t->n; i++) {
		const struct thread_states thread = t->v[i];
		const uint32_t owner = owner_of_thread(p, kind, thread.id);

		if (!rows[owner]) {
			t->v[n] = (struct thread_states) { .id = owner };
			rows[owner] = (uint32_t)++n;
		}
		add(&t->v[rows[owner] - 1], &thread);
	}
	qsort(t->v, n, sizeof(*t->v), compare);
	t->n = n;
	return 0;
}

bool thread_states_differ(const struct thread_states *t)
{
	uint64_t by = t->sum_ns > t->elapsed_ns ? t->sum_ns - t->elapsed_ns
						: t->elapsed_ns - t->sum_ns;

	return by > t->elapsed_ns / 100 * THREAD_STATES_PART && by > 10 * NSEC_PER_MSEC;
}

/* ---- seconds ---- */

/* So many have rows, three days: what comes later is in the last one. */
#define MAX_SECONDS (1u << 18)

/* The row of second @i, which is made with all those before it; NULL: no memory. */
static struct thread_states *row_of(struct thread_states_table *t, size_t *cap, uint64_t i)
{
	if (i >= MAX_SECONDS)
		i = MAX_SECONDS - 1;
	if (i >= t->n && array_reserve(t->v, *cap, i + 1))
		return NULL;
	for (; t->n <= i; t->n++)
		t->v[t->n] = (struct thread_states) { .id = (uint32_t)t->n };
	return &t->v[i];
}

/* What is added up by second. */
struct second_states {
	const struct profile *profile;
	const uint8_t *states; /* by stack (state.h) */
	struct thread_states_table *t;
	size_t cap;
};

/* @s is of one second, as view/seconds.h has them. */
static int add_to_second(void *arg, const struct profile_sample *s)
{
	struct second_states *to = arg;
	const unsigned int state = state_of(to->states, s->stack, s->flags);
	struct thread_states *row = row_of(to->t, &to->cap, second_of(to->profile, s));

	if (!row)
		return -ENOMEM;
	thread_states_add(row, state, s->value);
	profile_add(&row->sum_ns, s->value);
	return 0;
}

static void drop_seconds_before(struct thread_states_table *t, uint64_t second)
{
	size_t n = second < t->n ? (size_t)second : t->n;

	t->n -= n;
	memmove(t->v, t->v + n, t->n * sizeof(*t->v));
}

int second_states_build(const struct profile *p, const struct view_filter *f,
			struct thread_states_table *ret)
{
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	_cleanup_thread_states_ struct thread_states_table t = THREAD_STATES_INIT;
	_cleanup_free_ uint8_t *states = NULL;
	struct second_states to = { .profile = p, .t = &t };

	if (view_selection_new(p, f, &sel) || state_of_stacks(p, &states))
		return -ENOMEM;
	to.states = states;
	for (size_t i = 0; i < p->n_kept; i++) {
		const struct profile_sample *s = &p->samples[i];
		const struct profile_aggregate alike = profile_aggregate_of(p, s);

		if (s->event != p->event || !view_selected(sel, &alike))
			continue;
		if (sample_parts_by_second(p, *s, SAMPLE_MAX_PARTS, add_to_second, &to))
			return -ENOMEM;
	}
	if (f && f->from_ns)
		drop_seconds_before(&t, f->from_ns / NSEC_PER_SEC);
	t.all.id = PROFILE_NONE;
	for (size_t i = 0; i < t.n; i++)
		add(&t.all, &t.v[i]);
	*ret = t;
	t = (struct thread_states_table)THREAD_STATES_INIT;
	return 0;
}

void thread_states_deinit(struct thread_states_table *t)
{
	free(t->v);
	*t = (struct thread_states_table)THREAD_STATES_INIT;
}
