/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/collector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "profile/recorder.h"
#include "ruby/cache.h"
#include "ruby/vm.h"
#include "sample/process_table.h"
#include "sample/session.h"
#include "sample/stack_table.h"
#include "symbol/resolver.h"

#define TRY_AGAIN_MIN (5 * NSEC_PER_MSEC)
#define TRY_AGAIN_MAX NSEC_PER_SEC
#define HOUSEKEEPING  (NSEC_PER_SEC / 2)

struct collector {
	struct recorder *rec;
	struct session *session;
	struct process_table table;
	struct stack_table stacks;
	struct ruby_cache binaries;
	unsigned int sources;
	struct profile_totals totals;
	uint64_t reported_lost;
	uint64_t housekeeping_ns;
	size_t live, rubies;
	bool any_uncovered; /* of the processes */
	char ruby_version[64];
	char refused[512];
	int failed; /* sticky: an error that ends the recording */
};

int collector_new(unsigned int sources, struct collector **ret)
{
	struct collector *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->sources = sources;
	*ret = c;
	return 0;
}

void collector_free(struct collector *c)
{
	if (!c)
		return;
	process_table_deinit(&c->table);
	stack_table_deinit(&c->stacks);
	ruby_cache_deinit(&c->binaries);
	free(c);
}

void collector_set_session(struct collector *c, struct session *s)
{
	c->session = s;
}

static int fail(struct collector *c, int r, struct err *err)
{
	if (recorder_error(c->rec, err))
		return err ? err->code : r;
	if (r == -ENOMEM)
		return err_oom(err);
	return err_set(err, r, ERR_RUNTIME, "cannot record: %s", strerror(-r));
}

/* ---- processes ---- */

static int process_record(struct collector *c, struct tracked_process *p, bool is_new)
{
	struct profile_process def = {
		.pid = (uint32_t)p->pid,
		.parent = p->parent,
		.start_ticks = p->info.start_ticks,
		.exit_status = -1,
	};
	const char *exe = p->info.exe ? p->info.exe : "";
	const char *cmdline = p->info.cmdline ? p->info.cmdline : "";
	const char *version = p->vm ? p->vm->binary.version : "";
	int r;

	r = recorder_string(c->rec, exe, strlen(exe), &def.exe);
	if (!r)
		r = recorder_string(c->rec, cmdline, strlen(cmdline), &def.cmdline);
	if (!r)
		r = recorder_string(c->rec, version, strlen(version), &def.ruby_version);
	if (!r)
		r = is_new ? recorder_process(c->rec, &def, &p->id)
			   : recorder_process_update(c->rec, p->id, &def);
	return r;
}

/* Take @vm, which is proven, for process @p. */
static int process_set_vm(struct collector *c, struct tracked_process *p, struct ruby_vm *vm)
{
	p->vm = vm;
	c->rubies++;
	if (!c->ruby_version[0])
		snprintf(c->ruby_version, sizeof(c->ruby_version), "%s", vm->binary.version);
	return resolver_new(vm, &p->resolver);
}

/* Look for a Ruby in @p. Returns 0 when it was found, or why it was not. */
static int process_attach(struct collector *c, struct tracked_process *p, struct err *err)
{
	struct ruby_attach_options opts = { .sources = c->sources, .cache = &c->binaries };
	_cleanup_free_ struct rbpf_task *tasks = NULL;
	struct ruby_vm *vm;
	int r;

	r = session_tasks(c->session, &tasks, &opts.n_tasks, err);
	if (r)
		return r;
	opts.tasks = tasks;
	vm = calloc(1, sizeof(*vm));
	if (!vm)
		return err_oom(err);
	r = ruby_vm_attach(p->pid, &opts, vm, err);
	if (!r)
		r = session_follow(c->session, p->pid, &vm->walk, err);
	if (r) {
		ruby_vm_deinit(vm);
		free(vm);
		return r;
	}
	return process_set_vm(c, p, vm);
}

/* A process without a Ruby uses CPU: it may have one by now. Seldomer each time. */
static int process_try_again(struct collector *c, struct tracked_process *p, uint64_t now)
{
	struct err err = { 0 };
	int r;

	if (p->vm || p->ended || now < p->next_try)
		return 0;
	p->backoff = p->backoff ? p->backoff * 2 : TRY_AGAIN_MIN;
	if (p->backoff > TRY_AGAIN_MAX)
		p->backoff = TRY_AGAIN_MAX;
	p->next_try = now + p->backoff;
	r = process_attach(c, p, &err);
	if (!r)
		return process_record(c, p, false);
	if (r == -ENOMEM)
		return r;
	if (r != -EAGAIN && r != -ESRCH)
		snprintf(c->refused, sizeof(c->refused), "%s", err.msg);
	return 0;
}

/*
 * Sample the threads that process @index has now. Those that a sampled thread creates inherit its
 * clock, so each thread must be given one exactly if its creator had none: births are reported from
 * the moment a process is followed (take_thread()), and the list is read again until it holds
 * nothing new.
 */
static int add_threads(struct collector *c, size_t index, struct err *err)
{
	pid_t pid = c->table.processes[index].pid;
	struct tracked_thread *t;
	size_t i, n, added;
	bool is_new;
	pid_t *tids;
	int r;

	do {
		r = session_drain(c->session);
		if (r)
			return fail(c, r, err);
		if (process_threads(pid, &tids, &n))
			return 0; /* it has ended meanwhile: the loop of the command will notice */
		for (i = 0, added = 0; i < n && !r; i++) {
			r = process_table_thread(&c->table, &c->table.processes[index], tids[i], &t,
						 &is_new);
			if (r || t->covered_ns || t->ended)
				continue;
			if (is_new) {
				thread_cpu_ns(t->tid, &t->cpu_base);
				thread_name(pid, t->tid, t->comm);
			}
			r = session_add_thread(c->session, t->tid, err);
			t->ended = r == -ESRCH;
			if (t->ended)
				r = 0;
			t->covered_ns = clock_ns(CLOCK_MONOTONIC);
			added++;
		}
		free(tids);
	} while (!r && added);
	return r == -ENOMEM ? err_oom(err) : r;
}

int collector_add(struct collector *c, pid_t pid, bool must_be_ruby, struct err *err)
{
	struct process info = PROCESS_INIT;
	struct tracked_process *p;
	int r;

	r = process_open(pid, &info, err);
	if (r)
		return r;
	if (process_table_add(&c->table, pid, &p)) {
		process_close(&info);
		return err_oom(err);
	}
	p->info = info;
	c->live++;
	r = session_follow(c->session, pid, NULL, err);
	if (r)
		return r;
	r = process_attach(c, p, err);
	if (r == -ENOENT)
		process_not_ruby(&p->info, err);
	return (must_be_ruby || r == -ENOMEM) && r != -EAGAIN ? r : 0;
}

int collector_start(struct collector *c, struct recorder *rec, struct err *err)
{
	size_t i;
	int r = 0;

	c->rec = rec;
	for (i = 0; i < c->table.n_processes && !r; i++)
		r = process_record(c, &c->table.processes[i], true);
	if (r)
		return fail(c, r, err);
	for (i = 0; i < c->table.n_processes && !r; i++)
		r = add_threads(c, i, err);
	return r;
}

/* ---- records ---- */

/* Whether thread @tid of @p had a clock at @ts, for what it created then to inherit. */
static bool was_covered(struct collector *c, const struct tracked_process *p, pid_t tid,
			uint64_t ts)
{
	struct tracked_thread *t;
	bool is_new;

	return p && !process_table_thread(&c->table, p, tid, &t, &is_new) && t->covered_ns &&
	       t->covered_ns < ts;
}

static int take_thread(struct collector *c, const struct rbpf_rec_life *rec)
{
	struct tracked_process *p = process_table_find(&c->table, (pid_t)rec->h.tgid);
	bool covered = was_covered(c, p, (pid_t)rec->h.tid, rec->h.ts);
	struct tracked_thread *t;
	bool is_new;
	int r;

	if (!p)
		return 0;
	r = process_table_thread(&c->table, p, (pid_t)rec->child, &t, &is_new);
	if (r)
		return r;
	if (!is_new && t->ended) /* the id is used again */
		*t = (struct tracked_thread) {
			.process = t->process,
			.tid = t->tid,
			.id = PROFILE_NONE,
		};
	if (covered)
		t->covered_ns = rec->h.ts;
	return 0;
}

static int take_fork(struct collector *c, const struct rbpf_rec_life *rec)
{
	struct tracked_process *p, *parent = process_table_find(&c->table, (pid_t)rec->h.tgid);
	uint32_t parent_index = PROFILE_NONE;
	struct ruby_vm *vm = NULL;
	struct tracked_thread *t;
	bool covered, is_new;
	int r;

	if (process_table_find(&c->table, (pid_t)rec->child))
		return 0;
	if (parent)
		parent_index = (uint32_t)(parent - c->table.processes);
	covered = was_covered(c, parent, (pid_t)rec->h.tid, rec->h.ts);
	r = process_table_add(&c->table, (pid_t)rec->child, &p);
	if (r)
		return r;
	c->live++;
	parent = parent_index == PROFILE_NONE ? NULL : &c->table.processes[parent_index];
	if (process_open(p->pid, &p->info, NULL) && parent && parent->info.exe) {
		/* It has ended already; it was what its parent is. */
		p->info.exe = strdup(parent->info.exe);
		p->info.cmdline = strdup(parent->info.cmdline);
	}
	if (parent && parent->vm) {
		vm = calloc(1, sizeof(*vm));
		r = vm ? ruby_vm_fork(parent->vm, p->pid, vm) : -ENOMEM;
		if (!r)
			r = process_set_vm(c, p, vm);
		else
			free(vm);
	}
	if (parent)
		p->parent = parent->id;
	if (!r)
		r = process_record(c, p, true);
	if (!r)
		r = process_table_thread(&c->table, p, p->pid, &t, &is_new);
	if (!r && covered)
		t->covered_ns = rec->h.ts;
	else if (!r)
		p->uncovered = c->any_uncovered = true;
	return r;
}

static int take_exec(struct collector *c, const struct rbpf_rec_life *rec)
{
	struct tracked_process *p = process_table_find(&c->table, (pid_t)rec->h.tgid);
	struct process info = PROCESS_INIT;

	if (!p)
		return 0;
	tracked_process_drop_vm(p);
	p->next_try = p->backoff = 0;
	if (!process_open(p->pid, &info, NULL)) {
		process_close(&p->info);
		p->info = info;
	}
	return process_record(c, p, false);
}

static int take_exit(struct collector *c, const struct rbpf_rec_life *rec)
{
	struct tracked_process *p = process_table_find(&c->table, (pid_t)rec->h.tgid);
	struct tracked_thread *t;
	bool is_new;
	int r;

	if (!p)
		return 0;
	r = process_table_thread(&c->table, p, (pid_t)rec->h.tid, &t, &is_new);
	if (r)
		return r;
	t->ended = true;
	if (t->id != PROFILE_NONE && rec->runtime >= t->cpu_base)
		r = recorder_thread_cpu(c->rec, t->id, rec->runtime - t->cpu_base);
	if (!r && rec->last) {
		r = recorder_process_exit(c->rec, p->id, rec->h.ts, (int)rec->exit_code);
		process_table_end(&c->table, p);
		c->live--;
	}
	return r;
}

static int take_memory(struct collector *c, const struct rbpf_rec_memory *rec, size_t len)
{
	struct tracked_process *p = process_table_find(&c->table, (pid_t)rec->h.tgid);
	struct code_moment moment;

	if (len < sizeof(*rec) || len - sizeof(*rec) < rec->n_bytes)
		return -EPROTO;
	if (!p || !p->resolver)
		return 0;
	moment = (struct code_moment) { .gc_era = rec->gc_era,
					.unsettled = rec->flags & RBPF_STACK_UNSETTLED };
	return resolver_captured(p->resolver, &moment, rec + 1, rec->n_bytes);
}

static int take_stack(struct collector *c, const struct rbpf_rec_stack *rec, size_t len)
{
	struct tracked_process *p = process_table_find(&c->table, (pid_t)rec->h.tgid);

	/* None of a program that was replaced by exec meanwhile: its samples are [stack lost]. */
	if (!p || !p->resolver)
		return 0;
	return stack_table_define(&c->stacks, c->rec, p, rec, len);
}

/* The thread of a sample, made known to the recording when it is first seen. */
static int sample_thread(struct collector *c, const struct tracked_process *p,
			 const struct rbpf_rec_sample *rec, struct tracked_thread **ret)
{
	struct tracked_thread *t;
	uint32_t name;
	bool is_new;
	int r;

	r = process_table_thread(&c->table, p, (pid_t)rec->h.tid, &t, &is_new);
	if (r)
		return r;
	if (t->id == PROFILE_NONE || strncmp(t->comm, rec->comm, sizeof(t->comm))) {
		memcpy(t->comm, rec->comm, sizeof(t->comm));
		r = recorder_string(c->rec, t->comm, strnlen(t->comm, sizeof(t->comm)), &name);
		if (!r && t->id == PROFILE_NONE)
			r = recorder_thread(c->rec, p->id, (uint32_t)t->tid, name, &t->id);
		else if (!r)
			r = recorder_thread_name(c->rec, t->id, name);
	}
	*ret = t;
	return r;
}

static void count_sample(struct collector *c, const struct profile_sample *s)
{
	struct profile_totals *t = &c->totals;

	t->samples++;
	t->cpu_sampled_ns += s->weight;
	t->truncated += !!(s->flags & SAMPLE_TRUNCATED);
	t->unresolved += !!(s->flags & SAMPLE_UNRESOLVED);
	t->no_ruby += !!(s->flags & SAMPLE_NO_RUBY);
	t->failed += !!(s->flags & SAMPLE_FAILED);
	if (s->flags & SAMPLE_GC)
		t->gc_ns += s->weight;
}

static int take_sample(struct collector *c, const struct rbpf_rec_sample *rec)
{
	struct tracked_process *p = process_table_find(&c->table, (pid_t)rec->h.tgid);
	struct profile_sample sample = { .ts = rec->h.ts,
					 .weight = rec->weight,
					 .cpu = (uint16_t)rec->h.cpu };
	struct sample_stack stack;
	struct tracked_thread *t;
	int r;

	if (!p)
		return 0; /* ended: its exit was seen before this record of another CPU */
	r = sample_thread(c, p, rec, &t);
	if (r)
		return r;
	if (rec->status == RBPF_NO_RUBY)
		r = process_try_again(c, p, clock_ns(CLOCK_MONOTONIC));
	if (r)
		return r;

	r = stack_table_of_sample(&c->stacks, c->rec, rec, &stack);
	if (r)
		return r;
	sample.stack = stack.stack;
	sample.flags = stack.flags;
	if (rec->flags & RBPF_SAMPLE_KERNEL)
		sample.flags |= SAMPLE_KERNEL;
	sample.thread = t->id;
	count_sample(c, &sample);
	return recorder_sample(c->rec, &sample);
}

int collector_on_record(void *arg, const void *data, size_t len)
{
	const struct rbpf_rec_hdr *h = data;
	struct collector *c = arg;
	int r = 0;

	if (len < sizeof(*h))
		return -EPROTO;
	switch (h->type) {
	case RBPF_REC_SAMPLE:
		r = take_sample(c, data);
		break;
	case RBPF_REC_MEMORY:
		r = take_memory(c, data, len);
		break;
	case RBPF_REC_STACK:
		r = take_stack(c, data, len);
		break;
	case RBPF_REC_THREAD:
		r = take_thread(c, data);
		break;
	case RBPF_REC_FORK:
		r = take_fork(c, data);
		break;
	case RBPF_REC_EXEC:
		r = take_exec(c, data);
		break;
	case RBPF_REC_EXIT:
		r = take_exit(c, data);
		break;
	}
	if (r && !c->failed)
		c->failed = r;
	return r;
}

/* ---- the loop ---- */

/* What the kernel side could not send since the last look. */
static int record_lost(struct collector *c)
{
	uint64_t counters[RBPF_COUNTERS], lost;
	struct profile_lost def;

	session_counters(c->session, counters);
	lost = counters[RBPF_CNT_LOST_SAMPLE];
	if (lost == c->reported_lost)
		return 0;
	def = (struct profile_lost) { .ts = clock_ns(CLOCK_MONOTONIC),
				      .count = lost - c->reported_lost,
				      .reason = LOST_RING_FULL };
	c->reported_lost = lost;
	c->totals.lost = lost;
	return recorder_lost(c->rec, &def);
}

/* The exit of a process was not seen (the ring was full): notice it all the same. */
static void notice_ends(struct collector *c)
{
	size_t i;

	for (i = 0; i < c->table.n_processes; i++) {
		struct tracked_process *p = &c->table.processes[i];

		if (p->ended || process_alive(&p->info)) {
			p->missing = false;
			continue;
		}
		/* Its last records may be in the ring still: it is given until the next look. */
		if (!p->missing) {
			p->missing = true;
			continue;
		}
		recorder_process_exit(c->rec, p->id, clock_ns(CLOCK_MONOTONIC), -1);
		session_unfollow(c->session, p->pid);
		process_table_end(&c->table, p);
		c->live--;
	}
}

/*
 * Children that were forked while their parent was being attached to. Not while the ring is read.
 */
static int cover_children(struct collector *c, struct err *err)
{
	size_t i;
	int r = 0;

	while (c->any_uncovered && !r) {
		c->any_uncovered = false;
		for (i = 0; i < c->table.n_processes && !r; i++) {
			if (!c->table.processes[i].uncovered)
				continue;
			c->table.processes[i].uncovered = false;
			r = add_threads(c, i, err);
		}
	}
	return r;
}

static void new_round(struct collector *c)
{
	size_t i;

	for (i = 0; i < c->table.n_processes; i++)
		if (c->table.processes[i].resolver)
			resolver_round(c->table.processes[i].resolver);
}

int collector_poll(struct collector *c, struct err *err)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	int r;

	new_round(c);
	r = session_drain(c->session);
	if (!r)
		r = c->failed;
	if (!r && cover_children(c, err))
		return err->code;
	if (!r && now - c->housekeeping_ns >= HOUSEKEEPING) {
		c->housekeeping_ns = now;
		r = record_lost(c);
		notice_ends(c);
		if (!r)
			r = recorder_flush(c->rec, false);
	}
	return r ? fail(c, r, err) : 0;
}

void collector_status(const struct collector *c, struct collector_status *ret)
{
	*ret = (struct collector_status) {
		.processes = c->table.n_processes,
		.live = c->live,
		.rubies = c->rubies,
		.samples = c->totals.samples,
		.lost = c->totals.lost,
		.threads = c->table.n_threads,
	};
	snprintf(ret->refused, sizeof(ret->refused), "%s", c->refused);
}

const char *collector_ruby_version(const struct collector *c)
{
	return c->ruby_version;
}

/* The kernel's account of each thread that still lives. */
static int record_thread_cpu(struct collector *c)
{
	uint64_t cpu;
	size_t i;
	int r = 0;

	for (i = 0; i < c->table.n_threads && !r; i++) {
		const struct tracked_thread *t = &c->table.threads[i];

		if (t->ended || t->id == PROFILE_NONE || thread_cpu_ns(t->tid, &cpu) ||
		    cpu < t->cpu_base)
			continue;
		r = recorder_thread_cpu(c->rec, t->id, cpu - t->cpu_base);
	}
	return r;
}

int collector_finish(struct collector *c, struct profile_totals *totals, struct err *err)
{
	uint64_t runs, ns;
	int r;

	session_stop(c->session);
	c->totals.cpu_kernel_ns = session_cpu_ns(c->session);
	c->totals.end_monotonic_ns = clock_ns(CLOCK_MONOTONIC);
	new_round(c);
	r = session_drain(c->session);
	if (!r)
		r = c->failed;
	if (!r)
		r = record_lost(c);
	if (!r)
		r = record_thread_cpu(c);
	session_cost(c->session, &runs, &ns);
	c->totals.kernel_ns_per_sample = runs ? ns / runs : 0;
	c->totals.rbpf_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	*totals = c->totals;
	return r ? fail(c, r, err) : 0;
}
