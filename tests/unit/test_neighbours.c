/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <string.h>

#include "support/naive_samples.h"
#include "support/profile_builder.h"
#include "view/neighbours.h"

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

TestSuite(neighbours, .init = setup, .fini = teardown);

static void build(const struct view_filter *f, const char *pattern, struct neighbours *ret)
{
	regex_t re;

	cr_assert_eq(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
	cr_assert_eq(neighbours_build(&b.out.profile, f, GROUP_BY_FUNCTION, &re, ret), 0);
	regfree(&re);
}

static void list_text(const struct neighbour_list *list, struct buf *out)
{
	for (size_t i = 0; i < list->n; i++)
		buf_addf(out, " %s:%u",
			 list->rows[i].frame == PROFILE_NONE
				 ? "-"
				 : profile_str(&b.out.profile,
					       b.out.profile.frames[list->rows[i].frame].name),
			 (unsigned int)list->rows[i].sum.samples);
}

/* "callers > method self/total > callees", in samples, a line each method. */
static void expect_text(const char *pattern, const char *want)
{
	_cleanup_neighbours_ struct neighbours n = NEIGHBOURS_INIT;
	_cleanup_buf_ struct buf out = BUF_INIT;

	build(NULL, pattern, &n);
	for (size_t i = 0; i < n.n_methods; i++) {
		const struct method_neighbours *m = &n.methods[i];

		list_text(&m->callers, &out);
		buf_addf(&out, " > %s %u/%u >",
			 profile_str(&b.out.profile, b.out.profile.frames[m->frame].name),
			 (unsigned int)m->time.self.samples, (unsigned int)m->time.total.samples);
		list_text(&m->callees, &out);
		buf_addch(&out, '\n');
	}
	cr_expect_str_eq(buf_str(&out), want);
}

Test(neighbours, of_a_method)
{
	builder_add(&b, thread, builder_path(&b, "main|a|x|c"), 4);
	builder_add(&b, thread, builder_path(&b, "main|b|x"), 2);
	builder_add(&b, thread, builder_path(&b, "x|d"), 1);
	builder_add(&b, thread, builder_path(&b, "main|other"), 8);
	expect_text("^x$", " a:4 b:2 -:1 > x 2/7 > c:4 -:2 d:1\n");
	expect_text("nothing", "");
	expect_text("^[ab]$", " main:4 > a 0/4 > x:4\n main:2 > b 0/2 > x:2\n");
}

Test(neighbours, a_sample_counts_once_for_each_caller_however_often_it_called)
{
	builder_add(&b, thread, builder_path(&b, "a|x|x|x"), 1);
	builder_add(&b, thread, builder_path(&b, "a|x|b|x|a|x|b"), 2);
	expect_text("^x$", " a:3 b:2 x:1 > x 1/3 > a:2 b:2 x:1 -:1\n");
}

Test(neighbours, of_frames_that_are_not_shown)
{
	const struct view_filter ruby = { .stack = STACK_RUBY };
	uint32_t native = builder_frame(&b, FRAME_NATIVE, "vm", "/lib/r.so", 0, 0);
	uint32_t a = builder_path(&b, "a"), x = builder_frame(&b, FRAME_RUBY, "x", "/x.rb", 3, 1);
	_cleanup_neighbours_ struct neighbours n = NEIGHBOURS_INIT;

	builder_add(&b, thread, builder_stack(&b, builder_stack(&b, a, native), x), 3);
	build(&ruby, "^x$", &n);
	cr_assert_eq(n.n_methods, 1);
	cr_assert_eq(n.methods[0].callers.n, 1);
	cr_expect_str_eq(profile_str(&b.out.profile,
				     b.out.profile.frames[n.methods[0].callers.rows[0].frame].name),
			 "a");
}

/* ---- random profiles, counted sample by sample ---- */

static struct view_sum naive_edge(const struct view_selection *sel, const char *caller,
				  const char *callee)
{
	static struct naive_sample s;
	struct view_sum sum = { 0 };

	for (size_t i = 0; i < b.out.profile.n_kept; i++) {
		bool has = false;

		if (!naive_sample(&b.out.profile, sel, i, &s))
			continue;
		for (size_t k = 0; k <= s.n; k++) {
			const char *outer = k ? s.keys[k - 1] : NULL;
			const char *inner = k < s.n ? s.keys[k] : NULL;

			has |= s.n &&
			       (outer && caller ? !strcmp(outer, caller) : outer == caller) &&
			       (inner && callee ? !strcmp(inner, callee) : inner == callee);
		}
		sum.samples += has;
		sum.value += has ? s.value : 0;
	}
	return sum;
}

static struct view_sum naive_total(const struct view_selection *sel, const char *key)
{
	static struct naive_sample s;
	struct view_sum sum = { 0 };

	for (size_t i = 0; i < b.out.profile.n_kept; i++) {
		bool has = false;

		if (!naive_sample(&b.out.profile, sel, i, &s))
			continue;
		for (size_t k = 0; k < s.n; k++)
			has |= !strcmp(s.keys[k], key);
		sum.samples += has;
		sum.value += has ? s.value : 0;
	}
	return sum;
}

static void expect_sum(const struct view_sum *got, struct view_sum want, const char *what)
{
	cr_expect_eq(got->samples, want.samples, "%s: %u, not %u samples", what,
		     (unsigned int)got->samples, (unsigned int)want.samples);
	cr_expect_eq(got->value, want.value, "%s: value", what);
}

/* The number of functions that have an edge to @key, or from it. */
static size_t naive_count(const struct view_selection *sel, const char *key, bool callers)
{
	const struct profile *p = &b.out.profile;
	char(*seen)[160] = calloc(p->n_frames + 1, sizeof(*seen));
	size_t n_seen = 0, n = 0, i, k;

	cr_assert_not_null(seen);
	for (i = 0; i < p->n_frames; i++) {
		naive_key(p, (uint32_t)i, seen[n_seen], sizeof(*seen));
		for (k = 0; k < n_seen && strcmp(seen[k], seen[n_seen]); k++)
			;
		if (k < n_seen)
			continue;
		n_seen++;
		n += (callers ? naive_edge(sel, seen[k], key) : naive_edge(sel, key, seen[k]))
			     .samples > 0;
	}
	n += (callers ? naive_edge(sel, NULL, key) : naive_edge(sel, key, NULL)).samples > 0;
	free(seen);
	return n;
}

static void expect_list(const struct view_selection *sel, const char *key,
			const struct neighbour_list *list, bool callers)
{
	struct view_sum sum;
	char other[160];

	for (size_t i = 0; i < list->n; i++) {
		const char *o = NULL;

		if (list->rows[i].frame != PROFILE_NONE) {
			naive_key(&b.out.profile, list->rows[i].frame, other, sizeof(other));
			o = other;
		}
		sum = (struct view_sum) { .plain = list->rows[i].sum };
		expect_sum(&sum, callers ? naive_edge(sel, o, key) : naive_edge(sel, key, o), key);
		if (i)
			cr_expect_geq(list->rows[i - 1].sum.value, list->rows[i].sum.value);
	}
	cr_expect_eq(list->n, naive_count(sel, key, callers), "%s: rows", key);
}

Test(neighbours, random_profiles_against_a_count_of_each_sample)
{
	static const enum stack_mode modes[] = { STACK_ALL, STACK_RUBY, STACK_NATIVE };
	const struct profile *p = &b.out.profile;
	char key[160];

	builder_add_random(&b, 13, 40);
	for (size_t m = 0; m < ARRAY_SIZE(modes); m++) {
		struct view_filter f = { .stack = modes[m] };
		_cleanup_view_selection_ struct view_selection *sel = NULL;
		_cleanup_neighbours_ struct neighbours n = NEIGHBOURS_INIT;
		size_t rows = 0;

		builder_must(stack_mode_prepare(&b.out.profile, modes[m]));
		cr_assert_eq(view_selection_new(p, &f, &sel), 0);
		build(&f, "Foo|native", &n);
		cr_assert_gt(n.n_methods, 3);
		for (size_t i = 0; i < n.n_methods; i++) {
			const struct method_neighbours *method = &n.methods[i];

			naive_key(p, method->frame, key, sizeof(key));
			expect_sum(&method->time.total, naive_total(sel, key), key);
			expect_sum(&method->time.self, naive_edge(sel, key, NULL), key);
			expect_list(sel, key, &method->callers, true);
			expect_list(sel, key, &method->callees, false);
			rows += method->callers.n + method->callees.n;
		}
		cr_expect_gt(rows, 10, "the profile is too simple");
	}
}
