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

#include "base/clock.h"
#include "base/err.h"
#include "base/stop.h"
#include "engine/engine.h"
#include "engine/mmap_watch.h"
#include "sample/collector_state.h"
#include "target/cpus.h"

#define CPUS_INTERVAL (NSEC_PER_SEC / 20) /* how often the CPUs online are read */
#define CPUS_LINGER   (10 * NSEC_PER_SEC) /* they have clocks until so long after a birth */
#define GROWN_UP      (NSEC_PER_SEC / 2)  /* a thread of that age gets a clock of its own */

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

static int poll_cpus(struct collector *c, uint64_t now, struct err *err)
{
	const bool needed = now < c->cpus_until_ns;

	if (needed == c->cpus_clocked && (!needed || now - c->cpus_ns < CPUS_INTERVAL))
		return 0;
	c->cpus_ns = now;
	return set_cpus(c, needed, err);
}

/* ---- clocks of threads ---- */

/* Thread @tid of @p, with the CPU time that it has had if none of that was sampled. */
static int find_thread(struct collector *c, struct tracked_process *p, pid_t tid,
		       struct tracked_thread **ret)
{
	struct tracked_thread *t;
	bool is_new;
	int r;

	r = process_table_thread(&c->table, p, tid, &t, &is_new);
	if (r)
		return r;
	if (is_new)
		thread_name(p->pid, tid, t->comm);
	if (!t->has_base)
		thread_cpu_ns(tid, &t->cpu_base);
	t->has_base = true;
	*ret = t;
	return 0;
}

static int add_clock(struct collector *c, struct tracked_thread *t, struct err *err)
{
	int r;

	if (t->has_clock || t->ended_ns)
		return 0;
	r = engine_add_thread(c->engine, t->tid, err);
	t->has_clock = !r;
	if (r != -ESRCH)
		return r;
	t->ended_ns = clock_ns(CLOCK_MONOTONIC);
	return 0;
}

void clocks_thread_ended(struct collector *c, struct tracked_thread *t)
{
	if (t->has_clock)
		engine_remove_thread(c->engine, t->tid);
	t->has_clock = false;
}

void clocks_remove(struct collector *c, struct tracked_process *p)
{
	struct tracked_thread *t;

	LIST_FOREACH(t, &p->thread_list, link)
		clocks_thread_ended(c, t);
}

/* There are no descriptors left for clocks of its threads, of which it may have very many. */
static void leave_to_cpus(struct collector *c, struct tracked_process *p)
{
	clocks_remove(c, p);
	p->left_to_cpus = true;
	engine_set_clocked(c->engine, p->pid, 0);
	need_cpus(c, UINT64_MAX);
}

/*
 * Clocks for the threads that @p has now. What begins after @now has none: it may be in the list,
 * or not.
 */
static int add_threads(struct collector *c, struct tracked_process *p, struct err *err)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct tracked_thread *t;
	bool refused = false;
	size_t n = 0, i;
	pid_t *tids;
	int r = 0;

	if (p->left_to_cpus || stop_overdue() || process_threads(p->pid, &tids, &n))
		return 0; /* or it has ended */
	p->unclocked_ns = 0;
	for (i = 0; i < n && !r && !stop_overdue(); i++) {
		r = find_thread(c, p, tids[i], &t);
		if (!r && !refused)
			r = add_clock(c, t, err);
		refused |= r == -EMFILE;
		r = r == -EMFILE ? 0 : r;
	}
	free(tids);
	if (refused)
		leave_to_cpus(c, p);
	else if (!r)
		engine_set_clocked(c->engine, p->pid, now);
	return r == -ENOMEM ? err_oom(err) : r;
}

static int add_all_threads(struct collector *c, struct err *err)
{
	struct tracked_process *p;
	int r = 0;

	if (!c->any_needs_clocks)
		return 0;
	c->any_needs_clocks = false;
	LIST_FOREACH(p, &c->table.list, link) {
		if (!p->needs_clocks || r)
			continue;
		p->needs_clocks = false;
		r = add_threads(c, p, err);
	}
	return r;
}

static void need_clocks(struct collector *c, struct tracked_process *p)
{
	p->needs_clocks = c->any_needs_clocks = !c->opts.system_wide;
}

/* ---- when ---- */

int clocks_begin(struct collector *c, struct err *err)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct tracked_process *p;

	need_cpus(c, c->opts.system_wide ? UINT64_MAX : now + CPUS_LINGER);
	LIST_FOREACH(p, &c->table.list, link)
		need_clocks(c, p);
	return clocks_poll(c, now, err);
}

void clocks_note_birth(struct collector *c, struct tracked_process *p, uint64_t ts)
{
	if (c->opts.system_wide)
		return;
	if (!p->unclocked_ns)
		p->unclocked_ns = ts;
	need_cpus(c, ts + CPUS_LINGER);
}

void clocks_note_exec(struct collector *c, struct tracked_process *p)
{
	clocks_remove(c, p);
	need_clocks(c, p);
}

void clocks_note_age(struct collector *c, uint64_t now)
{
	struct tracked_process *p;

	LIST_FOREACH(p, &c->table.list, link)
		if (p->unclocked_ns && !p->ended_ns && now > p->unclocked_ns + GROWN_UP)
			need_clocks(c, p);
}

int clocks_poll(struct collector *c, uint64_t now, struct err *err)
{
	int r = poll_cpus(c, now, err);

	return r ? r : add_all_threads(c, err);
}
