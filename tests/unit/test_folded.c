/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/export.h"
#include "support/awkward.h"
#include "support/profile_builder.h"
#include "view/filter.h"
#include "view/label.h"
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

TestSuite(folded, .init = setup, .fini = teardown);

static char *fold(const struct export_options *opts)
{
	struct buf out = BUF_INIT;
	struct err err = { 0 };

	builder_finish(&b);
	cr_assert_eq(exporter_find("folded")->run(&b.out.profile, opts, &out, &err), 0, "%s",
		     err.msg);
	buf_addstr(&out, "");
	if (!out.data)
		buf_addch(&out, '\0');
	return out.data;
}

static void expect_folded(const struct export_options *opts, const char *expected)
{
	char *got = fold(opts);

	cr_expect_str_eq(got, expected);
	free(got);
}

/* The count at the end of a line, which is cut off with its blank; -1 if there is none. */
static long long cut_count(char *line)
{
	char *blank = strrchr(line, ' ');

	if (!blank || !blank[1] || blank[1 + strspn(blank + 1, "0123456789")])
		return -1;
	*blank = '\0';
	return strtoll(blank + 1, NULL, 10);
}

/* /\s\d+(\.\d*)?$/, which flamegraph.pl takes for a second count. */
static bool ends_in_number(const char *s)
{
	size_t n = strlen(s);

	while (n && (isdigit((unsigned char)s[n - 1]) || s[n - 1] == '.'))
		n--;
	return n && s[n] && isspace((unsigned char)s[n - 1]) && isdigit((unsigned char)s[n]);
}

/* Every line is `frame;frame… count`, frames are not empty; returns the sum of the counts. */
static long long check_lines(char *text)
{
	long long sum = 0, count;
	char *line;

	while ((line = strsep(&text, "\n")) && text) {
		count = cut_count(line);
		cr_assert_gt(count, 0, "no count after: %.200s", line);
		cr_expect_not(ends_in_number(line), "a second count: %.200s", line);
		cr_expect(*line && *line != ';' && line[strlen(line) - 1] != ';', "%.200s", line);
		cr_expect_null(strstr(line, ";;"), "an empty frame: %.200s", line);
		sum += count;
	}
	cr_expect_str_empty(line, "the last line has an end");
	return sum;
}

static const struct export_options samples;
static const struct export_options threads = { .threads = true };

Test(folded, nothing)
{
	expect_folded(&samples, "");
}

Test(folded, root_first_with_process_and_thread)
{
	uint32_t process = builder_process(&b, 42, "/usr/bin/ruby3.3 -w app.rb");
	uint32_t main = builder_thread(&b, process, 42, "ruby");
	uint32_t worker = builder_thread(&b, process, 43, "puma srv tp 001");

	builder_add(&b, main, builder_path(&b, "<main>|Foo#bar"), 3);
	builder_add(&b, main, builder_path(&b, "<main>"), 1);
	builder_add(&b, worker, builder_path(&b, "<main>|Foo#bar"), 2);
	expect_folded(&samples, "ruby3.3;<main> 1\nruby3.3;<main>;Foo#bar 5\n");
	expect_folded(&threads, "ruby3.3;puma srv tp 001;<main>;Foo#bar 2\n"
				"ruby3.3;ruby;<main> 1\nruby3.3;ruby;<main>;Foo#bar 3\n");
}

Test(folded, what_has_the_same_names_is_one_line)
{
	uint32_t a = builder_thread(&b, builder_process(&b, 1, "puma: worker 0"), 1, "x");
	uint32_t c = builder_thread(&b, builder_process(&b, 2, "puma: worker 1"), 2, "x");
	uint32_t one = builder_frame(&b, FRAME_RUBY, "Foo#bar", "/app/a.rb", 3, 1);
	uint32_t two = builder_frame(&b, FRAME_RUBY, "Foo#bar", "/app/b.rb", 9, 7);

	builder_add(&b, a, builder_stack(&b, 0, one), 1);
	builder_add(&b, a, builder_stack(&b, 0, two), 2);
	builder_add(&b, c, builder_stack(&b, 0, two), 4);
	expect_folded(&samples, "puma;Foo#bar 7\n");
	expect_folded(&threads, "puma;x;Foo#bar 7\n");
}

Test(folded, samples_without_frames_are_the_process_or_thread)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 1, ""), 1, "w 1");

	builder_add(&b, thread, 0, 2);
	expect_folded(&samples, "[unknown] 2\n");
	expect_folded(&threads, "[unknown];w_1 2\n");
}

/* A leaf that ends in a number, and the same name elsewhere, so that it stays one function. */
Test(folded, numbers_at_the_end)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 1, "ruby"), 1, "puma 001");

	builder_add(&b, thread, builder_path(&b, "Worker 12"), 1);
	builder_add(&b, thread, builder_path(&b, "Worker 12|x"), 1);
	builder_add(&b, thread, builder_path(&b, "Worker 7|x"), 1);
	builder_add(&b, thread, builder_path(&b, "v 1.5"), 1);
	builder_add(&b, thread, builder_path(&b, "w 1."), 1);
	builder_add(&b, thread, builder_path(&b, "x 1.2.3"), 1);
	builder_add(&b, thread, builder_path(&b, "y ."), 1);
	builder_add(&b, thread, builder_path(&b, "z12"), 1);
	expect_folded(&threads, "ruby;puma 001;Worker_12 1\nruby;puma 001;Worker_12;x 1\n"
				"ruby;puma 001;Worker 7;x 1\n"
				"ruby;puma 001;v_1.5 1\nruby;puma 001;w_1. 1\n"
				"ruby;puma 001;x 1.2.3 1\nruby;puma 001;y . 1\n"
				"ruby;puma 001;z12 1\n");
}

Test(folded, weights_in_microseconds_keep_their_sum)
{
	static const struct export_options time = { .weight = WEIGHT_TIME };
	uint32_t thread = builder_thread(&b, builder_process(&b, 1, "ruby"), 1, "x");
	char *text;

	builder_sample(&b, thread, builder_path(&b, "a"), 1600, 0);
	builder_sample(&b, thread, builder_path(&b, "b"), 1600, 0);
	builder_sample(&b, thread, builder_path(&b, "c"), 1600, 0);
	builder_sample(&b, thread, builder_path(&b, "d"), 400, 0);
	builder_sample(&b, thread, builder_path(&b, "e"), 0, 0);
	expect_folded(&time, "ruby;a 2\nruby;b 1\nruby;c 2\n");
	for (uint64_t seed = 1; seed < 20; seed++)
		builder_add_random(&b, seed, 300);
	text = fold(&time);
	cr_expect_eq((uint64_t)check_lines(text),
		     (b.out.profile.totals.cpu_sampled_ns + 500) / 1000);
	free(text);
}

/*
 * Where the frequency was lowered a sample stands for several: a hundred at the one asked for, and
 * a hundred at a quarter of that.
 */
Test(folded, samples_are_those_that_were_asked_for)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 1, "ruby"), 1, "x");

	builder_event(&b, EVENT_CPU, BUILDER_PERIOD);
	builder_add(&b, thread, builder_path(&b, "begin"), 100);
	for (int i = 0; i < 100; i++)
		builder_sample(&b, thread, builder_path(&b, "later"), 4 * BUILDER_PERIOD, 0);
	expect_folded(&samples, "ruby;begin 100\nruby;later 400\n");
}

/* By little, or in a recording of a time in which it was not: the totals tell. */
Test(folded, samples_of_which_few_are_for_more)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 1, "ruby"), 1, "x");

	builder_event(&b, EVENT_CPU, BUILDER_PERIOD);
	builder_add(&b, thread, builder_path(&b, "begin"), 98);
	builder_sample(&b, thread, builder_path(&b, "later"), 4 * BUILDER_PERIOD, 0);
	builder_sample(&b, thread, builder_path(&b, "later"), 4 * BUILDER_PERIOD, 0);
	expect_folded(&samples, "ruby;begin 98\nruby;later 2\n");
	b.out.profile.totals.lowest_hz = 24;
	expect_folded(&samples, "ruby;begin 98\nruby;later 8\n");
}

/* A wait of 3 ms is as much as 3000 of 1 µs; of CPU time and waits together as well. */
Test(folded, waits_are_weighted_by_their_time)
{
	static const struct export_options by_samples = { .weight = WEIGHT_SAMPLES };
	static const char *const events[] = { EVENT_WAIT, EVENT_WALL };
	uint32_t thread = builder_thread(&b, builder_process(&b, 1, "ruby"), 1, "x");

	builder_sample(&b, thread, builder_path(&b, "a"), 3000000, 0);
	builder_sample(&b, thread, builder_path(&b, "b"), 1000, 0);
	builder_sample(&b, thread, builder_path(&b, "b"), 1000, 0);
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		builder_event(&b, events[i], i ? BUILDER_PERIOD : 0);
		expect_folded(&samples, "ruby;a 3000\nruby;b 2\n");
		expect_folded(&by_samples, "ruby;a 1\nruby;b 2\n");
	}
	builder_event(&b, EVENT_CPU, 0);
	expect_folded(&samples, "ruby;a 1\nruby;b 2\n");
}

Test(folded, awkward_names_keep_the_grammar_and_the_sum)
{
	char *text;

	awkward_build(&b);
	for (unsigned int i = 0; i < 2; i++) {
		text = fold(i ? &threads : &samples);
		cr_expect_not_null(strstr(text, i ? "puma;ruby: puma w_1;<main>;Foo#a:b "
						  : "puma;<main>;Foo#a:b "));
		cr_expect_not_null(strstr(text, "[unnamed];below the unnamed "));
		cr_expect_not_null(strstr(text, "Größe#straße;日本語#メソッド;💎#🔥 "));
		cr_expect_eq((size_t)check_lines(text), b.out.profile.n_samples);
		free(text);
	}
}

Test(folded, filter)
{
	const struct view_filter f = { .stack = STACK_RUBY };
	const struct export_options opts = { .filter = &f };
	uint32_t thread = builder_thread(&b, builder_process(&b, 1, "ruby"), 1, "x");
	uint32_t a = builder_path(&b, "a");

	builder_add(&b, thread,
		    builder_stack(&b, a, builder_frame(&b, FRAME_KERNEL, "k", "", 0, 0)), 3);
	builder_select(&b, 0, 2 * BUILDER_PERIOD);
	expect_folded(&opts, "ruby;a 2\n");
}

/* ---- against a simple way to fold ---- */

struct naive_line {
	char *path; /* names, each with a '\n' before it */
	uint64_t samples;
};

/* The line of @path, the last one if it is new. */
static struct naive_line *naive_line(struct naive_line *lines, size_t *n, const char *path)
{
	for (size_t i = 0; i < *n; i++)
		if (!strcmp(lines[i].path, path))
			return &lines[i];
	lines[*n] = (struct naive_line) { .path = strdup(path) };
	return &lines[(*n)++];
}

static void naive_owner(const struct profile *p, uint32_t id, bool by_thread, struct buf *out)
{
	buf_addch(out, '\n');
	label_process(p, by_thread ? p->threads[id].process : id, out);
	if (by_thread) {
		buf_addch(out, '\n');
		label_thread(p, id, out);
	}
}

static bool is_leaf(const struct naive_line *lines, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (lines[i].samples && !strcmp(strrchr(lines[i].path, '\n') + 1, name))
			return true;
	return false;
}

static void naive_print(const struct naive_line *lines, size_t n, size_t i, struct buf *out)
{
	char *path = strdup(lines[i].path + 1), *rest = path, *name;
	const char *separator = "";

	while ((name = strsep(&rest, "\n"))) {
		if (ends_in_number(name) && is_leaf(lines, n, name))
			*strrchr(name, ' ') = '_';
		buf_addf(out, "%s%s", separator, name);
		separator = ";";
	}
	buf_addf(out, " %d\n", (int)lines[i].samples);
	free(path);
}

/* All paths of the whole split tree as text, those of the same text being one; few samples only. */
static char *naive_fold(const struct profile *p, bool by_thread)
{
	const struct tree_options opts = {
		.split = by_thread ? TREE_SPLIT_THREAD : TREE_SPLIT_PROCESS,
	};
	struct buf out = BUF_INIT;
	struct naive_line *lines;
	struct buf *paths;
	struct tree t;
	size_t n = 0;

	cr_assert_eq(tree_build(p, NULL, &opts, &t), 0);
	lines = calloc(t.n_nodes, sizeof(*lines));
	paths = calloc(t.n_nodes, sizeof(*paths));
	for (uint32_t i = tree_next(&t, 0); i; i = tree_next(&t, i)) {
		const struct tree_node *node = &t.nodes[i];

		buf_addstr(&paths[i], buf_str(&paths[node->parent]));
		if (node->frame == PROFILE_NONE)
			naive_owner(p, node->label, by_thread, &paths[i]);
		else
			buf_addf(&paths[i], "\n%s", label_frame(p, node->frame));
		naive_line(lines, &n, buf_str(&paths[i]))->samples += node->self_samples;
	}
	for (size_t i = 0; i < n; i++)
		if (lines[i].samples)
			naive_print(lines, n, i, &out);
	for (size_t i = 0; i < n; i++)
		free(lines[i].path);
	for (size_t i = 0; i < t.n_nodes; i++)
		buf_deinit(&paths[i]);
	free(lines);
	free(paths);
	tree_deinit(&t);
	return out.data;
}

/* Threads of one name: of one process name and of another between them. */
static void add_threads_of_one_name(void)
{
	static const char *const names[] = { "a", "b", "c" };
	uint32_t puma = builder_process(&b, 50, "puma");
	uint32_t ruby = builder_process(&b, 60, "ruby");

	for (uint32_t tid = 1; tid < 7; tid++) {
		uint32_t t = builder_thread(&b, tid % 2 ? puma : ruby, 100 + tid, "main");

		for (uint32_t i = 0; i < 20; i++) {
			uint32_t stack = 0;

			for (uint32_t depth = (tid * 7 + i) % 5; depth; depth--)
				stack = builder_stack(
					&b, stack,
					builder_frame(&b, FRAME_RUBY, names[(i * tid + depth) % 3],
						      i % 2 ? "/x.rb" : "/y.rb", 1, 1));
			builder_add(&b, t, stack, 1);
		}
	}
}

Test(folded, as_the_simple_way)
{
	for (uint64_t seed = 1; seed < 8; seed++) {
		if (seed == 4)
			add_threads_of_one_name();
		builder_add_random(&b, seed, 60);
		for (unsigned int i = 0; i < 2; i++) {
			char *got = fold(i ? &threads : &samples);
			char *expected = naive_fold(&b.out.profile, i);

			cr_expect_str_eq(got, expected);
			free(expected);
			free(got);
		}
	}
}

Test(folded, the_same_bytes_again)
{
	char *first, *second;

	builder_add_random(&b, 9, 500);
	first = fold(&samples);
	second = fold(&samples);
	cr_expect_str_eq(first, second);
	free(first);
	free(second);
}
