/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/mutex.h"

#include <errno.h>
#include <stddef.h>

#include "ruby/object.h"
#include "ruby/vm.h"

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

/* rb_mutex_t, thread_sync.c: its first words, see enum ruby_mutex_form. */
int ruby_mutex_owner(const struct ruby_vm *vm, uint64_t mutex, uint64_t *ret)
{
	uint64_t data = 0, words[2], owner;
	int r;

	r = ruby_data_of(vm, mutex, &data);
	if (!r)
		r = memory_read(&vm->mem, data, words, sizeof(words));
	if (r)
		return r;
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
