/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What user space was not told of: the ring was full when a process was forked or executed a
 * program, or the kernel left the program out that tells of an exec.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/stop.h"
#include "engine/engine.h"
#include "sample/collector_state.h"
#include "target/process.h"

/* ---- processes whose samples are the only sign of them ---- */

/* They may be many, and are looked at while the ring is drained: a fifth of the time at most. */
#define LOOK_PAUSE 4 /* times what the look before took */

/* It was forked by a target, or by a descendant of one, and is followed as those are. */
static int follow_descendant(struct collector *c, pid_t pid)
{
	struct tracked_process *p;
	int r = life_add(c, pid, 0, true, &p, NULL);

	if (r)
		return r == -ENOMEM ? r : 0;
	r = life_record(c, p);
	return r ? r : life_begin_account(c, pid);
}

int unknown_look(struct collector *c, pid_t pid)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	int r;

	if (!c->totals.counters[RBPF_CNT_LOST_LIFE] || now < c->unknown_next_ns || stop_overdue())
		return 0;
	r = c->opts.system_wide ? system_wide_consider(c, pid) : follow_descendant(c, pid);
	/* Nothing for us: it is not to come again. */
	if (!r && !process_table_find(&c->table, pid))
		engine_forget(c->engine, pid);
	c->unknown_next_ns = now + (clock_ns(CLOCK_MONOTONIC) - now) * (1 + LOOK_PAUSE);
	return r;
}

/* ---- programs that were executed ---- */

/* Reading what all processes are takes some ms for each thousand. */
#define SEARCH_PAUSE (5 * NSEC_PER_SEC)

/* If @p runs another program than it did, it has executed that; when is not known. */
static int notice_exec(struct collector *c, struct tracked_process *p, uint64_t now)
{
	const struct rbpf_ring_life rec = { .h.ts = now,
					    .h.tgid = (uint32_t)p->pid,
					    .h.tid = (uint32_t)p->pid,
					    .child = (uint32_t)p->pid };
	struct tracked_thread *main_thread;
	uint64_t main_top;

	if (p->ended_ns || !p->info.main_top || process_ended(&p->info))
		return 0;
	main_top = process_main_top(p->pid);
	if (!main_top || main_top == p->info.main_top)
		return 0;
	/* The engine is to forget what it was told of it, whenever that was. */
	p->told_ns = now;
	/* If another thread has executed it, that has this id now. */
	main_thread = process_table_find_thread(p, p->pid);
	if (main_thread && main_thread->ended_ns)
		life_forget_thread(c, p, main_thread);
	begun_note(c, now);
	return collector_note_full(c, life_handle_exec(c, &rec), 0);
}

/* Which processes have executed a program. */
static int notice_execs(struct collector *c, uint64_t now)
{
	struct tracked_process *p, *next;
	int r = 0;

	for (p = LIST_FIRST(&c->table.list); p && !r; p = next) {
		next = LIST_NEXT(p, link);
		r = notice_exec(c, p, now);
	}
	return r;
}

int unknown_search(struct collector *c, uint64_t now)
{
	const uint64_t lost = c->totals.counters[RBPF_CNT_LOST_LIFE];
	const uint64_t missed = c->totals.counters[RBPF_CNT_MISSED_EXEC];
	const bool any_lost = lost != c->lost_lives;
	int r;

	if ((!any_lost && missed == c->missed_execs) || now - c->searched_ns < SEARCH_PAUSE)
		return 0;
	c->lost_lives = lost;
	c->missed_execs = missed;
	c->searched_ns = now;
	r = notice_execs(c, now);
	return r || !any_lost ? r : clocks_search(c, now);
}
