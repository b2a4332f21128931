/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "support/naive_samples.h"
#include "support/profile_builder.h"
#include "view/reshape.h"

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

TestSuite(reshape, .init = setup, .fini = teardown);

static void reshape(struct view_filter *f, const char *root, bool collapse)
{
	struct reshape_options opts = { .has_root = root, .collapse_recursion = collapse };

	if (root)
		cr_assert_eq(regcomp(&opts.root, root, REG_EXTENDED | REG_NOSUB), 0);
	cr_assert_eq(profile_reshape(&b.out.profile, f, &opts), 0);
	if (root)
		regfree(&opts.root);
}

/* "a|b 2" a line, for each aggregate. */
static void expect_stacks(const char *want)
{
	const struct profile *p = &b.out.profile;
	_cleanup_buf_ struct buf out = BUF_INIT;

	for (size_t i = 0; i < p->n_aggregates; i++) {
		uint32_t names[16];
		size_t n = 0;

		for (uint32_t s = p->aggregates[i].stack; s; s = p->stacks[s].parent)
			names[n++] = p->frames[p->stacks[s].frame].name;
		while (n--)
			buf_addf(&out, "%s%s", profile_str(p, names[n]), n ? "|" : "");
		buf_addf(&out, " %u\n", (unsigned int)p->aggregates[i].samples);
	}
	cr_expect_str_eq(buf_str(&out), want);
}

Test(reshape, nothing_is_asked_for)
{
	struct view_filter f = VIEW_FILTER_INIT;

	builder_add(&b, thread, builder_path(&b, "a|a|b"), 2);
	reshape(&f, NULL, false);
	expect_stacks("a|a|b 2\n");
}

Test(reshape, subtrees_begin_at_the_outermost_match)
{
	struct view_filter f = VIEW_FILTER_INIT;

	builder_add(&b, thread, builder_path(&b, "main|x|y|x|z"), 2);
	builder_add(&b, thread, builder_path(&b, "main|y"), 4);
	builder_add(&b, thread, builder_path(&b, "other|x"), 1);
	builder_add(&b, thread, 0, 1);
	reshape(&f, "^x$", false);
	expect_stacks("x|y|x|z 2\nx 1\n");
	cr_expect_eq(b.out.profile.n_kept, 3, "samples that are kept");
}

Test(reshape, recursion_keeps_the_innermost_frame)
{
	struct view_filter f = VIEW_FILTER_INIT;
	uint32_t outer = builder_frame(&b, FRAME_RUBY, "a", "/a.rb", 11, 10);
	uint32_t inner = builder_frame(&b, FRAME_RUBY, "a", "/a.rb", 12, 10);
	const struct profile *p = &b.out.profile;

	builder_add(&b, thread, builder_stack(&b, builder_stack(&b, 0, outer), inner), 1);
	builder_add(&b, thread, builder_path(&b, "b|a|a|a|b|b|a"), 2);
	reshape(&f, NULL, true);
	expect_stacks("a 1\nb|a|b|a 2\n");
	cr_expect_eq(p->frames[p->stacks[p->aggregates[0].stack].frame].line, 12);
}

Test(reshape, recursion_through_frames_that_are_not_shown)
{
	struct view_filter f = { .stack = STACK_RUBY };
	uint32_t vm = builder_frame(&b, FRAME_NATIVE, "vm", "/lib/r.so", 0, 0);
	uint32_t a = builder_path(&b, "a"), frame = b.out.profile.stacks[a].frame;

	builder_add(&b, thread,
		    builder_stack(&b, builder_stack(&b, builder_stack(&b, a, vm), frame), vm), 1);
	reshape(&f, NULL, true);
	expect_stacks("a|vm 1\n");
}

/* They see whole stacks, so they are applied before stacks are cut, and not again. */
Test(reshape, patterns_of_the_filter)
{
	struct view_filter f = VIEW_FILTER_INIT;
	struct err err = { 0 };

	builder_add(&b, thread, builder_path(&b, "main|x|y"), 2);
	builder_add(&b, thread, builder_path(&b, "job|x|y"), 1);
	cr_assert_eq(view_filter_regex(&f.include, &f.has_include, "main", "--include", &err), 0);
	reshape(&f, "x", false);
	expect_stacks("x|y 2\n");
	cr_expect_not(f.has_include);
	cr_expect(f.applied.include && f.applied.root);
	cr_expect_not(f.applied.exclude || f.applied.expr || f.applied.collapse_recursion);
	view_filter_deinit(&f);
}

Test(reshape, a_failure_leaves_the_profile_alone)
{
	struct view_filter f = { .no_gc = true };
	const struct reshape_options opts = { .collapse_recursion = true };

	builder_add(&b, thread, builder_path(&b, "a|a"), 2);
	b.out.profile.by_thread = false;
	cr_expect_eq(profile_reshape(&b.out.profile, &f, &opts), -EINVAL);
	expect_stacks("a|a 2\n");
}

/* ---- random profiles, against the frames of each sample ---- */

/* What is left of the frames of @s. */
static bool naive_reshape(const struct profile *p, struct naive_sample *s, const regex_t *root,
			  bool collapse)
{
	size_t from = 0, n = 0;

	while (root && from < s->n &&
	       regexec(root, profile_str(p, p->frames[s->frames[from]].name), 0, NULL, 0))
		from++;
	if (root && from == s->n)
		return false;
	for (size_t i = from; i < s->n; i++) {
		if (collapse && n && !strcmp(s->keys[n - 1], s->keys[i]))
			n--;
		memmove(s->keys[n], s->keys[i], sizeof(s->keys[n]));
		s->frames[n++] = s->frames[i];
	}
	s->n = n;
	return true;
}

static void check_random(const char *pattern, bool collapse)
{
	const size_t n_added = 300;
	_cleanup_free_ struct naive_sample *want = calloc(n_added, sizeof(*want));
	static struct naive_sample got;
	_cleanup_view_selection_ struct view_selection *before = NULL, *after = NULL;
	struct profile *p = &b.out.profile;
	struct view_filter f = VIEW_FILTER_INIT; /* all are shown */
	size_t n = 0, frames = 0;
	regex_t root;

	cr_assert_not_null(want);
	builder_add_random(&b, 77, n_added);
	if (pattern)
		cr_assert_eq(regcomp(&root, pattern, REG_EXTENDED | REG_NOSUB), 0);
	cr_assert_eq(view_selection_new(p, &f, &before), 0);
	for (size_t i = 0; i < p->n_kept; i++) {
		cr_assert(naive_sample(p, before, i, &want[n]));
		frames += want[n].n;
		n += naive_reshape(p, &want[n], pattern ? &root : NULL, collapse);
	}
	reshape(&f, pattern, collapse);
	cr_assert_eq(view_selection_new(p, &f, &after), 0);
	cr_assert_eq(p->n_kept, n);
	for (size_t i = 0; i < n; i++) {
		cr_assert(naive_sample(p, after, i, &got));
		cr_assert_eq(got.n, want[i].n, "sample %zu: %zu frames, not %zu", i, got.n,
			     want[i].n);
		cr_assert_eq(memcmp(got.frames, want[i].frames, got.n * sizeof(got.frames[0])), 0,
			     "sample %zu", i);
		frames -= got.n;
	}
	cr_expect_gt(frames, 0, "nothing was cut");
	if (pattern)
		regfree(&root);
}

Test(reshape, random_subtrees)
{
	check_random("Foo", false);
}

Test(reshape, random_recursion)
{
	check_random(NULL, true);
}

Test(reshape, random_both)
{
	check_random("b", true);
}
