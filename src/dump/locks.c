/* SPDX-License-Identifier: GPL-2.0-only */
#include "dump/locks.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "dump/dump.h"
#include "ruby/gvl.h"
#include "ruby/mutex.h"
#include "ruby/vm.h"
#include "target/process.h"

/* The methods that wait for a lock, which is their self. */
static const struct {
	const char *label;
	bool monitor;
} methods[] = {
	{ "Thread::Mutex#lock", false }, { "Thread::Mutex#synchronize", false },
	{ "Monitor#enter", true },	 { "Monitor#synchronize", true },
	{ "Monitor#mon_enter", true },	 { "Monitor#mon_synchronize", true },
};

/* The entry of @doing in methods[], ARRAY_SIZE(methods) if it has none. */
static size_t find_method(const struct dump_doing *doing)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(methods); i++)
		if (doing->method && !strcmp(doing->method, methods[i].label))
			break;
	return i;
}

uint64_t locks_waited_for(const struct ruby_vm *vm, const struct dump_doing *doing, uint64_t self)
{
	const size_t i = find_method(doing);
	uint64_t mutex;

	if (i == ARRAY_SIZE(methods))
		return 0;
	if (!methods[i].monitor)
		return self;
	return ruby_monitor_mutex(vm, self, &mutex) ? 0 : mutex;
}

bool locks_wake_waiters(const struct dump_doing *doing)
{
	return doing->waits_for_gvl || find_method(doing) < ARRAY_SIZE(methods);
}

/* Whether it has not run since it was read. */
static bool waits_still(const struct ruby_vm *vm, const struct dump_thread *t)
{
	struct thread_moment now;

	return !thread_look(vm->pid, t->tid, &now) && now.state == t->doing.state &&
	       now.switches == t->doing.switches;
}

static struct dump_thread *find_thread(const struct dump_threads *threads, uint64_t address)
{
	for (size_t i = 0; i < threads->n; i++)
		if (threads->v[i].thread == address)
			return &threads->v[i];
	return NULL;
}

void locks_find_owners(const struct ruby_vm *vm, struct dump_threads *threads)
{
	struct dump_thread *owner;
	uint64_t address = 0;

	for (size_t i = 0; i < threads->n; i++) {
		struct dump_thread *t = &threads->v[i];

		if (!t->mutex || ruby_mutex_owner(vm, t->mutex, &address))
			continue;
		owner = find_thread(threads, address);
		if (!owner || owner == t || !waits_still(vm, t))
			continue;
		t->owner = owner;
		owner->n_waiters++;
		owner->doing.idle = false;
	}
}

/* The GVL of a ractor, by where the VM keeps who holds it. */
struct gvl_held {
	uint64_t at;
	struct dump_thread *owner; /* NULL: nobody, or not known */
};

/* Note who holds the GVL of @t, unless that is noted; NULL if it is not known where that is. */
static struct gvl_held *find_gvl(const struct ruby_vm *vm, struct dump_threads *threads,
				 const struct dump_thread *t, struct gvl_held *gvls, size_t *n)
{
	const uint64_t at = t->thread ? ruby_gvl_owner_at(vm, t->thread) : 0;
	uint64_t owner;
	size_t i;

	for (i = 0; i < *n; i++)
		if (gvls[i].at == at)
			return &gvls[i];
	if (!at || memory_read_u64(&vm->mem, at, &owner))
		return NULL;
	gvls[*n] = (struct gvl_held) { .at = at,
				       .owner = owner ? find_thread(threads, owner) : NULL };
	return &gvls[(*n)++];
}

void locks_find_gvl_owners(const struct ruby_vm *vm, struct dump_threads *threads)
{
	_cleanup_free_ struct gvl_held *gvls = calloc(threads->n + 1, sizeof(*gvls));
	size_t i, n = 0;

	for (i = 0; gvls && i < threads->n; i++) {
		struct dump_thread *t = &threads->v[i];
		const struct gvl_held *g = find_gvl(vm, threads, t, gvls, &n);

		/* What it was given since it was read would contradict the rest. */
		if (!g || !g->owner || g->owner->doing.waits_for_gvl ||
		    (g->owner->doing.still && !waits_still(vm, g->owner)))
			continue;
		g->owner->holds_gvl = true;
		g->owner->doing.idle = false;
		if (t->doing.waits_for_gvl && waits_still(vm, t))
			t->gvl_owner = g->owner;
	}
}
