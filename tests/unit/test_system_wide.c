/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which processes of the machine are followed, and what becomes of those that are not. As the BPF
 * programs tell of a process that executes what a layout is kept for (RBPF_LIFE_PRESET), any child
 * of the test is a Ruby here. Other processes of the machine may be Rubies, too: nothing is said of
 * those.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "sample/collector_state.h"
#include "support/collecting.h"
#include "target/cpus.h"
#include "target/remote.h"
#include "target/selection.h"

static struct collecting f;
static struct target target;
static struct selection selection;

/* Begin to record what @sel selects, NULL: all. */
static void start_with(const struct selection *sel)
{
	int r;

	collecting_init(&f, &(struct collector_options) { .system_wide = true, .selection = sel });
	target = target_start();
	r = collector_scan(f.c, &f.err);
	if (r == -EACCES || r == -EPERM)
		cr_skip_test("needs CAP_PERFMON: %s", f.err.msg);
	cr_assert_eq(r, 0, "%s", f.err.msg);
}

static void start(void)
{
	start_with(NULL);
	cr_assert_eq(collector_start(f.c, &f.sink.sink, &f.err), 0, "%s", f.err.msg);
}

/* Nobody has this uid. */
static void start_with_none_selected(void)
{
	cr_assert_eq(selection_init(&selection, NULL, NULL, NULL, "4294967293", &f.err), 0);
	start_with(&selection);
	cr_assert_eq(collector_start(f.c, &f.sink.sink, &f.err), 0, "%s", f.err.msg);
}

static void teardown(void)
{
	target_end(&target);
	collecting_deinit(&f);
	selection_deinit(&selection);
}

static bool followed(pid_t pid)
{
	return scripted_has(&f.engine.followed, pid);
}

static uint64_t executed(pid_t tgid, uint32_t flags, uint64_t runtime)
{
	return scripted_life(&f.engine, RBPF_RING_EXEC,
			     &(struct rbpf_ring_life) { .h.tgid = (uint32_t)tgid,
							.h.tid = (uint32_t)tgid,
							.runtime = runtime,
							.flags = flags,
							.exe.inode = 9,
							.comm = "script" });
}

/*
 * Take the records alone: collector_poll() would also look at what others on the machine have
 * mapped.
 */
static void drain(void)
{
	cr_assert_eq(collector_drain(f.c), 0);
}

/* A pid that no process has: that of one that has just ended. */
static pid_t gone(void)
{
	struct target t = target_start();

	target_exit(&t, 0);
	close(t.fd);
	return t.pid;
}

Test(system_wide, cpus, .init = start, .fini = teardown)
{
	struct cpus cpus = CPUS_INIT;

	cr_assert_eq(cpus_online(&cpus, &f.err), 0);
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_SET_CPUS, (pid_t)cpus.n), 1);
	usleep(260000);
	collecting_poll(&f);
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_SET_CPUS, (pid_t)cpus.n), 2,
		     "it is looked at again");
	cr_expect_eq(f.engine.ops[SCRIPTED_ADD_THREAD].asked, 0, "threads need no clocks");
	usleep(260000);
	scripted_engine_fail(&f.engine, SCRIPTED_SET_CPUS, 1, -EIO);
	cr_expect_eq(collector_poll(f.c, &f.err), -EIO);
	cr_expect_str_eq(f.err.msg, "scripted: CPUs");
	cpus_deinit(&cpus);
}

Test(system_wide, life_of_a_ruby, .init = start, .fini = teardown)
{
	const struct profile_process *p;
	pid_t child;
	uint64_t ts;

	cr_expect_eq(collecting_find(&f, target.pid), PROFILE_NONE, "it is none yet");
	executed(target.pid, RBPF_LIFE_PRESET, 1000);
	collecting_tick(&f, target.pid, target.pid);
	child = target_fork(&target);
	collecting_birth(&f, RBPF_RING_FORK, target.pid, target.pid, child);
	collecting_tick(&f, child, child);
	drain();
	cr_expect(followed(target.pid) && followed(child));
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_FOLLOW, target.pid), 0,
		     "the BPF programs have begun to by themselves");
	cr_expect_eq(collecting_process(&f, child)->parent, collecting_find(&f, target.pid));
	ts = scripted_life(&f.engine, RBPF_RING_EXIT,
			   &(struct rbpf_ring_life) { .h.tgid = (uint32_t)target.pid,
						      .h.tid = (uint32_t)target.pid,
						      .runtime = 5000,
						      .exit_code = 2 << 8,
						      .flags = RBPF_LIFE_LAST });
	drain();
	collecting_finish(&f);
	p = collecting_process(&f, target.pid);
	cr_expect(p->exited && p->exit_status == 2 << 8 && p->exit_ts == ts);
	cr_expect_eq(collecting_thread(&f, target.pid)->cpu_ns, 4000, "since it executed that");
	cr_expect_eq(f.totals.cpu_kernel_ns, 4000);
	cr_expect_eq(f.totals.samples, 2);
	cr_expect_eq(f.totals.lost, 0);
	cr_expect_eq(f.engine.ops[SCRIPTED_ADD_THREAD].asked, 0, "no clocks of threads");
}

Test(system_wide, other_programs, .init = start, .fini = teardown)
{
	executed(target.pid, 0, 0);
	drain();
	cr_expect_not(followed(target.pid));
	cr_expect_eq(collecting_find(&f, target.pid), PROFILE_NONE);
	collecting_finish(&f);
	cr_expect_eq(f.totals.counters[COUNTER_NOT_FOLLOWED], 0);
}

/* A Ruby executes something else: it has ended for us. Then that executes a Ruby again. */
Test(system_wide, exec_of_another_program, .init = start, .fini = teardown)
{
	const struct profile_process *p;
	uint64_t ts;

	executed(target.pid, RBPF_LIFE_PRESET, 1000);
	collecting_tick(&f, target.pid, target.pid);
	ts = executed(target.pid, 0, 3500);
	drain();
	cr_expect_not(followed(target.pid));
	p = collecting_process(&f, target.pid);
	cr_expect(p->exited && p->exit_ts == ts && p->exit_status == -1);
	cr_expect_eq(collecting_thread(&f, target.pid)->cpu_ns, 2500);
	executed(target.pid, RBPF_LIFE_PRESET, 9000);
	collecting_tick(&f, target.pid, target.pid);
	scripted_life(&f.engine, RBPF_RING_EXIT,
		      &(struct rbpf_ring_life) { .h.tgid = (uint32_t)target.pid,
						 .h.tid = (uint32_t)target.pid,
						 .runtime = 9100,
						 .flags = RBPF_LIFE_LAST });
	collecting_finish(&f);
	cr_expect(followed(target.pid));
	cr_expect_gt(collecting_process(&f, target.pid), p, "as a process of its own");
	cr_expect_eq(collecting_thread(&f, target.pid)->cpu_ns, 100);
	cr_expect_eq(f.totals.samples, 2);
}

/*
 * The same before user space has seen the other program, as with "#!/usr/bin/env ruby": what is to
 * be forgotten then is that Ruby.
 */
Test(system_wide, exec_of_another_program_that_executes_a_ruby, .init = start, .fini = teardown)
{
	executed(target.pid, RBPF_LIFE_PRESET, 1000);
	drain();
	executed(target.pid, 0, 3500);
	executed(target.pid, RBPF_LIFE_PRESET, 9000);
	collecting_tick(&f, target.pid, target.pid);
	drain();
	cr_expect(followed(target.pid));
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_FOLLOW, target.pid), 0,
		     "its layout stays where it was not forgotten");
	collecting_finish(&f);
	cr_expect_eq(f.totals.samples, 1);
}

/* The BPF programs follow it until user space has seen what it executed. */
Test(system_wide, exec_of_another_program_that_is_told_late, .init = start, .fini = teardown)
{
	static const enum rbpf_ring_record ends[] = { RBPF_RING_EXIT, RBPF_RING_FREE };

	executed(target.pid, RBPF_LIFE_PRESET, 1000);
	collecting_tick(&f, target.pid, target.pid);
	executed(target.pid, 0, 3500);
	collecting_tick(&f, target.pid, target.pid);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		scripted_life(&f.engine, ends[i],
			      &(struct rbpf_ring_life) { .h.tgid = (uint32_t)target.pid,
							 .h.tid = (uint32_t)target.pid,
							 .runtime = 900000,
							 .flags = RBPF_LIFE_LAST });
	collecting_finish(&f);
	cr_expect_eq(collecting_thread(&f, target.pid)->cpu_ns, 2500);
	cr_expect_eq(f.totals.samples, 1);
}

/* ---- what is not followed ---- */

Test(system_wide, not_selected, .init = start_with_none_selected, .fini = teardown)
{
	pid_t child = target_fork(&target);

	executed(target.pid, RBPF_LIFE_PRESET, 0);
	collecting_birth(&f, RBPF_RING_FORK, target.pid, target.pid, child);
	collecting_tick(&f, target.pid, target.pid);
	cr_expect(followed(target.pid), "until it is looked at");
	drain();
	cr_expect(!followed(target.pid) && !followed(child));
	collecting_finish(&f);
	cr_expect_eq(collecting_profile(&f)->n_processes, 0);
	cr_expect_eq(f.totals.lost, 0, "nobody asked for it");
	cr_expect_eq(f.totals.counters[COUNTER_NOT_FOLLOWED], 0);
	cr_expect_eq(f.totals.counters[COUNTER_ENDED_UNSEEN], 0);
}

/* It cannot be told whether it would have been selected. */
Test(system_wide, ended_before_it_could_be_selected, .init = start_with_none_selected,
     .fini = teardown)
{
	pid_t pid = gone();

	executed(pid, RBPF_LIFE_PRESET, 0);
	drain();
	cr_expect_not(followed(pid));
	collecting_finish(&f);
	cr_expect_eq(f.totals.counters[COUNTER_ENDED_UNSEEN], 1);
	cr_expect_eq(collecting_profile(&f)->n_processes, 0);
}

static uint64_t not_followed_after(pid_t pid)
{
	executed(pid, RBPF_LIFE_PRESET, 0);
	collecting_tick(&f, pid, pid);
	drain();
	cr_expect_not(followed(pid));
	cr_expect_eq(collecting_find(&f, pid), PROFILE_NONE);
	return f.c->totals.counters[COUNTER_NOT_FOLLOWED];
}

/* It goes on without those that there is no room for, which are counted. */
Test(system_wide, full_table, .init = start, .fini = teardown)
{
	const size_t live = f.c->live;

	f.c->live = RBPF_MAX_PROCS;
	cr_expect_eq(not_followed_after(target.pid), 1);
	cr_expect_eq(not_followed_after(gone()), 2);
	f.c->live = live;
	executed(target.pid, RBPF_LIFE_PRESET, 0);
	collecting_tick(&f, target.pid, target.pid);
	collecting_finish(&f);
	cr_expect(followed(target.pid), "there is room again");
	cr_expect_eq(f.totals.samples, 1);
	cr_expect_eq(f.totals.lost, 2);
}

/* It could not be examined: that does not say that it has ended. It is examined later. */
Test(system_wide, cannot_be_read_at_first, .init = start, .fini = teardown)
{
	const struct profile_process *p;

	remote_note_wait(target.pid, 1, 0, true);
	executed(target.pid, RBPF_LIFE_PRESET, 0);
	collecting_tick(&f, target.pid, target.pid);
	drain();
	for (int i = 0; i < 3; i++)
		cr_assert_eq(life_sweep(f.c, clock_ns(CLOCK_MONOTONIC)), 0);
	cr_expect(followed(target.pid));
	p = collecting_process(&f, target.pid);
	cr_expect_str_eq(collecting_str(&f, p->cmdline), "[script]");
	cr_expect_not(p->exited);

	remote_reset();
	cr_assert_eq(life_sweep(f.c, clock_ns(CLOCK_MONOTONIC)), 0);
	cr_expect_eq(p->uid, getuid());
	cr_expect_str_not_empty(collecting_str(&f, p->exe));
	collecting_finish(&f);
	cr_expect_eq(f.totals.samples, 1);
	cr_expect_eq(f.totals.counters[COUNTER_ENDED_UNSEEN], 0);
}

/* ---- what lives for a moment ---- */

Test(system_wide, ended_before_it_was_examined, .init = start, .fini = teardown)
{
	const struct profile_process *p;
	struct rbpf_ring_stack stack = { .h.type = RBPF_RING_STACK, .stack = 5 };
	pid_t pid = gone();

	executed(pid, RBPF_LIFE_PRESET, 0);
	stack.h.tgid = stack.h.tid = (uint32_t)pid;
	scripted_record(&f.engine, &stack, sizeof(stack));
	scripted_record(&f.engine, &stack, sizeof(stack));
	collecting_tick(&f, pid, pid);
	collecting_exit(&f, pid, 1 << 8);
	drain();
	collecting_finish(&f);
	p = collecting_process(&f, pid);
	cr_expect_str_eq(collecting_str(&f, p->cmdline), "[script]", "what the BPF programs know");
	cr_expect_eq(p->uid, PROFILE_NONE);
	cr_expect(p->exited && p->exit_status == 1 << 8);
	cr_expect_eq(f.totals.samples, 1);
	cr_expect_eq(f.totals.counters[COUNTER_ENDED_UNSEEN], 1, "once");
}

/* ---- what maps a VM ---- */

/* The mappings of a process show that it is a Ruby; the engine has no room for it. */
Test(system_wide, engine_without_room, .init = start, .fini = teardown)
{
	struct tracked_process *p;

	scripted_engine_fail(&f.engine, SCRIPTED_FOLLOW, 1, -E2BIG);
	cr_expect_eq(life_add(f.c, target.pid, 0, false, &p, NULL), -E2BIG);
	cr_expect_not(followed(target.pid));
	drain();
	collecting_finish(&f);
	cr_expect_eq(f.totals.counters[COUNTER_NOT_FOLLOWED], 1);
	cr_expect_eq(collecting_find(&f, target.pid), PROFILE_NONE);
}

static void map_code(size_t times)
{
	void *code;

	while (times--) {
		code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		cr_assert_neq(code, MAP_FAILED);
		munmap(code, 4096);
	}
}

/* The BPF programs follow what executes another program until they are told to forget it. */
Test(system_wide, exec_of_another_program_that_was_lost, .init = start, .fini = teardown)
{
	scripted_put(&f.engine.followed, target.pid);
	f.c->totals.counters[RBPF_CNT_LOST_LIFE] = 1;
	collecting_tick(&f, target.pid, target.pid);
	drain();
	cr_expect_not(followed(target.pid));
	collecting_finish(&f);
	cr_expect_eq(collecting_find(&f, target.pid), PROFILE_NONE);
}

/* More code is mapped than is read in time. All processes are looked into, but a few at a time. */
Test(system_wide, records_of_maps_that_are_lost, .init = start, .fini = teardown)
{
	struct user *user = users_get(&f.c->users, getuid());

	/* That some were lost is told before the next one on that CPU. */
	for (size_t i = 0; i < 100 && !f.c->mmaps_lost; i++) {
		map_code(20000);
		user->spent_until_ns = 0;
		cr_assert_eq(system_wide_poll(f.c), 0);
	}
	cr_expect(f.c->mmaps_lost);
	cr_expect_null(f.c->deferred, "not while the engine waits to be drained");
	user->spent_until_ns = 0; /* to look at what mapped code may have taken longer than usual */
	cr_assert_eq(system_wide_retry(f.c), 0);
	cr_expect_not(f.c->mmaps_lost);
	cr_expect_not_null(f.c->deferred);
	cr_expect_gt(user->spent_until_ns, 0);
	cr_expect_eq(f.c->totals.counters[COUNTER_LOOKS_PUT_OFF], 0, "that is of a user's share");
}

/* ---- CPU time ---- */

/* Of a thread that was there when it began, what it had before does not count. */
Test(system_wide, cpu_time_from_the_beginning, .fini = teardown)
{
	struct rbpf_task task = { .runtime = 70000 };
	struct tracked_process *p;

	start_with(NULL);
	task.tgid = task.tid = (uint32_t)target.pid;
	f.engine.tasks = &task;
	f.engine.n_tasks = 1;
	cr_assert_eq(life_add(f.c, target.pid, 0, false, &p, &f.err), 0, "%s", f.err.msg);
	cr_assert_eq(collector_start(f.c, &f.sink.sink, &f.err), 0, "%s", f.err.msg);
	cr_expect(followed(target.pid));
	collecting_tick(&f, target.pid, target.pid);
	drain();
	task.runtime = 70123;
	collecting_finish(&f);
	cr_expect_eq(collecting_thread(&f, target.pid)->cpu_ns, 123);
	cr_expect_eq(f.totals.cpu_kernel_ns, 123);
}
