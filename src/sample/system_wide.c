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
#include "target/cpus.h"

/*
 * Follow @pid if a VM is mapped into it. Returns 0 also if it is none, not selected, or one too many,
 * which is counted.
 */
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
	return r == -ESRCH || r == -ENOENT || r == -E2BIG ? 0 : r;
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

static int watch_cpus(struct collector *c, const struct cpus *cpus, struct err *err)
{
	return mmap_watch_set_cpus(c->mmaps, cpus, err);
}

static int sample_cpus(struct collector *c, const struct cpus *cpus, struct err *err)
{
	int r = watch_cpus(c, cpus, err);

	return r ? r : session_set_cpus(c->session, cpus, err);
}

static int with_cpus(struct collector *c,
		     int (*use)(struct collector *c, const struct cpus *cpus, struct err *err),
		     struct err *err)
{
	struct cpus cpus = CPUS_INIT;
	int r;

	r = cpus_online(&cpus, err);
	if (!r)
		r = use(c, &cpus, err);
	cpus_deinit(&cpus);
	return r;
}

int system_wide_sample(struct collector *c, struct err *err)
{
	return with_cpus(c, sample_cpus, err);
}

int collector_scan(struct collector *c, struct err *err)
{
	_cleanup_free_ struct rbpf_task *tasks = NULL;
	struct tracked_process *p;
	size_t n = 0;
	int r;

	if (mmap_watch_open(&c->mmaps))
		return err_oom(err);
	r = with_cpus(c, watch_cpus, err);
	if (!r)
		r = look_through(c, err);
	if (!r)
		r = session_tasks(c->session, 0, &tasks, &n, err);
	if (r)
		return r;
	LIST_FOREACH(p, &c->table.list, link) {
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
