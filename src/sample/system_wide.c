/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which processes of the machine are Rubies. Those that run already are found by looking through
 * /proc once; after that the kernel tells: a process executes a Ruby (or what is linked with
 * libruby), is forked by one, or maps a libruby later on.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/stop.h"
#include "sample/collector_state.h"
#include "engine/mmap_watch.h"
#include "engine/engine.h"
#include "target/cpus.h"
#include "target/selection.h"

/* CPU time to look into a process, of which most take a tenth; and of one system_wide_retry(). */
#define SCAN_USUAL (2 * NSEC_PER_MSEC)
#define RETRY_NS   (20 * NSEC_PER_MSEC)

/* Processes that are to be looked into later: a bit for each pid. */
struct deferred {
	uint64_t bits[RBPF_PID_LIMIT / 64];
	size_t n;
	pid_t next; /* where to go on */
};

static int defer(struct collector *c, pid_t pid)
{
	uint64_t bit = 1ull << pid % 64, *word;

	if (!c->deferred)
		c->deferred = calloc(1, sizeof(*c->deferred));
	if (!c->deferred)
		return -ENOMEM;
	if (pid < 0 || pid >= RBPF_PID_LIMIT)
		return 0;
	word = &c->deferred->bits[pid / 64];
	c->deferred->n += !(*word & bit);
	*word |= bit;
	return 0;
}

/* Whether a VM is mapped into @pid. Beyond what is usual the time that it takes is its user's. */
static bool has_vm(struct collector *c, pid_t pid, uid_t uid, uint64_t usual)
{
	const uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	bool has = ruby_files_in_process(&c->files, pid);
	uint64_t took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;

	if (took > usual)
		user_spent(users_get(&c->users, uid), clock_ns(CLOCK_MONOTONIC), took - usual);
	return has;
}

/*
 * Follow @pid if a VM is mapped into it; @usual is the CPU time that examining it may take on
 * nobody's account. Returns 0 also if it is none, not selected, or one too many, which is counted,
 * or if its user's processes have had all the time there is for them: it is examined later then.
 */
static int consider(struct collector *c, pid_t pid, uint64_t usual, struct err *err)
{
	struct tracked_process *p = process_table_find(&c->table, pid);
	uid_t uid;
	int r;

	if (pid == getpid() || (p && !p->ended_ns))
		return 0;
	uid = process_uid(pid);
	if (!user_may_spend(users_get(&c->users, uid), clock_ns(CLOCK_MONOTONIC))) {
		c->totals.counters[COUNTER_LOOKS_PUT_OFF]++;
		return defer(c, pid);
	}
	if (!has_vm(c, pid, uid, usual))
		return 0;
	/* The BPF programs may follow it already, with the layout of its parent: see unknown.c. */
	r = life_add(c, pid, 0, true, &p, err);
	if (!r && c->sink) {
		r = life_record(c, p);
		if (!r)
			r = life_begin_account(c, pid);
	}
	return r == -ESRCH || r == -ENOENT || r == -E2BIG ? 0 : r;
}

int system_wide_consider(struct collector *c, pid_t pid)
{
	return consider(c, pid, 0, NULL);
}

static int scan_processes(struct collector *c, struct err *err)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t i, n;
	int r;

	r = process_list(&pids, &n, err);
	for (i = 0; i < n && !r && !stop_overdue(); i++)
		r = consider(c, pids[i], SCAN_USUAL, err);
	return r;
}

static int watch_cpus(struct collector *c, struct err *err)
{
	struct cpus cpus = CPUS_INIT;
	int r;

	r = cpus_online(&cpus, err);
	if (!r)
		r = mmap_watch_set_cpus(c->mmaps, &cpus, err);
	cpus_deinit(&cpus);
	return r;
}

int collector_scan(struct collector *c, struct err *err)
{
	_cleanup_free_ struct rbpf_task *tasks = NULL;
	struct tracked_process *p;
	size_t n = 0;
	int r;

	if (mmap_watch_open(&c->mmaps))
		return err_oom(err);
	r = watch_cpus(c, err);
	if (!r)
		r = scan_processes(c, err);
	if (!r)
		r = engine_read_threads(c->engine, 0, &tasks, &n, err);
	if (r)
		return r;
	LIST_FOREACH(p, &c->table.list, link) {
		if (stop_overdue())
			break;
		r = find_ruby_try(c, p, tasks, n);
		if (r)
			return err_oom(err);
	}
	return 0;
}

bool system_wide_is_all(const struct collector *c)
{
	return !c->opts.selection || selection_is_all(c->opts.selection);
}

bool system_wide_may_be_ruby(struct collector *c, pid_t pid)
{
	return ruby_files_of_exe(&c->files, pid) != RUBY_FILE_OTHER;
}

/* What is being read: all of it had happened when the first of it is handled. */
struct mmap_batch {
	struct collector *c;
	pid_t last; /* that was looked into */
};

static int on_mmap(void *arg, pid_t pid)
{
	struct mmap_batch *batch = arg;

	if (pid == batch->last)
		return 0;
	batch->last = pid;
	return consider(batch->c, pid, 0, NULL);
}

int system_wide_poll(struct collector *c)
{
	struct mmap_batch batch = { .c = c };
	bool lost = false;
	int r;

	r = mmap_watch_read(c->mmaps, on_mmap, &batch, &lost);
	c->mmaps_lost |= lost;
	return r;
}

/*
 * What was lost may be of any process. To look into all of them at once takes so long that the next
 * records are lost meanwhile: no end, and nobody drains the engine.
 */
static int look_at_all_later(struct collector *c)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t i, n;
	int r;

	c->mmaps_lost = false;
	r = process_list(&pids, &n, NULL);
	for (i = 0; i < n && !r; i++)
		r = defer(c, pids[i]);
	return r;
}

int system_wide_retry(struct collector *c)
{
	const uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + RETRY_NS;
	int r = c->mmaps_lost ? look_at_all_later(c) : 0;
	struct deferred *p = c->deferred;
	pid_t pid, i;

	if (!p || !p->n)
		return r;
	for (i = 0; i < RBPF_PID_LIMIT && p->n && !r; i++) {
		pid = p->next++ % RBPF_PID_LIMIT;
		p->next %= RBPF_PID_LIMIT;
		if (!(p->bits[pid / 64] & 1ull << pid % 64))
			continue;
		p->bits[pid / 64] &= ~(1ull << pid % 64);
		p->n--;
		r = consider(c, pid, 0, NULL);
		if (clock_ns(CLOCK_THREAD_CPUTIME_ID) >= until)
			break;
	}
	return r;
}
