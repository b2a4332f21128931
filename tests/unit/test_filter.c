/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "support/profile_builder.h"
#include "view/filter.h"

static struct profile_builder b;
static uint32_t ruby, worker, other;

/*
 * Samples, 10 ms apart: 0 to 2 in thread 42 of pid 42, 3 and 4 in its thread 43, 5 and 6 in pid 50.
 */
static void setup(void)
{
	uint32_t puma;

	builder_init(&b);
	puma = builder_process(&b, 42, "puma: worker 0 [shop]");
	ruby = builder_thread(&b, puma, 42, "ruby");
	worker = builder_thread(&b, puma, 43, "puma srv tp 001");
	other = builder_thread(&b, builder_process(&b, 50, "ruby job.rb"), 50, "ruby");
	builder_add(&b, ruby, builder_path(&b, "<main>|Foo#bar"), 2);
	builder_add(&b, ruby, builder_path(&b, "<main>|Foo#bar|Baz.qux"), 1);
	builder_add(&b, worker, builder_path(&b, "<main>"), 2);
	builder_add(&b, other, 0, 1);
	builder_add(&b, other, builder_path(&b, "<main>|Baz.qux"), 1);
	builder_finish(&b);
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(filter, .init = setup, .fini = teardown);

static bool is_selected(const struct view_selection *sel, size_t i)
{
	const struct profile_aggregate alike = profile_aggregate_of(&b.out.profile,
								    &b.out.profile.samples[i]);

	return view_selected(sel, &alike);
}

/* A bit for each selected sample; the filter is consumed. */
static unsigned int selected(struct view_filter *f)
{
	struct view_selection *sel = NULL;
	unsigned int bits = 0;

	cr_assert_eq(view_selection_new(&b.out.profile, f, &sel), 0);
	for (size_t i = 0; i < b.out.profile.n_kept; i++)
		if (is_selected(sel, i))
			bits |= 1u << i;
	view_selection_free(sel);
	view_filter_deinit(f);
	return bits;
}

static void compile(regex_t *re, bool *has, const char *pattern)
{
	struct err err = { 0 };

	cr_assert_eq(view_filter_regex(re, has, pattern, "--thread", &err), 0, "%s", err.msg);
}

Test(filter, none_selects_all)
{
	struct view_filter f = VIEW_FILTER_INIT;

	cr_expect_eq(selected(&f), 0x7f);
	cr_expect_eq(selected(NULL), 0x7f);
}

Test(filter, pids_and_tids)
{
	struct view_filter f = VIEW_FILTER_INIT;

	f.pids = malloc(2 * sizeof(*f.pids));
	f.pids[0] = 50;
	f.pids[1] = 77;
	f.n_pids = 2;
	cr_expect_eq(selected(&f), 0x60);
	f.tids = malloc(sizeof(*f.tids));
	f.tids[0] = 43;
	f.n_tids = 1;
	cr_expect_eq(selected(&f), 0x18);
	f.pids = malloc(sizeof(*f.pids));
	f.pids[0] = 50;
	f.n_pids = 1;
	f.tids = malloc(sizeof(*f.tids));
	f.tids[0] = 43;
	f.n_tids = 1;
	cr_expect_eq(selected(&f), 0, "both must hold");
}

Test(filter, patterns)
{
	struct view_filter f = VIEW_FILTER_INIT;

	compile(&f.thread, &f.has_thread, "^puma srv");
	cr_expect_eq(selected(&f), 0x18, "thread");
	compile(&f.comm, &f.has_comm, "shop|nothing");
	cr_expect_eq(selected(&f), 0x1f, "comm");
	builder_contain(&b, 0, "3f2a9c1b0d4e", 1);
	compile(&f.container, &f.has_container, "^3f2a");
	cr_expect_eq(selected(&f), 0x1f, "container");
	compile(&f.container, &f.has_container, "^/docker/");
	cr_expect_eq(selected(&f), 0x1f, "control group");
	compile(&f.container, &f.has_container, "^$");
	cr_expect_eq(selected(&f), 0x60, "no container");
	compile(&f.container, &f.has_container, "3f2a");
	compile(&f.thread, &f.has_thread, "^ruby");
	cr_expect_eq(selected(&f), 0x07, "container and thread");
	compile(&f.include, &f.has_include, "Baz\\.");
	cr_expect_eq(selected(&f), 0x44, "include");
	compile(&f.exclude, &f.has_exclude, "^Foo#");
	cr_expect_eq(selected(&f), 0x78, "exclude");
	compile(&f.include, &f.has_include, "Baz");
	compile(&f.exclude, &f.has_exclude, "Foo");
	cr_expect_eq(selected(&f), 0x40, "include and exclude");
}

Test(filter, a_later_pattern_replaces_an_earlier_one)
{
	struct view_filter f = VIEW_FILTER_INIT;

	compile(&f.thread, &f.has_thread, "nothing");
	compile(&f.thread, &f.has_thread, "ruby");
	cr_expect_eq(selected(&f), 0x67);
}

Test(filter, bad_patterns_are_usage_errors_and_change_nothing)
{
	struct view_filter f = VIEW_FILTER_INIT;
	struct err err = { 0 };

	compile(&f.thread, &f.has_thread, "ruby");
	cr_assert_eq(view_filter_regex(&f.thread, &f.has_thread, "a(", "--thread", &err), -EINVAL);
	cr_expect_eq(err.kind, ERR_USAGE);
	cr_expect_not_null(strstr(err.msg, "--thread"), "%s", err.msg);
	cr_expect_not_null(strstr(err.msg, "a("), "%s", err.msg);
	cr_assert_eq(view_filter_regex(&f.thread, &f.has_thread, "", "--thread", &err), -EINVAL);
	cr_expect_eq(selected(&f), 0x67);
}

Test(filter, stack_modes_hide_frames_and_keep_samples)
{
	static const bool shown[FRAME_KIND_COUNT] = {
		[FRAME_RUBY] = true,	[FRAME_CFUNC] = true,	     [FRAME_TRUNCATED] = true,
		[FRAME_UNKNOWN] = true, [FRAME_FIBER] = true,	     [FRAME_GC] = true,
		[FRAME_WAIT] = true,	[FRAME_NOT_RECORDED] = true,
	};
	struct view_filter f = { .stack = STACK_RUBY };
	struct view_selection *sel = NULL;
	uint32_t frames[FRAME_KIND_COUNT];

	for (unsigned int kind = 0; kind < FRAME_KIND_COUNT; kind++)
		frames[kind] = builder_frame(
			&b, kind, kind == FRAME_NOT_RECORDED ? "[interrupt]" : "x", "", 0, 0);
	cr_assert_eq(view_selection_new(&b.out.profile, &f, &sel), 0);
	for (unsigned int kind = 0; kind < FRAME_KIND_COUNT; kind++)
		cr_expect_eq(view_frame_shown(sel, frames[kind]), shown[kind], "%s",
			     frame_kind_name(kind));
	view_selection_show(sel, STACK_ALL);
	for (unsigned int kind = 0; kind < FRAME_KIND_COUNT; kind++)
		cr_expect(view_frame_shown(sel, frames[kind]), "%s", frame_kind_name(kind));
	view_selection_free(sel);
	cr_expect_eq(selected(&f), 0x7f);
}

/* Samples 7 to 9 are garbage collection: by frames and flag, by frames, by flag; 10 is none. */
static void add_collections(uint32_t *stack)
{
	*stack = builder_path(&b, "<main>|Foo#bar");
	builder_sample(&b, worker, builder_gc(&b, *stack, "(marking)"), 1, SAMPLE_GC);
	builder_add(&b, worker, builder_gc(&b, *stack, NULL), 1);
	builder_sample(&b, ruby, *stack, 1, SAMPLE_KERNEL | SAMPLE_GC);
	builder_add(&b, worker, *stack, 1);
}

Test(filter, no_gc_drops_samples)
{
	struct view_filter f = { .no_gc = true };
	uint32_t stack;

	cr_expect_eq(selected(&f), 0x7f, "there is none");
	add_collections(&stack);
	cr_expect_eq(selected(&f), 0x7ff, "all without it");
	f.no_gc = true;
	cr_expect_eq(selected(&f), 0x47f);
	f.no_gc = true;
	compile(&f.thread, &f.has_thread, "^puma srv");
	cr_expect_eq(selected(&f), 0x418, "and other filters");
}

Test(filter, gc_alone)
{
	const struct view_filter of_worker = { .tids = (pid_t[]) { 43 }, .n_tids = 1 };
	static const struct view_filter none = { .no_gc = true };
	const struct profile *p = &b.out.profile;
	struct view_selection *sel = NULL;
	uint32_t stack, gc;

	add_collections(&stack);
	gc = p->stacks[builder_gc(&b, stack, NULL)].frame;
	cr_assert_eq(view_selection_new_gc(p, &of_worker, &sel), 0);
	for (size_t i = 0; i < p->n_kept; i++)
		cr_expect_eq(is_selected(sel, i), i == 7 || i == 8, "%zu", i);
	cr_expect(view_frame_shown(sel, p->stacks[stack].frame));
	cr_expect_not(view_frame_shown(sel, gc), "what is innermost is the cause");
	view_selection_free(sel);
	cr_assert_eq(view_selection_new_gc(p, &none, &sel), 0);
	for (size_t i = 0; i < p->n_kept; i++)
		cr_expect_not(is_selected(sel, i), "%zu", i);
	view_selection_free(sel);
}
