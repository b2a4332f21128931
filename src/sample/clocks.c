/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which clock sees a thread. Those that live when sampling begins get clocks of their own, which
 * tick exactly once for each period of CPU time. Such a clock begins with a whole period, and many
 * threads and processes end before that, or hardly run. So at first a thread is seen by the clocks
 * of the CPUs (bpf/clock.bpf.h), and what begins later has no other: what they are said to take is
 * right on average, however little it is. Those that go on to live get clocks of their own.
 *
 * The clocks of the CPUs tick in what is not followed, too, so they are closed when nothing has
 * begun for a while, and opened again when something does. With --all-ruby they see everything.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/stop.h"
#include "engine/engine.h"
#include "engine/mmap_watch.h"
#include "sample/collector_state.h"
#include "target/cpus.h"

/* Clocks of CPUs: how often it is looked which are online; and they stay so long after a birth. */
#define CPUS_INTERVAL (NSEC_PER_SEC / 4)
#define CPUS_LINGER   (10 * NSEC_PER_SEC)

/* Two readings of the same clocks do not differ by so much, unless the machine was suspended. */
#define SUSPENDED     (100 * NSEC_PER_MSEC)

/* A thread of that age gets a clock of its own; and for so long they are opened at a time. */
#define GROWN_UP      (NSEC_PER_SEC / 2)
#define OPENING	      (50 * NSEC_PER_MSEC)

/* How often threads are listed while there are new ones. */
#define LISTINGS      4

/* ---- clocks of CPUs ---- */

static void need_cpus(struct collector *c, uint64_t until)
{
	if (c->cpus_until_ns < until)
		c->cpus_until_ns = until;
}

/* Clocks for the CPUs that are online now; or for none. */
static int set_cpus(struct collector *c, bool needed, struct err *err)
{
	struct cpus cpus = CPUS_INIT;
	int r = 0;

	if (needed)
		r = cpus_online(&cpus, err);
	if (!r && c->mmaps)
		r = mmap_watch_set_cpus(c->mmaps, &cpus, err);
	if (!r)
		r = engine_set_cpus(c->engine, &cpus, err);
	cpus_deinit(&cpus);
	c->cpus_clocked = needed;
	return r;
}

/* Whether a living process has no clocks of its own, and gets none. */
static bool any_left_to_cpus(struct collector *c)
{
	struct tracked_process *p;

	if (!c->any_left_to_cpus)
		return false;
	LIST_FOREACH(p, &c->table.list, link)
		if (p->left_to_cpus && !p->ended_ns)
			return true;
	c->any_left_to_cpus = false;
	return false;
}

/*
 * A suspended machine takes all CPUs but one offline, and what was open of them does not come back
 * with them. It is seen nowhere but in the clocks, as rbpf does not run meanwhile.
 */
static bool was_suspended(struct collector *c)
{
	const int64_t before = c->suspended_ns;

	c->suspended_ns = (int64_t)(clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC));
	return c->suspended_ns > before + (int64_t)SUSPENDED;
}

static int poll_cpus(struct collector *c, uint64_t now, struct err *err)
{
	const bool needed = now < c->cpus_until_ns || c->clockless.next < c->clockless.n ||
			    any_left_to_cpus(c);
	int r = 0;

	if (needed == c->cpus_clocked && (!needed || now - c->cpus_ns < CPUS_INTERVAL))
		return 0;
	c->cpus_ns = now;
	if (was_suspended(c))
		r = set_cpus(c, false, err);
	return r ? r : set_cpus(c, needed, err);
}

/* ---- threads that wait for a clock ---- */

static int enqueue(struct collector *c, const struct tracked_process *p, struct tracked_thread *t,
		   uint64_t born)
{
	struct clock_queue *q = &c->clockless;

	if (t->clock || t->awaits_clock || t->ended_ns || p->left_to_cpus)
		return 0;
	if (array_reserve(q->v, q->cap, q->n + 1))
		return -ENOMEM;
	q->v[q->n++] = (struct clockless) { .pid = p->pid, .tid = t->tid, .born_ns = born };
	t->awaits_clock = true;
	return 0;
}

static struct clockless dequeue(struct clock_queue *q)
{
	const struct clockless first = q->v[q->next++];

	if (q->next == q->n) {
		q->next = q->n = 0;
	} else if (q->next >= 1024 && q->next > q->n / 2) {
		q->n -= q->next;
		memmove(q->v, q->v + q->next, q->n * sizeof(*q->v));
		q->next = 0;
	}
	return first;
}

static int list_once(struct collector *c, struct tracked_process *p, uint64_t born, bool *any_new)
{
	_cleanup_free_ pid_t *tids = NULL;
	struct tracked_thread *t;
	size_t n = 0, i;
	bool is_new;
	int r;

	*any_new = false;
	r = process_threads(p->pid, &tids, &n);
	for (i = 0; i < n && !r && !stop_overdue(); i++) {
		r = process_table_thread(&c->table, p, tids[i], &t, &is_new);
		if (r)
			break;
		/* What it had before sampling began does not count. */
		if (!t->has_base)
			t->has_base = born || !thread_cpu_ns(t->tid, &t->cpu_base);
		*any_new |= is_new;
		r = enqueue(c, p, t, born);
	}
	return r == -ENOMEM ? r : 0; /* or it has ended */
}

/*
 * Have the threads of @p that have no clock wait for one; @born: since when they are known, 0: they
 * were there when sampling began. The kernel may leave some out if others end meanwhile, so they
 * are listed again while there are new ones.
 */
static int list_threads(struct collector *c, struct tracked_process *p, uint64_t born)
{
	struct tracked_thread *t;
	bool any_new = true;
	int r = 0;

	for (unsigned int i = 0; i < LISTINGS && any_new && !r; i++)
		r = list_once(c, p, born, &any_new);
	LIST_FOREACH(t, &p->thread_list, link)
		if (!r)
			r = enqueue(c, p, t, born);
	return r;
}

/* ---- clocks of threads ---- */

static int add_clock(struct collector *c, struct tracked_thread *t, struct err *err)
{
	int r;

	if (t->clock || t->ended_ns)
		return 0;
	r = engine_add_thread(c->engine, t->tid, err);
	if (r == -ESRCH)
		t->ended_ns = clock_ns(CLOCK_MONOTONIC);
	else if (r >= 0)
		t->clock = r;
	return r > 0 || r == -ESRCH ? 0 : r;
}

void clocks_thread_ended(struct collector *c, struct tracked_thread *t)
{
	if (t->clock)
		engine_remove_thread(c->engine, t->clock);
	t->clock = 0;
}

void clocks_remove(struct collector *c, struct tracked_process *p)
{
	struct tracked_thread *t;

	LIST_FOREACH(t, &p->thread_list, link)
		clocks_thread_ended(c, t);
}

static void set_clocked(struct collector *c, struct tracked_process *p, uint64_t before)
{
	engine_set_clocked(c->engine, p->pid, before);
	p->told_ns = clock_ns(CLOCK_MONOTONIC);
}

/* Its threads get no clocks, of which it may have very many, or cannot be waited for. */
static void leave_to_cpus(struct collector *c, struct tracked_process *p)
{
	clocks_remove(c, p);
	p->left_to_cpus = c->any_left_to_cpus = true;
	set_clocked(c, p, 0);
}

static int open_first(struct collector *c, struct err *err)
{
	const struct clockless first = dequeue(&c->clockless);
	struct tracked_process *p = process_table_find(&c->table, first.pid);
	struct tracked_thread *t = p ? process_table_find_thread(p, first.tid) : NULL;
	int r;

	if (!t)
		return 0;
	t->awaits_clock = false;
	if (p->left_to_cpus || p->ended_ns)
		return 0;
	p->newly_clocked = c->any_newly_clocked = true;
	r = add_clock(c, t, err);
	if (r != -EMFILE && r != -ETIMEDOUT)
		return r;
	leave_to_cpus(c, p);
	return 0;
}

/* Those that have no clock are seen by those of the CPUs, for theirs cannot have taken over. */
static void tell_clocked(struct collector *c)
{
	struct tracked_process *p;

	if (!c->any_newly_clocked)
		return;
	c->any_newly_clocked = false;
	LIST_FOREACH(p, &c->table.list, link) {
		if (p->newly_clocked && !p->left_to_cpus && !p->ended_ns)
			set_clocked(c, p, clock_ns(CLOCK_MONOTONIC));
		p->newly_clocked = false;
	}
}

/* Open clocks of those who wait and are old enough. */
static int open_clocks(struct collector *c, uint64_t now, struct err *err)
{
	const uint64_t grown = now > GROWN_UP ? now - GROWN_UP : 0;
	const uint64_t until = clock_ns(CLOCK_MONOTONIC) + OPENING;
	const struct clock_queue *q = &c->clockless;
	int r = 0;

	while (!r && q->next < q->n && q->v[q->next].born_ns <= grown && !stop_overdue() &&
	       clock_ns(CLOCK_MONOTONIC) < until)
		r = open_first(c, err);
	tell_clocked(c);
	return r;
}

/* ---- when ---- */

int clocks_begin(struct collector *c, struct err *err)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct tracked_process *p;
	int r = 0;

	was_suspended(c);
	need_cpus(c, c->opts.system_wide ? UINT64_MAX : now + CPUS_LINGER);
	if (!c->opts.system_wide) {
		LIST_FOREACH(p, &c->table.list, link) {
			r = list_threads(c, p, 0);
			if (r)
				return err_oom(err);
		}
	}
	return clocks_poll(c, now, err);
}

int clocks_note_birth(struct collector *c, struct tracked_process *p, struct tracked_thread *t,
		      uint64_t ts)
{
	if (c->opts.system_wide)
		return 0;
	need_cpus(c, ts + CPUS_LINGER);
	return enqueue(c, p, t, ts);
}

int clocks_note_exec(struct collector *c, struct tracked_process *p, uint64_t ts)
{
	struct tracked_thread *t;
	bool is_new;
	int r;

	clocks_remove(c, p);
	p->left_to_cpus = false;
	r = process_table_thread(&c->table, p, p->pid, &t, &is_new);
	return r ? r : clocks_note_birth(c, p, t, ts);
}

int clocks_search(struct collector *c, uint64_t now)
{
	struct tracked_process *p;
	struct tracked_thread *t;
	int r = 0;

	if (c->opts.system_wide)
		return 0;
	need_cpus(c, now + CPUS_LINGER);
	LIST_FOREACH(p, &c->table.list, link) {
		if (p->ended_ns || r)
			continue;
		LIST_FOREACH(t, &p->thread_list, link)
			if (!t->ended_ns && life_thread_is_gone(p, t))
				t->ended_ns = now;
		/* It may have executed a program, which has ended what clocks it has. */
		clocks_remove(c, p);
		set_clocked(c, p, 0);
		r = list_threads(c, p, now);
	}
	return r;
}

int clocks_poll(struct collector *c, uint64_t now, struct err *err)
{
	int r = poll_cpus(c, now, err);

	if (!r && c->cpus_clocked)
		engine_redraw(c->engine);
	return r ? r : open_clocks(c, now, err);
}

bool clocks_are_settled(const struct collector *c)
{
	return !c->cpus_clocked;
}

void clocks_deinit(struct collector *c)
{
	free(c->clockless.v);
}
