/* SPDX-License-Identifier: GPL-2.0-only */
/* The threads of what is followed: when they begin, and what CPU time they have had. */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engine/engine.h"
#include "profile/sink.h"
#include "sample/collector_state.h"

/* ---- CPU time ---- */

int life_account(struct collector *c, struct tracked_thread *t, uint64_t runtime)
{
	if (runtime < t->cpu_base + t->cpu_ns)
		return 0;
	c->account_ns += runtime - t->cpu_base - t->cpu_ns;
	t->cpu_ns = runtime - t->cpu_base;
	return t->id == PROFILE_NONE ? 0 : sink_thread_cpu(c->sink, t->id, t->cpu_ns);
}

/* Call @take for the thread of each of @tasks. */
static int each_task(struct collector *c, const struct rbpf_task *tasks, size_t n,
		     int (*take)(struct collector *c, struct tracked_thread *t, uint64_t runtime))
{
	struct tracked_process *p;
	struct tracked_thread *t;
	bool is_new;
	size_t i;
	int r = 0;

	for (i = 0; i < n && !r; i++) {
		p = process_table_find(&c->table, (pid_t)tasks[i].tgid);
		if (!p)
			continue;
		r = process_table_thread(&c->table, p, (pid_t)tasks[i].tid, &t, &is_new);
		if (!r)
			r = take(c, t, tasks[i].runtime);
	}
	return r;
}

static int begin_account(struct collector *c, struct tracked_thread *t, uint64_t runtime)
{
	(void)c;
	t->cpu_base = runtime;
	t->has_base = true;
	return 0;
}

int life_begin_account(struct collector *c, pid_t pid)
{
	_cleanup_free_ struct rbpf_task *tasks = NULL;
	size_t n = 0;
	int r = engine_read_threads(c->engine, pid, &tasks, &n, NULL);

	return r ? r : each_task(c, tasks, n, begin_account);
}

int life_read_account(struct collector *c)
{
	return engine_read_threads(c->engine, 0, &c->last_tasks, &c->n_last_tasks, NULL);
}

int life_finish_account(struct collector *c)
{
	return each_task(c, c->last_tasks, c->n_last_tasks, life_account);
}

/* ---- births and ends ---- */

bool life_thread_is_gone(const struct tracked_process *p, const struct tracked_thread *t)
{
	return syscall(SYS_tgkill, p->pid, t->tid, 0) && errno == ESRCH;
}

void life_forget_thread(struct collector *c, struct tracked_process *p, struct tracked_thread *t)
{
	if (t->id != PROFILE_NONE)
		sink_thread_gone(c->sink, t->id);
	process_table_remove_thread(&c->table, p, t);
}

int life_handle_thread(struct collector *c, const struct rbpf_ring_life *rec)
{
	struct tracked_process *p = process_table_find(&c->table, (pid_t)rec->h.tgid);
	struct tracked_thread *t;
	bool is_new;
	int r;

	if (!p)
		return 0;
	r = process_table_thread(&c->table, p, (pid_t)rec->child, &t, &is_new);
	if (!r && !is_new && t->ended_ns) { /* the id is used again */
		clocks_thread_ended(c, t);
		life_forget_thread(c, p, t);
		r = process_table_thread(&c->table, p, (pid_t)rec->child, &t, &is_new);
	}
	if (r)
		return r;
	t->has_base = true; /* 0, unless it was met before this was told */
	return clocks_note_birth(c, p, t, rec->h.ts);
}
