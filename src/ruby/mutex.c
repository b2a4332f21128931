/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/mutex.h"

#include <errno.h>
#include <stddef.h>

#include "rbpf_abi.h"
#include "ruby/object.h"
#include "ruby/vm.h"

#define MAX_WAITERS 1024 /* in the queue of a Mutex that are looked at, from its end */

int ruby_innermost_self(const struct ruby_vm *vm, uint64_t ec, uint64_t *ret)
{
	uint64_t cfp;

	if (memory_read_u64(&vm->mem, ec + RUBY_EC_CFP * 8, &cfp) || !ruby_is_object(cfp))
		return -EFAULT;
	return memory_read_u64(&vm->mem, cfp + offsetof(struct ruby_control_frame, self), ret);
}

int ruby_monitor_mutex(const struct ruby_vm *vm, uint64_t monitor, uint64_t *ret)
{
	uint64_t data = 0, mutex, unused;
	int r;

	r = ruby_data_of(vm, monitor, &data);
	if (!r)
		r = memory_read_u64(&vm->mem, data + RUBY_MONITOR_MUTEX, &mutex);
	if (!r)
		r = ruby_data_of(vm, mutex, &unused);
	if (!r)
		*ret = mutex;
	return r;
}

/* The thread of fiber @fiber. */
static int thread_of_fiber(const struct ruby_vm *vm, uint64_t fiber, uint64_t *ret)
{
	const struct ruby_layout *l = &vm->layout;

	if (!ruby_layout_has(l->fiber_ec))
		return -EINVAL;
	return memory_read_u64(&vm->mem, fiber + l->fiber_ec + l->ec_thread_ptr, ret);
}

/* @words: the first of rb_mutex_t, thread_sync.c, see enum ruby_mutex_form. */
static int owner_in(const struct ruby_vm *vm, const uint64_t words[2], uint64_t *ret)
{
	uint64_t owner;

	if (!words[0])
		return -ENOENT;
	owner = words[vm->rules.mutex_form == RUBY_MUTEX_SERIAL];
	if (!ruby_is_object(owner))
		return -EINVAL;
	if (vm->rules.mutex_form != RUBY_MUTEX_FIBER) {
		*ret = owner;
		return 0;
	}
	return thread_of_fiber(vm, owner, ret);
}

int ruby_mutex_owner(const struct ruby_vm *vm, uint64_t mutex, uint64_t *ret)
{
	uint64_t data = 0, words[2];
	int r;

	r = ruby_data_of(vm, mutex, &data);
	if (!r)
		r = memory_read(&vm->mem, data, words, sizeof(words));
	return r ? r : owner_in(vm, words, ret);
}

/* Whether @th is in the queue with this @head, whose last node is @last, as lock.bpf.h has it. */
static bool queue_has(const struct ruby_vm *vm, uint64_t head, uint64_t last, uint64_t th)
{
	struct {
		uint64_t waiter[3]; /* struct sync_waiter before its node: one is the thread */
		struct ruby_list_node node;
	} n;
	uint64_t at = head;

	for (size_t i = 0; i < MAX_WAITERS && last != head; i++) {
		if (memory_read(&vm->mem, last - sizeof(n.waiter), &n, sizeof(n)) ||
		    n.node.next != at)
			return false;
		if (n.waiter[0] == th || n.waiter[1] == th || n.waiter[2] == th)
			return true;
		at = last;
		last = n.node.prev;
	}
	return false;
}

/* Whether @th waits for Mutex @object; then also which that is. */
static int waited_for(const struct ruby_vm *vm, uint64_t object, uint64_t th, uint64_t *mutex,
		      uint64_t *owner)
{
	uint64_t data = 0, words[5];
	int r;

	r = ruby_data_of(vm, object, &data);
	if (!r)
		r = memory_read(&vm->mem, data, words, sizeof(words));
	if (r)
		return r == -EFAULT ? r : -ENOENT;
	/* Behind the owner and the next Mutex of the owner; since 3.4 one word further on. */
	if (!queue_has(vm, data + 16, words[3], th) && !queue_has(vm, data + 24, words[4], th))
		return -ENOENT;
	*mutex = data;
	if (owner_in(vm, words, owner))
		*owner = 0;
	return 0;
}

int ruby_mutex_waited_for(const struct ruby_vm *vm, uint64_t ec, uint64_t th, uint64_t *mutex,
			  uint64_t *owner)
{
	uint64_t self = 0, inner = 0;
	int r;

	r = ruby_innermost_self(vm, ec, &self);
	if (r)
		return r;
	r = waited_for(vm, self, th, mutex, owner);
	if (r == -ENOENT && !ruby_monitor_mutex(vm, self, &inner))
		r = waited_for(vm, inner, th, mutex, owner);
	return r;
}
