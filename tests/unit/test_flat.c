/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <math.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "rbpf_file.h"
#include "support/profile_builder.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/group.h"
#include "view/label.h"

static struct profile_builder b;
static uint32_t thread;

static void setup(void)
{
	builder_init(&b);
	thread = builder_thread(&b, builder_process(&b, 42, "ruby app.rb"), 42, "main");
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(flat, .init = setup, .fini = teardown);

static const struct view_filter all = VIEW_FILTER_INIT;

/* "name self/total", in samples, a line each row. */
static void expect_rows(const struct view_filter *f, enum flat_by by, enum flat_sort sort,
			const char *expected)
{
	struct buf out = BUF_INIT;
	struct flat flat;

	cr_assert_eq(flat_build(&b.out.profile, f, by, sort, &flat), 0);
	for (size_t i = 0; i < flat.n_rows; i++) {
		const struct flat_row *row = &flat.rows[i];

		if (by == FLAT_BY_KIND)
			buf_addf(&out, "%s", frame_kind_name(row->id));
		else if (row->frame == PROFILE_NONE)
			buf_addf(&out, "%u", row->id);
		else if (by == FLAT_BY_FILE)
			buf_addf(
				&out, "%s",
				profile_str(&b.out.profile, b.out.profile.frames[row->frame].file));
		else
			buf_addf(&out, "%s", label_frame(&b.out.profile, row->frame));
		if (by == FLAT_BY_LINE)
			buf_addf(&out, ":%u", b.out.profile.frames[row->frame].line);
		buf_addf(&out, " %d/%d\n", (int)row->samples, (int)row->total_samples);
		cr_expect_eq(row->self_value, row->samples * BUILDER_PERIOD);
		cr_expect_eq(row->total_value, row->total_samples * BUILDER_PERIOD);
	}
	cr_expect_str_eq(buf_str(&out), expected);
	buf_deinit(&out);
	flat_deinit(&flat);
}

Test(flat, without_samples)
{
	expect_rows(NULL, FLAT_BY_FUNCTION, FLAT_SORT_SELF, "");
	expect_rows(NULL, FLAT_BY_THREAD, FLAT_SORT_SELF, "");
}

Test(flat, recursion_counts_once)
{
	builder_add(&b, thread, builder_path(&b, "a|a|b|a"), 1);
	builder_add(&b, thread, builder_path(&b, "a|b|a|b"), 2);
	builder_add(&b, thread, builder_path(&b, "c|b"), 4);
	expect_rows(&all, FLAT_BY_FUNCTION, FLAT_SORT_SELF, "b 6/7\na 1/3\nc 0/4\n");
	expect_rows(&all, FLAT_BY_FUNCTION, FLAT_SORT_TOTAL, "b 6/7\nc 0/4\na 1/3\n");
}

Test(flat, ties_are_in_the_order_of_names)
{
	builder_add(&b, thread, builder_path(&b, "Foo.x"), 1);
	builder_add(&b, thread, builder_path(&b, "Foo#x"), 1);
	builder_add(&b, thread, builder_path(&b, "Bar"), 1);
	expect_rows(&all, FLAT_BY_FUNCTION, FLAT_SORT_SELF, "Bar 1/1\nFoo#x 1/1\nFoo.x 1/1\n");
}

Test(flat, what_is_one_row)
{
	uint32_t foo = builder_frame(&b, FRAME_RUBY, "Foo#bar", "/app/foo.rb", 12, 10);
	uint32_t foo_again = builder_frame(&b, FRAME_RUBY, "Foo#bar", "/app/foo.rb", 13, 10);
	uint32_t hash = builder_frame(&b, FRAME_CFUNC, "Hash#[]", "/app/foo.rb", 12, 0);
	uint32_t hash_elsewhere = builder_frame(&b, FRAME_CFUNC, "Hash#[]", "/app/bar.rb", 7, 0);
	uint32_t kernel = builder_frame(&b, FRAME_KERNEL, "k", "", 0, 0);

	builder_add(&b, thread, builder_stack(&b, builder_stack(&b, 0, foo), hash), 1);
	builder_add(&b, thread, builder_stack(&b, 0, foo_again), 2);
	builder_add(&b, thread, builder_stack(&b, 0, hash_elsewhere), 4);
	builder_add(&b, thread, builder_stack(&b, 0, kernel), 8);
	expect_rows(&all, FLAT_BY_FUNCTION, FLAT_SORT_SELF, "k 8/8\nHash#[] 5/5\nFoo#bar 2/3\n");
	expect_rows(&all, FLAT_BY_LINE, FLAT_SORT_SELF,
		    "k:0 8/8\nHash#[]:7 4/4\nFoo#bar:13 2/2\nHash#[]:12 1/1\nFoo#bar:12 0/1\n");
	expect_rows(&all, FLAT_BY_FILE, FLAT_SORT_SELF, " 8/8\n/app/bar.rb 4/4\n/app/foo.rb 3/3\n");
	expect_rows(&all, FLAT_BY_KIND, FLAT_SORT_SELF, "kernel 8/8\ncfunc 5/5\nruby 2/3\n");
}

Test(flat, an_approximate_line_is_another_line_of_the_same_function)
{
	uint32_t exact = builder_frame(&b, FRAME_RUBY, "Foo#bar", "/app/foo.rb", 12, 10);
	uint32_t approximate = builder_approximate(&b, exact);
	struct flat flat;

	builder_add(&b, thread, builder_stack(&b, 0, approximate), 2);
	builder_add(&b, thread, builder_stack(&b, 0, exact), 2);
	expect_rows(&all, FLAT_BY_FUNCTION, FLAT_SORT_SELF, "Foo#bar 4/4\n");
	expect_rows(&all, FLAT_BY_LINE, FLAT_SORT_SELF, "Foo#bar:12 2/2\nFoo#bar:12 2/2\n");
	cr_assert_eq(flat_build(&b.out.profile, &all, FLAT_BY_LINE, FLAT_SORT_SELF, &flat), 0);
	cr_expect_eq(flat.rows[0].frame, exact, "the exact one is first");
	flat_deinit(&flat);
}

Test(flat, threads_and_processes)
{
	uint32_t process = builder_process(&b, 7, "ruby job.rb");
	uint32_t second = builder_thread(&b, process, 7, "main");
	uint32_t third = builder_thread(&b, process, 8, "aux");

	builder_add(&b, thread, builder_path(&b, "a"), 2);
	builder_add(&b, second, 0, 2);
	builder_add(&b, third, builder_path(&b, "a"), 2);
	expect_rows(&all, FLAT_BY_THREAD, FLAT_SORT_SELF, "2 2/2\n1 2/2\n0 2/2\n");
	expect_rows(&all, FLAT_BY_PROCESS, FLAT_SORT_TOTAL, "1 4/4\n0 2/2\n");
}

Test(flat, containers_and_rubies)
{
	uint32_t second = builder_process(&b, 7, "ruby job.rb");
	uint32_t third = builder_process(&b, 9, "bash");
	struct flat flat;

	builder_contain(&b, 0, "web", 1);
	builder_contain(&b, second, "web", 2);
	builder_contain(&b, builder_process(&b, 8, "no samples"), "empty", 3);
	b.out.profile.processes[third].ruby_version = 0;
	builder_add(&b, thread, builder_path(&b, "a"), 2);
	builder_add(&b, builder_thread(&b, third, 9, "bash"), 0, 3);
	builder_add(&b, builder_thread(&b, second, 7, "x"), builder_path(&b, "a"), 1);
	builder_add(&b, builder_thread(&b, second, 8, "y"), builder_path(&b, "b"), 1);

	cr_assert_eq(flat_build(&b.out.profile, &all, FLAT_BY_CONTAINER, FLAT_SORT_SELF, &flat), 0);
	cr_assert_eq(flat.n_rows, 2);
	cr_expect_str_eq(profile_str(&b.out.profile, flat.rows[0].id), "web");
	cr_expect_eq(flat.rows[0].samples, 4);
	cr_expect_eq(flat.rows[0].total_value, 4 * BUILDER_PERIOD);
	cr_expect_eq(flat.rows[0].process, 0);
	cr_expect_eq(flat.rows[0].n_processes, 2);
	cr_expect_eq(flat.rows[1].id, 0);
	cr_expect_eq(flat.rows[1].process, third);
	cr_expect_eq(flat.rows[1].n_processes, 1);
	flat_deinit(&flat);

	cr_assert_eq(flat_build(&b.out.profile, &all, FLAT_BY_RUBY, FLAT_SORT_TOTAL, &flat), 0);
	cr_assert_eq(flat.n_rows, 2);
	cr_expect_str_eq(profile_str(&b.out.profile, flat.rows[0].id), "3.3.6");
	cr_expect_eq(flat.rows[0].samples, 4);
	cr_expect_eq(flat.rows[0].n_processes, 2);
	cr_expect_eq(flat.rows[1].id, 0);
	flat_deinit(&flat);
}

/* Once a row of a process each, and in the order of names where times are equal. */
Test(flat, ties_of_owners)
{
	static const char *const names[] = { "b", "a", "b", "[x]", "a" };

	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
		uint32_t process = builder_process(&b, 100 - i, names[i]);

		builder_contain(&b, process, names[i], 0);
		builder_add(&b, builder_thread(&b, process, 100 - i, names[i]), 0, 1);
	}
	expect_rows(&all, FLAT_BY_PROCESS, FLAT_SORT_SELF, "4 1/1\n5 1/1\n2 1/1\n3 1/1\n1 1/1\n");
	expect_rows(&all, FLAT_BY_THREAD, FLAT_SORT_SELF, "4 1/1\n5 1/1\n2 1/1\n3 1/1\n1 1/1\n");
}

Test(flat, hidden_frames_leave_their_time_to_callers)
{
	const struct view_filter ruby_only = { .stack = STACK_RUBY };
	uint32_t native = builder_frame(&b, FRAME_NATIVE, "vm_exec", "", 0, 0);
	uint32_t a = builder_path(&b, "a"), vm = builder_stack(&b, a, native);
	uint32_t inner = builder_stack(&b, vm, b.out.profile.stacks[a].frame);

	builder_add(&b, thread, vm, 1);
	builder_add(&b, thread, inner, 2);
	builder_add(&b, thread, builder_stack(&b, 0, native), 4);
	expect_rows(&ruby_only, FLAT_BY_FUNCTION, FLAT_SORT_SELF, "a 3/3\n");
	expect_rows(&all, FLAT_BY_FUNCTION, FLAT_SORT_SELF, "vm_exec 5/7\na 2/3\n");
}

/* A frame of each origin, and what is left of their rows without one of them. */
Test(flat, hidden_origins_leave_their_time_to_callers)
{
	static const struct {
		enum frame_kind kind;
		const char *file;
		enum code_origin hide;
		const char *rows;
	} frames[] = {
		{ FRAME_RUBY, "/gems/z-1/b.rb", ORIGIN_GEM, "app 3/3\n" },
		{ FRAME_RUBY, "/usr/lib/ruby/3.1.0/set.rb", ORIGIN_STDLIB, "app 3/3\n" },
		{ FRAME_RUBY, "<internal:kernel>", ORIGIN_CORE, "app 3/3\n" },
		{ FRAME_CFUNC, "", ORIGIN_CFUNC, "app 3/3\n" },
		{ FRAME_NATIVE, "/lib/libz.so.1", ORIGIN_NATIVE, "app 3/3\n" },
		{ FRAME_KERNEL, "", ORIGIN_KERNEL, "app 3/3\n" },
		{ FRAME_GC, "", ORIGIN_GC, "app 3/3\n" },
		{ FRAME_FIBER, "", ORIGIN_FIBER, "app 3/3\n" },
		{ FRAME_UNKNOWN, "", ORIGIN_UNKNOWN, "app 3/3\n" },
		{ FRAME_GAP, "", ORIGIN_GAP, "app 3/3\n" },
		{ FRAME_RUBY, "/gems/z-1/b.rb", ORIGIN_APP, "x 6/6\n" },
		{ FRAME_RUBY, "/gems/z-1/b.rb", ORIGIN_KERNEL, "x 6/6\napp 1/3\n" },
	};
	uint32_t app = builder_stack(&b, 0,
				     builder_frame(&b, FRAME_RUBY, "app", "/app/x.rb", 1, 1));

	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		const struct view_filter f = { .hide = 1u << frames[i].hide };
		uint32_t frame = builder_frame(&b, frames[i].kind, "x", frames[i].file, 1, 1);
		size_t n = b.out.profile.n_kept;

		builder_add(&b, thread, app, 1);
		builder_add(&b, thread, builder_stack(&b, app, frame), 2);
		builder_add(&b, thread, builder_stack(&b, 0, frame), 4);
		memmove(b.out.profile.samples, b.out.profile.samples + n,
			7 * sizeof(*b.out.profile.samples));
		b.out.profile.n_kept = 7;
		builder_select(&b, 0, 0);
		expect_rows(&f, FLAT_BY_FUNCTION, FLAT_SORT_SELF, frames[i].rows);
	}
}

/* Against the definition, sample by sample. */
Test(flat, random_profiles_agree_with_the_definition)
{
	const struct profile *p = &b.out.profile;

	for (unsigned int variant = 0; variant < 8; variant++) {
		const struct view_filter f = { .stack = variant >= 4 ? STACK_RUBY : STACK_ALL };
		enum group_by by = variant % 4;
		static const enum flat_by flat_by[] = { FLAT_BY_FUNCTION, FLAT_BY_LINE,
							FLAT_BY_FILE, FLAT_BY_MODULE };
		struct flat_row rows[900] = { 0 };
		struct view_selection *sel = NULL;
		struct groups groups;
		struct flat flat;
		uint64_t self = 0;
		size_t n_rows = 0;

		builder_add_random(&b, variant + 1, 200);
		b.out.profile.by_thread = variant % 2;
		builder_select(&b, 0, 0);
		cr_assert_eq(groups_init(p, by, &groups), 0);
		cr_assert_leq(groups.n, ARRAY_SIZE(rows));
		cr_assert_eq(view_selection_new(p, &f, &sel), 0);
		for (size_t i = 0; i < p->n_samples; i++) {
			const struct profile_sample *s = &p->samples[i];
			uint32_t self_group = 0;
			bool seen[ARRAY_SIZE(rows)] = { false }, innermost = true, waits = false;
			/* Rows of modules: the group of an outermost collection, which has all. */
			uint32_t collects = PROFILE_NONE;

			for (uint32_t st = s->stack; st; st = p->stacks[st].parent) {
				uint32_t group = groups.of_frame[p->stacks[st].frame];

				if (!view_frame_shown(sel, p->stacks[st].frame))
					continue;
				if (by == GROUP_BY_PACKAGE &&
				    p->frames[p->stacks[st].frame].kind == FRAME_GC)
					collects = group;
				/* A wait has self time only if nothing else is there that has. */
				if (innermost || waits)
					self_group = group;
				waits = (innermost || waits) &&
					p->frames[p->stacks[st].frame].kind == FRAME_WAIT;
				rows[group].total_value += seen[group] ? 0 : s->value;
				rows[group].total_samples += !seen[group];
				seen[group] = true;
				innermost = false;
			}
			if (innermost)
				continue;
			self_group = collects == PROFILE_NONE ? self_group : collects;
			rows[self_group].self_value += s->value;
			rows[self_group].samples++;
			self += s->value;
		}
		cr_assert_eq(flat_build(p, &f, flat_by[by], FLAT_SORT_SELF, &flat), 0);
		for (size_t i = 0; i < groups.n; i++)
			n_rows += rows[i].total_samples > 0;
		cr_expect_eq(flat.n_rows, n_rows);
		for (size_t i = 0; i < flat.n_rows; i++) {
			const struct flat_row *got = &flat.rows[i];
			const struct flat_row *want = &rows[groups.of_frame[got->frame]];

			cr_expect_eq(got->self_value, want->self_value);
			cr_expect_eq(got->samples, want->samples);
			cr_expect_eq(got->total_value, want->total_value);
			cr_expect_eq(got->total_samples, want->total_samples);
			self -= got->self_value;
			cr_expect(!i || got[-1].self_value >= got->self_value, "sorted");
		}
		cr_expect_eq(self, 0, "self times add up");
		flat_deinit(&flat);
		groups_deinit(&groups);
		view_selection_free(sel);
	}
}

Test(flat, owners_need_threads)
{
	const struct view_filter no_gc = { .no_gc = true };
	struct flat flat;

	builder_add_random(&b, 1, 10);
	cr_expect_eq(flat_build(&b.out.profile, &all, FLAT_BY_THREAD, FLAT_SORT_SELF, &flat), 0);
	flat_deinit(&flat);
	b.out.profile.by_thread = false;
	builder_select(&b, 0, 0);
	cr_expect_eq(flat_build(&b.out.profile, &all, FLAT_BY_THREAD, FLAT_SORT_SELF, &flat),
		     -EINVAL);
	cr_expect_eq(flat_build(&b.out.profile, &no_gc, FLAT_BY_KIND, FLAT_SORT_SELF, &flat),
		     -EINVAL);
	cr_expect_eq(flat_build(&b.out.profile, &all, FLAT_BY_KIND, FLAT_SORT_SELF, &flat), 0);
	flat_deinit(&flat);
}

Test(flat, deep_stacks)
{
	uint32_t frame = builder_frame(&b, FRAME_RUBY, "deep", "/app/x.rb", 1, 1), stack = 0;

	for (size_t i = 0; i < RBPF_FILE_MAX_DEPTH; i++)
		stack = builder_stack(&b, stack, frame);
	builder_add(&b, thread, stack, 2);
	expect_rows(&all, FLAT_BY_FUNCTION, FLAT_SORT_SELF, "deep 2/2\n");
}

static uint64_t error_of(uint64_t row_samples, uint64_t row_value, uint64_t samples, uint64_t value)
{
	const struct view_sum row = { .samples = row_samples, .value = row_value };
	const struct view_sum whole = { .samples = samples, .value = value };

	return view_sum_error(&row, &whole);
}

/* Of 200 profiles of samples of which some are worth four of the others, how often 20 % of the time
 * is within the error. */
Test(flat, error_where_samples_are_not_equal)
{
	uint64_t seed = 99;
	size_t within = 0;

	for (size_t i = 0; i < 200; i++) {
		_cleanup_flat_ struct flat flat = FLAT_INIT;
		struct profile_builder own;
		uint32_t main, x, other;
		double expected;

		builder_init(&own);
		builder_event(&own, EVENT_CPU, BUILDER_PERIOD);
		main = builder_thread(&own, builder_process(&own, 1, "ruby"), 1, "main");
		x = builder_path(&own, "x");
		other = builder_path(&own, "other");
		for (size_t k = 0; k < 500; k++)
			builder_sample(
				&own, main, builder_random(&seed, 5) ? other : x,
				builder_random(&seed, 5) ? BUILDER_PERIOD : 4 * BUILDER_PERIOD, 0);
		cr_assert_eq(flat_build(builder_finish(&own), &all, FLAT_BY_FUNCTION,
					FLAT_SORT_SELF, &flat),
			     0);
		cr_assert_eq(flat.n_rows, 2);
		expected = (double)flat.value / 5;
		for (size_t k = 0; k < 2; k++)
			if (flat.rows[k].self_value < flat.value / 2)
				within += fabs((double)flat.rows[k].self_value - expected) <=
					  (double)flat.rows[k].self_error;
		builder_deinit(&own);
	}
	cr_expect_geq(within, 184, "%zu of 200: 95 %% are 190", within);
	cr_expect_leq(within, 196, "%zu of 200: 95 %% are 190", within);
}

/* Numbers from the textbook formulas, to 1 %. */
Test(flat, error_of_self_time)
{
	const uint64_t ms = 1000000, sample = 10 * ms;

	/* 1.96 * sqrt(n(1 - n/N)) */
	cr_expect_float_eq((double)error_of(1000, 1000 * sample, 10000, 10000 * sample),
			   58.8 * (double)sample, 0.6 * (double)sample);
	cr_expect_float_eq((double)error_of(5000, 5000 * sample, 10000, 10000 * sample),
			   98.0 * (double)sample, 1.0 * (double)sample);
	/* none, all: about 1.9 samples */
	cr_expect_float_eq((double)error_of(0, 0, 10000, 10000 * sample), 1.92 * (double)sample,
			   0.02 * (double)sample);
	cr_expect_float_eq((double)error_of(10000, 10000 * sample, 10000, 10000 * sample),
			   1.92 * (double)sample, 0.02 * (double)sample);
	/* Wilson's interval for 1 of 1 is 0.21 to 1 */
	cr_expect_float_eq((double)error_of(1, sample, 1, sample), 0.397 * (double)sample,
			   0.005 * (double)sample);
	/* a row of heavy samples */
	cr_expect_eq(error_of(100, 100 * 3 * sample, 1000, 1000 * sample),
		     3 * error_of(100, 100 * sample, 1000, 1000 * sample));
	cr_expect_eq(error_of(0, 0, 0, 0), 0);
	/* no overflow: a day of 1024 CPUs at 10 kHz */
	cr_expect_gt(error_of(400000000000, 40000000000000000, 884736000000, 88473600000000000), 0);
}
