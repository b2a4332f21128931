/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How processes begin, change and end in a profile, and which of them the engine follows meanwhile.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sample/collector_state.h"
#include "support/collecting_target.h"
#include "target/process.h"
#include "target/remote.h"

/* The engine follows these @n processes and no others. */
static void expect_followed(const pid_t *pids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		cr_expect(scripted_has(&f.engine.followed, pids[i]), "process %zu", i);
	cr_expect_eq(f.engine.followed.n, n, "%zu are followed", f.engine.followed.n);
}

#define EXPECT_FOLLOWED(...)                                                                       \
	expect_followed((const pid_t[]) { __VA_ARGS__ },                                           \
			sizeof((const pid_t[]) { __VA_ARGS__ }) / sizeof(pid_t))

static void expect_live(size_t n)
{
	struct collector_status st;

	collector_status(f.c, &st);
	cr_expect_eq(st.live, n, "%zu live", st.live);
}

static pid_t fork_by(pid_t tid)
{
	pid_t child = target_fork(&target);

	collecting_birth(&f, RBPF_RING_FORK, target.pid, tid, child);
	return child;
}

/* FREE of the first thread of @tgid. */
static void freed(pid_t tgid)
{
	scripted_life(
		&f.engine, RBPF_RING_FREE,
		&(struct rbpf_ring_life) { .h.tgid = (uint32_t)tgid, .h.tid = (uint32_t)tgid });
}

static uint64_t executed(pid_t tgid)
{
	return scripted_life(&f.engine, RBPF_RING_EXEC,
			     &(struct rbpf_ring_life) { .h.tgid = (uint32_t)tgid,
							.h.tid = (uint32_t)tgid,
							.exe.inode = 7 });
}

static uint64_t start_ticks_of(pid_t pid)
{
	struct process info;
	uint64_t ticks;

	cr_assert_eq(process_open(pid, &info, NULL), 0);
	ticks = info.start_ticks;
	process_close(&info);
	return ticks;
}

/* ---- begin ---- */

Test(process_life, what_is_told_of_a_target, .init = setup, .fini = teardown)
{
	const struct profile_process *p;
	char exe[4096];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	cr_assert_gt(len, 0);
	exe[len] = '\0';
	collecting_start(&f, &target);
	EXPECT_FOLLOWED(target.pid);
	cr_expect_eq(f.engine.calls[0].op, SCRIPTED_FOLLOW, "before its threads are looked at");
	cr_expect_eq(f.engine.calls[0].since_ns, 0, "it began before it was met");
	cr_expect_not(f.engine.calls[0].with_layout);
	p = collecting_process(&f, target.pid);
	cr_expect_str_eq(collecting_str(&f, p->exe), exe);
	cr_expect_str_not_empty(collecting_str(&f, p->cmdline));
	cr_expect_str_empty(collecting_str(&f, p->ruby_version));
	cr_expect_eq(p->start_ticks, start_ticks_of(target.pid));
	cr_expect_eq(p->uid, getuid());
	cr_expect_eq(p->parent, PROFILE_NONE, "its parent is this test");
	cr_expect(!p->exited && p->exit_status == -1);
	collecting_finish(&f);
	expect_live(1);
}

Test(process_life, targets_that_are_refused, .init = setup, .fini = teardown)
{
	struct collector_status st;

	cr_expect_eq(collector_add(f.c, target.pid, true, &f.err), -ENOENT);
	cr_expect_eq(f.err.kind, ERR_TARGET);
	cr_expect_not_null(strstr(f.err.msg, "is not a Ruby process"), "%s", f.err.msg);
	cr_expect_not_null(strstr(f.err.msg, "neither the executable"), "%s", f.err.msg);
	f.err = (struct err) { 0 };
	cr_expect_eq(collector_add(f.c, target.pid, false, &f.err), 0);
	cr_expect_null(strstr(f.err.msg, "neither the executable"), "nobody asks what it is");
	cr_expect_eq(collector_add(f.c, target.pid + 0x10000000, false, &f.err), -ESRCH);
	cr_expect_eq(f.err.kind, ERR_TARGET);
	collector_status(f.c, &st);
	cr_expect_eq(st.processes, 1, "the other was never there");
	EXPECT_FOLLOWED(target.pid);
}

Test(process_life, no_room_for_a_target, .init = setup, .fini = teardown)
{
	struct collector_status st;

	scripted_engine_fail(&f.engine, SCRIPTED_FOLLOW, 1, -E2BIG);
	cr_expect_eq(collector_add(f.c, target.pid, false, &f.err), -E2BIG);
	cr_expect_not_null(strstr(f.err.msg, "scripted: follow"), "%s", f.err.msg);
	collector_status(f.c, &st);
	cr_expect(!st.processes && !st.live && !st.threads);
	/* There is some by now. */
	collecting_start(&f, &target);
	collecting_finish(&f);
	cr_expect_eq(f.totals.counters[COUNTER_NOT_FOLLOWED], 1);
	cr_expect_eq(collecting_profile(&f)->n_processes, 1);
}

/* ---- fork ---- */

Test(process_life, children, .init = setup, .fini = teardown)
{
	pid_t child, grandchild;
	uint32_t id;

	collecting_start(&f, &target);
	child = fork_by(target.pid);
	grandchild = target_fork(&target); /* of whomever: the record tells */
	collecting_birth(&f, RBPF_RING_FORK, child, child, grandchild);
	collecting_tick(&f, grandchild, grandchild);
	collecting_poll(&f);
	id = collecting_find(&f, target.pid);
	cr_expect_eq(collecting_process(&f, child)->parent, id);
	cr_expect_eq(collecting_process(&f, grandchild)->parent, collecting_find(&f, child));
	cr_expect_eq(collecting_process(&f, child)->start_ticks, start_ticks_of(child));
	cr_expect_eq(collecting_profile(&f)->n_processes, 3);
	EXPECT_FOLLOWED(target.pid, child, grandchild);
	expect_live(3);
	collecting_finish(&f);
	cr_expect_eq(collecting_profile(&f)->n_samples, 1);
	cr_expect_eq(collecting_thread(&f, grandchild)->process, collecting_find(&f, grandchild));
}

/* It is recorded as what its parent is, which it was. */
Test(process_life, child_that_is_gone, .init = setup, .fini = teardown)
{
	const struct profile_process *p, *parent;
	uint64_t ts;
	pid_t child;

	collecting_start(&f, &target);
	child = fork_by(target.pid);
	kill(child, SIGKILL);
	while (thread_state(child, child) != 'Z')
		usleep(100);
	collecting_tick(&f, child, child);
	ts = collecting_exit(&f, child, SIGKILL);
	collecting_poll(&f);
	p = collecting_process(&f, child);
	parent = collecting_process(&f, target.pid);
	cr_expect(p->exe == parent->exe && p->cmdline == parent->cmdline);
	cr_expect(p->uid == parent->uid && p->cgroup == parent->cgroup);
	cr_expect_eq(p->parent, collecting_find(&f, target.pid));
	cr_expect(p->exited && p->exit_ts == ts);
	cr_expect_eq(p->exit_status, SIGKILL);
	collecting_finish(&f);
	cr_expect_eq(collecting_profile(&f)->n_samples, 1, "its sample counts");
}

/* A child that lives, but cannot be read for a while. It is followed, and known later. */
Test(process_life, child_that_cannot_be_read_at_first, .init = setup, .fini = teardown)
{
	pid_t child;

	collecting_start(&f, &target);
	child = target_fork(&target);
	remote_note_wait(child, 1, 0, true);
	collecting_birth(&f, RBPF_RING_FORK, target.pid, target.pid, child);
	collecting_poll(&f);
	for (int i = 0; i < 3; i++)
		collecting_keep_house(&f);
	cr_expect_not(collecting_process(&f, child)->exited, "nobody saw it end");
	cr_expect_eq(collecting_process(&f, child)->start_ticks, 0);
	EXPECT_FOLLOWED(target.pid, child);
	expect_live(2);

	remote_reset();
	collecting_keep_house(&f);
	cr_expect_eq(collecting_process(&f, child)->start_ticks, start_ticks_of(child));
	cr_expect_eq(collecting_process(&f, child)->parent, collecting_find(&f, target.pid));

	kill(child, SIGKILL);
	collecting_keep_house(&f);
	collecting_keep_house(&f);
	cr_expect(collecting_process(&f, child)->exited, "that it ends is noticed, too");
	expect_live(1);
	collecting_finish(&f);
}

/* Of so many that its user may have no more of them. */
static void fill_table(size_t left)
{
	f.c->live = RBPF_MAX_PROCS - left;
}

Test(process_life, children_beyond_the_limit, .init = setup, .fini = teardown)
{
	pid_t child, grandchild;

	collecting_start(&f, &target);
	fill_table(1);
	child = fork_by(target.pid);
	grandchild = target_fork(&target);
	collecting_birth(&f, RBPF_RING_FORK, child, child, grandchild);
	collecting_poll(&f);
	cr_expect_eq(collecting_find(&f, child), PROFILE_NONE);
	EXPECT_FOLLOWED(target.pid);
	fill_table(2);
	child = fork_by(target.pid);
	collecting_poll(&f);
	cr_expect_neq(collecting_find(&f, child), PROFILE_NONE, "there is room again");
	EXPECT_FOLLOWED(target.pid, child);
	collecting_finish(&f);
	cr_expect_eq(f.totals.counters[COUNTER_NOT_FOLLOWED], 1);
}

/* What collector_add() says when there is no room for @target. */
static void expect_no_room(const char *why)
{
	char message[256];

	snprintf(message, sizeof(message), "cannot follow pid %d: %s", (int)target.pid, why);
	cr_expect_eq(collector_add(f.c, target.pid, false, &f.err), -E2BIG);
	cr_expect_str_eq(f.err.msg, message);
	cr_expect_eq(f.engine.followed.n, 0);
}

Test(process_life, why_there_is_no_room, .init = setup, .fini = teardown)
{
	struct user *user = users_get(&f.c->users, getuid());

	fill_table(0);
	expect_no_room("rbpf already follows as many processes as it can");
	fill_table(10);
	user->processes = 10;
	expect_no_room("rbpf already follows too many processes of the same user");
	user->processes = 9;
	f.c->memory_full = true;
	expect_no_room("rbpf has used the memory that --memlimit allows");
	f.c->memory_full = false;
	f.c->table.n_processes = 2 * RBPF_MAX_PROCS;
	expect_no_room("rbpf still keeps too many processes that have ended");
	f.c->table.n_processes = 0;
	cr_expect_eq(f.c->totals.counters[COUNTER_NOT_FOLLOWED], 4);
	cr_expect_eq(collector_add(f.c, target.pid, false, &f.err), 0, "%s", f.err.msg);
}

/* ---- exec ---- */

Test(process_life, exec, .init = setup, .fini = teardown)
{
	const struct profile_process *p;
	uint64_t ticks;
	pid_t child;
	uint32_t id;

	collecting_start(&f, &target);
	child = fork_by(target.pid);
	collecting_poll(&f);
	id = collecting_find(&f, target.pid);
	ticks = collecting_process(&f, target.pid)->start_ticks;
	target_exec(&target);
	executed(target.pid);
	collecting_tick(&f, target.pid, target.pid);
	collecting_poll(&f);
	cr_expect_eq(collecting_find(&f, target.pid), id, "it is still that process");
	p = collecting_process(&f, target.pid);
	cr_expect_str_eq(collecting_str(&f, p->cmdline), "sleep 1000");
	cr_expect_not_null(strstr(collecting_str(&f, p->exe), "/"));
	cr_expect_neq(p->exe, collecting_process(&f, child)->exe);
	cr_expect_eq(p->start_ticks, ticks);
	cr_expect(!p->exited);
	cr_expect_eq(collecting_process(&f, child)->parent, id);
	EXPECT_FOLLOWED(target.pid, child);
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_FORGET, target.pid), 0);
	collecting_finish(&f);
	cr_expect_eq(collecting_profile(&f)->n_processes, 2);
	cr_expect_eq(collecting_profile(&f)->n_samples, 1);
}

/* The kernel leaves some out on busy CPUs. The BPF programs walk what it runs by what was known of
 * the program before. */
Test(process_life, exec_that_was_not_told, .init = setup, .fini = teardown)
{
	size_t before;
	pid_t child;

	collecting_start(&f, &target);
	child = fork_by(target.pid);
	collecting_poll(&f);
	target_exec(&target);
	f.engine.counters[RBPF_CNT_MISSED_EXEC] = 1;
	before = scripted_count(&f.engine, SCRIPTED_FOLLOW, target.pid);
	collecting_keep_house(&f);
	cr_expect_str_eq(collecting_str(&f, collecting_process(&f, target.pid)->cmdline),
			 "sleep 1000");
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_FOLLOW, target.pid), before + 1,
		     "the engine knows of no Ruby in it any more");
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_FOLLOW, child), 0, "it is what it was");
	EXPECT_FOLLOWED(target.pid, child);
	collecting_finish(&f);
	cr_expect_eq(collecting_profile(&f)->n_processes, 2);
}

/* Nor is that of a child that had executed it when its birth was handled. */
Test(process_life, exec_of_a_child_that_was_not_told, .init = setup, .fini = teardown)
{
	size_t before;
	pid_t child;

	collecting_start(&f, &target);
	child = target_spawn(&target);
	collecting_birth(&f, RBPF_RING_FORK, target.pid, target.pid, child);
	collecting_poll(&f);
	before = scripted_count(&f.engine, SCRIPTED_FOLLOW, child);
	f.engine.counters[RBPF_CNT_MISSED_EXEC] = 1;
	collecting_keep_house(&f);
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_FOLLOW, child), before + 1);
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_ADD_THREAD, target.pid), 1,
		     "the clocks of others stay");
	collecting_finish(&f);
}

/* Of what executes no Ruby only samples can tell that there is one: it may be any number of
 * processes. */
Test(process_life, exec_of_what_uses_no_time, .init = setup, .fini = teardown)
{
	const struct tracked_process *p = NULL;

	collecting_start(&f, &target);
	target_exec(&target);
	executed(target.pid);
	usleep(60 * 1000);
	collecting_poll(&f);
	p = process_table_find(&f.c->table, target.pid);
	cr_assert_not_null(p);
	cr_expect_eq(p->begun_ns, p->since_ns);
	cr_expect_eq(p->begun_look_ns, UINT64_MAX, "it executes 'sleep'");
	cr_expect_eq(p->backoff, 0);
	collecting_finish(&f);
}

/* A Ruby is none before it has loaded its libraries: what ends before that may have been one.
 * Whether its end, @ns after it began, is such. */
static bool ends_too_soon(uint64_t ns)
{
	struct collector_status st;
	uint64_t ts;

	collecting_start(&f, &target);
	ts = executed(target.pid);
	scripted_life(&f.engine, RBPF_RING_EXIT,
		      &(struct rbpf_ring_life) { .h.ts = ts + ns,
						 .h.tgid = (uint32_t)target.pid,
						 .h.tid = (uint32_t)target.pid,
						 .exit_code = (uint32_t)target_exit(&target, 0),
						 .flags = RBPF_LIFE_LAST });
	collecting_poll(&f);
	collector_status(f.c, &st);
	cr_expect_str_empty(st.refused, "%s", st.refused);
	collecting_finish(&f);
	return st.too_short;
}

Test(process_life, exec_of_what_ends_at_once, .init = setup, .fini = teardown)
{
	cr_expect(ends_too_soon(1 * NSEC_PER_MSEC));
}

Test(process_life, exec_of_what_lives_for_a_while, .init = setup, .fini = teardown)
{
	cr_expect_not(ends_too_soon(100 * NSEC_PER_MSEC));
}

/* ---- exit ---- */

Test(process_life, exit_status_and_time, .init = setup, .fini = teardown)
{
	const struct profile_process *p;
	uint64_t ts;
	int status;

	collecting_start(&f, &target);
	collecting_tick(&f, target.pid, target.pid);
	status = target_exit(&target, 3);
	cr_assert_eq(status, 3 << 8);
	ts = collecting_exit(&f, target.pid, status);
	collecting_exit(&f, target.pid, 0); /* it ends once */
	collecting_tick(&f, target.pid, target.pid);
	freed(target.pid);
	collecting_poll(&f);
	p = collecting_process(&f, target.pid);
	cr_expect(p->exited);
	cr_expect_eq(p->exit_status, status);
	cr_expect_eq(p->exit_ts, ts);
	expect_live(0);
	cr_expect_eq(f.engine.followed.n, 0);
	cr_expect_eq(f.engine.ops[SCRIPTED_FORGET].asked, 0, "the BPF programs know");
	collecting_finish(&f);
	cr_expect_eq(collecting_profile(&f)->n_samples, 2, "the one of its end, too");
}

Test(process_life, threads_that_exit, .init = setup, .fini = teardown)
{
	pid_t tid = target_thread(&target);

	collecting_start(&f, &target);
	scripted_life(&f.engine, RBPF_RING_EXIT,
		      &(struct rbpf_ring_life) { .h.tgid = (uint32_t)target.pid,
						 .h.tid = (uint32_t)tid,
						 .exit_code = 5 });
	collecting_poll(&f);
	cr_expect_not(collecting_process(&f, target.pid)->exited, "others go on");
	expect_live(1);
	collecting_finish(&f);
}

/* What is kept of a process and its threads goes a while after its end, not at once. */
Test(process_life, what_ended_is_let_go, .init = setup, .fini = teardown)
{
	struct collector_status st;
	pid_t child;

	collecting_start(&f, &target);
	child = fork_by(target.pid);
	collecting_tick(&f, child, child);
	collecting_exit(&f, child, 0);
	collecting_keep_house(&f);
	collector_status(f.c, &st);
	cr_expect(st.processes == 2 && st.live == 1 && st.threads == 2);
	cr_expect_eq(f.c->table.n_processes, 2);
	collecting_tick(&f, child, child);
	collecting_poll(&f);
	cr_expect_eq(collecting_profile(&f)->n_samples, 2, "samples that come late");

	child = fork_by(target.pid);
	collecting_tick(&f, child, child);
	scripted_life(
		&f.engine, RBPF_RING_EXIT,
		&(struct rbpf_ring_life) { .h.ts = clock_ns(CLOCK_MONOTONIC) - 3 * NSEC_PER_SEC,
					   .h.tgid = (uint32_t)child,
					   .h.tid = (uint32_t)child,
					   .flags = RBPF_LIFE_LAST });
	collecting_poll(&f);
	collector_status(f.c, &st);
	cr_expect_eq(st.threads, 3);
	collecting_keep_house(&f);
	collector_status(f.c, &st);
	cr_expect(st.processes == 3 && st.live == 1 && st.threads == 2, "%zu threads", st.threads);
	cr_expect_eq(f.c->table.n_processes, 2);
	collecting_finish(&f);
	cr_expect_eq(collecting_profile(&f)->n_processes, 3);
	cr_expect_eq(collecting_profile(&f)->n_samples, 3);
}

/* ---- the code of a process ---- */

static void setup_native(void)
{
	collecting_init(&f, &(struct collector_options) { .native = true });
	target = target_start();
}

/* The target, of whose code the engine was told. */
static void start_with_code(void)
{
	const struct rbpf_ring_code_miss miss = { .h.type = RBPF_RING_CODE_MISS,
						  .h.tgid = (uint32_t)target.pid,
						  .addr = 0x1000,
						  .end = RBPF_NATIVE_NO_MAP };

	collecting_start(&f, &target);
	scripted_record(&f.engine, &miss, sizeof(miss));
	collecting_poll(&f);
	cr_assert(scripted_has(&f.engine.coded, target.pid));
}

/* A child executes a program before its birth is handled: what it inherited is not its code. */
Test(process_life, code_of_a_program_that_was_replaced, .init = setup_native, .fini = teardown)
{
	pid_t child;

	start_with_code();
	child = fork_by(target.pid);
	cr_expect(scripted_has(&f.engine.coded, child));
	collecting_poll(&f);
	cr_expect(scripted_has(&f.engine.coded, child), "as long as it has the same code");
	executed(child);
	collecting_poll(&f);
	cr_expect_not(scripted_has(&f.engine.coded, child));

	child = fork_by(target.pid);
	executed(child);
	collecting_poll(&f);
	cr_expect_not(scripted_has(&f.engine.coded, child), "it stays in the engine for ever");
	cr_expect_eq(f.engine.coded.n, 1);
	collecting_finish(&f);
}

/* The kernel has freed a child before its birth is handled: nobody else takes its code away. */
Test(process_life, code_of_what_ended, .init = setup_native, .fini = teardown)
{
	pid_t child;

	start_with_code();
	child = fork_by(target.pid);
	scripted_life(
		&f.engine, RBPF_RING_EXIT,
		&(struct rbpf_ring_life) { .h.ts = clock_ns(CLOCK_MONOTONIC) - 3 * NSEC_PER_SEC,
					   .h.tgid = (uint32_t)child,
					   .h.tid = (uint32_t)child,
					   .flags = RBPF_LIFE_LAST });
	freed(child);
	cr_expect_not(scripted_has(&f.engine.coded, child));
	collecting_keep_house(&f);
	collecting_keep_house(&f);
	cr_expect_eq(f.c->table.n_processes, 1, "it is let go");
	cr_expect_not(scripted_has(&f.engine.coded, child), "it stays in the engine for ever");
	cr_expect(scripted_has(&f.engine.coded, target.pid));
	collecting_finish(&f);
}

/* ---- without a word ---- */

/* Its exit was not told: the record of it was lost. */
Test(process_life, gone_without_a_word, .init = setup, .fini = teardown)
{
	const struct profile_process *p;
	uint64_t before;

	collecting_start(&f, &target);
	collecting_poll(&f);
	target_exit(&target, 0);
	collecting_keep_house(&f);
	cr_expect_not(collecting_process(&f, target.pid)->exited, "its exit may be on its way");
	expect_live(1);
	before = clock_ns(CLOCK_MONOTONIC);
	collecting_keep_house(&f);
	p = collecting_process(&f, target.pid);
	cr_expect(p->exited && p->exit_status == -1 && p->exit_ts > before);
	expect_live(0);
	cr_expect_eq(f.engine.followed.n, 0, "and nobody follows it");
	collecting_finish(&f);
}

Test(process_life, pid_that_is_used_again, .init = setup, .fini = teardown)
{
	pid_t child;
	uint32_t id;

	collecting_start(&f, &target);
	child = fork_by(target.pid);
	collecting_tick(&f, child, child);
	collecting_exit(&f, child, 1 << 8);
	freed(child);
	collecting_birth(&f, RBPF_RING_FORK, target.pid, target.pid, child);
	collecting_tick(&f, child, child);
	collecting_poll(&f);
	id = collecting_find(&f, child);
	cr_expect_eq(id, 2, "a process of its own");
	cr_expect_eq(collecting_thread(&f, child)->process, id);
	cr_expect_not(collecting_process(&f, child)->exited);
	cr_expect(collecting_profile(&f)->processes[1].exited);
	EXPECT_FOLLOWED(target.pid, child);
	expect_live(2);
	collecting_finish(&f);
	cr_expect_eq(collecting_profile(&f)->n_threads, 2);
}

/* A child that is known already is not made anew by a record that comes late. */
Test(process_life, child_that_is_known, .init = setup, .fini = teardown)
{
	pid_t child = target_fork(&target);

	cr_assert_eq(collector_add(f.c, child, false, &f.err), 0);
	collecting_start(&f, &target);
	collecting_birth(&f, RBPF_RING_FORK, target.pid, target.pid, child);
	collecting_poll(&f);
	cr_expect_eq(collecting_profile(&f)->n_processes, 2);
	EXPECT_FOLLOWED(target.pid, child);
	expect_live(2);
	collecting_finish(&f);
}
