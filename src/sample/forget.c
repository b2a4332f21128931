/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/forget.h"

#include <malloc.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "native/native_stacks.h"
#include "profile/sink.h"
#include "sample/collector_state.h"
#include "symbol/resolver.h"

#define FORGET_PAUSE (NSEC_PER_SEC / 4)
#define STACKS_KEPT  (1u << 17)		 /* frames upon others: 20 bytes each; and for … */
#define STACKS_NS    (10 * NSEC_PER_SEC) /* … so long, if they do not become … */
#define STACKS_MOST  (1u << 20)		 /* … so many meanwhile */
#define MEMORY_ROOM  4 /* one part in so many of the limit is left for what comes until then */

static size_t names_bytes(const struct tracked_process *p)
{
	return p->resolver ? resolver_bytes(p->resolver) : 0;
}

static uint64_t memory_used(void)
{
	const struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* Forget the names of that user's processes which take most; false if there are none. */
static bool forget_largest_user(struct collector *c)
{
	struct user *largest = NULL, *u;
	struct tracked_process *p;
	size_t i;

	c->users.others.names = 0;
	for (i = 0; i < c->users.n; i++)
		c->users.v[i].names = 0;
	LIST_FOREACH(p, &c->table.list, link) {
		u = users_get(&c->users, p->info.context.uid);
		u->names += names_bytes(p);
	}
	for (i = 0; i < c->users.n; i++)
		if (!largest || c->users.v[i].names > largest->names)
			largest = &c->users.v[i];
	if (!largest || c->users.others.names > largest->names)
		largest = &c->users.others;
	if (!largest->names)
		return false;
	LIST_FOREACH(p, &c->table.list, link)
		if (users_get(&c->users, p->info.context.uid) == largest)
			tracked_process_forget_names(p);
	return true;
}

/* What the sink has forgotten is the parent of no new stack. */
static void forget_pushed(struct collector *c)
{
	struct tracked_process *p;

	LIST_FOREACH(p, &c->table.list, link)
		tracked_process_forget_pushed(p);
}

void forget_many_stacks(struct collector *c)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!sink_forget_stacks(c->sink,
				now - c->forgot_stacks_ns < STACKS_NS ? STACKS_MOST : STACKS_KEPT))
		return;
	c->forgot_stacks_ns = now;
	forget_pushed(c);
}

/*
 * What the sink has taken once comes first, which costs only its writing it again; then names of
 * the users that take most, those of native frames, and stacks. If all that does not help, it is
 * the processes themselves.
 */
void forget_over_limit(struct collector *c)
{
	const uint64_t limit = c->opts.memory_limit, goal = limit - limit / MEMORY_ROOM;
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t used = memory_used();

	c->unchecked = 0;
	if (!limit || used < goal)
		c->memory_full = false;
	if (!limit || used < goal || (used < limit && now - c->forgot_ns < FORGET_PAUSE))
		return;
	c->forgot_ns = now;
	sink_forget(c->sink);
	forget_pushed(c);
	while ((used = memory_used()) >= goal && forget_largest_user(c))
		;
	if (used >= goal && c->native && !native_forget(c->native))
		stack_table_forget_native(&c->stacks);
	if (used >= goal && memory_used() >= goal)
		stack_table_forget(&c->stacks);
	if (used >= goal)
		engine_forget_stacks(c->engine);
	malloc_trim(0);
	c->memory_full = memory_used() >= limit;
}

void forget_old_names(struct collector *c, uint64_t now)
{
	struct tracked_process *p;

	LIST_FOREACH(p, &c->table.list, link)
		if (names_age_over(&p->names_age, names_bytes(p), NAMES_ROOM, now))
			tracked_process_forget_names(p);
	if (c->native &&
	    names_age_over(&c->native_age, native_names_memory(c->native), NAMES_ROOM_ALL, now))
		native_renew_names(c->native);
	if (!names_age_over(&c->told_age, sink_bytes(c->sink), NAMES_ROOM_ALL, now))
		return;
	sink_forget(c->sink);
	forget_pushed(c);
}
