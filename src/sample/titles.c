/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/titles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/stop.h"
#include "sample/collector_state.h"
#include "sample/thread_context.h"
#include "target/maps.h"
#include "target/memory.h"
#include "target/otel_context.h"
#include "target/process.h"
#include "worker/file_worker.h"

#define LOOK_USUAL (10 * NSEC_PER_MSEC) /* CPU time that reading attributes takes, at most */
#define PAUSE_MIN  NSEC_PER_SEC	       /* before attributes are read again; doubled each time … */
#define PAUSE_MAX  (64 * NSEC_PER_SEC) /* … up to this */

/* CPU time of rbpf and of the worker that reads files for it. */
static uint64_t cpu_ns(const struct collector *c)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) + file_worker_cpu_ns(c->opts.worker);
}

/*
 * What a process has withdrawn stays, as does what could not be read again: it is no less its own.
 * Returns 0 or -ENOMEM.
 */
static int read_attributes(struct tracked_process *p, const struct maps *maps, bool *changed)
{
	const struct memory mem = memory_process(p->pid);
	struct buf text _cleanup_buf_ = BUF_INIT;
	int r;

	r = otel_context_read(&mem, maps, &text);
	if (r || !text.len || (p->attributes && !strcmp(p->attributes, text.data)))
		return r == -ENOMEM ? r : 0;
	free(p->attributes);
	p->attributes = text.data;
	text = (struct buf)BUF_INIT;
	*changed = true;
	return 0;
}

/* The attributes of @p, and if they say that there are contexts of threads, where these are. */
static int look(struct collector *c, struct tracked_process *p, bool *changed)
{
	struct maps maps = MAPS_INIT;
	int r;

	if (maps_read(p->pid, &maps, NULL))
		return 0;
	r = read_attributes(p, &maps, changed);
	if (!r && !thread_context_is_known(p) && thread_context_is_published(p->attributes))
		r = thread_context_look(c, p, &maps);
	maps_deinit(&maps);
	return r;
}

/* What looking takes more than is usual counts as the user's. */
static int look_on_account(struct collector *c, struct tracked_process *p, bool *changed)
{
	struct user *user = users_get(&c->users, p->info.context.uid);
	const uint64_t now = clock_ns(CLOCK_MONOTONIC), begin = cpu_ns(c);
	uint64_t took;
	int r;

	/* It was not looked at: that is not put off further each time. */
	if (!p->vm || !user_may_spend(user, now)) {
		p->look_pause = PAUSE_MIN;
		p->look_ns = now + PAUSE_MIN;
		return 0;
	}
	r = look(c, p, changed);
	took = cpu_ns(c) - begin;
	if (took > LOOK_USUAL)
		user_spent(user, clock_ns(CLOCK_MONOTONIC), took - LOOK_USUAL);
	return r;
}

static int read_again(struct collector *c, struct tracked_process *p)
{
	bool changed, published = false;
	int r;

	if (p->ended_ns || p->id == PROFILE_NONE)
		return 0;
	r = process_read_title(&p->info, &changed);
	if (!r)
		r = look_on_account(c, p, &published);
	return r || !(changed || published) ? r : life_record(c, p);
}

int titles_note_sample(struct collector *c, struct tracked_process *p)
{
	bool changed;
	int r;

	if (p->sampled_ns == p->since_ns || p->titled_ns == p->since_ns || p->ended_ns ||
	    p->id == PROFILE_NONE)
		return 0;
	p->sampled_ns = p->since_ns;
	r = process_read_title(&p->info, &changed);
	return r || !changed ? r : life_record(c, p);
}

/* Whether @p is to be looked at now. */
static bool is_due(struct tracked_process *p, uint64_t now)
{
	if (p->titled_ns != p->since_ns) {
		if (now < p->since_ns + NSEC_PER_SEC)
			return false;
		p->titled_ns = p->since_ns;
		p->look_pause = PAUSE_MIN;
	} else if (now < p->look_ns || thread_context_is_known(p)) {
		return false;
	}
	p->look_ns = now + p->look_pause;
	p->look_pause = p->look_pause * 2 < PAUSE_MAX ? p->look_pause * 2 : PAUSE_MAX;
	return true;
}

int titles_poll(struct collector *c, uint64_t now)
{
	struct tracked_process *p;
	int r = 0;

	LIST_FOREACH(p, &c->table.list, link) {
		if (p->ended_ns || !is_due(p, now))
			continue;
		r = read_again(c, p);
		if (r)
			break;
	}
	return r;
}

int titles_at_end(struct collector *c)
{
	struct tracked_process *p;
	int r = 0;

	LIST_FOREACH(p, &c->table.list, link) {
		if (r || stop_overdue())
			break;
		r = read_again(c, p);
	}
	return r;
}
