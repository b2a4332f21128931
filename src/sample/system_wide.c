/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which processes of the machine are Rubies. Those that run already are found by looking through
 * /proc once; after that the kernel tells: a process executes a Ruby (or what is linked with
 * libruby), is forked by one, or maps a libruby later on.
 */
#include <errno.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sample/collector_state.h"
#include "sample/mmap_watch.h"
#include "sample/session.h"

/* Follow @pid if a VM is mapped into it. Returns 0 also if it is none, or not selected. */
static int consider(struct collector *c, pid_t pid, struct err *err)
{
	struct tracked_process *p = process_table_find(&c->table, pid);
	int r;

	if (pid == getpid() || (p && !p->ended_ns) || !ruby_files_in_process(&c->files, pid))
		return 0;
	r = life_add(c, pid, 0, false, &p, err);
	if (!r && c->rec) {
		r = life_record(c, p);
		if (!r)
			r = life_begin_account(c, pid);
	}
	return r == -ESRCH || r == -ENOENT ? 0 : r;
}

static int look_through(struct collector *c, struct err *err)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t i, n;
	int r;

	r = process_list(&pids, &n, err);
	for (i = 0; i < n && !r; i++)
		r = consider(c, pids[i], err);
	return r;
}

int collector_scan(struct collector *c, struct err *err)
{
	_cleanup_free_ struct rbpf_task *tasks = NULL;
	struct tracked_process *p;
	size_t n = 0;
	int r;

	r = mmap_watch_open(&c->mmaps, err);
	if (!r)
		r = look_through(c, err);
	if (!r)
		r = session_tasks(c->session, 0, &tasks, &n, err);
	if (r)
		return r;
	LIST_FOREACH(p, &c->table.list, link)
	{
		r = life_try(c, p, tasks, n);
		if (r)
			return err_oom(err);
	}
	return 0;
}

bool system_wide_may_be_ruby(struct collector *c, pid_t pid)
{
	return ruby_files_of_exe(&c->files, pid) != RUBY_FILE_OTHER;
}

static int on_mmap(void *arg, pid_t pid)
{
	return consider(arg, pid, NULL);
}

int system_wide_poll(struct collector *c)
{
	bool lost = false;
	int r;

	r = mmap_watch_read(c->mmaps, on_mmap, c, &lost);
	return !r && lost ? look_through(c, NULL) : r;
}
