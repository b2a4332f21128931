/* SPDX-License-Identifier: GPL-2.0-only */
#include "dump/locks.h"

#include <string.h>

#include "base/array.h"
#include "dump/dump.h"
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

uint64_t locks_waited_for(const struct ruby_vm *vm, const struct dump_doing *doing, uint64_t self)
{
	uint64_t mutex;

	for (size_t i = 0; doing->method && i < ARRAY_SIZE(methods); i++) {
		if (strcmp(doing->method, methods[i].label))
			continue;
		if (!methods[i].monitor)
			return self;
		return ruby_monitor_mutex(vm, self, &mutex) ? 0 : mutex;
	}
	return 0;
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
