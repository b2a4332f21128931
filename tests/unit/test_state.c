/* SPDX-License-Identifier: GPL-2.0-only */
/* States of threads, and what is selected and added up by them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "profile/reader.h"
#include "profile/reason.h"
#include "support/profile_builder.h"
#include "support/profile_file.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/state.h"
#include "view/thread_states.h"

static struct profile_builder b;
static uint32_t thread;

/*
 * Foo#bar: 1 in user mode, 2 in the kernel, 4 for the GVL, 8 for the disk, 16 so with the GVL, 32
 * for the GVL after its turn, 64 in the kernel for page faults.
 */
static void setup(void)
{
	uint32_t bar, held, turn;

	builder_init(&b);
	thread = builder_thread(&b, builder_process(&b, 42, "ruby app.rb"), 42, "main");
	bar = builder_path(&b, "<main>|Foo#bar");
	builder_sample(&b, thread, bar, 1, 0);
	builder_sample(&b, thread, bar, 2, SAMPLE_KERNEL);
	builder_sample(&b, thread, builder_reason(&b, bar, REASON_WAIT_GVL), 4, 0);
	builder_sample(&b, thread, builder_reason(&b, bar, REASON_WAIT_DISK), 8, 0);
	held = builder_reason(&b, bar, REASON_GVL_HELD);
	builder_sample(&b, thread, builder_reason(&b, held, REASON_WAIT_DISK), 16, 0);
	turn = builder_reason(&b, bar, REASON_GVL_TURN);
	builder_sample(&b, thread, builder_reason(&b, turn, REASON_WAIT_GVL), 32, 0);
	builder_sample(&b, thread, bar, 64, SAMPLE_KERNEL | SAMPLE_PAGE_FAULT);
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(state, .init = setup, .fini = teardown);

static void expect_rows(const struct view_filter *f, enum flat_by by, const char *want)
{
	struct buf got _cleanup_buf_ = BUF_INIT;
	_cleanup_flat_ struct flat flat = FLAT_INIT;
	const struct profile *p = &b.out.profile;

	cr_assert_eq(flat_build(p, f, by, FLAT_SORT_SELF, &flat), 0);
	for (size_t i = 0; i < flat.n_rows; i++) {
		const struct flat_row *row = &flat.rows[i];

		if (by == FLAT_BY_STATE)
			buf_addf(&got, "%s%s %d\n", state_word(row->id & STATE_MASK),
				 row->id & STATE_HELD	? "+gvl"
				 : row->id & STATE_TURN ? "+turn"
							: "",
				 (int)row->self_value);
		else
			buf_addf(&got, "%s %d %d\n", profile_str(p, p->frames[row->frame].name),
				 (int)row->self_value, (int)row->total_value);
	}
	cr_expect_str_eq(buf_str(&got), want, "%s", buf_str(&got));
}

Test(state, rows)
{
	expect_rows(NULL, FLAT_BY_STATE,
		    "minor-fault 64\ngvl+turn 32\ndisk+gvl 16\ndisk 8\ngvl 4\nsystem 2\n"
		    "user 1\n");
	/* The time of a wait is the method's. */
	expect_rows(NULL, FLAT_BY_FUNCTION,
		    "Foo#bar 127 127\n<main> 0 127\n(waits for the GVL) 0 36\n"
		    "(its turn was over) 0 32\n(waits for a file) 0 24\n(holds the GVL) 0 16\n");
}

Test(state, selection)
{
	static const struct {
		const char *words, *rows;
	} cases[] = {
		{ "gvl", "gvl+turn 32\ngvl 4\n" },
		{ "disk", "disk+gvl 16\ndisk 8\n" },
		{ "user,gvl", "gvl+turn 32\ngvl 4\nuser 1\n" },
		{ "wait", "gvl+turn 32\ndisk+gvl 16\ndisk 8\ngvl 4\n" },
		{ "gvl-held", "disk+gvl 16\n" },
		{ "gvl,gvl-held", "gvl+turn 32\ndisk+gvl 16\ngvl 4\n" },
		{ "system", "system 2\n" },
		{ "minor-fault", "minor-fault 64\n" },
		{ "minor-fault,user", "minor-fault 64\nuser 1\n" },
		{ "child", "" },
	};
	struct view_filter f = VIEW_FILTER_INIT;
	struct err err = { 0 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_assert_eq(state_set_parse(cases[i].words, &f.states, &err), 0);
		expect_rows(&f, FLAT_BY_STATE, cases[i].rows);
	}
	f.states = 77;
	cr_expect_eq(state_set_parse("gvl,foo", &f.states, &err), -EINVAL);
	cr_expect_eq(f.states, 77, "untouched");
	cr_expect_str_eq(err.msg, "unknown state 'foo'");
	cr_expect_eq(state_set_parse("", &f.states, &err), -EINVAL);
}

/* CPU time is the kernel's, divided as the samples are; but not of a part of a thread's time. */
Test(state, threads)
{
	struct profile_thread *of = &b.out.profile.threads[thread];
	struct thread_states_table t = THREAD_STATES_INIT;
	struct view_filter f = VIEW_FILTER_INIT;

	of->cpu_known = true;
	of->cpu_ns = (1ull << 53) + 3;
	of->first_ns = 1000;
	of->last_ns = 3000;
	cr_assert_eq(thread_states_build(&b.out.profile, NULL, &t), 0);
	cr_assert_eq(t.n, 1);
	cr_expect_not(t.in_part);
	cr_expect_eq(t.v[0].id, thread);
	cr_expect_eq(t.v[0].elapsed_ns, 2000);
	cr_expect_eq(t.v[0].ns[STATE_SYSTEM], of->cpu_ns * 2 / 67);
	cr_expect_eq(t.v[0].ns[STATE_MINOR_FAULT], of->cpu_ns * 64 / 67);
	cr_expect_eq(t.v[0].ns[STATE_USER] + t.v[0].ns[STATE_SYSTEM] + t.v[0].ns[STATE_MINOR_FAULT],
		     of->cpu_ns);
	cr_expect_eq(t.v[0].ns[STATE_DISK], 24);
	cr_expect_eq(t.v[0].held_ns, 16);
	cr_expect_eq(t.v[0].turn_ns, 32);
	cr_expect_eq(t.v[0].ns[STATE_GVL], 36);
	cr_expect_eq(t.v[0].sum_ns, of->cpu_ns + 36 + 24);
	cr_expect_eq(memcmp(t.all.ns, t.v[0].ns, sizeof(t.all.ns)), 0);
	thread_states_deinit(&t);
	f.no_gc = true;
	cr_assert_eq(thread_states_build(&b.out.profile, &f, &t), 0);
	cr_expect(t.in_part);
	cr_expect_eq(t.v[0].ns[STATE_USER], 1);
	cr_expect_eq(t.v[0].ns[STATE_MINOR_FAULT], 64);
	thread_states_deinit(&t);
}

/*
 * Of threads of one process or container, what passed for each of them adds up, and so do their
 * states.
 */
Test(state, owners)
{
	static const struct {
		enum owner_kind kind;
		size_t rows;
		uint32_t first_threads;
		uint64_t first_sum, first_elapsed;
	} cases[] = {
		{ OWNER_THREAD, 3, 1, 200, 30 },
		{ OWNER_PROCESS, 2, 1, 200, 30 },
		{ OWNER_CONTAINER, 1, 3, 200 + 127 + 50, 10 + 20 + 30 },
	};
	uint32_t other = builder_thread(&b, 0, 43, "worker");
	uint32_t third = builder_thread(&b, builder_process(&b, 50, "ruby b.rb"), 50, "main");
	const uint32_t threads[] = { thread, other, third };

	builder_sample(&b, other, builder_path(&b, "<main>"), 50, 0);
	builder_sample(&b, third, builder_path(&b, "<main>"), 200, 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		b.out.profile.threads[threads[i]].first_ns = 1000;
		b.out.profile.threads[threads[i]].last_ns = 1010 + 10 * i;
	}
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_thread_states_ struct thread_states_table t = THREAD_STATES_INIT;

		cr_assert_eq(thread_states_build(&b.out.profile, NULL, &t), 0);
		cr_assert_eq(thread_states_by_owner(&b.out.profile, cases[i].kind, &t), 0);
		cr_assert_eq(t.n, cases[i].rows, "%zu: %zu rows", i, t.n);
		cr_expect_eq(t.v[0].n_threads, cases[i].first_threads, "%zu", i);
		cr_expect_eq(t.v[0].sum_ns, cases[i].first_sum, "%zu", i);
		cr_expect_eq(t.v[0].elapsed_ns, cases[i].first_elapsed, "%zu", i);
		cr_expect_eq(t.v[0].ns[STATE_DISK], i == 2 ? 24 : 0, "%zu", i);
		cr_expect_eq(t.all.sum_ns, 200 + 127 + 50);
		if (cases[i].kind != OWNER_PROCESS)
			continue;
		cr_expect_eq(t.v[1].n_threads, 2);
		cr_expect_eq(t.v[1].sum_ns, 127 + 50);
		cr_expect_eq(t.v[1].held_ns, 16);
		cr_expect_eq(b.out.profile.processes[t.v[1].id].pid, 42);
	}
}

/* Its first tick may stand for more than there was since it began to run, which its waits tell. */
Test(state, a_thread_that_begins_as_it_waits)
{
	char path[] = "/tmp/rbpf-state-XXXXXX";
	const struct read_options opts = { .event = EVENT_WALL, .by_thread = true };
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	const int fd = mkstemp(path);
	struct read_report report;
	struct profile_sample s = { .event = BUILDER_WAIT };
	struct profile_builder own;
	struct err err = { 0 };

	cr_assert_geq(fd, 0);
	close(fd);
	builder_init(&own);
	builder_states(&own);
	s.thread = builder_thread(&own, builder_process(&own, 50, "ruby a.rb"), 50, "begins");
	s.stack = builder_reason(&own, builder_path(&own, "<main>"), REASON_WAIT_CPU);
	s.ts = BUILDER_START + 1000 * NSEC_PER_MSEC;
	s.value = 5 * NSEC_PER_MSEC;
	builder_must(sink_sample(&own.out.sink, &s));
	s.event = BUILDER_CPU;
	s.stack = builder_path(&own, "<main>");
	s.ts += 10 * NSEC_PER_MSEC;
	s.value = 40 * NSEC_PER_MSEC;
	builder_must(sink_sample(&own.out.sink, &s));
	builder_finish(&own);
	profile_file_write(&own, path);
	cr_assert_eq(profile_read(path, &opts, &p, &report, &err), 0, "%s", err.msg);
	cr_expect_eq(p.threads[s.thread].first_ns, BUILDER_START + 995 * NSEC_PER_MSEC);
	cr_expect_eq(p.threads[s.thread].last_ns, BUILDER_START + 1010 * NSEC_PER_MSEC);
	builder_deinit(&own);
	unlink(path);
}

/* A sample with @stack that ends @end_ms after the start and stands for @ms. */
static void add_ending(uint32_t stack, uint64_t end_ms, uint64_t ms)
{
	b.now = BUILDER_START + end_ms * NSEC_PER_MSEC;
	builder_sample(&b, thread, stack, ms * NSEC_PER_MSEC, 0);
}

/* "second: user disk held sum", in ms. */
static void expect_seconds(const char *want)
{
	_cleanup_thread_states_ struct thread_states_table t = THREAD_STATES_INIT;
	_cleanup_buf_ struct buf got = BUF_INIT;

	cr_assert_eq(second_states_build(&b.out.profile, NULL, &t), 0);
	for (size_t i = 0; i < t.n; i++) {
		const struct thread_states *row = &t.v[i];

		cr_expect_eq(row->id, i);
		buf_addf(&got, "%u: %d %d %d %d\n", row->id,
			 (int)(row->ns[STATE_USER] / NSEC_PER_MSEC),
			 (int)(row->ns[STATE_DISK] / NSEC_PER_MSEC),
			 (int)(row->held_ns / NSEC_PER_MSEC), (int)(row->sum_ns / NSEC_PER_MSEC));
	}
	cr_expect_str_eq(buf_str(&got), want, "%s", buf_str(&got));
}

/*
 * A wait is divided among the seconds that it was in, to the last nanosecond. A tick is of a
 * moment, as in all views.
 */
Test(state, seconds)
{
	uint32_t bar = builder_path(&b, "<main>|Foo#bar"), disk, held;
	_cleanup_thread_states_ struct thread_states_table t = THREAD_STATES_INIT;
	uint64_t all = 1 + 2 + 4 + 8 + 16 + 32 + 64; /* of setup(), too short to be seen in ms */

	disk = builder_reason(&b, bar, REASON_WAIT_DISK);
	held = builder_reason(&b, builder_reason(&b, bar, REASON_GVL_HELD), REASON_WAIT_DISK);
	add_ending(bar, 5, 10); /* its first half was before the recording */
	add_ending(disk, 1000, 300);
	add_ending(bar, 1003, 10);
	add_ending(disk, 3200, 1500);
	add_ending(held, 4000, 100);
	expect_seconds("0: 10 300 0 310\n1: 10 300 0 310\n2: 0 1000 0 1000\n3: 0 300 100 300\n");
	cr_assert_eq(second_states_build(&b.out.profile, NULL, &t), 0);
	cr_expect_eq(t.all.sum_ns, all + (10 + 300 + 10 + 1500 + 100) * NSEC_PER_MSEC);
	cr_expect_eq(t.all.ns[STATE_DISK], 24 + 1900 * NSEC_PER_MSEC);
}

/* There are no rows of what was before --from. */
Test(state, seconds_from)
{
	const struct view_filter from = { .from_ns = 2 * NSEC_PER_SEC + 5 };
	_cleanup_thread_states_ struct thread_states_table t = THREAD_STATES_INIT;

	b.out.profile.n_kept = 0; /* as when it is read from then on */
	add_ending(builder_path(&b, "<main>"), 4500, 10);
	cr_assert_eq(second_states_build(&b.out.profile, &from, &t), 0);
	cr_assert_eq(t.n, 3);
	cr_expect_eq(t.v[0].id, 2);
	cr_expect_eq(t.v[2].sum_ns, 10 * NSEC_PER_MSEC);
	cr_expect_eq(t.all.sum_ns, 10 * NSEC_PER_MSEC);
}

/* A recording can say that a wait took as long as it likes, and that it ended at any time. */
Test(state, seconds_are_bounded)
{
	uint32_t disk = builder_reason(&b, builder_path(&b, "<main>"), REASON_WAIT_DISK);
	_cleanup_thread_states_ struct thread_states_table t = THREAD_STATES_INIT;

	b.now = UINT64_MAX;
	builder_sample(&b, thread, disk, UINT64_MAX / 2, 0);
	cr_assert_eq(second_states_build(&b.out.profile, NULL, &t), 0);
	cr_expect_leq(t.n, 1u << 18);
	cr_expect_eq(t.all.ns[STATE_DISK], 24 + UINT64_MAX / 2);
}

Test(state, sum_that_differs)
{
	static const struct {
		uint64_t elapsed, sum; /* ms */
		bool differs;
	} cases[] = {
		{ 1000, 1000, false }, { 1000, 1050, false }, { 1000, 950, false },
		{ 1000, 1051, true },  { 1000, 949, true },   { 50, 60, false },
		{ 50, 61, true },      { 0, 11, true },	      { 0, 0, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct thread_states t = { .elapsed_ns = cases[i].elapsed * NSEC_PER_MSEC,
						 .sum_ns = cases[i].sum * NSEC_PER_MSEC };

		cr_expect_eq(thread_states_differ(&t), cases[i].differs, "%d of %d",
			     (int)cases[i].sum, (int)cases[i].elapsed);
	}
}

Test(state, words)
{
	for (size_t i = 0; i < STATES; i++) {
		uint64_t set;
		struct err err = { 0 };

		cr_expect_eq(state_set_parse(state_word(i), &set, &err), 0);
		cr_expect_eq(set, state_set_of((enum thread_state)i));
		cr_expect_gt(strlen(state_text(i)), 0);
		cr_expect_eq(state_waits((enum thread_state)i),
			     i != STATE_USER && i != STATE_SYSTEM && i != STATE_MINOR_FAULT);
	}
	cr_expect_null(state_word(STATES));
}
