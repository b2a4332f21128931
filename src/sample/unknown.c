/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Processes that the BPF programs follow and user space was not told of: the ring was full when
 * they were forked or executed a program. Their samples are the only sign of them.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/stop.h"
#include "engine/engine.h"
#include "sample/collector_state.h"

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

	if (!life_lost(c) || now < c->unknown_next_ns || stop_overdue())
		return 0;
	r = c->opts.system_wide ? system_wide_consider(c, pid) : follow_descendant(c, pid);
	/* Nothing for us: it is not to come again. */
	if (!r && !process_table_find(&c->table, pid))
		engine_forget(c->engine, pid);
	c->unknown_next_ns = now + (clock_ns(CLOCK_MONOTONIC) - now) * (1 + LOOK_PAUSE);
	return r;
}
