/* SPDX-License-Identifier: GPL-2.0-only */
/* Threads of a pool that are shown as one. */
#include <criterion/criterion.h>
#include <regex.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "report/report.h"
#include "support/profile_builder.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/owner.h"
#include "view/thread_series.h"
#include "view/tree.h"

static struct profile_builder b;

static void add_thread(uint32_t process, uint32_t tid, const char *name, uint64_t ms)
{
	uint32_t thread = builder_thread(&b, process, tid, name);
	struct profile_thread *t = &b.out.profile.threads[thread];

	builder_sample(&b, thread, builder_path(&b, "<main>"), ms * NSEC_PER_MSEC, 0);
	t->first_ns = BUILDER_START;
	t->last_ns = BUILDER_START + 1000 * NSEC_PER_MSEC;
}

/* Two workers of Puma. */
static void setup(void)
{
	uint32_t one, two;

	builder_init(&b);
	one = builder_process(&b, 40, "puma: worker 0");
	two = builder_process(&b, 50, "puma: worker 1");
	add_thread(one, 40, "ruby", 1);
	add_thread(one, 41, "puma srv tp 001", 2);
	add_thread(two, 51, "puma srv tp 001", 4);
	add_thread(one, 42, "puma srv tp 002", 8);
	add_thread(one, 43, "app.rb:12", 16);
	add_thread(one, 44, "app.rb:13", 32);
	add_thread(one, 45, "puma srv tp 010", 64);
	add_thread(one, 46, "", 128);
	add_thread(one, 47, "1 of 2: x7y", 256);
	add_thread(one, 48, "2 of 2: x10y", 512);
	builder_finish(&b);
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(thread_series, .init = setup, .fini = teardown);

/* Lines of "name ms" of the rows by thread. */
static void expect_rows(const struct view_filter *f, const char *want)
{
	struct profile *p = &b.out.profile;
	_cleanup_flat_ struct flat flat = FLAT_INIT;
	_cleanup_buf_ struct buf got = BUF_INIT;

	cr_assert_eq(thread_series_find(p, f), 0);
	cr_assert_eq(flat_build(p, f, FLAT_BY_THREAD, FLAT_SORT_SELF, &flat), 0);
	for (size_t i = 0; i < flat.n_rows; i++) {
		cr_expect_eq(flat.rows[i].self_value, flat.rows[i].total_value);
		owner_label(p, OWNER_THREAD, flat.rows[i].id, &got);
		buf_addf(&got, " %d\n", (int)(flat.rows[i].self_value / NSEC_PER_MSEC));
	}
	cr_expect_str_eq(buf_str(&got), want, "%s", buf_str(&got));
}

Test(thread_series, rows)
{
	expect_rows(NULL, "* of *: x*y (2) 768\n[unnamed] (tid 46) 128\npuma srv tp * (3) 74\n"
			  "app.rb:13 (tid 44) 32\napp.rb:12 (tid 43) 16\n"
			  "puma srv tp 001 (tid 51) 4\nruby (tid 40) 1\n");
}

/* Each thread is selected by its own name, and those that are not are not counted. */
Test(thread_series, filters)
{
	struct view_filter f = VIEW_FILTER_INIT;
	struct err err = { 0 };

	cr_assert_eq(view_filter_regex(&f.thread, &f.has_thread, "tp 0.[12]$", "--thread", &err),
		     0);
	expect_rows(&f, "puma srv tp * (2) 10\npuma srv tp 001 (tid 51) 4\n");
	view_filter_deinit(&f);
	cr_assert_eq(view_filter_regex(&f.thread, &f.has_thread, "tp 010$", "--thread", &err), 0);
	expect_rows(&f, "puma srv tp 010 (tid 45) 64\n");
	view_filter_deinit(&f);
}

Test(thread_series, towers)
{
	const struct tree_options opts = { .split = TREE_SPLIT_THREAD };
	_cleanup_tree_ struct tree t = { 0 };
	_cleanup_buf_ struct buf got = BUF_INIT;

	cr_assert_eq(thread_series_find(&b.out.profile, NULL), 0);
	cr_assert_eq(tree_build(&b.out.profile, NULL, &opts, &t), 0);
	for (uint32_t i = t.nodes[0].first_child; i; i = t.nodes[i].next_sibling) {
		tree_node_label(&t, i, &got);
		buf_addf(&got, " %d\n", (int)(t.nodes[i].total_value / NSEC_PER_MSEC));
	}
	cr_expect_str_eq(buf_str(&got),
			 "* of *: x*y (2) 768\n[unnamed] (tid 46) 128\napp.rb:12 (tid 43) 16\n"
			 "app.rb:13 (tid 44) 32\npuma srv tp * (3) 74\npuma srv tp 001 (tid 51) 4\n"
			 "ruby (tid 40) 1\n",
			 "%s", buf_str(&got));
}

static void expect_in(int (*render)(const struct report *, struct buf *, struct err *),
		      enum flat_by by, const char *want)
{
	struct recording rec = { .path = "x.data" };
	struct report report = { .rec = &rec, .by = by, .limit = REPORT_NO_LIMIT };
	_cleanup_buf_ struct buf got = BUF_INIT;
	struct err err = { 0 };

	rec.profile = b.out.profile;
	rec.report.complete = true;
	cr_assert_eq(render(&report, &got, &err), 0, "%s", err.msg);
	cr_expect_not_null(strstr(buf_str(&got), want), "%s in %s", want, buf_str(&got));
}

/* What programs read: how many threads there are, and no tid of several. */
Test(thread_series, fields)
{
	expect_in(report_csv, FLAT_BY_THREAD, "\n40,42,puma srv tp 002,1,1,8000000,8000000,");
	cr_assert_eq(thread_series_find(&b.out.profile, NULL), 0);
	expect_in(report_csv, FLAT_BY_THREAD, "\n40,0,puma srv tp *,3,3,74000000,74000000,");
	expect_in(report_json, FLAT_BY_THREAD, "\"tid\":0,\"thread\":\"puma srv tp *\",");
	expect_in(report_json, FLAT_BY_THREAD, "\"threads\":3}");
	expect_in(report_json, FLAT_BY_THREAD, "\"tid\":51,\"thread\":\"puma srv tp 001\",");
	expect_in(report_states_json, FLAT_BY_FUNCTION,
		  "{\"pid\":40,\"tid\":0,\"name\":\"puma srv tp *\",\"threads\":3,"
		  "\"elapsed_ns\":3000000000,\"sum_ns\":74000000,");
	expect_in(report_states_json, FLAT_BY_FUNCTION,
		  "{\"pid\":50,\"tid\":51,\"name\":\"puma srv tp 001\",\"threads\":1,");
	expect_in(report_states_csv, FLAT_BY_FUNCTION,
		  "pid,tid,name,threads,elapsed_ns,sum_ns,user_ns,system_ns,minor-fault_ns,");
	expect_in(report_states_csv, FLAT_BY_FUNCTION,
		  "\n40,0,puma srv tp *,3,3000000000,74000000,");
	expect_in(report_states, FLAT_BY_FUNCTION, "puma srv tp * (3)");
	expect_in(report_states, FLAT_BY_FUNCTION, " of 7 rows: samples were lost");
}
