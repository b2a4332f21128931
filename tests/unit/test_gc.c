/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/buf.h"
#include "support/profile_builder.h"
#include "view/filter.h"
#include "view/gc.h"
#include "view/label.h"

static struct profile_builder b;
static uint32_t main_thread, worker, other;

static void setup(void)
{
	uint32_t puma;

	builder_init(&b);
	puma = builder_process(&b, 42, "puma");
	main_thread = builder_thread(&b, puma, 42, "main");
	worker = builder_thread(&b, puma, 43, "worker");
	other = builder_thread(&b, builder_process(&b, 7, "ruby job.rb"), 7, "main");
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(gc, .init = setup, .fini = teardown);

static void build(const struct view_filter *f, enum flat_by by, enum flat_sort sort,
		  struct gc_report *gc)
{
	struct gc_time sum = { 0 };

	cr_assert_eq(gc_report_build(&b.out.profile, f, by, sort, gc), 0);
	for (unsigned int phase = GC_NONE + 1; phase < GC_PHASE_COUNT; phase++) {
		sum.samples += gc->phases[phase].samples;
		sum.value += gc->phases[phase].value;
	}
	cr_assert_eq(sum.samples, gc->gc.samples, "phases add up");
	cr_assert_eq(sum.value, gc->gc.value, "phases add up");
	cr_assert_eq(gc->all.value, gc->gc.value + gc->phases[GC_NONE].value);
	cr_assert_eq(gc->causes.samples, gc->gc.samples);
	cr_assert_eq(gc->processes.value, gc->gc.value);
	cr_assert_eq(gc->threads.value, gc->gc.value);
}

/* "name self/total", in samples, a line each cause. */
static void expect_causes(const struct gc_report *gc, const char *expected)
{
	struct buf out = BUF_INIT;

	for (size_t i = 0; i < gc->causes.n_rows; i++) {
		const struct flat_row *row = &gc->causes.rows[i];

		buf_addf(&out, "%s %d/%d\n", label_frame(&b.out.profile, row->frame),
			 (int)row->samples, (int)row->total_samples);
	}
	cr_expect_str_eq(buf_str(&out), expected);
	buf_deinit(&out);
}

Test(gc, of_nothing)
{
	_cleanup_gc_report_ struct gc_report gc = GC_REPORT_INIT;

	build(NULL, FLAT_BY_FUNCTION, FLAT_SORT_SELF, &gc);
	cr_expect_eq(gc.all.samples, 0);
	cr_expect_eq(gc.gc.samples, 0);
	expect_causes(&gc, "");
}

Test(gc, none)
{
	_cleanup_gc_report_ struct gc_report gc = GC_REPORT_INIT;

	builder_add(&b, worker, builder_path(&b, "<main>|a"), 3);
	build(NULL, FLAT_BY_FUNCTION, FLAT_SORT_SELF, &gc);
	cr_expect_eq(gc.all.samples, 3);
	cr_expect_eq(gc.gc.samples, 0);
	expect_causes(&gc, "");
}

Test(gc, phases)
{
	uint32_t stack = builder_path(&b, "<main>");
	_cleanup_gc_report_ struct gc_report gc = GC_REPORT_INIT;

	builder_add(&b, worker, builder_gc(&b, stack, "(marking)"), 1);
	builder_add(&b, worker, builder_gc(&b, stack, "(sweeping)"), 2);
	builder_add(&b, worker, builder_gc(&b, stack, "(compacting)"), 4);
	builder_add(&b, worker, builder_gc(&b, stack, NULL), 8);
	builder_add(&b, worker, builder_gc(&b, stack, "(of a newer rbpf)"), 16);
	builder_sample(&b, worker, stack, BUILDER_PERIOD, SAMPLE_GC); /* the flag alone */
	builder_add(&b, worker, stack, 64);
	build(NULL, FLAT_BY_FUNCTION, FLAT_SORT_SELF, &gc);
	cr_expect_eq(gc.phases[GC_MARKING].samples, 1);
	cr_expect_eq(gc.phases[GC_SWEEPING].samples, 2);
	cr_expect_eq(gc.phases[GC_COMPACTING].samples, 4);
	cr_expect_eq(gc.phases[GC_OTHER].samples, 8 + 16 + 1);
	cr_expect_eq(gc.phases[GC_NONE].samples, 64);
	cr_expect_eq(gc.gc.value, 32 * BUILDER_PERIOD);
	cr_expect_eq(gc.all.value, 96 * BUILDER_PERIOD);
	cr_expect_str_eq(gc_phase_name(GC_MARKING), "marking");
	cr_expect_str_eq(gc_phase_name(GC_OTHER), "other");
}

/* What is not known to be a collection is not known to be none. */
Test(gc, unknown)
{
	uint32_t stack = builder_path(&b, "<main>");
	_cleanup_gc_report_ struct gc_report gc = GC_REPORT_INIT;
	_cleanup_gc_report_ struct gc_report both = GC_REPORT_INIT;

	builder_sample(&b, worker, stack, BUILDER_PERIOD, SAMPLE_GC_UNKNOWN);
	builder_sample(&b, other, stack, BUILDER_PERIOD, 0);
	build(NULL, FLAT_BY_FUNCTION, FLAT_SORT_SELF, &gc);
	cr_expect_eq(gc.unknown.samples, 1);
	cr_expect_eq(gc.unknown.value, BUILDER_PERIOD);
	cr_expect(gc_report_is_unknown(&gc));

	builder_sample(&b, other, stack, BUILDER_PERIOD, SAMPLE_GC);
	build(NULL, FLAT_BY_FUNCTION, FLAT_SORT_SELF, &both);
	cr_expect_eq(both.gc.samples, 1);
	cr_expect_eq(both.unknown.samples, 1);
	cr_expect_not(gc_report_is_unknown(&both));
}

/* With and without machine code between the method and the collection, and within that. */
Test(gc, causes)
{
	uint32_t native = builder_frame(&b, FRAME_NATIVE, "ary_push", "libruby.so", 0, 0);
	uint32_t kernel = builder_frame(&b, FRAME_KERNEL, "clear_page", "", 0, 0);
	uint32_t push = builder_frame(&b, FRAME_CFUNC, "Array#push", "/app/x.rb", 7, 0);
	uint32_t below = builder_stack(&b, builder_path(&b, "<main>|a"), push);
	uint32_t native_stack = builder_stack(&b, below, native);
	_cleanup_gc_report_ struct gc_report gc = GC_REPORT_INIT;
	_cleanup_gc_report_ struct gc_report by_total = GC_REPORT_INIT;

	builder_add(&b, worker, builder_gc(&b, below, "(marking)"), 1);
	builder_add(&b, worker, builder_gc(&b, native_stack, "(marking)"), 2);
	builder_add(&b, worker,
		    builder_stack(&b, builder_gc(&b, native_stack, "(sweeping)"), kernel), 4);
	builder_add(&b, worker, builder_gc(&b, builder_path(&b, "<main>|a|a"), NULL), 8);
	builder_add(&b, worker, builder_gc(&b, 0, NULL), 16);
	builder_add(&b, worker, builder_path(&b, "<main>|b"), 32);
	build(NULL, FLAT_BY_FUNCTION, FLAT_SORT_SELF, &gc);
	expect_causes(&gc, "a 8/15\nArray#push 7/7\n<main> 0/15\n");
	cr_expect_eq(gc.uncaused.samples, 16, "there is no frame below");
	cr_expect_eq(gc.uncaused.value, 16 * BUILDER_PERIOD);
	build(NULL, FLAT_BY_FUNCTION, FLAT_SORT_TOTAL, &by_total);
	expect_causes(&by_total, "a 8/15\n<main> 0/15\nArray#push 7/7\n");
}

Test(gc, by_line)
{
	uint32_t one = builder_frame(&b, FRAME_RUBY, "a", "/app/x.rb", 3, 1);
	uint32_t two = builder_frame(&b, FRAME_RUBY, "a", "/app/x.rb", 4, 1);
	_cleanup_gc_report_ struct gc_report gc = GC_REPORT_INIT;

	builder_add(&b, worker, builder_gc(&b, builder_stack(&b, 0, one), NULL), 1);
	builder_add(&b, worker, builder_gc(&b, builder_stack(&b, 0, two), NULL), 2);
	build(NULL, FLAT_BY_LINE, FLAT_SORT_SELF, &gc);
	cr_assert_eq(gc.causes.n_rows, 2);
	cr_expect_eq(b.out.profile.frames[gc.causes.rows[0].frame].line, 4);
}

Test(gc, who_collected)
{
	uint32_t stack = builder_path(&b, "<main>"), gc_stack = builder_gc(&b, stack, NULL);
	_cleanup_gc_report_ struct gc_report gc = GC_REPORT_INIT;

	builder_add(&b, main_thread, stack, 1);
	builder_add(&b, worker, stack, 2);
	builder_add(&b, worker, gc_stack, 3);
	builder_add(&b, other, stack, 4);
	builder_add(&b, other, gc_stack, 5);
	build(NULL, FLAT_BY_FUNCTION, FLAT_SORT_SELF, &gc);
	cr_assert_eq(gc.threads.n_rows, 2, "the main thread did not");
	cr_expect_eq(gc.threads.rows[0].id, other);
	cr_expect_eq(gc.threads.rows[0].self_value, 5 * BUILDER_PERIOD);
	cr_expect_eq(gc.threads.rows[1].id, worker);
	cr_expect_eq(gc.thread_value[worker], 5 * BUILDER_PERIOD);
	cr_expect_eq(gc.thread_value[main_thread], 1 * BUILDER_PERIOD);
	cr_assert_eq(gc.processes.n_rows, 2);
	cr_expect_eq(gc.processes.rows[1].self_value, 3 * BUILDER_PERIOD);
	cr_expect_eq(gc.process_value[gc.processes.rows[1].id], 6 * BUILDER_PERIOD);
}

Test(gc, filtered)
{
	const struct view_filter f = { .pids = (pid_t[]) { 7 }, .n_pids = 1 };
	uint32_t gc_stack = builder_gc(&b, builder_path(&b, "a"), "(marking)");
	_cleanup_gc_report_ struct gc_report gc = GC_REPORT_INIT;

	builder_add(&b, worker, gc_stack, 3);
	builder_add(&b, other, gc_stack, 5);
	builder_add(&b, other, builder_path(&b, "a"), 1);
	build(&f, FLAT_BY_FUNCTION, FLAT_SORT_SELF, &gc);
	cr_expect_eq(gc.all.samples, 6);
	expect_causes(&gc, "a 5/5\n");
	cr_expect_eq(gc.thread_value[worker], 0);
}

Test(gc, random_profiles_add_up)
{
	for (unsigned int seed = 1; seed <= 20; seed++) {
		_cleanup_gc_report_ struct gc_report gc = GC_REPORT_INIT;
		uint64_t self = 0;

		builder_add_random(&b, seed, 200);
		build(NULL, seed % 2 ? FLAT_BY_FUNCTION : FLAT_BY_LINE, FLAT_SORT_SELF, &gc);
		for (size_t i = 0; i < gc.causes.n_rows; i++)
			self += gc.causes.rows[i].samples;
		cr_expect_eq(self + gc.uncaused.samples, gc.gc.samples);
	}
}
