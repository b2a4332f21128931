/* SPDX-License-Identifier: GPL-2.0-only */
/* When threads of a target begin and end, and the CPU time that they are said to have had. */
#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "sample/collector_state.h"
#include "support/collecting_target.h"
#include "target/process.h"

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
	runtime_is(RBPF_RING_FREE, RBPF_PID_LIMIT - 1, 9000); /* of none of its threads */
	f.engine.tasks = &(struct rbpf_task) { .tgid = (uint32_t)target.pid,
					       .tid = (uint32_t)target.pid,
					       .runtime = runtime_of(target.pid) + 300 };
	f.engine.n_tasks = 1;
	before = runtime_of(target.pid);
	collecting_finish(&f);
	cr_expect_eq(collecting_thread(&f, old)->cpu_ns, 1700, "what it took to end counts");
	cr_expect_eq(collecting_thread(&f, young)->cpu_ns, 5000, "it never goes back");
	cr_expect_geq(collecting_thread(&f, target.pid)->cpu_ns, 300, "asked for at the end");
	cr_expect(collecting_thread(&f, target.pid)->cpu_known);
	cr_expect_eq(f.totals.cpu_kernel_ns, 6700 + collecting_thread(&f, target.pid)->cpu_ns);
	cr_expect_eq(collecting_profile(&f)->n_threads, 3);
}

/* The kernel leaves some exits out on busy CPUs. An id may belong to another thread by then. */
Test(thread_life, exit_that_was_not_told, .init = setup, .fini = teardown)
{
	pid_t there = target_thread(&target), gone = target_thread(&target);
	uint64_t before = runtime_of(gone);
	struct tracked_process *p;

	collecting_start(&f, &target);
	collecting_tick(&f, target.pid, gone);
	collecting_tick(&f, target.pid, there);
	collecting_poll(&f);
	target_end_thread(&target, gone);
	runtime_is(RBPF_RING_FREE, gone, before + 1000);
	runtime_is(RBPF_RING_FREE, there, 3600 * NSEC_PER_SEC);
	collecting_poll(&f);
	cr_expect_eq(collecting_thread(&f, gone)->cpu_ns, 1000);
	cr_expect_lt(collecting_thread(&f, there)->cpu_ns, 3600 * NSEC_PER_SEC);
	p = process_table_find(&f.c->table, target.pid);
	cr_expect_neq(process_table_find_thread(p, gone)->ended_ns, 0);
	cr_expect_eq(process_table_find_thread(p, there)->ended_ns, 0);
	collecting_finish(&f);
}

/*
 * A thread that executes a program has the id of the main one from then on, and that has its: what
 * is freed with it is the main one.
 */
Test(thread_life, exec_by_another_thread, .init = setup, .fini = teardown)
{
	const pid_t tid = target_thread(&target);
	const uint64_t before = runtime_of(tid), second = NSEC_PER_SEC;
	struct tracked_process *p;

	collecting_start(&f, &target);
	collecting_tick(&f, target.pid, tid);
	collecting_tick(&f, target.pid, target.pid);
	collecting_poll(&f);
	runtime_is(RBPF_RING_EXIT, target.pid, runtime_of(target.pid) + 3 * second);
	target_end_thread(&target, tid); /* there is none with that id any more */
	runtime_is(RBPF_RING_FREE, tid, runtime_of(target.pid) + 3 * second);
	collecting_poll(&f);
	p = process_table_find(&f.c->table, target.pid);
	cr_expect_eq(process_table_find_thread(p, tid)->ended_ns, 0);
	scripted_life(&f.engine, RBPF_RING_EXEC,
		      &(struct rbpf_ring_life) { .h.tgid = (uint32_t)target.pid,
						 .h.tid = (uint32_t)target.pid,
						 .child = (uint32_t)tid,
						 .runtime = before + second });
	collecting_poll(&f);
	collecting_finish(&f);
	cr_expect_eq(collecting_thread(&f, tid)->cpu_ns, second,
		     "its own, not that of the main one");
}

/* Threads go on while what they did is still being named: that is no time of the recording. */
Test(thread_life, the_account_is_read_as_sampling_ends, .init = setup, .fini = teardown)
{
	size_t i = 0;

	collecting_start(&f, &target);
	collecting_tick(&f, target.pid, target.pid);
	collecting_finish(&f);
	while (i < f.engine.n_calls && f.engine.calls[i].op != SCRIPTED_STOP)
		i++;
	cr_assert_lt(i + 1, f.engine.n_calls);
	cr_expect_eq(f.engine.calls[i + 1].op, SCRIPTED_READ_THREADS);
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

/* It takes time to attach to many processes: threads end, begin, or both, until sampling begins. */
Test(thread_life, cpu_time_before_sampling, .init = setup, .fini = teardown)
{
	pid_t ended = target_thread(&target), young = target_thread(&target), brief;

	cr_assert_eq(collector_add(f.c, target.pid, false, &f.err), 0, "%s", f.err.msg);
	runtime_is(RBPF_RING_EXIT, ended, 3600 * NSEC_PER_SEC);
	target_end_thread(&target, young); /* the last one that was made */
	brief = born(target.pid);
	runtime_is(RBPF_RING_EXIT, brief, NSEC_PER_SEC);
	runtime_is(RBPF_RING_FREE, brief, NSEC_PER_SEC);
	cr_assert_eq(collector_start(f.c, &f.sink.sink, &f.err), 0, "%s", f.err.msg);
	runtime_is(RBPF_RING_EXIT, young, 3600 * NSEC_PER_SEC);
	runtime_is(RBPF_RING_FREE, young, 3600 * NSEC_PER_SEC);
	collecting_poll(&f);
	collecting_finish(&f);
	cr_expect_eq(f.totals.cpu_kernel_ns, 0, "%" PRIu64, f.totals.cpu_kernel_ns);
}
