/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which threads of a target get clocks of their own, and the CPU time that they are said to have
 * had.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "sample/collector_state.h"
#include "support/collecting.h"
#include "target/process.h"

/* A process that is waited for may never come. */

static struct collecting f;
static struct target target;

static void setup(void)
{
	collecting_init(&f, NULL);
	target = target_start();
}

static void teardown(void)
{
	target_end(&target);
	collecting_deinit(&f);
}

/* Each thread that the target has now has one perf event: its own or an inherited one. */
static void expect_events(pid_t pid)
{
	pid_t *tids;
	size_t n;

	cr_assert_eq(process_threads(pid, &tids, &n), 0);
	for (size_t i = 0; i < n; i++)
		cr_expect(scripted_has(&f.engine.clocks, tids[i]), "thread %zu has no perf event",
			  i);
	cr_expect_eq(f.engine.doubled, 0, "%zu threads have two", f.engine.doubled);
	free(tids);
}

/* A thread of the target made by thread @by, as the BPF programs tell it. */
static pid_t born(pid_t by)
{
	pid_t tid = target_thread(&target);

	collecting_birth(&f, RBPF_RING_THREAD, target.pid, by, tid);
	return tid;
}

Test(thread_life, each_gets_a_perf_event, .init = setup, .fini = teardown)
{
	for (int i = 0; i < 5; i++)
		target_thread(&target);
	collecting_start(&f, &target);
	expect_events(target.pid);
	cr_expect_eq(f.engine.ops[SCRIPTED_ADD_THREAD].asked, 6);
	collecting_poll(&f);
	collecting_poll(&f);
	cr_expect_eq(f.engine.ops[SCRIPTED_ADD_THREAD].asked, 6, "once");
	collecting_finish(&f);
}

Test(thread_life, sampled_threads_pass_theirs_on, .init = setup, .fini = teardown)
{
	pid_t tid, child;

	collecting_start(&f, &target);
	tid = born(target.pid);
	collecting_poll(&f);
	tid = born(tid);
	collecting_poll(&f);
	child = target_fork(&target);
	collecting_birth(&f, RBPF_RING_FORK, target.pid, tid, child);
	collecting_poll(&f);
	expect_events(target.pid);
	expect_events(child);
	cr_expect_eq(f.engine.ops[SCRIPTED_ADD_THREAD].asked, 1, "no more are asked for");
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_ADD_THREAD, tid), 0);
	collecting_finish(&f);
}

/* The main thread makes another one before it has its perf event, and one after that. */
static void make_threads(struct scripted_engine *e, const struct scripted_call *call)
{
	if (call->op != SCRIPTED_ADD_THREAD || e->ops[SCRIPTED_ADD_THREAD].asked != 1)
		return;
	scripted_drop(&e->clocks, target.pid);
	born(target.pid);
	scripted_put(&e->clocks, target.pid);
}

Test(thread_life, born_before_its_maker_has_a_perf_event, .init = setup, .fini = teardown)
{
	f.engine.after = make_threads;
	collecting_start(&f, &target);
	expect_events(target.pid);
	cr_expect_eq(f.engine.ops[SCRIPTED_ADD_THREAD].asked, 2, "it is found at the second look");
	collecting_finish(&f);
}

/* The drain that is followed by a birth, whose record is taken by a later one only. */
static size_t born_after;

static void make_after_drain(struct scripted_engine *e, const struct scripted_call *call)
{
	if (call->op == SCRIPTED_DRAIN && e->ops[SCRIPTED_DRAIN].asked == born_after)
		born(target.pid);
}

static void birth_after_drain(size_t nth)
{
	born_after = nth;
	f.engine.after = make_after_drain;
	collecting_start(&f, &target);
	collecting_poll(&f);
	expect_events(target.pid);
	collecting_finish(&f);
}

Test(thread_life, born_before_the_first_list, .init = setup, .fini = teardown)
{
	birth_after_drain(1);
}

Test(thread_life, born_before_the_second_list, .init = setup, .fini = teardown)
{
	birth_after_drain(2);
}

Test(thread_life, born_after_all_lists, .init = setup, .fini = teardown)
{
	birth_after_drain(3);
}

Test(thread_life, gone_before_it_gets_one, .init = setup, .fini = teardown)
{
	pid_t tid = target_thread(&target);
	struct tracked_thread *t;
	bool is_new;

	scripted_engine_fail(&f.engine, SCRIPTED_ADD_THREAD, 2, -ESRCH);
	collecting_start(&f, &target);
	cr_expect(scripted_has(&f.engine.clocks, target.pid));
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_ADD_THREAD, tid), 1,
		     "it is not tried again");
	cr_assert_eq(process_table_thread(&f.c->table, process_table_find(&f.c->table, target.pid),
					  tid, &t, &is_new),
		     0);
	cr_expect(!is_new && t->ended_ns, "it is let go like one whose exit was told");
	cr_expect_eq(f.warnings, 0, "%s", f.warning);
	collecting_finish(&f);
	cr_expect_eq(f.totals.counters[COUNTER_THREADS_LEFT_OUT], 0, "nothing of it is missing");
}

/* It is in the list still, but its exit was told. */
Test(thread_life, exited_before_it_gets_one, .init = setup, .fini = teardown)
{
	pid_t tid = target_thread(&target);

	cr_assert_eq(collector_add(f.c, target.pid, false, &f.err), 0);
	scripted_life(&f.engine, RBPF_RING_EXIT,
		      &(struct rbpf_ring_life) { .h.tgid = (uint32_t)target.pid,
						 .h.tid = (uint32_t)tid });
	cr_assert_eq(collector_start(f.c, &f.sink.sink, &f.err), 0);
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_ADD_THREAD, tid), 0);
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_ADD_THREAD, target.pid), 1);
	collecting_finish(&f);
}

Test(thread_life, id_that_is_used_again, .init = setup, .fini = teardown)
{
	pid_t tid = target_thread(&target);

	collecting_start(&f, &target);
	scripted_life(&f.engine, RBPF_RING_EXIT,
		      &(struct rbpf_ring_life) { .h.tgid = (uint32_t)target.pid,
						 .h.tid = (uint32_t)tid,
						 .runtime = 7 });
	collecting_tick(&f, target.pid, tid);
	collecting_birth(&f, RBPF_RING_THREAD, target.pid, target.pid, tid);
	collecting_tick(&f, target.pid, tid);
	collecting_poll(&f);
	collecting_finish(&f);
	cr_expect_eq(collecting_profile(&f)->n_threads, 2, "another thread");
	cr_expect_eq(f.engine.ops[SCRIPTED_ADD_THREAD].asked, 2);
}

Test(thread_life, what_exited_is_let_go, .init = setup, .fini = teardown)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct collector_status st;

	for (uint64_t ago = 3; ago > 0; ago--) {
		pid_t tid = target_thread(&target);

		if (ago == 3)
			collecting_start(&f, &target);
		scripted_life(&f.engine, RBPF_RING_EXIT,
			      &(struct rbpf_ring_life) { .h.ts = now - ago * NSEC_PER_SEC,
							 .h.tgid = (uint32_t)target.pid,
							 .h.tid = (uint32_t)tid });
	}
	collecting_poll(&f);
	collector_status(f.c, &st);
	cr_expect_eq(st.threads, 2, "those of 2 s ago and more: %zu are left", st.threads);
	collecting_finish(&f);
}

Test(thread_life, other_failures_end_it, .init = setup, .fini = teardown)
{
	cr_assert_eq(collector_add(f.c, target.pid, false, &f.err), 0);
	scripted_engine_fail(&f.engine, SCRIPTED_ADD_THREAD, 1, -EPERM);
	cr_expect_eq(collector_start(f.c, &f.sink.sink, &f.err), -EPERM);
	cr_expect_eq(f.err.code, -EPERM);
	cr_expect_not_null(strstr(f.err.msg, "scripted: thread"), "%s", f.err.msg);
}

/* ---- no descriptors left ---- */

Test(thread_life, too_many_open_files, .init = setup, .fini = teardown)
{
	target_thread(&target);
	target_thread(&target);
	scripted_engine_fail(&f.engine, SCRIPTED_ADD_THREAD, 2, -EMFILE);
	collecting_start(&f, &target);
	collecting_poll(&f);
	cr_expect_eq(f.engine.ops[SCRIPTED_ADD_THREAD].asked, 3, "the others get theirs");
	cr_expect_eq(f.engine.clocks.n, 2);
	cr_expect_eq(f.warnings, 1);
	cr_expect_not_null(strstr(f.warning, ": 1 of its 3 threads are not sampled"), "%s",
			   f.warning);
	collecting_finish(&f);
	cr_expect_eq(f.totals.counters[COUNTER_THREADS_LEFT_OUT], 1);
}

/*
 * What a thread without a perf event makes has none to inherit, so it must be asked for, or be
 * counted.
 */
Test(thread_life, children_of_one_left_out, .init = setup, .fini = teardown)
{
	pid_t tid, child;

	scripted_engine_fail(&f.engine, SCRIPTED_ADD_THREAD, 1, -EMFILE);
	collecting_start(&f, &target);
	cr_expect_eq(f.engine.clocks.n, 0);
	child = target_fork(&target);
	collecting_birth(&f, RBPF_RING_FORK, target.pid, target.pid, child);
	collecting_poll(&f);
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_ADD_THREAD, child), 1, "the child");
	tid = born(target.pid);
	scripted_engine_fail(&f.engine, SCRIPTED_ADD_THREAD, 1, -EMFILE);
	collecting_poll(&f);
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_ADD_THREAD, tid), 1, "the thread");
	cr_expect_eq(f.engine.clocks.n, 1, "there is room for one");
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_ADD_THREAD, target.pid), 1,
		     "what was counted is not tried again");
	collecting_finish(&f);
	cr_expect_eq(f.totals.counters[COUNTER_THREADS_LEFT_OUT], 2);
}

/* ---- CPU time ---- */

/* Of a thread of the target, as soon as it waits. */
static uint64_t runtime_of(pid_t tid)
{
	uint64_t ns = 0;

	while (thread_state(target.pid, tid) != 'S')
		usleep(100);
	cr_assert_eq(thread_cpu_ns(tid, &ns), 0);
	return ns;
}

static void runtime_is(enum rbpf_ring_record type, pid_t tid, uint64_t runtime)
{
	scripted_life(&f.engine, type,
		      &(struct rbpf_ring_life) { .h.tgid = (uint32_t)target.pid,
						 .h.tid = (uint32_t)tid,
						 .runtime = runtime });
}

/* What a thread had before does not count, of one that was born later all does. */
Test(thread_life, cpu_time, .init = setup, .fini = teardown)
{
	pid_t old = target_thread(&target), young;
	uint64_t before = runtime_of(old);

	cr_assert_gt(before, 0);
	collecting_start(&f, &target);
	young = born(target.pid);
	collecting_tick(&f, target.pid, old);
	collecting_tick(&f, target.pid, young);
	collecting_tick(&f, target.pid, target.pid);
	runtime_is(RBPF_RING_EXIT, old, before + 1000);
	runtime_is(RBPF_RING_EXIT, young, 5000);
	collecting_poll(&f);
	cr_expect_eq(collecting_thread(&f, old)->cpu_ns, 1000);
	cr_expect_eq(collecting_thread(&f, young)->cpu_ns, 5000);
	runtime_is(RBPF_RING_FREE, old, before + 1700);
	runtime_is(RBPF_RING_FREE, young, 4000);
	runtime_is(RBPF_RING_FREE, target.pid + 1, 9000);
	f.engine.tasks = &(struct rbpf_task) { .tgid = (uint32_t)target.pid,
					       .tid = (uint32_t)target.pid,
					       .runtime = runtime_of(target.pid) + 300 };
	f.engine.n_tasks = 1;
	before = runtime_of(target.pid);
	f.engine.cpu_ns = 123456;
	collecting_finish(&f);
	cr_expect_eq(collecting_thread(&f, old)->cpu_ns, 1700, "what it took to end counts");
	cr_expect_eq(collecting_thread(&f, young)->cpu_ns, 5000, "it never goes back");
	cr_expect_geq(collecting_thread(&f, target.pid)->cpu_ns, 300, "asked for at the end");
	cr_expect(collecting_thread(&f, target.pid)->cpu_known);
	cr_expect_eq(f.totals.cpu_kernel_ns, 123456, "by the clocks themselves");
	cr_expect_eq(collecting_profile(&f)->n_threads, 3);
}

/*
 * The programs that see waits run before all threads have a perf event: what a thread had until
 * then does not count either.
 */
Test(thread_life, cpu_time_of_one_known_by_its_waits, .init = setup, .fini = teardown)
{
	pid_t old = target_thread(&target);
	const uint64_t before = runtime_of(old);
	struct profile_meta *meta = &f.sink.out.profile.meta;
	const struct rbpf_ring_wait waits = { .h.type = RBPF_RING_WAIT,
					      .h.ts = 200,
					      .h.tgid = (uint32_t)target.pid,
					      .h.tid = (uint32_t)old,
					      .since = 100,
					      .wait = RBPF_WAIT_LOCK,
					      .comm = "target" };

	cr_assert_gt(before, 0);
	meta->n_events = engine_events(&f.engine.engine, meta->events);
	cr_assert_eq(collector_add(f.c, target.pid, false, &f.err), 0, "%s", f.err.msg);
	scripted_record(&f.engine, &waits, sizeof(waits));
	cr_assert_eq(collector_start(f.c, &f.sink.sink, &f.err), 0, "%s", f.err.msg);
	runtime_is(RBPF_RING_EXIT, old, before + 1000);
	collecting_poll(&f);
	cr_expect_eq(collecting_thread(&f, old)->cpu_ns, 1000);
	collecting_finish(&f);
}
