/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/thread_ecs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "ruby/code.h"
#include "ruby/vm.h"
#include "target/dtv.h"

/*
 * A thread that goes from one fiber to the next all the time is met between two of them now and
 * then.
 */
#define EC_ATTEMPTS  8
#define SLOT_UNKNOWN (~0ull)
#define THREADS_MAX                                                                                \
	65536 /* threads of a 2.7; it is looked through seldom, and no tick waits for it */
#if defined(__x86_64__) /* glibc and musl */
#define THREAD_ID_IS_POINTER 1
#else
#define THREAD_ID_IS_POINTER 0
#endif

int ruby_thread_ecs_init(struct ruby_thread_ecs *e, const struct ruby_vm *vm,
			 const struct rbpf_task *tasks, size_t n)
{
	size_t i;

	*e = (struct ruby_thread_ecs) { 0 };
	e->tps = calloc(n + 1, sizeof(*e->tps));
	e->ecs = calloc(n + 1, sizeof(*e->ecs));
	e->slots = calloc(n + 1, sizeof(*e->slots));
	if (!e->tps || !e->ecs || !e->slots)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		if (tasks[i].tgid != (uint32_t)vm->pid || !tasks[i].thread_pointer)
			continue;
		e->slots[e->n_tps] = SLOT_UNKNOWN;
		e->tps[e->n_tps++] = tasks[i].thread_pointer;
	}
	return 0;
}

void ruby_thread_ecs_deinit(struct ruby_thread_ecs *e)
{
	free(e->tps);
	free(e->ecs);
	free(e->slots);
	*e = (struct ruby_thread_ecs) { 0 };
}

/* 2.7: the EC of the thread that held the VM's lock last. */
static void find_global_ec(struct ruby_thread_ecs *e, struct ruby_vm *vm)
{
	struct rbpf_layout *l = &vm->walk;
	uint64_t ec;

	l->ec_global = vm->binary.symbol[RUBY_SYM_ruby_current_execution_context_ptr];
	if (memory_read_u64(&vm->mem, l->ec_global, &ec))
		return;
	if (!ruby_is_ec(&vm->mem, ec, &e->shape)) {
		e->no_thread = ruby_has_vm_stack(&vm->mem, ec);
		return;
	}
	l->tls.model = RBPF_TLS_GLOBAL;
	e->ecs[e->n_ecs++] = ec;
	e->first_tp = e->tps[0];
	ruby_vm_check_add(vm, "execution context", true, true, "one for all threads, at 0x%llx",
			  (unsigned long long)l->ec_global);
}

/* Where the code reads the EC of thread @i from; 0: it does not tell. It is run once. */
static uint64_t slot_by_code(struct ruby_thread_ecs *e, const struct ruby_vm *vm, size_t i)
{
	struct ruby_code code;

	if (e->slots[i] == SLOT_UNKNOWN) {
		ruby_code_read(&vm->mem, &vm->binary, e->tps[i], &code);
		e->slots[i] = code.ec_slot;
	}
	return e->slots[i];
}

/*
 * The slot of thread @i, where its contents do not tell it from others: the code that reads it
 * does, if it lies in static TLS.
 */
static bool find_slot_by_code(struct ruby_thread_ecs *e, struct ruby_vm *vm, size_t i)
{
	const uint64_t tp = e->tps[i], slot = slot_by_code(e, vm, i);
	struct rbpf_layout *l = &vm->walk;
	uint64_t ec;

	if (!slot || slot - (tp - DTV_STATIC_MAX) >= 2 * DTV_STATIC_MAX ||
	    memory_read_u64(&vm->mem, slot, &ec))
		return false;
	if (!ruby_is_ec(&vm->mem, ec, &e->shape)) {
		e->no_thread |= ruby_has_vm_stack(&vm->mem, ec);
		return false;
	}
	l->tls.model = RBPF_TLS_STATIC;
	l->tls.offset = (int64_t)(slot - tp);
	return true;
}

static bool find_slot(struct ruby_thread_ecs *e, struct ruby_vm *vm, size_t i)
{
	enum ruby_tls_found found = ruby_tls_find(&vm->mem, e->tps[i], &e->shape, &vm->walk);

	if (found == RUBY_TLS_NONE && e->is_early)
		return false;
	return found == RUBY_TLS_FOUND || find_slot_by_code(e, vm, i);
}

/* The main thread comes first: it has an EC, unless a program embeds Ruby in another thread. */
static void find_tls_ecs(struct ruby_thread_ecs *e, struct ruby_vm *vm)
{
	struct rbpf_layout *l = &vm->walk;
	uint64_t ec;
	size_t i;

	for (i = 0; i < e->n_tps && !e->n_ecs; i++) {
		if (!find_slot(e, vm, i) || ruby_tls_read(&vm->mem, l, e->tps[i], &ec))
			continue;
		e->ecs[e->n_ecs++] = ec;
		e->first_tp = e->tps[i];
	}
	for (; e->n_ecs && i < e->n_tps; i++)
		if (!ruby_tls_read(&vm->mem, l, e->tps[i], &ec) &&
		    ruby_is_ec(&vm->mem, ec, &e->shape))
			e->ecs[e->n_ecs++] = ec;
	for (i = 0; i < e->n_tps && !e->n_ecs && !e->no_thread; i++)
		e->no_thread = ruby_tls_has_stack(&vm->mem, e->tps[i]);
	if (l->tls.model == RBPF_TLS_STATIC)
		ruby_vm_check_add(vm, "execution context", true, true,
				  "at thread pointer %+lld, static TLS", (long long)l->tls.offset);
	else if (l->tls.model == RBPF_TLS_DTV)
		ruby_vm_check_add(vm, "execution context", true, true,
				  "at offset %lld of TLS module %u, through the DTV",
				  (long long)l->tls.offset, l->tls.module);
}

/* Returns whether there may be one the next time: something was found that leads to no thread. */
static bool try_ecs(struct ruby_thread_ecs *e, struct ruby_vm *vm)
{
	memory_refresh(&vm->mem);
	e->no_thread = false;
	e->shape = (struct ruby_ec_shape) { 0 };
	if (e->n_tps && vm->binary.symbol[RUBY_SYM_ruby_current_execution_context_ptr])
		find_global_ec(e, vm);
	else
		find_tls_ecs(e, vm);
	return !e->n_ecs && e->no_thread;
}

int ruby_thread_ecs_find(struct ruby_thread_ecs *e, struct ruby_vm *vm, struct err *err)
{
	int attempt;

	for (attempt = 0; attempt < EC_ATTEMPTS && try_ecs(e, vm); attempt++)
		;
	if (e->n_ecs)
		return 0;
	ruby_vm_check_add(vm, "execution context", false, true,
			  e->no_thread ? "found, but it leads to no thread"
				       : "no thread of the process has one");
	if (e->no_thread)
		return err_set(
			err, -EAGAIN, ERR_TARGET,
			"cannot find out the memory layout of Ruby %s (yet): '%s' is unknown",
			vm->binary.version, ruby_field_info[RUBY_FIELD_th_ec].name);
	return err_set(err, -EAGAIN, ERR_TARGET,
		       "pid %d holds Ruby %s, but no thread of it runs Ruby code (yet)",
		       (int)vm->pid, vm->binary.version);
}

/* ---- once it is known where they are ---- */

void ruby_thread_ecs_refresh(struct ruby_thread_ecs *e, const struct ruby_vm *vm)
{
	const struct rbpf_layout *l = &vm->walk;
	struct ruby_ec_shape shape = e->shape;
	size_t i, n = 0;
	uint64_t ec;

	memory_refresh(&vm->mem);
	if (l->tls.model == RBPF_TLS_GLOBAL) {
		if (!memory_read_u64(&vm->mem, l->ec_global, &ec) &&
		    ruby_is_ec(&vm->mem, ec, &shape))
			e->ecs[0] = ec;
		return;
	}
	for (i = 0; i < e->n_tps; i++)
		if (!ruby_tls_read(&vm->mem, l, e->tps[i], &ec) && ruby_is_ec(&vm->mem, ec, &shape))
			e->ecs[n++] = ec;
	if (n)
		e->n_ecs = n;
}

/* 2.7: the rb_thread_t of those that the VM lists whose thread pointer is @tp; 0: none. */
static uint64_t find_in_list(const struct ruby_vm *vm, uint64_t tp)
{
	const uint64_t wanted = tp + (uint64_t)vm->walk.thread_id_bias;
	uint64_t node, id;
	size_t i;

	if (memory_read_u64(&vm->mem, vm->walk.threads, &node))
		return 0;
	for (i = 0; i < THREADS_MAX && node != vm->walk.threads; i++) {
		if (memory_read_u64(&vm->mem, node + vm->walk.th_thread_id, &id))
			return 0;
		if (id == wanted)
			return node;
		if (memory_read_u64(&vm->mem, node, &node))
			return 0;
	}
	return 0;
}

/*
 * 2.7: how thread_id (a pthread_t) and thread pointer relate, which is the C library's affair: the
 * same on x86_64, a constant apart on arm64. Learnt from one that some thread must have.
 */
int ruby_thread_ecs_match(const struct ruby_thread_ecs *e, struct ruby_vm *vm, struct err *err)
{
	uint64_t th, id;
	size_t i;

	if (vm->walk.tls.model != RBPF_TLS_GLOBAL)
		return 0;
	vm->walk.threads = vm->vm ? vm->vm + vm->layout.vm_living_threads : 0;
	if (memory_read_u64(&vm->mem, e->ecs[0] + vm->walk.ec_thread_ptr, &th) ||
	    memory_read_u64(&vm->mem, th + vm->walk.th_thread_id, &id))
		return err_set(err, -EPROTO, ERR_TARGET,
			       "cannot read the threads of Ruby %s in pid %d", vm->binary.version,
			       (int)vm->pid);
	for (i = 0; i < e->n_tps; i++) {
		vm->walk.thread_id_bias = (int64_t)(id - e->tps[i]);
		/* Threads' stacks lie at equal distances: another's pointer may fit, too. */
		if (THREAD_ID_IS_POINTER && vm->walk.thread_id_bias)
			continue;
		/* If it is the same, any thread of Ruby's will do; else it is the first. */
		if (find_in_list(vm, e->tps[THREAD_ID_IS_POINTER ? i : 0]))
			break;
	}
	ruby_vm_check_add(vm, "threads", i < e->n_tps, true, "thread_id is thread pointer %+lld",
			  (long long)vm->walk.thread_id_bias);
	if (i == e->n_tps)
		return err_set(
			err, -EPROTO, ERR_TARGET,
			"cannot match the threads of Ruby %s with those of pid %d: self-check "
			"failed at 'thread.thread_id'",
			vm->binary.version, (int)vm->pid);
	return 0;
}

int ruby_thread_ec(const struct ruby_vm *vm, uint64_t tp, uint64_t *ret)
{
	uint64_t th;

	if (vm->walk.tls.model != RBPF_TLS_GLOBAL)
		return ruby_tls_read(&vm->mem, &vm->walk, tp, ret);
	th = find_in_list(vm, tp);
	if (!th)
		return -ENOENT;
	return memory_read_u64(&vm->mem, th + vm->walk.th_ec, ret);
}
