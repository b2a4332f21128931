/* SPDX-License-Identifier: GPL-2.0-only */
/* The processes that are followed: when they begin, fork, execute another program and end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attributes.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "engine/engine.h"
#include "native/native_stacks.h"
#include "profile/sink.h"
#include "ruby/vm.h"
#include "sample/collector_state.h"
#include "sample/thread_context.h"
#include "target/selection.h"

#define ENDED_GRACE (2 * NSEC_PER_SEC) /* samples of a thread may come after its exit */

/* ---- what is known of a process ---- */

static int record_attributes(const struct collector *c, const char *attributes, uint32_t *ret)
{
	struct buf kept _cleanup_buf_ = BUF_INIT;

	if (!c->opts.program_only)
		return sink_string(c->sink, attributes, strlen(attributes), ret);
	attributes_without(attributes, "process.command_line", &kept);
	return buf_failed(&kept) ? -ENOMEM : sink_string(c->sink, buf_str(&kept), kept.len, ret);
}

int life_record(struct collector *c, struct tracked_process *p)
{
	struct profile_process def = {
		.pid = (uint32_t)p->pid,
		.start_ticks = p->info.start_ticks,
		.ns_pid = (uint32_t)p->info.context.ns_pid,
		.uid = p->info.context.uid,
		.exit_status = -1,
	};
	const char *cgroup = p->info.context.cgroup ? p->info.context.cgroup : "";
	const char *container = p->info.context.container ? p->info.context.container : "";
	const char *exe = p->info.exe ? p->info.exe : "";
	const char *cmdline = p->info.cmdline ? p->info.cmdline : "";
	const char *attributes = p->attributes ? p->attributes : "";
	const char *version = p->vm ? p->vm->binary.version : "";
	const struct tracked_process *parent = process_table_find(&c->table, p->info.ppid);
	int r;

	if (p->id == PROFILE_NONE && p->parent == PROFILE_NONE && parent)
		p->parent = parent->id;
	def.parent = p->parent;
	r = sink_string(c->sink, exe, strlen(exe), &def.exe);
	if (!r)
		r = sink_string(c->sink, cmdline,
				c->opts.program_only ? p->info.program_len : strlen(cmdline),
				&def.cmdline);
	if (!r)
		r = sink_string(c->sink, version, strlen(version), &def.ruby_version);
	if (!r)
		r = sink_string(c->sink, cgroup, strlen(cgroup), &def.cgroup);
	if (!r)
		r = sink_string(c->sink, container, strlen(container), &def.container);
	if (!r)
		r = record_attributes(c, attributes, &def.attributes);
	if (!r)
		r = p->id == PROFILE_NONE ? sink_process(c->sink, &def, &p->id)
					  : sink_process_update(c->sink, p->id, &def);
	return r;
}

void life_count_users(struct collector *c)
{
	struct tracked_process *p;
	size_t i;

	c->users.others.processes = 0;
	for (i = 0; i < c->users.n; i++)
		c->users.v[i].processes = 0;
	LIST_FOREACH(p, &c->table.list, link)
		if (!p->ended_ns)
			users_get(&c->users, p->info.context.uid)->processes++;
}

/* Why no more processes of @uid can be followed now; NULL if one more can. */
static const char *no_room_for(struct collector *c, uid_t uid)
{
	size_t left = c->live < RBPF_MAX_PROCS ? RBPF_MAX_PROCS - c->live : 0;

	if (c->memory_full)
		return "rbpf has used the memory that --memlimit allows";
	if (!left)
		return "rbpf already follows as many processes as it can";
	/* Those that ended stay until their last samples have come: they take memory, too. */
	if (c->table.n_processes >= 2 * RBPF_MAX_PROCS)
		return "rbpf still keeps too many processes that have ended";
	if (!user_may_add(users_get(&c->users, uid)->processes, left))
		return "rbpf already follows too many processes of the same user";
	return NULL;
}

/* Returns 0 if process @pid of @uid may be followed; if not it is counted, and -E2BIG. */
static int check_room(struct collector *c, pid_t pid, uid_t uid, struct err *err)
{
	const char *why = no_room_for(c, uid);

	if (!why)
		return 0;
	c->totals.counters[COUNTER_NOT_FOLLOWED]++;
	return err_set(err, -E2BIG, ERR_RUNTIME, "cannot follow pid %d: %s", (int)pid, why);
}

static int forget_process(struct collector *c, struct tracked_process *p)
{
	int r = samples_release(c, p);

	clocks_remove(c, p);
	process_requests_drop(p, c->engine);
	while (!LIST_EMPTY(&p->thread_list))
		life_forget_thread(c, p, LIST_FIRST(&p->thread_list));
	if (p->id != PROFILE_NONE)
		sink_process_gone(c->sink, p->id);
	process_table_remove(&c->table, p);
	return r;
}

/* @pid begins to be followed: an entry of that pid is of a process that has ended. */
static int new_process(struct collector *c, pid_t pid, uint64_t since_ns,
		       struct tracked_process **ret)
{
	struct tracked_process *p = process_table_find(&c->table, pid);
	int r = p ? forget_process(c, p) : 0;

	if (!r)
		r = process_table_add(&c->table, pid, ret);
	if (r)
		return r;
	(*ret)->since_ns = since_ns;
	(*ret)->titled_ns = UINT64_MAX;
	c->n_followed++;
	c->live++;
	return c->native
		       ? native_process_new(c->native, pid, &(*ret)->info.context, &(*ret)->native)
		       : 0;
}

int life_add(struct collector *c, pid_t pid, uint64_t since_ns, bool preset,
	     struct tracked_process **ret, struct err *err)
{
	struct process info = PROCESS_INIT;
	struct tracked_process *p;
	int r;

	r = process_open(pid, &info, err);
	if (r)
		return r;
	if (c->opts.selection && !selection_has(c->opts.selection, &info)) {
		process_close(&info);
		return -ENOENT;
	}
	r = check_room(c, pid, info.context.uid, err);
	if (r) {
		process_close(&info);
		return r;
	}
	if (new_process(c, pid, since_ns, &p)) {
		process_close(&info);
		return err_oom(err);
	}
	p->info = info;
	users_get(&c->users, info.context.uid)->processes++;
	*ret = p;
	/* If it has executed another program before, it was to be forgotten then. */
	r = preset ? engine_follow_again(c->engine, pid, since_ns, err)
		   : engine_follow(c->engine, pid, NULL, since_ns, err);
	if (!r)
		return 0;
	process_table_remove(&c->table, p);
	c->n_followed--;
	c->live--;
	c->totals.counters[COUNTER_NOT_FOLLOWED] += r == -E2BIG;
	return r;
}

/* ---- fork, exec, exit ---- */

/* What child @pid was that has ended already, or cannot be read now: read_info_again(). */
static void info_of_parent(struct process *info, pid_t pid, const struct process *parent)
{
	info->pid = pid;
	info->exe = strdup(parent->exe ? parent->exe : "");
	info->cmdline = strdup(parent->cmdline ? parent->cmdline : "");
	info->program_len = parent->program_len;
	info->context.cgroup = strdup(parent->context.cgroup ? parent->context.cgroup : "");
	info->context.container = strdup(parent->context.container ? parent->context.container
								   : "");
	info->context.uid = parent->context.uid;
}

static int inherit_code(struct tracked_process *p, const struct tracked_process *parent)
{
	if (!p->native || !parent->native)
		return 0;
	native_process_free(p->native);
	p->native = NULL;
	return native_process_fork(parent->native, p->pid, &p->info.context, &p->native);
}

/* It began at @ts, so what it uses is all of this recording. */
static int add_main_thread(struct collector *c, struct tracked_process *p, uint64_t ts)
{
	struct tracked_thread *t;
	bool is_new;
	int r = process_table_thread(&c->table, p, p->pid, &t, &is_new);

	if (r)
		return r;
	t->has_base = true;
	return clocks_note_birth(c, p, t, ts);
}

int life_handle_fork(struct collector *c, const struct rbpf_ring_life *rec)
{
	struct tracked_process *p, *parent = process_table_find(&c->table, (pid_t)rec->h.tgid);
	int r;

	/* It may be known already, if it was forked while its parent was being attached to. */
	p = process_table_find(&c->table, (pid_t)rec->child);
	if (p && !p->ended_ns)
		return 0;
	/* The BPF programs follow it, also if the parent was not to be followed. */
	if (!parent || check_room(c, (pid_t)rec->child, parent->info.context.uid, NULL)) {
		engine_forget(c->engine, (pid_t)rec->child);
		return 0;
	}
	r = new_process(c, (pid_t)rec->child, rec->h.ts, &p);
	if (r)
		return r;
	p->exe = parent->exe;
	p->parent = parent->id;
	if (process_open(p->pid, &p->info, NULL))
		info_of_parent(&p->info, p->pid, &parent->info);
	/* It began with that memory; that it has executed a program since is still to be told. */
	p->info.main_top = parent->info.main_top;
	users_get(&c->users, p->info.context.uid)->processes++;
	r = find_ruby_inherit(c, p, parent);
	if (!r)
		r = inherit_code(p, parent);
	if (!r)
		thread_context_inherit(c, p, parent);
	if (!r)
		r = add_main_thread(c, p, rec->h.ts);
	return r ? r : life_record(c, p);
}

/* It has ended, or is none of ours any more. What is left in the ring of it may follow. */
static int end_process(struct collector *c, struct tracked_process *p, uint64_t ts, int status)
{
	if (p->ended_ns)
		return 0;
	p->ended_ns = ts;
	c->live--;
	c->too_short |= !p->vm && begun_just_before(p, ts);
	/* A recording that is full does not have it. */
	return p->id == PROFILE_NONE ? 0 : sink_process_exit(c->sink, p->id, ts, status);
}

void life_count_ended_unseen(struct collector *c, struct tracked_process *p)
{
	if (p->ended_unseen || p->vm || !process_ended(&p->info))
		return;
	p->ended_unseen = true;
	c->totals.counters[COUNTER_ENDED_UNSEEN]++;
}

/*
 * @pid, which the BPF programs follow, has ended before it was examined. All is recorded then, and
 * it is counted when a stack of it comes; with a selection none is looked for.
 */
static int add_ended(struct collector *c, const struct rbpf_ring_life *rec,
		     struct tracked_process **ret)
{
	char name[RBPF_COMM_LEN + 2];
	int r;

	if (!system_wide_is_all(c)) {
		c->totals.counters[COUNTER_ENDED_UNSEEN]++;
		return -ENOENT;
	}
	if (check_room(c, (pid_t)rec->h.tgid, (uid_t)-1, NULL))
		return -ENOENT;
	r = new_process(c, (pid_t)rec->h.tgid, rec->h.ts, ret);
	if (r)
		return r;
	snprintf(name, sizeof(name), "[%.15s]", rec->comm);
	(*ret)->info.pid = (*ret)->pid;
	(*ret)->info.cmdline = strdup(name);
	(*ret)->info.program_len = strlen(name);
	return 0;
}

/* A process that was not followed has executed a program. */
static int handle_exec_of_other(struct collector *c, const struct rbpf_ring_life *rec)
{
	bool preset = rec->flags & RBPF_LIFE_PRESET, is_new;
	pid_t pid = (pid_t)rec->h.tgid;
	struct tracked_process *p;
	struct tracked_thread *t;
	int r = -ENOENT;

	if (preset || system_wide_may_be_ruby(c, pid))
		r = life_add(c, pid, rec->h.ts, preset, &p, NULL);
	if (r == -ESRCH && preset)
		r = add_ended(c, rec, &p);
	if (r && preset)
		engine_forget(c->engine, pid);
	if (r)
		return r == -ENOMEM ? r : 0;
	p->exe = rec->exe;
	r = life_record(c, p);
	if (!r)
		r = process_table_thread(&c->table, p, (pid_t)rec->h.tid, &t, &is_new);
	if (!r)
		t->cpu_base = rec->runtime; /* that of another program */
	return r;
}

/* After exec the code that it had is gone. */
static int renew_code(struct collector *c, struct tracked_process *p)
{
	native_process_free(p->native);
	p->native = NULL;
	return c->native ? native_process_new(c->native, p->pid, &p->info.context, &p->native) : 0;
}

/*
 * Thread @tid of @p has executed a program, after @runtime ns of CPU time: it has the id of the
 * main thread from then on, whose exit was told, and all others have ended. What it has used before
 * is that of the thread that it was.
 */
static int replace_main_thread(struct collector *c, struct tracked_process *p, pid_t tid,
			       uint64_t runtime)
{
	struct tracked_thread *t;
	bool is_new;
	int r;

	clocks_remove(c, p);
	r = process_table_thread(&c->table, p, p->pid, &t, &is_new);
	if (r)
		return r;
	life_forget_thread(c, p, t);
	r = process_table_thread(&c->table, p, tid, &t, &is_new);
	if (r)
		return r;
	if (t->has_base || c->opts.system_wide)
		r = life_account(c, t, runtime);
	life_forget_thread(c, p, t);
	if (!r)
		r = process_table_thread(&c->table, p, p->pid, &t, &is_new);
	if (r)
		return r;
	t->cpu_base = runtime;
	t->has_base = true;
	return 0;
}

/*
 * @p has executed a program at @ts. What the engine was told of it since then was of the program
 * before.
 */
static int correct_engine(struct collector *c, struct tracked_process *p, uint64_t ts)
{
	int r;

	if (p->told_ns < ts || process_ended(&p->info))
		return 0;
	r = engine_follow(c->engine, p->pid, NULL, ts, NULL);
	if (!r)
		engine_set_clocked(c->engine, p->pid, 0);
	return r;
}

int life_handle_exec(struct collector *c, const struct rbpf_ring_life *rec)
{
	struct tracked_process *p = process_table_find(&c->table, (pid_t)rec->h.tgid);
	struct process info = PROCESS_INIT;
	struct tracked_thread *t;
	bool is_new;
	int r;

	if (!p || p->ended_ns)
		return c->opts.system_wide ? handle_exec_of_other(c, rec) : 0;
	r = samples_release(c, p);
	process_requests_drop(p, c->engine);
	tracked_process_drop_vm(p);
	if (!r)
		r = renew_code(c, p);
	if (r)
		return r;
	free(p->attributes);
	p->attributes = NULL;
	p->thread_context = (struct rbpf_tls) { 0 };
	p->next_try = p->backoff = 0;
	p->refusals = 0;
	p->since_ns = rec->h.ts;
	p->exe = rec->exe;
	if (rec->child != rec->h.tid)
		r = replace_main_thread(c, p, (pid_t)rec->child, rec->runtime);
	if (!r)
		r = clocks_note_exec(c, p, rec->h.ts);
	if (!r)
		r = correct_engine(c, p, rec->h.ts);
	if (r)
		return r;
	if (c->opts.system_wide && !(rec->flags & RBPF_LIFE_PRESET) &&
	    !system_wide_may_be_ruby(c, p->pid)) {
		engine_forget(c->engine, p->pid);
		r = process_table_thread(&c->table, p, (pid_t)rec->h.tid, &t, &is_new);
		if (!r)
			r = life_account(c, t, rec->runtime);
		p->let_go = true;
		return r ? r : end_process(c, p, rec->h.ts, -1);
	}
	p->info.main_top = 0;
	if (!process_open(p->pid, &info, NULL)) {
		process_close(&p->info);
		p->info = info;
	}
	return life_record(c, p);
}

int life_handle_exit(struct collector *c, const struct rbpf_ring_life *rec)
{
	struct tracked_process *p = process_table_find(&c->table, (pid_t)rec->h.tgid);
	struct tracked_thread *t;
	bool is_new;
	int r;

	if (!p || p->let_go)
		return 0;
	r = process_table_thread(&c->table, p, (pid_t)rec->h.tid, &t, &is_new);
	if (r)
		return r;
	if (!t->has_base && !c->opts.system_wide) {
		t->cpu_base = rec->runtime; /* it began before it could be sampled */
		t->has_base = true;
	}
	if (rec->h.ts >= c->began_ns)
		r = life_account(c, t, rec->runtime);
	t->ended_ns = rec->h.ts;
	if (!r && rec->flags & RBPF_LIFE_LAST)
		r = end_process(c, p, rec->h.ts, (int)rec->exit_code);
	return r;
}

/*
 * The exit of @t was not told, but the kernel has freed a thread with that id. When a thread that
 * is not the main one executes a program, these two change their ids: it is the main one then that
 * is freed, which has exited. Returns 0 or a negative errno.
 */
static int notice_exit(struct collector *c, const struct tracked_process *p,
		       const struct tracked_thread *t, const struct rbpf_ring_life *rec)
{
	const struct tracked_thread *main_thread = process_table_find_thread(p, p->pid);
	struct rbpf_ring_life end = *rec;

	if (t != main_thread && (!main_thread || main_thread->ended_ns))
		return 0;
	if (!life_thread_is_gone(p, t)) /* it is another one, with the same id */
		return 0;
	end.flags = t == main_thread ? RBPF_LIFE_LAST : 0;
	return life_handle_exit(c, &end);
}

int life_handle_free(struct collector *c, const struct rbpf_ring_life *rec)
{
	struct tracked_process *p = process_table_find(&c->table, (pid_t)rec->h.tgid);
	struct tracked_thread *t = p ? process_table_find_thread(p, (pid_t)rec->h.tid) : NULL;
	int r = 0;

	if (!t || p->let_go)
		return 0;
	if (!t->ended_ns)
		r = notice_exit(c, p, t, rec);
	if (r || !t->ended_ns)
		return r;
	clocks_thread_ended(c, t);
	return t->ended_ns >= c->began_ns ? life_account(c, t, rec->runtime) : 0;
}

static void sweep_threads(struct collector *c, struct tracked_process *p, uint64_t now)
{
	struct tracked_thread *t, *next;

	for (t = LIST_FIRST(&p->thread_list); t; t = next) {
		next = LIST_NEXT(t, link);
		if (!t->ended_ns || now <= t->ended_ns + ENDED_GRACE)
			continue;
		clocks_thread_ended(c, t);
		life_forget_thread(c, p, t);
	}
}

/*
 * Read what process @p is if that could not be read yet. That it could not be does not say that it
 * has ended: no process of a user may be read for a while (remote.h), or none at all.
 */
static int read_info_again(struct collector *c, struct tracked_process *p)
{
	struct process info = PROCESS_INIT;

	if (p->ended_ns || p->info.start_ticks || process_open(p->pid, &info, NULL))
		return 0;
	info.main_top = p->info.main_top ?: info.main_top;
	process_close(&p->info);
	p->info = info;
	return p->id == PROFILE_NONE ? 0 : collector_note_full(c, life_record(c, p), 0);
}

/*
 * Whether it has ended, though that was not told: seen twice, for what is told may be on its way.
 */
static bool is_missing(struct tracked_process *p)
{
	bool again = p->missing;

	p->missing = !p->ended_ns && process_ended(&p->info);
	return p->missing && again;
}

int life_sweep(struct collector *c, uint64_t now)
{
	struct tracked_process *p, *next;
	int r = 0;

	for (p = LIST_FIRST(&c->table.list); p && !r; p = next) {
		next = LIST_NEXT(p, link);
		sweep_threads(c, p, now);
		if (is_missing(p)) {
			engine_forget(c->engine, p->pid);
			r = end_process(c, p, now, -1);
		} else if (p->ended_ns && now > p->ended_ns + ENDED_GRACE) {
			r = forget_process(c, p);
		} else {
			r = read_info_again(c, p);
		}
	}
	return r;
}
