/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The Ruby of a process: looked for when the process is met, when it is seen using CPU, and in the
 * time after it began (begun.c), or that of the process which it was forked from.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/stop.h"
#include "engine/engine.h"
#include "native/native_stacks.h"
#include "ruby/vm.h"
#include "sample/collector_state.h"

#define TRY_AGAIN_MIN (5 * NSEC_PER_MSEC)
#define TRY_AGAIN_MAX NSEC_PER_SEC
#define ATTACH_USUAL                                                                               \
	(50 * NSEC_PER_MSEC) /* CPU time that a Ruby of an unknown file takes, at most */
#define ATTACH_PAUSE 20
#define JUST_BEGUN   (NSEC_PER_SEC / 2) /* so long it may be a script that soon ends */
#define MAX_REFUSALS 5			/* of one process */
#define NEVER	     UINT64_MAX

/* Take @vm, which is proven, for process @p. */
static void set_vm(struct collector *c, struct tracked_process *p, struct ruby_vm *vm)
{
	p->vm = vm;
	c->rubies++;
	if (!c->ruby_version[0])
		snprintf(c->ruby_version, sizeof(c->ruby_version), "%s", vm->binary.version);
}

/*
 * What was found in @p, for the next process that the same user starts of the same file. One preset
 * too many costs its process the first ticks, no more.
 */
static void keep_preset(struct collector *c, const struct tracked_process *p,
			const struct ruby_vm *vm)
{
	const struct rbpf_preset_key key = { .exe = p->exe, .uid = p->info.context.uid };
	struct user *user = users_get(&c->users, p->info.context.uid);
	bool is_new = intern_find(&c->presets, &key, sizeof(key), &(uint32_t) { 0 }) != 0;
	struct rbpf_layout preset;
	uint32_t id;

	if (p->info.context.uid == (uid_t)-1 || !ruby_vm_preset(vm, &preset) ||
	    (is_new && !user_may_add(user->presets, RBPF_MAX_PRESETS - c->presets.count)) ||
	    intern_add(&c->presets, &key, sizeof(key), &id, NULL))
		return;
	user->presets += is_new;
	engine_keep_preset(c->engine, &key, &preset);
}

static int attach_tasks(struct collector *c, struct tracked_process *p,
			const struct rbpf_task *tasks, size_t n_tasks, struct err *err)
{
	const struct ruby_attach_options opts = {
		.worker = c->opts.worker,
		.sources = c->opts.sources,
		.cache = &c->binaries,
		.uid = p->info.context.uid,
		.just_begun = clock_ns(CLOCK_MONOTONIC) - p->since_ns <= JUST_BEGUN,
		.tasks = tasks,
		.n_tasks = n_tasks,
	};
	struct ruby_vm *vm = calloc(1, sizeof(*vm));
	size_t i;
	int r;

	if (!vm)
		return err_oom(err);
	r = ruby_vm_attach(p->pid, &opts, vm, err);
	if (!r)
		r = engine_follow(c->engine, p->pid, &vm->walk, p->since_ns, err);
	p->told_ns = clock_ns(CLOCK_MONOTONIC);
	if (r) {
		ruby_vm_deinit(vm);
		free(vm);
		return r;
	}
	for (i = 0; i < n_tasks && !p->exe.inode; i++)
		if (tasks[i].tgid == (uint32_t)p->pid)
			p->exe = tasks[i].exe;
	keep_preset(c, p, vm);
	set_vm(c, p, vm);
	/*
	 * A wait that began before keeps no Ruby stack, and may end before the next time when waits
	 * that go on are told: it is told now, and its thread walked (waits.c). If that fails, it
	 * is told then: the Ruby is found all the same.
	 */
	if (p->since_ns)
		engine_open_waits(c->engine, p->pid, 0, NULL);
	return p->native ? native_process_read_map(p->native, vm) : 0;
}

int find_ruby(struct collector *c, struct tracked_process *p, const struct rbpf_task *tasks,
	      size_t n_tasks, struct err *err)
{
	_cleanup_free_ struct rbpf_task *own = NULL;
	int r = 0;

	if (!tasks)
		r = engine_read_threads(c->engine, p->pid, &own, &n_tasks, err);
	return r ? r : attach_tasks(c, p, tasks ? tasks : own, n_tasks, err);
}

/*
 * A Ruby that cannot be walked. One that is busy may fail a proof by chance, so it is not given up
 * at once. Whoever asked for that process was told; system-wide it is a warning.
 */
static void refuse(struct collector *c, struct tracked_process *p, const struct err *err)
{
	snprintf(c->refused, sizeof(c->refused), "%s", err->msg);
	if (++p->refusals < MAX_REFUSALS)
		return;
	p->next_try = NEVER;
	if (c->opts.system_wide && c->opts.warn && c->warnings++ < MAX_WARNINGS)
		c->opts.warn(c->opts.warn_arg, err->msg);
}

/*
 * As find_ruby(). What it takes more than is usual counts as its user's, and it is not tried
 * again before so many times as long.
 */
static int attach_on_account(struct collector *c, struct tracked_process *p,
			     const struct rbpf_task *tasks, size_t n_tasks, struct err *err)
{
	const uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t took, now;
	int r;

	r = find_ruby(c, p, tasks, n_tasks, err);
	took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	if (took <= ATTACH_USUAL)
		return r;
	now = clock_ns(CLOCK_MONOTONIC);
	user_spent(users_get(&c->users, p->info.context.uid), now, took - ATTACH_USUAL);
	p->next_try = now + took * ATTACH_PAUSE;
	return r;
}

int find_ruby_try(struct collector *c, struct tracked_process *p, const struct rbpf_task *tasks,
		  size_t n_tasks)
{
	struct err err = { 0 };
	int r;

	if (p->vm || p->next_try == NEVER ||
	    !user_may_spend(users_get(&c->users, p->info.context.uid), clock_ns(CLOCK_MONOTONIC)))
		return 0;
	r = attach_on_account(c, p, tasks, n_tasks, &err);
	if (!r)
		return c->sink ? life_record(c, p) : 0;
	if (r == -ENOMEM)
		return r;
	if (r != -EAGAIN && r != -ESRCH && r != -ENOENT && r != -EINTR)
		refuse(c, p, &err);
	else if (r == -ENOENT && !begun_just_before(p, clock_ns(CLOCK_MONOTONIC)))
		snprintf(c->refused, sizeof(c->refused), "%s", err.msg);
	return 0;
}

int find_ruby_try_again(struct collector *c, struct tracked_process *p)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (p->vm || now < p->next_try || stop_overdue())
		return 0;
	p->backoff = p->backoff && now - p->since_ns > JUST_BEGUN ? p->backoff * 2 : TRY_AGAIN_MIN;
	if (p->backoff > TRY_AGAIN_MAX)
		p->backoff = TRY_AGAIN_MAX;
	p->next_try = now + p->backoff;
	return find_ruby_try(c, p, NULL, 0);
}

int find_ruby_inherit(struct collector *c, struct tracked_process *p,
		      const struct tracked_process *parent)
{
	struct ruby_vm *vm;
	int r;

	if (!parent->vm)
		return 0;
	vm = calloc(1, sizeof(*vm));
	r = vm ? ruby_vm_fork(parent->vm, p->pid, vm) : -ENOMEM;
	if (!r)
		set_vm(c, p, vm);
	else
		free(vm);
	/* It has the same iseqs, until it frees some: what a sample says of them is proven anew. */
	if (!r)
		r = process_requests_add(p, c->engine, parent->requests.v, parent->requests.n);
	return r;
}
