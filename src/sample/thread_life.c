/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The threads of what is followed: which of them have perf events, and what CPU time they have had.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/stop.h"
#include "profile/sink.h"
#include "sample/collector_state.h"
#include "engine/engine.h"

/* ---- CPU time ---- */

int life_account(struct collector *c, struct tracked_thread *t, uint64_t runtime)
{
	if (runtime < t->cpu_base + t->cpu_ns)
		return 0;
	c->account_ns += runtime - t->cpu_base - t->cpu_ns;
	t->cpu_ns = runtime - t->cpu_base;
	return t->id == PROFILE_NONE ? 0 : sink_thread_cpu(c->sink, t->id, t->cpu_ns);
}

/*
 * Call @take for each thread that now lives of what is followed, or of @pid alone if it is not 0.
 */
static int each_task(struct collector *c, pid_t pid,
		     int (*take)(struct collector *c, struct tracked_thread *t, uint64_t runtime))
{
	_cleanup_free_ struct rbpf_task *tasks = NULL;
	struct tracked_process *p;
	struct tracked_thread *t;
	size_t i, n = 0;
	bool is_new;
	int r;

	r = engine_read_threads(c->engine, pid, &tasks, &n, NULL);
	for (i = 0; i < n && !r; i++) {
		p = process_table_find(&c->table, (pid_t)tasks[i].tgid);
		if (!p)
			continue;
		r = process_table_thread(&c->table, p, (pid_t)tasks[i].tid, &t, &is_new);
		if (!r)
			r = take(c, t, tasks[i].runtime);
	}
	return r;
}

static int begin_account(struct collector *c, struct tracked_thread *t, uint64_t runtime)
{
	(void)c;
	t->cpu_base = runtime;
	return 0;
}

int life_begin_account(struct collector *c, pid_t pid)
{
	return each_task(c, pid, begin_account);
}

int life_finish_account(struct collector *c)
{
	return each_task(c, 0, life_account);
}

/* ---- perf events ---- */

/*
 * Open a perf event for thread @t of @p. *@refused counts those that there were no descriptors left
 * for.
 */
static int add_thread_event(struct collector *c, struct tracked_process *p,
			    struct tracked_thread *t, bool is_new, size_t *refused, struct err *err)
{
	int r;

	if (is_new) {
		thread_cpu_ns(t->tid, &t->cpu_base);
		thread_name(p->pid, t->tid, t->comm);
	}
	r = engine_add_thread(c->engine, t->tid, err);
	t->refused = r == -EMFILE;
	*refused += t->refused;
	if (t->refused)
		return 0;
	/*
	 * Again: with the first thread programs are attached, which takes some tenths of a second.
	 * Other threads may be known from then on, by their waits, and have no base at all.
	 */
	if (!t->cpu_ns)
		thread_cpu_ns(t->tid, &t->cpu_base);
	t->event_ns = clock_ns(CLOCK_MONOTONIC);
	if (r == -ESRCH)
		t->ended_ns = t->event_ns;
	return r == -ESRCH ? 0 : r;
}

/*
 * Perf events for those of the @n threads @tids of @p that were not asked for yet; *@added counts
 * them.
 */
static int add_thread_events(struct collector *c, struct tracked_process *p, const pid_t *tids,
			     size_t n, size_t *added, size_t *refused, struct err *err)
{
	struct tracked_thread *t;
	bool is_new;
	size_t i;
	int r = 0;

	*added = 0;
	for (i = 0; i < n && !r && !stop_overdue(); i++) {
		r = process_table_thread(&c->table, p, tids[i], &t, &is_new);
		if (r || t->event_ns || t->refused || t->ended_ns)
			continue;
		r = add_thread_event(c, p, t, is_new, refused, err);
		++*added;
	}
	return r;
}

static void warn_of_threads(struct collector *c, pid_t pid, size_t refused, size_t n)
{
	char text[160];

	c->totals.counters[COUNTER_THREADS_LEFT_OUT] += refused;
	if (!refused || !c->opts.warn || c->warnings++ >= MAX_WARNINGS)
		return;
	snprintf(text, sizeof(text),
		 "pid %d: %zu of its %zu threads are not sampled: the limit of open files (ulimit "
		 "-n) is reached",
		 (int)pid, refused, n);
	c->opts.warn(c->opts.warn_arg, text);
}

/* All that has been reported so far, unless it is time to end. */
static int drain(struct collector *c, struct err *err)
{
	int r;

	do {
		r = collector_drain(c);
	} while (r > 0 && !stop_overdue());
	return r < 0 ? collector_fail(c, r, err) : 0;
}

/*
 * Threads created by a sampled thread inherit its perf event, so each thread must be given one
 * exactly if its creator had none. New threads are reported as soon as a process is followed
 * (life_handle_thread()): after a list was read, the reports of all that are in it are taken first.
 * The list is read again until it holds nothing new.
 */
static int add_threads(struct collector *c, pid_t pid, struct err *err)
{
	size_t n = 0, added = 0, refused = 0;
	struct tracked_process *p;
	pid_t *tids;
	int r = 0;

	do {
		if (stop_overdue() || process_threads(pid, &tids, &n))
			break; /* rbpf is to end, or the process has */
		r = drain(c, err);
		p = process_table_find(&c->table, pid);
		if (!r && p)
			r = add_thread_events(c, p, tids, n, &added, &refused, err);
		free(tids);
	} while (!r && p && added);
	warn_of_threads(c, pid, refused, n);
	return r == -ENOMEM ? err_oom(err) : r;
}

static struct tracked_process *find_without_events(const struct collector *c)
{
	struct tracked_process *p;

	LIST_FOREACH(p, &c->table.list, link)
		if (p->needs_events)
			return p;
	return NULL;
}

int life_add_events(struct collector *c, struct err *err)
{
	struct tracked_process *p;
	int r = 0;

	if (!c->any_needs_events)
		return 0;
	c->any_needs_events = false;
	/* Processes come and go meanwhile: it is looked for from the start each time. */
	while (!r && (p = find_without_events(c))) {
		p->needs_events = false;
		r = add_threads(c, p->pid, err);
	}
	return r;
}

bool life_had_event(struct collector *c, struct tracked_process *p, pid_t tid, uint64_t ts)
{
	struct tracked_thread *t;
	bool is_new;

	return p && !process_table_thread(&c->table, p, tid, &t, &is_new) && t->event_ns &&
	       t->event_ns < ts;
}

/*
 * Whether no perf event could be opened for thread @tid of @p, so that threads it creates inherit
 * none.
 */
static bool was_refused(struct collector *c, struct tracked_process *p, pid_t tid)
{
	struct tracked_thread *t;
	bool is_new;

	return !process_table_thread(&c->table, p, tid, &t, &is_new) && t->refused;
}

int life_handle_thread(struct collector *c, const struct rbpf_ring_life *rec)
{
	struct tracked_process *p = process_table_find(&c->table, (pid_t)rec->h.tgid);
	bool has_event = life_had_event(c, p, (pid_t)rec->h.tid, rec->h.ts);
	struct tracked_thread *t;
	bool is_new;
	int r;

	if (!p)
		return 0;
	r = process_table_thread(&c->table, p, (pid_t)rec->child, &t, &is_new);
	if (!r && !is_new && t->ended_ns) { /* the id is used again */
		process_table_remove_thread(&c->table, p, t);
		r = process_table_thread(&c->table, p, (pid_t)rec->child, &t, &is_new);
	}
	if (!r && has_event)
		t->event_ns = rec->h.ts;
	else if (!r && was_refused(c, p, (pid_t)rec->h.tid))
		p->needs_events = c->any_needs_events = true;
	return r;
}
