/* SPDX-License-Identifier: GPL-2.0-only */
/* Which clocks see the threads of a target: their own, or those of the CPUs. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "sample/collector_state.h"
#include "support/collecting_target.h"
#include "target/process.h"

static size_t added(void)
{
	return f.engine.ops[SCRIPTED_ADD_THREAD].asked;
}

/* Until all that have begun are old enough for clocks of their own. */
static void grow_up(void)
{
	collecting_keep_house(&f);
	collecting_keep_house(&f);
	collecting_poll(&f);
}

/* The last time that @op was asked for @id; NULL: it never was. */
static const struct scripted_call *last_call(enum scripted_op op, pid_t id)
{
	for (size_t i = f.engine.n_calls; i-- > 0;)
		if (f.engine.calls[i].op == op && f.engine.calls[i].id == id)
			return &f.engine.calls[i];
	return NULL;
}

/* Threads of @pid that began before this have clocks of their own. */
static uint64_t clocked(pid_t pid)
{
	const struct scripted_call *call = last_call(SCRIPTED_SET_CLOCKED, pid);

	return call ? call->since_ns : 0;
}

/* Whether all CPUs have clocks, or none has. */
static bool cpus_have_clocks(void)
{
	struct cpus cpus = CPUS_INIT;
	pid_t n, now = 0;

	cr_assert_eq(cpus_online(&cpus, &f.err), 0);
	n = (pid_t)cpus.n;
	cpus_deinit(&cpus);
	for (size_t i = 0; i < f.engine.n_calls; i++)
		if (f.engine.calls[i].op == SCRIPTED_SET_CPUS)
			now = f.engine.calls[i].id;
	cr_assert(!now || now == n, "%d of %d", (int)now, (int)n);
	return now;
}

Test(clocks, those_that_live_get_their_own, .init = setup, .fini = teardown)
{
	pid_t tids[5];
	uint64_t before;

	for (size_t i = 0; i < ARRAY_SIZE(tids); i++)
		tids[i] = target_thread(&target);
	before = clock_ns(CLOCK_MONOTONIC);
	collecting_start(&f, &target);
	collecting_poll(&f);
	collecting_poll(&f);
	for (size_t i = 0; i < ARRAY_SIZE(tids); i++)
		cr_expect(scripted_has(&f.engine.clocks, tids[i]), "thread %zu has none", i);
	cr_expect(scripted_has(&f.engine.clocks, target.pid));
	cr_expect_eq(added(), 6, "once");
	cr_expect_geq(clocked(target.pid), before);
	collecting_finish(&f);
}

/* What lives for less than a period would not be seen by a clock of its own. */
Test(clocks, those_of_cpus_see_what_begins_later, .init = setup, .fini = teardown)
{
	uint64_t before;
	pid_t child;

	collecting_start(&f, &target);
	before = clock_ns(CLOCK_MONOTONIC);
	born(target.pid);
	collecting_poll(&f);
	cr_expect(cpus_have_clocks());
	cr_expect_lt(clocked(target.pid), before);
	child = target_fork(&target);
	collecting_birth(&f, RBPF_RING_FORK, target.pid, target.pid, child);
	collecting_poll(&f);
	cr_expect(cpus_have_clocks());
	cr_expect_eq(clocked(child), 0);
	cr_expect_eq(added(), 1);
	collecting_finish(&f);
}

Test(clocks, those_that_go_on_to_live_get_their_own, .init = setup, .fini = teardown)
{
	pid_t tid, child;
	uint64_t after;

	collecting_start(&f, &target);
	tid = born(target.pid);
	collecting_tick(&f, target.pid, tid);
	collecting_poll(&f);
	after = clock_ns(CLOCK_MONOTONIC);
	grow_up();
	cr_expect(scripted_has(&f.engine.clocks, tid));
	cr_expect_gt(clocked(target.pid), after);
	cr_expect_eq(added(), 2, "the others have theirs");
	child = target_fork(&target);
	collecting_birth(&f, RBPF_RING_FORK, target.pid, target.pid, child);
	collecting_poll(&f);
	after = clock_ns(CLOCK_MONOTONIC);
	grow_up();
	cr_expect(scripted_has(&f.engine.clocks, child));
	cr_expect_gt(clocked(child), after);
	cr_expect_lt(clocked(target.pid), after);
	scripted_life(&f.engine, RBPF_RING_EXIT,
		      &(struct rbpf_ring_life) { .h.tgid = (uint32_t)target.pid,
						 .h.tid = (uint32_t)tid,
						 .runtime = 7000 });
	collecting_finish(&f);
	cr_expect_eq(collecting_thread(&f, tid)->cpu_ns, 7000, "all that it has had");
}

static void born_many(pid_t first, pid_t n)
{
	for (pid_t i = 0; i < n; i++)
		collecting_birth(&f, RBPF_RING_THREAD, target.pid, target.pid, first + i);
	cr_assert_eq(collector_drain(f.c), 0);
}

/* They wait their turn, whatever was there before them. */
Test(clocks, of_very_many, .init = setup, .fini = teardown)
{
	const pid_t first = 5 << 20; /* no ids of anything */

	collecting_start(&f, &target);
	born_many(first, 2000);
	usleep(COLLECTING_HOUSE_US / 2);
	born_many(first + 2000, 1000);
	for (int i = 0; i < 100 && f.engine.clocks.n < 3001; i++) {
		usleep(COLLECTING_HOUSE_US / 25);
		collecting_poll(&f);
	}
	cr_expect_eq(added(), 3001, "one for each");
	for (pid_t i = 0; i < 3000; i++)
		cr_assert(scripted_has(&f.engine.clocks, first + i), "%d", (int)i);
	collecting_finish(&f);
}

Test(clocks, those_of_cpus_go_when_they_are_not_needed, .init = setup, .fini = teardown)
{
	const uint64_t minute = 60 * NSEC_PER_SEC;
	size_t asked;
	uint64_t now;

	collecting_start(&f, &target);
	cr_expect(cpus_have_clocks(), "something may be about to begin");
	cr_expect_eq(collector_pause_ms(f.c), 50);
	now = clock_ns(CLOCK_MONOTONIC) + minute;
	cr_assert_eq(clocks_poll(f.c, now, &f.err), 0);
	cr_expect(!cpus_have_clocks());
	cr_expect_eq(collector_pause_ms(f.c), 250, "so little is met for the first time");
	asked = f.engine.ops[SCRIPTED_SET_CPUS].asked;
	cr_assert_eq(clocks_poll(f.c, now + minute, &f.err), 0);
	cr_expect_eq(f.engine.ops[SCRIPTED_SET_CPUS].asked, asked);
	born(target.pid);
	collecting_poll(&f);
	cr_expect(cpus_have_clocks(), "they come back");
	cr_expect_eq(collector_pause_ms(f.c), 50);
	collecting_finish(&f);
}

/* However long that takes: nothing else sees them. */
Test(clocks, those_of_cpus_stay_while_threads_wait, .init = setup, .fini = teardown)
{
	const uint64_t minute = 60 * NSEC_PER_SEC, now = clock_ns(CLOCK_MONOTONIC);

	collecting_start(&f, &target);
	born(target.pid);
	cr_assert_eq(collector_drain(f.c), 0);
	cr_assert_eq(clocks_poll(f.c, now + minute, &f.err), 0);
	cr_expect(cpus_have_clocks());
	cr_expect_eq(added(), 2);
	cr_assert_eq(clocks_poll(f.c, now + 2 * minute, &f.err), 0);
	cr_expect(!cpus_have_clocks());
	collecting_finish(&f);
}

Test(clocks, cpus_that_come_and_go, .init = setup, .fini = teardown)
{
	size_t asked;
	uint64_t now;

	collecting_start(&f, &target);
	asked = f.engine.ops[SCRIPTED_SET_CPUS].asked;
	now = clock_ns(CLOCK_MONOTONIC) + NSEC_PER_SEC;
	cr_assert_eq(clocks_poll(f.c, now, &f.err), 0);
	cr_expect_eq(f.engine.ops[SCRIPTED_SET_CPUS].asked, asked + 1, "it is looked at again");
	scripted_engine_fail(&f.engine, SCRIPTED_SET_CPUS, 1, -EIO);
	cr_expect_eq(clocks_poll(f.c, now + NSEC_PER_SEC, &f.err), -EIO);
	cr_expect_str_eq(f.err.msg, "scripted: CPUs");
}

/* They come back without the clocks that they had. */
Test(clocks, of_a_machine_that_was_suspended, .init = setup, .fini = teardown)
{
	const struct scripted_call *last;
	size_t asked;

	collecting_start(&f, &target);
	asked = f.engine.ops[SCRIPTED_SET_CPUS].asked;
	f.c->suspended_ns -= NSEC_PER_SEC;
	cr_assert_eq(clocks_poll(f.c, clock_ns(CLOCK_MONOTONIC) + NSEC_PER_SEC, &f.err), 0);
	cr_assert_eq(f.engine.ops[SCRIPTED_SET_CPUS].asked, asked + 2);
	last = &f.engine.calls[f.engine.n_calls - 1];
	cr_expect(last[-1].op == SCRIPTED_SET_CPUS && !last[-1].id, "all are closed");
	cr_expect(last->op == SCRIPTED_SET_CPUS && last->id, "and opened");
	collecting_finish(&f);
}

/* ---- what ends ---- */

static void ended(enum rbpf_ring_record type, pid_t tid)
{
	scripted_life(&f.engine, type,
		      &(struct rbpf_ring_life) { .h.tgid = (uint32_t)target.pid,
						 .h.tid = (uint32_t)tid });
}

/* Freeing its memory takes CPU time, too. */
Test(clocks, of_a_thread_that_ends, .init = setup, .fini = teardown)
{
	pid_t tid = target_thread(&target);

	collecting_start(&f, &target);
	ended(RBPF_RING_EXIT, tid);
	collecting_poll(&f);
	cr_expect_null(last_call(SCRIPTED_REMOVE_THREAD, tid), "it goes on until it is freed");
	ended(RBPF_RING_FREE, tid);
	collecting_poll(&f);
	cr_expect_not_null(last_call(SCRIPTED_REMOVE_THREAD, tid));
	cr_expect_null(last_call(SCRIPTED_REMOVE_THREAD, target.pid));
	collecting_finish(&f);
}

Test(clocks, of_an_id_that_is_used_again, .init = setup, .fini = teardown)
{
	pid_t tid = target_thread(&target);

	collecting_start(&f, &target);
	ended(RBPF_RING_EXIT, tid);
	collecting_birth(&f, RBPF_RING_THREAD, target.pid, target.pid, tid);
	collecting_poll(&f);
	cr_expect_not_null(last_call(SCRIPTED_REMOVE_THREAD, tid), "that of the first");
	grow_up();
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_ADD_THREAD, tid), 2, "one for each");
	collecting_finish(&f);
}

Test(clocks, of_a_process_that_ended, .init = setup, .fini = teardown)
{
	collecting_start(&f, &target);
	scripted_life(
		&f.engine, RBPF_RING_EXIT,
		&(struct rbpf_ring_life) { .h.ts = clock_ns(CLOCK_MONOTONIC) - 60 * NSEC_PER_SEC,
					   .h.tgid = (uint32_t)target.pid,
					   .h.tid = (uint32_t)target.pid,
					   .flags = RBPF_LIFE_LAST });
	collecting_keep_house(&f);
	collecting_keep_house(&f);
	cr_expect_not_null(last_call(SCRIPTED_REMOVE_THREAD, target.pid));
	collecting_finish(&f);
}

Test(clocks, thread_that_is_gone_before_it_gets_one, .init = setup, .fini = teardown)
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
	cr_expect(!t->clock);
	cr_expect_eq(f.warnings, 0, "%s", f.warning);
	collecting_finish(&f);
}

/* @tid executes a program after @runtime, and is the main thread from then on. */
static void executed_by(pid_t tid, uint64_t runtime)
{
	scripted_life(&f.engine, RBPF_RING_EXEC,
		      &(struct rbpf_ring_life) { .h.tgid = (uint32_t)target.pid,
						 .h.tid = (uint32_t)target.pid,
						 .runtime = runtime,
						 .child = (uint32_t)tid });
}

Test(clocks, exec_by_another_thread, .init = setup, .fini = teardown)
{
	pid_t tid = target_thread(&target);
	uint64_t before, base;

	collecting_start(&f, &target);
	before = clock_ns(CLOCK_MONOTONIC);
	cr_assert_eq(thread_cpu_ns(tid, &base), 0);
	ended(RBPF_RING_EXIT, target.pid);
	executed_by(tid, base + 4000);
	collecting_tick(&f, target.pid, target.pid);
	collecting_poll(&f);
	cr_expect_not_null(last_call(SCRIPTED_REMOVE_THREAD, target.pid));
	cr_expect_not_null(last_call(SCRIPTED_REMOVE_THREAD, tid));
	grow_up();
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_ADD_THREAD, target.pid), 2);
	cr_expect_geq(clocked(target.pid), before);
	scripted_life(&f.engine, RBPF_RING_EXIT,
		      &(struct rbpf_ring_life) { .h.tgid = (uint32_t)target.pid,
						 .h.tid = (uint32_t)target.pid,
						 .runtime = base + 9000,
						 .flags = RBPF_LIFE_LAST });
	collecting_finish(&f);
	cr_expect_eq(collecting_thread(&f, target.pid)->cpu_ns, 5000, "what it has had since");
}

/* The kernel may have ended its clock, and has not said so. */
Test(clocks, exec_by_the_main_thread, .init = setup, .fini = teardown)
{
	uint64_t executed;

	collecting_start(&f, &target);
	executed = clock_ns(CLOCK_MONOTONIC);
	cr_expect_lt(clocked(target.pid), executed);
	executed_by(target.pid, 0);
	collecting_poll(&f);
	cr_expect_not_null(last_call(SCRIPTED_REMOVE_THREAD, target.pid));
	cr_expect(cpus_have_clocks());
	grow_up();
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_ADD_THREAD, target.pid), 2);
	cr_expect_geq(clocked(target.pid), executed);
	collecting_finish(&f);
}

/* What is known of threads is read, changed and written, and so may be put back after exec. */
Test(clocks, exec_that_is_told_late, .init = setup, .fini = teardown)
{
	collecting_start(&f, &target);
	executed_by(target.pid, 0);
	collecting_poll(&f);
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_FOLLOW, target.pid), 1);
	executed_by(target.pid, 0);
	process_table_find(&f.c->table, target.pid)->told_ns = clock_ns(CLOCK_MONOTONIC);
	collecting_poll(&f);
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_FOLLOW, target.pid), 2);
	cr_expect(!last_call(SCRIPTED_FOLLOW, target.pid)->with_layout);
	cr_expect_eq(clocked(target.pid), 0);
	collecting_finish(&f);
}

/* ---- what was not told ---- */

Test(clocks, of_a_thread_that_is_met_by_a_sample, .init = setup, .fini = teardown)
{
	pid_t tid;

	collecting_start(&f, &target);
	tid = target_thread(&target);
	collecting_tick(&f, target.pid, tid);
	collecting_poll(&f);
	cr_expect(!scripted_has(&f.engine.clocks, tid));
	grow_up();
	cr_expect(scripted_has(&f.engine.clocks, tid));
	collecting_finish(&f);
}

Test(clocks, records_that_were_lost, .init = setup, .fini = teardown)
{
	const pid_t gone = target_thread(&target);
	struct tracked_process *p;
	pid_t tid;

	collecting_start(&f, &target);
	p = process_table_find(&f.c->table, target.pid);
	target_end_thread(&target, gone);
	tid = target_thread(&target);
	collecting_keep_house(&f);
	cr_expect(!process_table_find_thread(p, gone)->ended_ns, "nothing is known to be lost");
	cr_expect_null(process_table_find_thread(p, tid));
	f.engine.counters[RBPF_CNT_LOST_LIFE] = 2;
	collecting_keep_house(&f);
	cr_expect(process_table_find_thread(p, gone)->ended_ns);
	cr_expect(!process_table_find_thread(p, target.pid)->ended_ns);
	grow_up();
	cr_expect(scripted_has(&f.engine.clocks, tid));
	collecting_finish(&f);
}

/* ---- failures ---- */

Test(clocks, other_failures_end_it, .init = setup, .fini = teardown)
{
	cr_assert_eq(collector_add(f.c, target.pid, false, &f.err), 0);
	scripted_engine_fail(&f.engine, SCRIPTED_ADD_THREAD, 1, -EPERM);
	cr_expect_eq(collector_start(f.c, &f.sink.sink, &f.err), -EPERM);
	cr_expect_eq(f.err.code, -EPERM);
	cr_expect_not_null(strstr(f.err.msg, "scripted: thread"), "%s", f.err.msg);
}

/* It is what executes a program, and may take as long as it likes for that. */
Test(clocks, thread_that_cannot_be_waited_for, .init = setup, .fini = teardown)
{
	scripted_engine_fail(&f.engine, SCRIPTED_ADD_THREAD, 1, -ETIMEDOUT);
	collecting_start(&f, &target);
	cr_expect_eq(clocked(target.pid), 0);
	cr_assert_eq(clocks_poll(f.c, clock_ns(CLOCK_MONOTONIC) + 3600 * NSEC_PER_SEC, &f.err), 0);
	cr_expect(cpus_have_clocks(), "they see it");
	collecting_finish(&f);
}

Test(clocks, too_many_open_files, .init = setup, .fini = teardown)
{
	const uint64_t hour = 3600 * NSEC_PER_SEC;
	const pid_t tids[] = { target.pid, target_thread(&target), target_thread(&target) };
	struct tracked_thread *t;
	bool is_new;

	scripted_engine_fail(&f.engine, SCRIPTED_ADD_THREAD, 2, -EMFILE);
	collecting_start(&f, &target);
	cr_expect_eq(f.engine.clocks.n, 0, "all of them or none");
	for (size_t i = 0; i < ARRAY_SIZE(tids); i++) {
		cr_assert_eq(process_table_thread(&f.c->table,
						  process_table_find(&f.c->table, target.pid),
						  tids[i], &t, &is_new),
			     0);
		cr_expect(!is_new && t->has_base, "what it had before does not count");
	}
	cr_expect_eq(clocked(target.pid), 0);
	cr_expect(cpus_have_clocks(), "at once");
	born(target.pid);
	grow_up();
	cr_expect_eq(added(), 2, "it is not tried again");
	cr_assert_eq(clocks_poll(f.c, clock_ns(CLOCK_MONOTONIC) + hour, &f.err), 0);
	cr_expect(cpus_have_clocks(), "as long as it lives");
	cr_expect_eq(f.warnings, 0, "nothing is missing: %s", f.warning);
	scripted_life(&f.engine, RBPF_RING_EXIT,
		      &(struct rbpf_ring_life) { .h.tgid = (uint32_t)target.pid,
						 .h.tid = (uint32_t)target.pid,
						 .flags = RBPF_LIFE_LAST });
	collecting_poll(&f);
	cr_assert_eq(clocks_poll(f.c, clock_ns(CLOCK_MONOTONIC) + hour, &f.err), 0);
	cr_expect(!cpus_have_clocks());
	collecting_finish(&f);
}
