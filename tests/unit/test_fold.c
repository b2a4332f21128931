/* SPDX-License-Identifier: GPL-2.0-only */
/* Which threads are shown as one, in which order, and under which names. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "dump/fold.h"

static void assert_sane_fold(const struct fold *f, const struct fold_thread *threads, size_t n,
			     bool each)
{
	size_t seen = 0, last = 0;

	for (size_t g = 0; g < f->n_groups; g++) {
		const size_t *members = &f->threads[f->groups[g].first];

		cr_assert_gt(f->groups[g].n, 0);
		cr_assert(!each || f->groups[g].n == 1);
		for (size_t i = 0; i < f->groups[g].n; i++) {
			cr_assert(!i || members[i - 1] < members[i], "ascending");
			cr_assert_str_eq(threads[members[0]].text, threads[members[i]].text);
		}
		if (g && threads[last].idle == threads[members[0]].idle)
			cr_assert_lt(last, members[0], "by their first thread");
		else
			cr_assert(!g || threads[members[0]].idle, "idle ones last");
		last = members[0];
		seen += f->groups[g].n;
	}
	cr_assert_eq(seen, n, "each thread once");
}

Test(fold, the_same_text_is_one_group)
{
	static const struct fold_thread threads[] = {
		{ "sleeps", true }, { "b", false }, { "pops", true }, { "a", false },
		{ "pops", true },   { "b", false }, { "pops", true }, { "b c", false },
	};
	static const size_t order[] = { 1, 5, 3, 7, 0, 2, 4, 6 }, sizes[] = { 2, 1, 1, 1, 3 };
	struct fold f;
	size_t k = 0;

	cr_assert_eq(fold_threads(threads, ARRAY_SIZE(threads), false, &f), 0);
	assert_sane_fold(&f, threads, ARRAY_SIZE(threads), false);
	cr_assert_eq(f.n_groups, ARRAY_SIZE(sizes));
	for (size_t g = 0; g < f.n_groups; g++) {
		cr_expect_eq(f.groups[g].n, sizes[g], "group %zu", g);
		for (size_t i = 0; i < f.groups[g].n; i++)
			cr_expect_eq(f.threads[f.groups[g].first + i], order[k++]);
	}
	fold_deinit(&f);
	fold_deinit(&f);
}

Test(fold, each_alone)
{
	static const struct fold_thread threads[] = {
		{ "pops", true }, { "b", false }, { "pops", true }, { "b", false }
	};
	static const size_t order[] = { 1, 3, 0, 2 };
	struct fold f;

	cr_assert_eq(fold_threads(threads, 4, true, &f), 0);
	assert_sane_fold(&f, threads, 4, true);
	cr_assert_eq(f.n_groups, 4);
	for (size_t g = 0; g < 4; g++)
		cr_expect_eq(f.threads[f.groups[g].first], order[g]);
	fold_deinit(&f);
	cr_assert_eq(fold_threads(NULL, 0, false, &f), 0);
	cr_expect_eq(f.n_groups, 0);
	fold_deinit(&f);
}

/* Many threads, with a plain search as the oracle of how many groups there are. */
Test(fold, at_random)
{
	static const char *const texts[] = { "a", "b", "ab", "", "a\nb" };
	struct fold_thread threads[200];

	srand(1);
	for (size_t n = 0; n < ARRAY_SIZE(threads); n++) {
		size_t want = 0;
		struct fold f;

		for (size_t i = 0; i < n; i++) {
			size_t which = (size_t)rand() % ARRAY_SIZE(texts), k;

			threads[i] = (struct fold_thread) { texts[which], which % 2 };
			for (k = 0; k < i && strcmp(threads[k].text, threads[i].text); k++)
				;
			want += k == i;
		}
		cr_assert_eq(fold_threads(threads, n, false, &f), 0);
		assert_sane_fold(&f, threads, n, false);
		cr_assert_eq(f.n_groups, want);
		fold_deinit(&f);
	}
}

static void expect_names(const char *want, const char *const *names)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	size_t n = 0;

	while (names[n])
		n++;
	fold_add_names(&out, names, n);
	cr_expect_str_eq(buf_str(&out), want);
}

#define NAMES(...) ((const char *const[]) { __VA_ARGS__, NULL })

Test(fold, names)
{
	expect_names("\"reactor\"", NAMES("reactor"));
	expect_names("\"reactor\"", NAMES("reactor", "reactor"));
	expect_names("\"pool 001 … 012\"", NAMES("pool 002", "pool 012", "pool 001"));
	expect_names("\"pool 9 … 10\"", NAMES("pool 9", "pool 10"));
	expect_names("\"pool 1 … 3\", \"reactor\", \"job 7\"",
		     NAMES("pool 1", "reactor", "pool 3", "job 7"));
	expect_names("\"pool\", \"pool1 … 2\"", NAMES("pool", "pool1", "pool2"));
	expect_names("\"a1 b\", \"a2 b\"", NAMES("a1 b", "a2 b"));
	expect_names("\"1 … 2\", \"\"", NAMES("1", "", "2"));
	/* The names that Ruby gives: where the thread's block is. */
	expect_names("\"app.rb:12\", \"app.rb:14\"", NAMES("app.rb:12", "app.rb:14", "app.rb:12"));
	expect_names("\"n12345678901 … 345678902\"", NAMES("n12345678901", "n12345678902"));
}

Test(fold, many_names)
{
	expect_names("\"a\", \"b\", \"c\", \"d\", \"e\", \"f\" and 1 other",
		     NAMES("a", "b", "c", "d", "e", "f", "g"));
	expect_names("\"a\", \"b\", \"c\", \"d\", \"e\", \"f1 … 2\" and 2 others",
		     NAMES("a", "b", "c", "d", "e", "f1", "g", "f2", "h"));
}

static void expect_ids(const char *want, const pid_t *ids, size_t n)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	fold_add_ids(&out, ids, n);
	cr_expect_str_eq(buf_str(&out), want);
}

Test(fold, ids)
{
	expect_ids("7", (pid_t[]) { 7 }, 1);
	expect_ids("7, 8", (pid_t[]) { 7, 8 }, 2);
	expect_ids("7-9", (pid_t[]) { 7, 8, 9 }, 3);
	expect_ids("1, 3-6, 8, 9", (pid_t[]) { 1, 3, 4, 5, 6, 8, 9 }, 7);
}
