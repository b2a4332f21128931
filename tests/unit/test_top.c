/* SPDX-License-Identifier: GPL-2.0-only */
/* The rows of top, their lines, and what keys do, without a terminal. */
#include <criterion/criterion.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "cmd/top_dump.h"
#include "cmd/top_keys.h"
#include "profile/reason.h"
#include "profile/sink.h"
#include "profile/window.h"
#include "top/json.h"
#include "top/layout.h"
#include "top/model.h"
#include "top/terminal.h"

#define START NSEC_PER_SEC

static const struct profile_meta meta = {
	.frequency = 99,
	.start_monotonic_ns = START,
	.events = { { .name = EVENT_CPU, .unit = UNIT_NS, .period = 10000000 } },
	.n_events = 1,
};

struct shown {
	struct window *w;
	struct sink *s;
	struct top_choice choice;
	struct top_model model;
	struct top_page page;
};

static uint32_t str(struct sink *s, const char *text)
{
	uint32_t id = 0;

	cr_assert_eq(sink_string(s, text, strlen(text), &id), 0);
	return id;
}

/*
 * The stack of frames "a|b|c", the outermost first; C functions have a name that begins with "C ".
 */
static uint32_t stack(struct sink *s, const char *path)
{
	char copy[256], *name, *rest = copy;
	uint32_t id, ret = 0;

	snprintf(copy, sizeof(copy), "%s", path);
	while ((name = strsep(&rest, "|"))) {
		struct profile_frame f;

		memset(&f, 0, sizeof(f));
		f.kind = strncmp(name, "C ", 2) == 0   ? FRAME_CFUNC
			 : strncmp(name, "n ", 2) == 0 ? FRAME_NATIVE
						       : FRAME_RUBY;
		f.name = str(s, name);
		f.file = str(s, "/srv/shop/app/models/cart.rb");
		f.func_line = 12;
		f.module = PROFILE_NONE;
		cr_assert_eq(sink_frame(s, &f, &id), 0);
		cr_assert_eq(sink_stack(s, ret, id, &ret), 0);
	}
	return ret;
}

static uint32_t thread(struct sink *s, uint32_t pid, const char *command, uint32_t tid,
		       const char *name)
{
	const struct profile_process def = {
		.pid = pid,
		.parent = PROFILE_NONE,
		.start_ticks = pid * 7ull,
		.cmdline = str(s, command),
		.ruby_version = str(s, "3.3.6"),
		.exit_status = -1,
	};
	uint32_t process, ret = 0;

	cr_assert_eq(sink_process(s, &def, &process), 0);
	cr_assert_eq(sink_thread(s, process, tid, str(s, name), &ret), 0);
	return ret;
}

static void add_flagged(struct shown *t, uint64_t second, uint32_t thr, const char *path,
			uint32_t ms, uint32_t request, uint16_t flags)
{
	const struct profile_sample s = { .ts = START + second * NSEC_PER_SEC + 5,
					  .value = ms * NSEC_PER_MSEC,
					  .thread = thr,
					  .stack = stack(t->s, path),
					  .request = request,
					  .flags = flags };

	cr_assert_eq(sink_sample(t->s, &s), 0);
}

static void add(struct shown *t, uint64_t second, uint32_t thr, const char *path, uint32_t ms,
		uint32_t request)
{
	add_flagged(t, second, thr, path, ms, request, 0);
}

/* Second 0: 300 ms; second 1: 500 ms of puma, 200 ms of sidekiq, 100 ms without a Ruby frame. */
static void setup_shown(struct shown *t)
{
	const struct window_options opts = { .seconds = 60, .max_bytes = 1 << 24, .meta = &meta };
	uint32_t puma, worker, request;

	*t = (struct shown) { 0 };
	cr_assert_not_null(setlocale(LC_CTYPE, "C.UTF-8"));
	cr_assert_eq(window_new(&opts, &t->w), 0);
	t->s = window_sink(t->w);
	puma = thread(t->s, 42, "puma: cluster worker 0", 43, "puma srv tp 001");
	worker = thread(t->s, 77, "/usr/bin/ruby bin/sidekiq", 77, "日本語のスレッド");
	cr_assert_eq(sink_request(t->s, puma,
				  &(struct profile_request_kind) {
					  .framework = str(t->s, "rails"),
					  .name = str(t->s, "CartsController#show (x+y)") },
				  &request),
		     0);
	add(t, 0, puma, "<main>|Cart#total", 300, 0);
	add(t, 1, puma, "<main>|Cart#total|Cart#item", 300, request);
	add(t, 1, puma, "<main>|Cart#total|Cart#item|C Integer#+", 150, request);
	add(t, 1, puma, "<main>|Cart#total", 50, 0);
	add(t, 1, worker, "<main>|Job#perform", 200, 0);
	add(t, 1, worker, "n start_thread", 100, 0);
	window_advance(t->w, START + 2 * NSEC_PER_SEC);
	t->choice.seconds = 1;
}

static void teardown_shown(struct shown *t)
{
	window_free(t->w);
	top_choice_deinit(&t->choice);
	top_model_deinit(&t->model);
	top_page_deinit(&t->page);
}

static void build(struct shown *t)
{
	cr_assert_eq(top_model_build(&t->model, t->w, &t->choice), 0);
}

static const struct top_row *row(const struct shown *t, const char *label)
{
	for (size_t i = 0; i < t->model.n_rows; i++)
		if (strcmp(top_label(&t->model, &t->model.rows[i]), label) == 0)
			return &t->model.rows[i];
	cr_assert_fail("no row %s", label);
	abort();
}

static void expect_row(const struct shown *t, size_t i, const char *label, uint64_t self_ms,
		       uint64_t total_ms)
{
	cr_assert_lt(i, t->model.n_rows, "%s", label);
	cr_expect_str_eq(top_label(&t->model, &t->model.rows[i]), label);
	cr_expect_eq(t->model.rows[i].self_ns, self_ms * NSEC_PER_MSEC, "%s", label);
	cr_expect_eq(t->model.rows[i].total_ns, total_ms * NSEC_PER_MSEC, "%s", label);
}

/* ---- rows ---- */

Test(top, methods)
{
	struct shown t;

	setup_shown(&t);
	t.choice.view = TOP_METHODS;
	build(&t);
	cr_expect_eq(t.model.cpu_ns, 800 * NSEC_PER_MSEC);
	cr_expect_eq(t.model.samples, 5);
	expect_row(&t, 0, "Cart#item", 300, 450);
	expect_row(&t, 1, "Job#perform", 200, 200);
	expect_row(&t, 2, "C Integer#+", 150, 150);
	expect_row(&t, 3, "[native thread]", 100, 100);
	cr_expect_str_eq(top_where(&t.model, row(&t, "C Integer#+")), "C");
	cr_expect_str_eq(top_where(&t.model, row(&t, "Cart#item")),
			 "/srv/shop/app/models/cart.rb:12");
	t.choice.sort = TOP_SORT_TOTAL;
	build(&t);
	expect_row(&t, 0, "<main>", 0, 700);
	t.choice.sort = TOP_SORT_NAME;
	build(&t);
	cr_expect_str_eq(top_label(&t.model, &t.model.rows[0]), "<main>");
	t.choice.native = true;
	build(&t);
	cr_expect_eq(row(&t, "n start_thread")->self_ns, 100 * NSEC_PER_MSEC);
	teardown_shown(&t);
}

Test(top, window_and_going_back)
{
	struct shown t;

	setup_shown(&t);
	t.choice.view = TOP_METHODS;
	t.choice.back = 1;
	build(&t);
	expect_row(&t, 0, "Cart#total", 300, 300);
	cr_expect_eq(t.model.window_ns, NSEC_PER_SEC);
	t.choice.back = 0;
	t.choice.seconds = 10;
	build(&t);
	cr_expect_eq(row(&t, "Cart#total")->total_ns, 800 * NSEC_PER_MSEC);
	cr_expect_eq(t.model.window_ns, 2 * NSEC_PER_SEC, "there are no more seconds yet");
	t.choice.seconds = 0;
	t.choice.back = 99;
	build(&t);
	cr_expect_eq(t.model.n_rows, 0);
	teardown_shown(&t);
}

Test(top, processes_threads_and_requests)
{
	struct shown t;

	setup_shown(&t);
	t.choice.view = TOP_PROCESSES;
	build(&t);
	cr_expect_eq(t.model.n_rows, 2);
	expect_row(&t, 0, "puma", 500, 500);
	cr_expect_eq(t.model.rows[0].pid, 42);
	cr_expect_str_eq(top_where(&t.model, &t.model.rows[0]), "ruby 3.3.6");
	t.choice.view = TOP_THREADS;
	build(&t);
	expect_row(&t, 1, "日本語のスレッド", 300, 300);
	cr_expect_eq(t.model.rows[1].tid, 77);
	t.choice.view = TOP_REQUESTS;
	build(&t);
	expect_row(&t, 0, "CartsController#show (x+y)", 450, 450);
	expect_row(&t, 1, "[no request]", 350, 350);
	/* What is chosen of one view is all that others show. */
	t.choice.view = TOP_METHODS;
	t.choice.pid = 77;
	build(&t);
	cr_expect_eq(t.model.n_rows, 3);
	t.choice.pid = 0;
	t.choice.request = strdup("CartsController#show (x+y)");
	build(&t);
	expect_row(&t, 0, "Cart#item", 300, 450);
	cr_expect_eq(row(&t, "Cart#total")->total_ns, 450 * NSEC_PER_MSEC);
	teardown_shown(&t);
}

Test(top, filter)
{
	struct shown t;

	setup_shown(&t);
	t.choice.view = TOP_METHODS;
	strcpy(t.choice.filter, "cart#");
	build(&t);
	cr_expect_eq(t.model.n_rows, 2);
	cr_expect_eq(t.model.n_hidden, 4);
	strcpy(t.choice.filter, "models/cart");
	build(&t);
	cr_expect_eq(t.model.n_rows, 4, "where counts, too");
	teardown_shown(&t);
}

Test(top, tree)
{
	struct shown t;
	uint64_t key;

	setup_shown(&t);
	t.choice.view = TOP_TREE;
	build(&t);
	expect_row(&t, 0, "<main>", 0, 700);
	expect_row(&t, 1, "Cart#total", 50, 500);
	expect_row(&t, 2, "Cart#item", 300, 450);
	expect_row(&t, 3, "C Integer#+", 150, 150);
	expect_row(&t, 4, "Job#perform", 200, 200);
	expect_row(&t, 5, "[native thread]", 100, 100);
	cr_expect_eq(t.model.n_rows, 6);
	cr_expect(t.model.rows[1].open && t.model.rows[1].depth == 1);
	key = t.model.rows[1].key;
	cr_assert_eq(top_choice_toggle(&t.choice, key), 0);
	build(&t);
	cr_expect_eq(t.model.n_rows, 4);
	cr_expect(!row(&t, "Cart#total")->open && row(&t, "Cart#total")->has_children);
	cr_expect_eq(row(&t, "Cart#total")->key, key);
	cr_assert_eq(top_choice_toggle(&t.choice, key), 0);
	t.choice.method = strdup("Cart#item");
	build(&t);
	expect_row(&t, 0, "<main>", 0, 450);
	cr_expect_eq(t.model.n_rows, 4);
	t.choice.inverted = true;
	build(&t);
	expect_row(&t, 0, "Cart#item", 0, 300);
	/* A node is shown if one below it fits. */
	t.choice.inverted = false;
	strcpy(t.choice.filter, "integer");
	build(&t);
	cr_expect_eq(t.model.n_rows, 4);
	strcpy(t.choice.filter, "job");
	build(&t);
	cr_expect_eq(t.model.n_rows, 0);
	teardown_shown(&t);
}

/* ---- lines ---- */

static void lay_out(struct shown *t, size_t width, size_t height, bool utf8)
{
	const struct top_frame frame = {
		.width = width,
		.height = height,
		.utf8 = utf8,
		.targets = "all Rubies",
		.frequency = 99,
		.notice = "saved 5 samples to rbpf-top-1795457375.data",
		.footer = "q quit",
	};

	build(t);
	cr_assert_eq(top_layout(&t->model, &t->choice, &frame, &t->page), 0);
}

/* At any size, nothing is wider or higher than the terminal, or anything but presentable text. */
Test(top, fits)
{
	struct shown t;

	setup_shown(&t);
	for (size_t view = 0; view < TOP_VIEWS; view++)
		for (size_t width = 1; width < 130; width++)
			for (size_t height = 1; height < 12; height += 3)
				for (int utf8 = 0; utf8 < 2; utf8++) {
					t.choice.view = (enum top_view)view;
					lay_out(&t, width, height, utf8);
					cr_assert_eq(t.page.n_lines, height);
					for (size_t i = 0; i < t.page.n_lines; i++) {
						const char *line = top_line_text(&t.page, i);

						cr_assert_leq(top_width(line, utf8), width, "%s",
							      line);
						for (; !utf8 && *line; line++)
							cr_assert(*line >= ' ' && *line < 0x7f);
					}
				}
	teardown_shown(&t);
}

Test(top, lines_of_methods)
{
	struct shown t;

	setup_shown(&t);
	t.choice.view = TOP_METHODS;
	lay_out(&t, 80, 12, true);
	cr_expect_str_eq(top_line_text(&t.page, 0),
			 "rbpf top  all Rubies  CPU 80.0%  GC 0.0%  99 Hz");
	cr_expect_str_eq(top_line_text(&t.page, 1), "methods  last 00:01  by self  5 samples");
	cr_expect_str_eq(
		top_line_text(&t.page, 3),
		" 30.0%  45.0% ██▍      Cart#item                          …pp/models/cart.rb:12");
	cr_expect_str_eq(top_line_text(&t.page, 11), "q quit");
	cr_expect_eq(t.page.lines[3].style, TOP_SELECTED);
	lay_out(&t, 40, 12, false);
	cr_expect_str_eq(top_line_text(&t.page, 3), " 30.0% Cart#item");
	teardown_shown(&t);
}

Test(top, cuts)
{
	static const struct {
		const char *text;
		size_t max;
		bool tail, utf8;
		const char *want;
	} rows[] = {
		{ "abcdef", 6, false, true, "abcdef" },
		{ "abcdef", 5, false, true, "abcd…" },
		{ "abcdef", 5, true, true, "…cdef" },
		{ "abcdef", 5, false, false, "abc.." },
		{ "abcdef", 5, true, false, "..def" },
		{ "abcdef", 1, true, true, "a" },
		{ "abcdef", 0, false, true, "" },
		/* A character of two columns is shown whole or not at all. */
		{ "日本語", 6, false, true, "日本語" },
		{ "日本語", 5, false, true, "日本…" },
		{ "日本語", 4, false, true, "日…" },
		{ "日本語", 4, true, true, "…語" },
		{ "日本語", 3, false, false, "???" },
		/* A combining mark has none. */
		{ "e\xcc\x81x", 2, false, true, "e\xcc\x81x" },
		/* Whatever comes in, no control goes out. */
		{ "a\x1b[31mb", 9, false, true, "a?[31mb" },
		{ "a\xff", 9, false, true, "a?" },
		{ "a\xe2\x80\xae!", 9, false, true, "a?!" },
	};

	cr_assert_not_null(setlocale(LC_CTYPE, "C.UTF-8"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		_cleanup_buf_ struct buf out = BUF_INIT;
		size_t n = top_add_cut(&out, rows[i].text, rows[i].max, rows[i].tail, rows[i].utf8);

		cr_expect_str_eq(buf_str(&out), rows[i].want, "%zu", i);
		cr_expect_eq(n, top_width(rows[i].want, rows[i].utf8), "%zu", i);
		cr_expect_leq(n, rows[i].max, "%zu", i);
	}
}

/* ---- JSON ---- */

/* Of a collector that is not known, the share of garbage collection is not 0. */
Test(top, gc_that_is_unknown)
{
	struct top_json_options opts = { .range = { 3, 4 }, .duration_ns = NSEC_PER_SEC };
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct shown t;
	uint32_t ruby;

	setup_shown(&t);
	ruby = thread(t.s, 88, "ruby", 88, "ruby");
	add_flagged(&t, 2, ruby, "<main>", 100, 0, SAMPLE_GC_UNKNOWN);
	window_advance(t.w, START + 3 * NSEC_PER_SEC);
	t.choice.view = TOP_METHODS;
	lay_out(&t, 80, 12, true);
	cr_expect_str_eq(top_line_text(&t.page, 0),
			 "rbpf top  all Rubies  CPU 10.0%  GC unknown  99 Hz");

	add_flagged(&t, 3, ruby, "<main>", 300, 0, SAMPLE_GC_UNKNOWN);
	add_flagged(&t, 3, ruby, "<main>", 100, 0, SAMPLE_GC);
	window_advance(t.w, START + 4 * NSEC_PER_SEC);
	lay_out(&t, 80, 12, true);
	cr_expect_str_eq(top_line_text(&t.page, 0),
			 "rbpf top  all Rubies  CPU 40.0%  GC 25.0%, unknown of 75.0%  99 Hz");
	cr_assert_eq(top_json(t.w, &opts, &out), 0);
	cr_expect_not_null(
		strstr(buf_str(&out), "\"gc_ns\":100000000,\"gc_unknown_ns\":300000000,"), "%s",
		buf_str(&out));
	teardown_shown(&t);
}

Test(top, json)
{
	struct top_json_options opts = { .range = { 1, 2 },
					 .duration_ns = NSEC_PER_SEC,
					 .start_realtime_ns = 1000 * NSEC_PER_SEC,
					 .max_rows = 1 };
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct shown t;

	setup_shown(&t);
	cr_assert_eq(top_json(t.w, &opts, &out), 0);
	cr_expect_str_eq(
		buf_str(&out),
		"{\"time_ns\":1001000000000,\"duration_ns\":1000000000,\"samples\":5,"
		"\"cpu_ns\":800000000,\"gc_ns\":0,\"gc_unknown_ns\":0,\"lost\":0,"
		"\"processes\":[{\"pid\":42,\"command\":\"puma: cluster worker "
		"0\",\"ruby\":\"3.3.6\","
		"\"ended\":false,\"samples\":3,\"ns\":500000000}],"
		"\"threads\":[{\"pid\":42,\"tid\":43,\"name\":\"puma srv tp 001\",\"samples\":3,"
		"\"ns\":500000000}],"
		"\"requests\":[{\"framework\":\"rails\",\"request\":\"CartsController#show (x+y)\","
		"\"samples\":2,\"ns\":450000000}],"
		"\"methods\":[{\"kind\":\"ruby\",\"label\":\"Cart#item\","
		"\"path\":\"/srv/shop/app/models/cart.rb\",\"line\":12,\"samples\":1,"
		"\"self_ns\":300000000,\"total_ns\":450000000}]}\n");
	teardown_shown(&t);
}

/* ---- keys ---- */

static void press(struct shown *t, struct top_keys *k, unsigned int key)
{
	k->build = false;
	cr_assert_eq(top_keys_press(k, key), 0);
	if (k->build) {
		build(t);
		top_keys_find(k);
	}
}

static void type(struct shown *t, struct top_keys *k, const char *keys)
{
	for (; *keys; keys++)
		press(t, k, (unsigned char)*keys);
}

Test(top, keys)
{
	struct shown t;
	struct top_keys k = { .page = 3 };
	uint64_t key;

	setup_shown(&t);
	k.choice = &t.choice;
	k.model = &t.model;
	k.window = t.w;
	type(&t, &k, "p");
	press(&t, &k, TERMINAL_DOWN);
	press(&t, &k, TERMINAL_DOWN);
	cr_expect_eq(k.selected, 1);
	press(&t, &k, TERMINAL_ENTER);
	cr_expect(t.choice.pid == 77 && t.choice.view == TOP_METHODS);
	press(&t, &k, TERMINAL_BACKSPACE);
	cr_expect(t.choice.pid == 0 && t.choice.view == TOP_PROCESSES);
	type(&t, &k, "tj");
	press(&t, &k, TERMINAL_ENTER);
	cr_expect(t.choice.pid == 77 && t.choice.tid == 77);
	press(&t, &k, TERMINAL_ESCAPE);
	press(&t, &k, TERMINAL_ESCAPE);
	cr_expect(!t.choice.pid && !t.choice.tid);
	type(&t, &k, "r");
	press(&t, &k, TERMINAL_ENTER);
	cr_expect_str_eq(t.choice.request, "CartsController#show (x+y)");
	press(&t, &k, TERMINAL_LEFT);
	cr_expect(!t.choice.request && t.choice.view == TOP_REQUESTS);
	type(&t, &k, "m");
	press(&t, &k, TERMINAL_ENTER);
	cr_expect(t.choice.view == TOP_TREE && strcmp(t.choice.method, "Cart#item") == 0);
	press(&t, &k, TERMINAL_ENTER);
	cr_expect_eq(t.model.n_rows, 1, "<main> is closed");
	type(&t, &k, "xi");
	cr_expect(t.choice.inverted);
	press(&t, &k, TERMINAL_BACKSPACE);
	cr_expect(t.choice.view == TOP_METHODS && !t.choice.method);
	/* The selection stays with its row, wherever it goes. */
	press(&t, &k, TERMINAL_END);
	press(&t, &k, TERMINAL_UP);
	key = t.model.rows[k.selected].key;
	cr_expect_str_eq(top_label(&t.model, &t.model.rows[k.selected]), "Cart#total");
	type(&t, &k, "oo");
	cr_expect_neq(k.selected, 0);
	cr_expect_eq(t.choice.sort, TOP_SORT_NAME);
	cr_expect_eq(t.model.rows[k.selected].key, key);
	press(&t, &k, TERMINAL_HOME);
	press(&t, &k, TERMINAL_PAGE_DOWN);
	cr_expect_eq(k.selected, 3);
	press(&t, &k, TERMINAL_PAGE_UP);
	cr_expect_eq(k.selected, 0);
	type(&t, &k, "2");
	cr_expect_eq(t.choice.seconds, 10);
	type(&t, &k, "4");
	cr_expect_eq(t.choice.seconds, 0);
	type(&t, &k, "1n w?");
	cr_expect(t.choice.native && k.paused && k.reading == TOP_HELP &&
		  t.choice.view == TOP_METHODS);
	type(&t, &k, "x");
	cr_expect(k.reading == TOP_ROWS && !k.quit);
	type(&t, &k, "<<<<");
	cr_expect_eq(t.choice.back, 1, "of two seconds");
	expect_row(&t, 0, "<main>", 0, 300);
	type(&t, &k, ">");
	cr_expect_eq(t.choice.back, 0);
	type(&t, &k, " Sq");
	cr_expect(!k.paused && k.save && k.quit);
	teardown_shown(&t);
}

Test(top, keys_of_the_stacks)
{
	struct shown t;
	struct top_keys k = { .page = 3 };

	setup_shown(&t);
	k.choice = &t.choice;
	k.model = &t.model;
	k.window = t.w;
	type(&t, &k, "md");
	cr_expect(k.dump && k.dump_pid == 0, "methods are of all processes");
	type(&t, &k, "tjd");
	cr_expect(k.dump_pid == 77 && k.dump_tid == 77);
	press(&t, &k, TERMINAL_ENTER);
	k.dump_pid = 0;
	type(&t, &k, "d");
	cr_expect_eq(k.dump_pid, 77, "whose methods these are");
	k.reading = TOP_DUMP;
	k.n_lines = 8;
	k.dump = false;
	type(&t, &k, "jjk");
	cr_expect_eq(k.line, 1);
	press(&t, &k, TERMINAL_PAGE_DOWN);
	cr_expect_eq(k.line, 4);
	press(&t, &k, TERMINAL_END);
	cr_expect_eq(k.line, 5, "the last page is whole");
	press(&t, &k, TERMINAL_PAGE_UP);
	press(&t, &k, TERMINAL_PAGE_UP);
	cr_expect_eq(k.line, 0);
	type(&t, &k, "xd");
	cr_expect(k.dump && k.reading == TOP_DUMP);
	type(&t, &k, "q");
	cr_expect(k.reading == TOP_ROWS && !k.quit);
	teardown_shown(&t);
}

Test(top, lines_of_threads_in_the_stacks)
{
	const char *lines[] = { "rbpf top: the stacks of pid 7",
				"pid 7, ruby 3.1.2",
				"",
				"thread 7 \"ruby\"  (on a CPU)",
				"    Object#thread 9",
				"5 threads 11, 13-15, 20 \"pool 1 … 5\"",
				"thread 9 \"9\"" };
	const struct top_dump d = { .lines = lines, .n_lines = ARRAY_SIZE(lines) };

	cr_expect_eq(top_dump_line_of(&d, 7), 3);
	cr_expect_eq(top_dump_line_of(&d, 9), 6);
	cr_expect_eq(top_dump_line_of(&d, 11), 5);
	cr_expect_eq(top_dump_line_of(&d, 14), 5);
	cr_expect_eq(top_dump_line_of(&d, 20), 5);
	cr_expect_eq(top_dump_line_of(&d, 12), 0);
	cr_expect_eq(top_dump_line_of(&d, 5), 0);
	cr_expect_eq(top_dump_line_of(&d, 0), 0);
}

/* From a line on, and no more than there is room for. */
Test(top, text_that_is_longer_than_the_screen)
{
	const char *text[] = { "title", "a", "b", "c", "d" };
	struct top_frame f = { .width = 10, .height = 4, .first = 2, .footer = "keys" };
	struct top_page page = { 0 };

	cr_assert_eq(top_layout_text(text, ARRAY_SIZE(text), &f, &page), 0);
	cr_expect_eq(page.n_shown, 2);
	cr_assert_eq(page.n_lines, 4);
	cr_expect_str_eq(top_line_text(&page, 0), "title");
	cr_expect_str_eq(top_line_text(&page, 1), "c");
	cr_expect_str_eq(top_line_text(&page, 3), "keys");
	f.height = 1;
	cr_assert_eq(top_layout_text(text, ARRAY_SIZE(text), &f, &page), 0);
	cr_expect(page.n_lines == 1 && page.n_shown == 0);
	top_page_deinit(&page);
}

Test(top, keys_of_the_filter)
{
	struct shown t;
	struct top_keys k = { .page = 3 };

	setup_shown(&t);
	k.choice = &t.choice;
	k.model = &t.model;
	k.window = t.w;
	type(&t, &k, "m/cartq");
	cr_expect(k.typing && !k.quit);
	cr_expect_str_eq(t.choice.filter, "cartq");
	press(&t, &k, 0xe9);
	press(&t, &k, 0x8a9e);
	press(&t, &k, 0x1f600);
	cr_expect_str_eq(t.choice.filter, "cartqé語😀");
	press(&t, &k, 7);
	press(&t, &k, 0x202e);
	cr_expect_str_eq(t.choice.filter, "cartqé語😀", "what is not shown is not typed");
	for (int i = 0; i < 4; i++)
		press(&t, &k, TERMINAL_BACKSPACE);
	cr_expect_str_eq(t.choice.filter, "cart");
	cr_expect_eq(t.model.n_rows, 4);
	press(&t, &k, TERMINAL_ENTER);
	cr_expect(!k.typing);
	press(&t, &k, TERMINAL_ESCAPE);
	cr_expect_str_eq(t.choice.filter, "");
	cr_expect_eq(t.choice.view, TOP_METHODS);
	type(&t, &k, "/x");
	press(&t, &k, TERMINAL_ESCAPE);
	cr_expect(!k.typing && !t.choice.filter[0]);
	type(&t, &k, "/");
	for (int i = 0; i < 300; i++)
		type(&t, &k, "a");
	cr_expect_eq(strlen(t.choice.filter), TOP_FILTER_MAX - 1);
	teardown_shown(&t);
}
