/* SPDX-License-Identifier: GPL-2.0-only */
/* From records of an engine to a profile: samples, what is lost, and what goes wrong. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/stop.h"
#include "sample/collector_state.h"
#include "support/collecting_target.h"
#include "symbol/resolver.h"

static void setup_native(void)
{
	collecting_init(&f, &(struct collector_options) { .native = true });
	target = target_start();
}

/* The name of the innermost frame of kept sample @i. */
static const char *innermost(size_t i)
{
	const struct profile *p = collecting_profile(&f);

	cr_assert_lt(i, p->n_kept);
	cr_assert_gt(p->samples[i].stack, 0);
	return profile_str(p, p->frames[p->stacks[p->samples[i].stack].frame].name);
}

/* ---- samples ---- */

Test(collector, samples, .init = setup, .fini = teardown)
{
	const struct profile *p = collecting_profile(&f);
	pid_t tid = target_thread(&target);
	struct rbpf_ring_sample rec = { .h.tgid = (uint32_t)target.pid,
					.h.tid = (uint32_t)tid,
					.h.cpu = 3,
					.h.ts = 5000,
					.value = 777,
					.status = RBPF_NO_RUBY,
					.flags = RBPF_SAMPLE_KERNEL,
					.comm = "worker" };

	collecting_start(&f, &target);
	cr_expect_eq(p->n_threads, 0, "before their first sample");
	scripted_sample(&f.engine, &rec);
	rec.h.ts = 6000;
	rec.value = 23;
	rec.flags = RBPF_SAMPLE_KERNEL | RBPF_SAMPLE_PAGE_FAULT;
	scripted_sample(&f.engine, &rec);
	collecting_tick(&f, target.pid, target.pid);
	collecting_poll(&f);
	collecting_finish(&f);
	cr_assert_eq(p->n_kept, 3);
	cr_expect(p->samples[0].ts == 5000 && p->samples[1].ts == 6000);
	cr_expect(p->samples[0].value == 777 && p->samples[1].value == 23);
	cr_expect_eq(p->samples[0].cpu, 3);
	cr_expect_eq(p->samples[0].flags, SAMPLE_KERNEL | SAMPLE_NO_RUBY);
	cr_expect_eq(p->samples[1].flags, SAMPLE_KERNEL | SAMPLE_PAGE_FAULT | SAMPLE_NO_RUBY);
	cr_expect_eq(p->samples[2].flags, SAMPLE_NO_RUBY);
	cr_expect_eq(p->samples[0].thread, p->samples[1].thread);
	cr_expect_eq(p->samples[0].stack, p->samples[1].stack);
	cr_expect_str_eq(innermost(0), "[no Ruby in process]");
	cr_expect_eq(p->n_threads, 2);
	cr_expect_eq(collecting_thread(&f, tid)->process, collecting_find(&f, target.pid));
	cr_expect_str_eq(collecting_str(&f, collecting_thread(&f, tid)->name), "worker");
	cr_expect_eq(f.totals.samples, 3);
	cr_expect_eq(f.totals.no_ruby, 3);
	cr_expect_eq(f.totals.cpu_sampled_ns, 777 + 23 + 10 * NSEC_PER_MSEC);
	cr_expect_eq(f.totals.lost, 0);
}

/* No Ruby is known there: whatever the walk says, it says nothing of one. */
Test(collector, why_there_is_no_ruby_stack, .init = setup, .fini = teardown)
{
	struct rbpf_ring_sample rec = { .h.tgid = (uint32_t)target.pid,
					.h.tid = (uint32_t)target.pid,
					.status = RBPF_FAULT_STACK };

	collecting_start(&f, &target);
	scripted_sample(&f.engine, &rec);
	rec.status = RBPF_EXITING;
	scripted_sample(&f.engine, &rec);
	collecting_finish(&f);
	cr_expect_str_eq(innermost(0), "[no Ruby in process]");
	cr_expect_str_eq(innermost(1), "[thread start or end]");
	cr_expect(f.totals.no_ruby == 2 && !f.totals.failed);
}

Test(collector, threads_that_are_renamed, .init = setup, .fini = teardown)
{
	struct rbpf_ring_sample rec = { .h.tgid = (uint32_t)target.pid,
					.h.tid = (uint32_t)target.pid,
					.comm = "before" };

	collecting_start(&f, &target);
	scripted_sample(&f.engine, &rec);
	collecting_poll(&f);
	cr_expect_str_eq(collecting_str(&f, collecting_thread(&f, target.pid)->name), "before");
	/* All 16 bytes: there is no NUL then. */
	memcpy(rec.comm, "exactly 16 bytes", sizeof(rec.comm));
	scripted_sample(&f.engine, &rec);
	collecting_poll(&f);
	collecting_finish(&f);
	cr_expect_str_eq(collecting_str(&f, collecting_thread(&f, target.pid)->name),
			 "exactly 16 bytes");
	cr_expect_eq(collecting_profile(&f)->n_threads, 1, "it is the same thread");
}

Test(collector, status, .init = setup, .fini = teardown)
{
	struct collector_status st;

	collecting_start(&f, &target);
	collecting_tick(&f, target.pid, target.pid);
	collecting_tick(&f, target.pid, target.pid + 1);
	f.engine.counters[RBPF_CNT_LOST_SAMPLE] = 4;
	collecting_poll(&f);
	collector_status(f.c, &st);
	cr_expect(st.processes == 1 && st.live == 1 && !st.rubies);
	cr_expect_eq(st.samples, 2);
	cr_expect_eq(st.threads, 2);
	cr_expect_eq(st.lost, 4);
	cr_expect_str_empty(collector_ruby_version(f.c));
	collecting_finish(&f);
}

/* An engine hands over so much at a time: it is asked again at once, and at the end for all. */
Test(collector, drains_in_parts, .init = setup, .fini = teardown)
{
	const struct profile *p = collecting_profile(&f);

	collecting_start(&f, &target);
	f.engine.batch = 2;
	for (int i = 0; i < 9; i++)
		collecting_tick(&f, target.pid, target.pid);
	cr_expect_eq(collector_poll(f.c, &f.err), 1);
	cr_expect_eq(p->n_samples, 2);
	cr_expect_eq(collector_poll(f.c, &f.err), 1);
	cr_expect_eq(p->n_samples, 4);
	collecting_finish(&f);
	cr_expect_eq(p->n_samples, 9);
}

/* The engine makes no more from then on, but what it has made counts. */
static void one_more(struct scripted_engine *e, const struct scripted_call *call)
{
	(void)e;
	if (call->op == SCRIPTED_STOP)
		collecting_tick(&f, target.pid, target.pid);
}

Test(collector, finish, .init = setup, .fini = teardown)
{
	uint64_t before;

	collecting_start(&f, &target);
	f.engine.after = one_more;
	f.engine.cost = (struct engine_cost) { .ticks = { 4, 12000 },
					       .switches = { 7, 21000 },
					       .wakeups = { 5, 1000 },
					       .all_ns = 36000 };
	f.engine.counters[RBPF_CNT_TICKS] = 3;
	f.engine.counters[RBPF_CNT_SAMPLE_NS] = 10000;
	before = clock_ns(CLOCK_MONOTONIC);
	collecting_finish(&f);
	cr_expect_eq(f.totals.samples, 1);
	cr_expect_geq(f.totals.end_monotonic_ns, before);
	/*
	 * 2,000 of the 12,000 ns are of what all ticks do at first, 1 of 4 of them makes no sample.
	 */
	cr_expect_eq(f.totals.kernel_ns_per_sample, 3833);
	cr_expect_eq(f.totals.other_ticks, 1);
	cr_expect_eq(f.totals.other_ticks_ns, 500);
	cr_expect_eq(f.totals.switches, 7);
	cr_expect_eq(f.totals.switches_ns, 21000);
	cr_expect_eq(f.totals.wakeups, 5);
	cr_expect_eq(f.totals.wakeups_ns, 1000);
	cr_expect_eq(f.totals.bpf_ns, 36000);
	cr_expect_gt(f.totals.machine_busy_ns + 1, f.totals.machine_stolen_ns);
	cr_expect_gt(f.totals.rbpf_start_cpu_ns, 0);
	cr_expect_gt(f.totals.rbpf_cpu_ns, f.totals.rbpf_start_cpu_ns);
}

/*
 * If no tick made a sample, all were elsewhere; and a tick within another one is not counted as a
 * run.
 */
Test(collector, cost_of_ticks, .init = setup, .fini = teardown)
{
	collecting_start(&f, &target);
	f.engine.cost.ticks = (struct engine_runs) { 10, 3000 };
	collecting_finish(&f);
	cr_expect_eq(f.totals.kernel_ns_per_sample, 0);
	cr_expect_eq(f.totals.other_ticks, 10);
	cr_expect_eq(f.totals.other_ticks_ns, 3000);
	teardown();

	setup();
	collecting_start(&f, &target);
	f.engine.cost.ticks = (struct engine_runs) { 10, 3000 };
	f.engine.counters[RBPF_CNT_TICKS] = 12;
	f.engine.counters[RBPF_CNT_SAMPLE_NS] = 3100;
	collecting_finish(&f);
	cr_expect_eq(f.totals.kernel_ns_per_sample, 300);
	cr_expect_eq(f.totals.other_ticks, 0);
	cr_expect_eq(f.totals.other_ticks_ns, 0);
}

/* ---- what is lost ---- */

Test(collector, counters, .init = setup, .fini = teardown)
{
	const struct profile *p = collecting_profile(&f);

	collecting_start(&f, &target);
	for (size_t i = 0; i < RBPF_COUNTERS; i++)
		f.engine.counters[i] = 100 + i;
	f.engine.counters[RBPF_CNT_LOST_SAMPLE] = 5;
	collecting_poll(&f);
	cr_assert_eq(p->n_lost, 1);
	cr_expect_eq(p->lost[0].count, 5);
	cr_expect_eq(p->lost[0].reason, LOST_RING_FULL);
	collecting_keep_house(&f);
	cr_expect_eq(p->n_lost, 1, "there were no more");
	f.engine.counters[RBPF_CNT_LOST_SAMPLE] = 9;
	f.engine.counters[RBPF_CNT_LOST_LIFE] = 7777;
	collecting_finish(&f);
	cr_assert_eq(p->n_lost, 2);
	cr_expect_eq(p->lost[1].count, 4, "those since");
	cr_expect_geq(p->lost[1].ts, p->lost[0].ts);
	cr_expect_eq(f.totals.lost, 9);
	for (size_t i = 0; i < RBPF_COUNTERS; i++)
		cr_expect_eq(f.totals.counters[i], f.engine.counters[i], "counter %zu", i);
}

/* The engine is asked for a stack again of which not all was named, once. */
Test(collector, stacks_without_names, .init = setup, .fini = teardown)
{
	const struct rbpf_ring_stack rec = {
		.h.type = RBPF_RING_STACK, .h.tgid = (uint32_t)target.pid, .h.ts = 5000, .stack = 77
	};
	struct tracked_process *p;
	size_t asked;

	collecting_start(&f, &target);
	p = process_table_find(&f.c->table, target.pid);
	cr_assert_not_null(p);
	lost_names_note(&p->lost_names, 5000, true);
	for (int i = 0; i < 2; i++) {
		scripted_record(&f.engine, &rec, sizeof(rec));
		collecting_poll(&f);
		asked = 0;
		for (size_t k = 0; k < f.engine.n_calls; k++)
			asked += f.engine.calls[k].op == SCRIPTED_FORGET_STACK &&
				 f.engine.calls[k].stack == 77;
		cr_expect_eq(asked, 1);
	}
}

/*
 * Names that many have come to may be of code that is gone (names_age.h): whoever keeps house looks
 * at each process.
 */
Test(collector, age_of_names, .init = setup, .fini = teardown)
{
	static const struct ruby_vm vm = { 0 };
	struct tracked_process *p;

	collecting_start(&f, &target);
	p = process_table_find(&f.c->table, target.pid);
	cr_assert_not_null(p);
	collecting_keep_house(&f);
	cr_expect_eq(p->names_age.since_ns, 0, "there are none");
	cr_assert_eq(resolver_new(&vm, &p->resolver), 0);
	collecting_keep_house(&f);
	cr_expect_neq(p->names_age.since_ns, 0);
}

/* The record that would have told of their process was lost. */
Test(collector, samples_of_unknown_processes, .init = setup, .fini = teardown)
{
	const struct profile *p = collecting_profile(&f);

	collecting_start(&f, &target);
	collecting_tick(&f, target.pid, target.pid);
	for (int i = 0; i < 3; i++)
		collecting_tick(&f, getpid(), getpid());
	collecting_poll(&f);
	cr_assert_eq(p->n_lost, 1);
	cr_expect(p->lost[0].count == 3 && p->lost[0].reason == LOST_OTHER);
	f.engine.counters[RBPF_CNT_LOST_SAMPLE] = 2;
	collecting_tick(&f, getpid(), getpid());
	collecting_finish(&f);
	cr_expect_eq(f.totals.samples, 1);
	cr_expect_eq(f.totals.lost, 6);
	cr_expect_eq(p->n_processes, 1);
}

/* Two ticks in @pid, a process that is followed by the BPF programs alone. */
static void tick_unknown(pid_t pid)
{
	scripted_put(&f.engine.followed, pid);
	collecting_tick(&f, pid, pid);
	collecting_tick(&f, pid, pid);
	cr_assert_eq(collector_drain(f.c), 0);
}

/* Their first samples tell of them. They are not looked at all at once, as they may be many. */
Test(collector, births_that_were_lost, .init = setup, .fini = teardown)
{
	const pid_t child = target_fork(&target), gone = 0x3fffffff;

	collecting_start(&f, &target);
	f.engine.counters[RBPF_CNT_LOST_LIFE] = 1;
	collecting_keep_house(&f);
	f.c->unknown_next_ns = UINT64_MAX;
	tick_unknown(child);
	cr_expect_eq(collecting_find(&f, child), PROFILE_NONE);
	f.c->unknown_next_ns = 0;
	tick_unknown(child);
	cr_expect_gt(f.c->unknown_next_ns, 0);
	cr_expect_eq(collecting_process(&f, child)->parent, collecting_find(&f, target.pid));
	cr_expect_eq(f.engine.ops[SCRIPTED_FOLLOW].asked, 1, "what is known of it stays");
	f.c->unknown_next_ns = 0;
	tick_unknown(gone);
	cr_expect(scripted_has(&f.engine.followed, child));
	cr_expect_not(scripted_has(&f.engine.followed, gone));
	collecting_finish(&f);
	cr_expect_eq(f.totals.samples, 1);
	cr_expect_eq(f.totals.lost, 5);
}

/* Records of unknown processes that are no samples. */
Test(collector, records_of_unknown_processes, .init = setup, .fini = teardown)
{
	struct rbpf_ring_hdr h = { .tgid = (uint32_t)getpid(), .tid = (uint32_t)getpid() };
	struct rbpf_ring_stack stack = { .h = h, .stack = 1 };
	struct rbpf_ring_native native = { .h = h, .stack = 1 };
	struct rbpf_ring_code_miss miss = { .h = h, .addr = 1 };
	struct rbpf_ring_memory memory = { .h = h };
	struct rbpf_ring_life life = { .h = h, .child = 1, .flags = RBPF_LIFE_LAST };

	collecting_start(&f, &target);
	stack.h.type = RBPF_RING_STACK;
	scripted_record(&f.engine, &stack, sizeof(stack));
	native.h.type = RBPF_RING_NATIVE;
	scripted_record(&f.engine, &native, sizeof(native));
	miss.h.type = RBPF_RING_CODE_MISS;
	scripted_record(&f.engine, &miss, sizeof(miss));
	memory.h.type = RBPF_RING_MEMORY;
	scripted_record(&f.engine, &memory, sizeof(memory));
	for (life.h.type = RBPF_RING_FORK; life.h.type <= RBPF_RING_FREE; life.h.type++)
		scripted_record(&f.engine, &life, sizeof(life));
	life.h.type = 99; /* what only newer BPF programs send */
	scripted_record(&f.engine, &life, sizeof(life));
	collecting_poll(&f);
	collecting_finish(&f);
	cr_expect_eq(collecting_profile(&f)->n_processes, 1);
	cr_expect_eq(collecting_profile(&f)->n_threads, 0);
	cr_expect_eq(f.totals.lost, 0);
}

/* From a while after the end on only samples are taken, and what is not looked at is counted. */
Test(collector, too_late, .init = setup, .fini = teardown)
{
	pid_t child;

	collecting_start(&f, &target);
	stop_at(1);
	child = target_fork(&target);
	collecting_birth(&f, RBPF_RING_FORK, target.pid, target.pid, child);
	collecting_tick(&f, target.pid, target.pid);
	collecting_exit(&f, target.pid, 0);
	collecting_finish(&f);
	stop_at(0);
	cr_expect_eq(f.totals.counters[COUNTER_TOO_LATE], 2);
	cr_expect_eq(f.totals.samples, 1);
	cr_expect_eq(collecting_profile(&f)->n_processes, 1);
	cr_expect_not(collecting_process(&f, target.pid)->exited);
}

/* Two signals may come in one turn of the loop. */
Test(collector, stopped_twice, .init = setup, .fini = teardown)
{
	collecting_start(&f, &target);
	collecting_tick(&f, target.pid, target.pid);
	collecting_poll(&f);
	stop_catch_signals();
	raise(SIGTERM);
	collecting_tick(&f, target.pid, target.pid);
	collecting_poll(&f);
	nanosleep(&(struct timespec) { .tv_nsec = STOP_SAME_NS }, NULL);
	raise(SIGHUP);
	collecting_tick(&f, target.pid, target.pid);
	collecting_tick(&f, target.pid, target.pid);
	cr_expect_eq(collector_poll(f.c, &f.err), 0, "%s", f.err.msg);
	cr_expect_eq(collector_finish(f.c, &f.totals, &f.err), -EINTR);
	cr_expect_eq(f.totals.samples, 2, "what was taken until then");
}

/* ---- records that are held until symbols are read ---- */

/* Of this program, which the target is a copy of. */
static __attribute__((noinline)) void function_of_the_target(void)
{
	cr_expect_eq(target.fd, -1);
}

/* A stack of that function alone. The process is looked at first, as the BPF programs ask for. */
static void take_native(uint64_t fingerprint)
{
	const uint64_t addr = (uint64_t)function_of_the_target;
	struct rbpf_ring_code_miss miss = { .h.type = RBPF_RING_CODE_MISS,
					    .h.tgid = (uint32_t)target.pid,
					    .addr = addr,
					    .end = RBPF_NATIVE_NO_MAP };
	struct {
		struct rbpf_ring_native head;
		uint64_t frames[1];
	} rec = { .head = { .h.type = RBPF_RING_NATIVE,
			    .h.ts = clock_ns(CLOCK_MONOTONIC),
			    .h.tgid = (uint32_t)target.pid,
			    .h.tid = (uint32_t)target.pid,
			    .stack = fingerprint,
			    .n_frames = 1 },
		  .frames = { addr | RBPF_NATIVE_EXACT } };

	scripted_record(&f.engine, &miss, sizeof(miss));
	scripted_record(&f.engine, &rec, sizeof(rec));
}

static void tick_native(uint64_t fingerprint)
{
	scripted_sample(&f.engine, &(struct rbpf_ring_sample) { .h.tgid = (uint32_t)target.pid,
								.h.tid = (uint32_t)target.pid,
								.native = fingerprint,
								.status = RBPF_NO_RUBY });
}

/*
 * Have a sample of native stack 1 held, with @more behind it, of no stack and of one that was lost.
 * On a busy machine the file may have been read before this looks.
 */
static void hold_samples(bool more)
{
	for (int i = 0; i < 20 && !f.c->held; i++) {
		if (i) {
			teardown();
			setup_native();
		}
		collecting_start(&f, &target);
		collecting_poll(&f);
		take_native(1);
		tick_native(1);
		if (more) {
			tick_native(0);
			tick_native(2);
		}
		cr_assert_eq(collector_drain(f.c), 0);
	}
	cr_expect_gt(f.c->held, 0);
	cr_expect_eq(collecting_profile(&f)->n_samples, 0, "named before the file was read");
}

/* A sample is held while its file is being read, and those behind it with it, in their order. */
Test(collector, samples_wait_for_names, .init = setup_native, .fini = teardown)
{
	const struct profile *p = collecting_profile(&f);

	hold_samples(true);
	collecting_finish(&f);
	cr_expect_eq(f.c->held, 0);
	cr_assert_eq(p->n_kept, 3);
	cr_expect_str_eq(innermost(0), "function_of_the_target");
	cr_expect_eq(p->samples[0].flags & (SAMPLE_NATIVE | SAMPLE_GAP), SAMPLE_NATIVE);
	cr_expect_str_eq(innermost(1), "[no Ruby in process]");
	cr_expect_str_eq(innermost(2), "[native frames missing: lost]");
	cr_expect(p->samples[0].ts <= p->samples[1].ts && p->samples[1].ts <= p->samples[2].ts);
	cr_expect_eq(f.totals.native_samples, 2);
	cr_expect_eq(f.totals.native_gaps, 1);
}

/*
 * Native stacks that take much memory are dropped before their time: the BPF programs must not go
 * on to refer to them.
 */
Test(collector, native_stacks_that_are_many, .init = setup_native, .fini = teardown)
{
	struct {
		struct rbpf_ring_native head;
		uint64_t frames[RBPF_MAX_NATIVE];
	} rec = { .head = { .h.type = RBPF_RING_NATIVE,
			    .h.ts = clock_ns(CLOCK_MONOTONIC),
			    .n_frames = RBPF_MAX_NATIVE } };
	const struct profile *p = collecting_profile(&f);
	const size_t *asked = &f.engine.ops[SCRIPTED_FORGET_STACKS].asked;

	rec.head.h.tgid = rec.head.h.tid = (uint32_t)target.pid;
	for (size_t i = 0; i < RBPF_MAX_NATIVE; i++)
		rec.frames[i] = 0x3000 + i; /* code of nothing */
	collecting_start(&f, &target);
	for (size_t i = 0; i < 4000; i++, rec.head.h.ts += NSEC_PER_SEC / 1000) {
		rec.head.stack++;
		scripted_record(&f.engine, &rec, sizeof(rec));
	}
	cr_assert_eq(collector_drain(f.c), 0);
	cr_expect_gt(*asked, 0);
	cr_expect_lt(*asked, 100, "only when some are dropped");
	tick_native(rec.head.stack);
	collecting_finish(&f);
	cr_assert_eq(p->n_kept, 1);
	cr_expect(p->samples[0].flags & SAMPLE_NATIVE, "the last ones are kept");
}

/* What is held is of the program that the process ran then. */
Test(collector, exec_does_not_wait, .init = setup_native, .fini = teardown)
{
	const struct profile *p = collecting_profile(&f);

	hold_samples(false);
	target_exec(&target);
	scripted_life(&f.engine, RBPF_RING_EXEC,
		      &(struct rbpf_ring_life) { .h.tgid = (uint32_t)target.pid,
						 .h.tid = (uint32_t)target.pid });
	cr_assert_eq(collector_drain(f.c), 0);
	cr_expect_eq(p->n_samples, 1);
	cr_expect_eq(f.c->held, 0);
	tick_native(0);
	collecting_finish(&f);
	cr_expect_eq(p->n_samples, 2);
}

/* It does not wait for more than it may hold. */
Test(collector, holds_so_much, .init = setup_native, .fini = teardown)
{
	const struct profile *p = collecting_profile(&f);
	const size_t n = (8u << 20) / sizeof(struct rbpf_ring_sample) + 1;

	collecting_start(&f, &target);
	collecting_poll(&f);
	take_native(1);
	for (size_t i = 0; i < n; i++)
		tick_native(1);
	cr_assert_eq(collector_drain(f.c), 0);
	cr_expect_gt(p->n_samples, 0);
	cr_expect_leq(f.c->held, 8u << 20);
	collecting_finish(&f);
	cr_expect_eq(p->n_samples, n, "none is lost");
}

/* ---- what goes wrong ---- */

/* One of each record, and what else the sink is told, up to the first failure, which it returns. */
static int play(bool *started)
{
	const struct rbpf_file exe = { .inode = 3 };
	pid_t child = target_fork(&target), tid = target_thread(&target);
	int r;

	r = collector_add(f.c, target.pid, false, &f.err);
	if (!r)
		r = collector_start(f.c, &f.sink.sink, &f.err);
	*started = !r;
	if (r)
		return r;
	collecting_tick(&f, target.pid, target.pid);
	collecting_birth(&f, RBPF_RING_FORK, target.pid, target.pid, child);
	scripted_life(&f.engine, RBPF_RING_EXEC,
		      &(struct rbpf_ring_life) {
			      .h.tgid = (uint32_t)child, .h.tid = (uint32_t)child, .exe = exe });
	collecting_tick(&f, child, child);
	take_native(1);
	tick_native(1);
	collecting_exit(&f, child, 0);
	f.engine.counters[RBPF_CNT_LOST_SAMPLE] = 3;
	r = collector_poll(f.c, &f.err);
	if (r && r != -E2BIG) /* then it is full, and can be ended */
		return r;
	scripted_sample(&f.engine, &(struct rbpf_ring_sample) { .h.tgid = (uint32_t)target.pid,
								.h.tid = (uint32_t)target.pid,
								.comm = "renamed" });
	collecting_tick(&f, target.pid, tid);
	f.engine.tasks = &(struct rbpf_task) { .tgid = (uint32_t)target.pid,
					       .tid = (uint32_t)target.pid,
					       .runtime = NSEC_PER_SEC };
	f.engine.n_tasks = 1;
	return collector_finish(f.c, &f.totals, &f.err);
}

/* Whatever the sink refuses first ends the recording with the sink's own words. */
/*
 * At each of the first calls, when all that there is once is written, and at some of the many after
 * these.
 */
Test(collector, sink_that_fails)
{
	bool started;
	size_t n = 0;
	int r;

	do {
		setup_native();
		f.sink.fail_at = n += n < 100 ? 1 : 17;
		r = play(&started);
		if (r) {
			cr_assert_eq(r, -ENOSPC, "call %zu: %d", n, r);
			cr_assert_eq(f.err.code, -ENOSPC);
			cr_assert_str_eq(f.err.msg, "scripted: the sink takes no more");
			cr_assert_null(check_profile(collecting_profile(&f)));
		}
		teardown();
	} while (r);
	cr_expect_gt(n, 40, "it is told so much");
}

Test(collector, drain_that_fails)
{
	bool started, once = false;
	size_t n = 0;
	int r;

	do {
		setup_native();
		scripted_engine_fail(&f.engine, SCRIPTED_DRAIN, ++n, -EIO);
		r = play(&started);
		once |= started && r;
		if (r) {
			cr_assert_eq(r, -EIO, "drain %zu: %d", n, r);
			cr_assert(f.err.code == -EIO && f.err.kind == ERR_RUNTIME);
			cr_assert_not_null(strstr(f.err.msg, "cannot record: "), "%s", f.err.msg);
		}
		teardown();
	} while (r);
	cr_expect(once, "also while it runs");
	cr_expect_geq(n, 3, "one to poll, one at the end, and one that does not fail");
}

/* As it is after hours of a program that does ever different things. */
Test(collector, a_recording_that_is_full)
{
	struct err err = { 0 };

	setup();
	cr_assert_eq(collector_fail(f.c, -E2BIG, &err), -E2BIG);
	cr_expect_eq(err.kind, ERR_RUNTIME);
	cr_expect_not_null(strstr(err.msg, "the recording is full: it has 268435456 stacks"), "%s",
			   err.msg);
	cr_expect_str_eq(err.hint, "a lower -F, or a shorter recording (-d), needs fewer of them");
	teardown();
}

/* Wherever it is full: it ends well, and each sample is in it or lost. */
Test(collector, ends_well_when_full)
{
	const size_t sent = 5;
	size_t n = 0, ended = 0;
	bool started;
	int r;

	do {
		setup_native();
		f.sink.full_at = ++n;
		r = play(&started);
		cr_assert_eq(r, started ? 0 : -E2BIG, "definition %zu: %d: %s", n, r, f.err.msg);
		if (started) {
			ended += f.c->full;
			assert_sane_collecting(&f);
			/* The engine has lost 3 of its own. */
			cr_assert_eq(f.totals.samples + f.totals.lost, sent + 3, "definition %zu",
				     n);
			cr_assert_gt(f.totals.end_monotonic_ns, 0);
			cr_assert_gt(f.totals.cpu_kernel_ns, NSEC_PER_SEC / 2, "of the end");
		}
		r = f.sink.definitions >= n;
		teardown();
	} while (r);
	cr_expect_gt(ended, 10, "in so many places");
}

Test(collector, takes_no_sample_when_full, .init = setup, .fini = teardown)
{
	const struct profile *p = collecting_profile(&f);
	struct collector_status st;

	collecting_start(&f, &target);
	collecting_tick(&f, target.pid, target.pid);
	collecting_poll(&f);
	f.sink.full_at = 1;
	collecting_tick(&f, target.pid, target.pid);
	collecting_poll(&f);
	cr_expect_eq(p->n_samples, 2, "what needs no definition");
	collecting_tick(&f, target.pid, target_thread(&target));
	collecting_tick(&f, target.pid, target.pid);
	cr_expect_eq(collector_poll(f.c, &f.err), -E2BIG);
	cr_expect_not_null(strstr(f.err.msg, "the recording is full"), "%s", f.err.msg);
	collector_status(f.c, &st);
	cr_expect(st.full);
	collecting_tick(&f, target.pid, target.pid);
	cr_expect_eq(collector_poll(f.c, &f.err), -E2BIG, "it stays so");
	collecting_finish(&f);
	cr_expect_eq(p->n_samples, 2);
	cr_expect_eq(f.totals.lost, 3);
	cr_expect(p->lost[0].reason == LOST_OTHER);
}

/* What waits for symbols when it becomes full. */
Test(collector, loses_what_is_held_when_full, .init = setup_native, .fini = teardown)
{
	hold_samples(false);
	cr_assert_gt(f.c->held, 0);
	f.sink.full_at = 1;
	collecting_finish(&f);
	cr_expect_eq(f.c->held, 0);
	cr_expect_eq(f.totals.samples, 0);
	cr_expect_gt(f.totals.lost, 0);
}

Test(collector, list_of_threads_that_fails)
{
	bool started;

	for (size_t n = 1; n <= 2; n++) {
		setup();
		if (n == 1) {
			scripted_engine_fail(&f.engine, SCRIPTED_READ_THREADS, 1, -ENOMEM);
			cr_expect_eq(play(&started), -ENOMEM);
			cr_expect_not(started);
		} else {
			collecting_start(&f, &target);
			scripted_engine_fail(&f.engine, SCRIPTED_READ_THREADS, 1, -EIO);
			cr_expect_eq(collector_finish(f.c, &f.totals, &f.err), -EIO);
		}
		teardown();
	}
}

static void bad_record(const void *data, size_t len)
{
	collecting_start(&f, &target);
	scripted_record(&f.engine, data, len);
	collecting_tick(&f, target.pid, target.pid);
	cr_expect_eq(collector_poll(f.c, &f.err), -EPROTO);
	cr_expect_eq(f.err.code, -EPROTO);
	cr_expect_eq(collecting_profile(&f)->n_samples, 0, "it ends there");
}

Test(collector, record_that_is_none, .init = setup, .fini = teardown)
{
	const struct rbpf_ring_hdr h = { .type = RBPF_RING_SAMPLE };

	bad_record(&h, sizeof(h) - 1);
}

Test(collector, record_of_more_than_there_is, .init = setup, .fini = teardown)
{
	const struct rbpf_ring_memory rec = { .h.type = RBPF_RING_MEMORY,
					      .h.tgid = (uint32_t)target.pid,
					      .n_bytes = 1 };

	bad_record(&rec, sizeof(rec));
	cr_expect_eq(collector_poll(f.c, &f.err), -EPROTO, "it stays so");
	cr_expect_eq(collector_finish(f.c, &f.totals, &f.err), -EPROTO);
}
