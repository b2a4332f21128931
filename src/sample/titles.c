/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/titles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/stop.h"
#include "sample/collector_state.h"
#include "target/maps.h"
#include "target/memory.h"
#include "target/otel_context.h"
#include "target/process.h"

#define LOOK_USUAL (10 * NSEC_PER_MSEC) /* CPU time that reading attributes takes, at most */

/* The attributes of @p in *@out. Returns 0, -ENOMEM, or why they are not known. */
static int read_attributes(const struct tracked_process *p, struct buf *out)
{
	const struct memory mem = memory_process(p->pid);
	struct maps maps = MAPS_INIT;
	int r;

	r = maps_read(p->pid, &maps, NULL);
	if (r)
		return r;
	r = otel_context_read(&mem, &maps, out);
	maps_deinit(&maps);
	return r == -ENOENT ? 0 : r;
}

/*
 * What a process has withdrawn stays, as does what could not be read again: it is no less its own. What
 * reading takes more than is usual counts as its user's.
 */
static int attributes_of(struct collector *c, struct tracked_process *p, bool *changed)
{
	struct buf text _cleanup_buf_ = BUF_INIT;
	struct user *user = users_get(&c->users, p->info.context.uid);
	const uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t took;
	int r;

	if (!p->vm || !user_may_spend(user, clock_ns(CLOCK_MONOTONIC)))
		return 0;
	r = read_attributes(p, &text);
	took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	if (took > LOOK_USUAL)
		user_spent(user, clock_ns(CLOCK_MONOTONIC), took - LOOK_USUAL);
	if (r || !text.len || (p->attributes && !strcmp(p->attributes, text.data)))
		return r == -ENOMEM ? r : 0;
	free(p->attributes);
	p->attributes = text.data;
	text = (struct buf)BUF_INIT;
	*changed = true;
	return 0;
}

static int read_again(struct collector *c, struct tracked_process *p)
{
	bool changed, published = false;
	int r;

	if (p->ended_ns || p->id == PROFILE_NONE)
		return 0;
	r = process_read_title(&p->info, &changed);
	if (!r)
		r = attributes_of(c, p, &published);
	return r || !(changed || published) ? r : life_record(c, p);
}

int titles_of_new(struct collector *c, uint64_t now)
{
	struct tracked_process *p;
	int r = 0;

	LIST_FOREACH(p, &c->table.list, link) {
		if (p->titled_ns == p->since_ns || now < p->since_ns + NSEC_PER_SEC)
			continue;
		p->titled_ns = p->since_ns;
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
