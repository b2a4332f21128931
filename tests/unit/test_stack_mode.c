/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/export.h"
#include "support/awkward.h"
#include "support/profile_check.h"
#include "support/merged.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/tree.h"

static struct profile_builder b;

static void setup(void)
{
	builder_init(&b);
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(stack_mode, .init = setup, .fini = teardown);

/* The folded export in @mode; free(). */
static char *fold(enum stack_mode mode)
{
	const struct view_filter f = { .stack = mode };
	const struct export_options opts = { .filter = &f };
	struct buf out = BUF_INIT;
	struct err err = { 0 };
	const char *problem;

	builder_finish(&b);
	cr_assert_eq(stack_mode_prepare(&b.out.profile, mode), 0);
	problem = check_profile(&b.out.profile);
	cr_assert_null(problem, "%s", problem);
	cr_assert_eq(exporter_find("folded")->run(&b.out.profile, &opts, &out, &err), 0, "%s",
		     err.msg);
	buf_addstr(&out, "");
	return out.data;
}

static void expect_folded(enum stack_mode mode, const char *want)
{
	char *text = fold(mode);

	cr_expect_str_eq(text, want, "%s:\n%s\nnot\n%s", stack_mode_name(mode), text, want);
	free(text);
}

Test(stack_mode, names_and_help)
{
	for (size_t i = 0; i < STACK_MODE_COUNT; i++) {
		cr_expect_str_not_empty(stack_mode_name(i));
		cr_expect_str_not_empty(stack_mode_help(i));
	}
	cr_expect_null(stack_mode_name(STACK_MODE_COUNT));
	cr_expect_null(stack_mode_help(STACK_MODE_COUNT));
	cr_expect_eq(STACK_ALL, 0, "what a filter that is all zero shows");
}

/* @lines are what is written; "+" stands for the frames of Foo#bar and its callers, @foo. */
static void expect_lines(enum stack_mode mode, const char *foo, const char *const *lines, size_t n)
{
	struct buf want = BUF_INIT;

	for (size_t i = 0; i < n; i++) {
		const char *line = lines[i];

		if (*line == '+')
			buf_addstr(&want, foo);
		buf_addf(&want, "%s\n", *line == '+' ? line + 1 : line);
	}
	expect_folded(mode, buf_str(&want));
	buf_deinit(&want);
}

Test(stack_mode, all)
{
	static const char *const lines[] = {
		"+Array#each;rb_ary_each;rb_yield;block in Foo#bar;vm_exec_core 4",
		"+[compiled Ruby code] 1",
		"+" MERGED_NO_TABLE " 2",
		"+" MERGED_UNMAPPED " 1",
		"+rb_str_new;garbage_collect;(garbage collection);(marking);gc_mark_children 2",
		"+vm_call_cfunc;Zlib::Deflate#deflate;rb_deflate_deflate;zstream_run;deflate 6",
		"+vm_call_cfunc;Zlib::Deflate#deflate;rb_deflate_deflate;zstream_run;deflate;"
		"asm_exc_page_fault 3",
		"ruby;start_thread;spin 2",
		"ruby;timer_thread_func 1",
	};

	merged_build(&b);
	expect_lines(STACK_ALL, "ruby;main;ruby_run_node;rb_vm_exec;<main>;Foo#bar;", lines,
		     ARRAY_SIZE(lines));
}

Test(stack_mode, mixed)
{
	static const char *const lines[] = {
		"ruby;[native thread] 1",
		"ruby;main;<main>;Foo#bar 1",
		"+(garbage collection);(marking) 2",
		"+Array#each;block in Foo#bar 4",
		"+Zlib::Deflate#deflate;zstream_run;deflate 6",
		"+Zlib::Deflate#deflate;zstream_run;deflate;asm_exc_page_fault 3",
		"+" MERGED_NO_TABLE " 2",
		"+" MERGED_UNMAPPED " 1",
		"ruby;start_thread;spin 2",
	};

	merged_build(&b);
	expect_lines(STACK_MIXED, "ruby;main;<main>;Foo#bar;", lines, ARRAY_SIZE(lines));
}

Test(stack_mode, ruby)
{
	static const char *const lines[] = {
		"ruby;<main>;Foo#bar 4",	  "+(garbage collection);(marking) 2",
		"+Array#each;block in Foo#bar 4", "+Zlib::Deflate#deflate 9",
		"ruby;[native thread] 3",
	};

	merged_build(&b);
	expect_lines(STACK_RUBY, "ruby;<main>;Foo#bar;", lines, ARRAY_SIZE(lines));
}

Test(stack_mode, native)
{
	static const char *const lines[] = {
		"ruby;[no native stack] 5",
		"+[compiled Ruby code] 1",
		"+" MERGED_NO_TABLE " 2",
		"+" MERGED_UNMAPPED " 1",
		"+rb_ary_each;rb_yield;vm_exec_core 4",
		"+rb_str_new;garbage_collect;gc_mark_children 2",
		"+vm_call_cfunc;rb_deflate_deflate;zstream_run;deflate 6",
		"+vm_call_cfunc;rb_deflate_deflate;zstream_run;deflate;asm_exc_page_fault 3",
		"ruby;start_thread;spin 2",
		"ruby;timer_thread_func 1",
	};

	merged_build(&b);
	merged_add(&b, 0, builder_path(&b, "<main>"), 5, 0);
	expect_lines(STACK_NATIVE, "ruby;main;ruby_run_node;rb_vm_exec;", lines, ARRAY_SIZE(lines));
}

Test(stack_mode, what_stands_for_a_stack_is_added_once_and_behind_all_others)
{
	const struct profile *p = &b.out.profile;
	size_t n_frames, n_stacks;

	merged_build(&b);
	builder_finish(&b);
	n_frames = p->n_frames;
	n_stacks = p->n_stacks;
	cr_expect_eq(stack_mode_instead(STACK_RUBY, p), 0);
	cr_assert_eq(stack_mode_prepare(&b.out.profile, STACK_BOTH), 0);
	cr_assert_eq(stack_mode_prepare(&b.out.profile, STACK_BOTH), 0);
	cr_expect_eq(p->n_frames, n_frames + 1, "all have native frames");
	cr_expect_eq(p->n_stacks, n_stacks + 1);
	cr_expect_eq(stack_mode_instead(STACK_RUBY, p), n_stacks);
	cr_expect_eq(stack_mode_instead(STACK_MIXED, p), n_stacks, "the same words");
	cr_expect_eq(stack_mode_instead(STACK_NATIVE, p), 0);
	cr_expect_eq(stack_mode_instead(STACK_BOTH, p), 0, "it has two");
}

/* Whatever a mode hides, no time is lost, and each sample with a stack is somewhere. */
Test(stack_mode, flat_rows_and_trees_add_up)
{
	merged_build(&b);
	builder_sample(&b, 0, 0, BUILDER_PERIOD, 0); /* nobody's, in all modes */
	for (unsigned int mode = 0; mode < STACK_BOTH; mode++) {
		const struct view_filter f = { .stack = mode };
		const struct tree_options opts = { .inverted = mode % 2 };
		struct flat flat = FLAT_INIT;
		uint64_t samples = 0;
		struct tree t;

		cr_assert_eq(stack_mode_prepare(&b.out.profile, mode), 0);
		cr_assert_eq(
			flat_build(&b.out.profile, &f, FLAT_BY_FUNCTION, FLAT_SORT_SELF, &flat), 0);
		for (size_t i = 0; i < flat.n_rows; i++) {
			samples += flat.rows[i].samples;
			cr_expect_leq(flat.rows[i].samples, flat.rows[i].total_samples);
		}
		cr_expect_eq(flat.samples, b.out.profile.n_samples);
		cr_expect_eq(samples, b.out.profile.n_samples - 1, "%s", stack_mode_name(mode));
		flat_deinit(&flat);
		cr_assert_eq(tree_build(&b.out.profile, &f, &opts, &t), 0);
		cr_expect_eq(t.nodes[0].self_samples, 1, "%s", stack_mode_name(mode));
		tree_deinit(&t);
	}
}

/* Code without a name is native code; what stands for no Ruby stack belongs to that. */
Test(stack_mode, frames_that_are_no_function)
{
	const uint32_t thread = builder_thread(&b, builder_process(&b, 7, "ruby jit.rb"), 7,
					       "ruby");

	builder_add(&b, thread, merged_other(&b, 0, FRAME_NATIVE, "[anonymous code]"), 3);
	builder_add(&b, thread, merged_other(&b, 0, FRAME_NATIVE, "[no Ruby frame]"), 2);
	expect_folded(STACK_RUBY, "ruby;[native thread] 3\nruby;[no Ruby frame] 2\n");
	expect_folded(STACK_NATIVE, "ruby;[anonymous code] 3\nruby;[no native stack] 2\n");
}

/* Those of samplers that do not walk native stacks. */
Test(stack_mode, recordings_without_native_stacks_look_the_same_in_all_modes)
{
	static const enum stack_mode modes[] = { STACK_MIXED, STACK_RUBY };
	uint32_t thread;
	size_t n_frames;
	char *want;

	awkward_build(&b);
	thread = builder_thread(&b, builder_process(&b, 7, "ruby old.rb"), 7, "ruby");
	builder_add(&b, thread, builder_gc(&b, builder_path(&b, "<main>|a"), "(sweeping)"), 3);
	builder_add(&b, thread, merged_other(&b, 0, FRAME_NATIVE, "[native thread]"), 2);
	builder_add(&b, thread, merged_other(&b, 0, FRAME_NATIVE, "[no Ruby in process]"), 1);
	builder_add(&b, thread, merged_other(&b, 0, FRAME_TRUNCATED, "[3 frames cut]"), 1);
	builder_add(&b, thread, merged_other(&b, 0, FRAME_UNKNOWN, "[unknown]"), 1);
	builder_add(&b, thread, merged_other(&b, 0, FRAME_FIBER, "[fiber]"), 1);
	builder_add(&b, thread, 0, 1);
	n_frames = b.out.profile.n_frames;
	want = fold(STACK_ALL);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		expect_folded(modes[i], want);
	cr_expect_eq(b.out.profile.n_frames, n_frames, "nothing was added");
	free(want);
}
