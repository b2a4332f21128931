/* SPDX-License-Identifier: GPL-2.0-only */
/* The renderers of rbpf report, on small profiles made in memory. */
#include <criterion/criterion.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/utf8.h"
#include "report/report.h"
#include "support/profile_builder.h"
#include "view/filter.h"

/* What a test renders; the profile stays the builder's. */
struct fixture {
	struct profile_builder builder;
	struct recording rec;
	struct view_filter filter;
	struct report report;
	uint32_t thread;
	struct buf out;
	struct err err;
};

static void fixture_init(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	builder_init(&f->builder);
	f->thread = builder_thread(&f->builder, builder_process(&f->builder, 42, "ruby shop.rb"),
				   42, "ruby");
	f->report = (struct report) { .limit = REPORT_NO_LIMIT };
}

static void fixture_deinit(struct fixture *f)
{
	builder_deinit(&f->builder);
	view_filter_deinit(&f->filter);
	buf_deinit(&f->out);
}

typedef int (*renderer)(const struct report *r, struct buf *out, struct err *err);

static const char *render(struct fixture *f, renderer fn)
{
	f->rec.path = "x.data";
	f->rec.profile = *builder_finish(&f->builder);
	f->rec.report.complete = true;
	f->report.rec = &f->rec;
	f->report.filter = &f->filter;
	buf_reset(&f->out);
	cr_assert_eq(fn(&f->report, &f->out, &f->err), 0, "%s", f->err.msg);
	return buf_str(&f->out);
}

/* The n-th line of @text, counted from 0, without its newline. */
static const char *line_of(const char *text, size_t n, char *line, size_t size)
{
	for (; n; n--) {
		text = strchr(text, '\n');
		cr_assert_not_null(text);
		text++;
	}
	snprintf(line, size, "%.*s", (int)strcspn(text, "\n"), text);
	return line;
}

static void expect_lines(const char *text, size_t from, const char *const *want, size_t n)
{
	char line[400];
	size_t i;

	for (i = 0; i < n; i++)
		cr_expect_str_eq(line_of(text, from + i, line, sizeof(line)), want[i], "in:\n%s",
				 text);
}

Test(report, flat_table)
{
	static const char *const want[] = {
		"x.data: 2.0 s, 1 process, 200 samples at 100 Hz (cpu), ruby 3.3.6",
		" SELF  SELF%   +/-  TOTAL  TOTAL%  METHOD         WHERE",
		"1.50s  75.0%  6.0%  1.50s   75.0%  A#x            /app/x.rb:1",
		"0.50s  25.0%  6.0%  0.50s   25.0%  Integer#+ (C)",
		"0.00s   0.0%  0.9%  2.00s  100.0%  <main>         /app/x.rb:1",
	};
	struct fixture f;
	uint32_t main_stack, cfunc;
	const char *text;

	fixture_init(&f);
	main_stack = builder_path(&f.builder, "<main>");
	cfunc = builder_frame(&f.builder, FRAME_CFUNC, "Integer#+", "/app/x.rb", 3, 0);
	builder_add(&f.builder, f.thread, builder_path(&f.builder, "<main>|A#x"), 150);
	builder_add(&f.builder, f.thread, builder_stack(&f.builder, main_stack, cfunc), 50);
	text = render(&f, report_text);
	expect_lines(text, 0, want, ARRAY_SIZE(want));
	cr_expect(strstr(text, "cpu sampled 2.0 s; the kernel's account is not in the recording\n"),
		  "%s", text);
	cr_expect_null(strstr(text, "few samples"), "%s", text);
	cr_expect_null(strstr(text, "hidden"), "%s", text);

	f.report.limit = 1;
	text = render(&f, report_text);
	cr_expect(strstr(text, "  2 more lines hidden by -n\n"), "%s", text);
	fixture_deinit(&f);
}

Test(report, approximate_lines_are_told)
{
	struct fixture f;
	uint32_t exact, approximate;
	json_t *root, *rows;
	const char *text;

	fixture_init(&f);
	exact = builder_frame(&f.builder, FRAME_RUBY, "A#x", "/app/x.rb", 12, 10);
	approximate = builder_approximate(&f.builder, exact);
	builder_add(&f.builder, f.thread, builder_stack(&f.builder, 0, approximate), 150);
	builder_add(&f.builder, f.thread, builder_stack(&f.builder, 0, exact), 50);
	text = render(&f, report_text);
	cr_expect(strstr(text, "  A#x     /app/x.rb:10\n"), "the definition is exact: %s", text);

	f.report.by = FLAT_BY_LINE;
	text = render(&f, report_text);
	cr_expect(strstr(text, "  75.0%  A#x     /app/x.rb:~12\n"), "%s", text);
	cr_expect(strstr(text, "  25.0%  A#x     /app/x.rb:12\n"), "%s", text);
	text = render(&f, report_tree);
	cr_expect(strstr(text, "├─ A#x  /app/x.rb:~12\n"), "%s", text);
	cr_expect(strstr(text, "└─ A#x  /app/x.rb:12\n"), "%s", text);

	root = json_loads(render(&f, report_json), 0, NULL);
	rows = json_object_get(root, "rows");
	cr_assert_eq(json_array_size(rows), 2);
	cr_expect(json_is_true(json_object_get(json_array_get(rows, 0), "approximate")));
	cr_expect_eq(json_integer_value(json_object_get(json_array_get(rows, 0), "line")), 12);
	cr_expect_null(json_object_get(json_array_get(rows, 1), "approximate"));
	json_decref(root);
	text = render(&f, report_csv);
	cr_expect(strstr(text, ",self_error_ns,approximate,total_error_ns\r\n"), "%s", text);
	cr_expect(strstr(text, ",1,119250000\r\nruby,A#x,/app/x.rb,12,"), "%s", text);
	cr_expect_str_eq(text + strlen(text) - strlen(",0,119250000\r\n"), ",0,119250000\r\n", "%s",
			 text);
	fixture_deinit(&f);
}

/* 200 samples, half of them garbage collection. */
static void add_collections(struct fixture *f)
{
	struct profile_builder *b = &f->builder;
	uint32_t main_stack = builder_path(b, "<main>"), method = builder_path(b, "<main>|A#x");
	uint32_t push = builder_frame(b, FRAME_CFUNC, "Array#push", "/app/x.rb", 7, 0);
	uint32_t pushing = builder_stack(b, method, push);

	builder_add(b, f->thread, main_stack, 100);
	builder_add(b, f->thread, builder_gc(b, pushing, "(marking)"), 70);
	builder_add(b, f->thread, builder_gc(b, method, "(sweeping)"), 20);
	builder_add(b, f->thread, builder_gc(b, 0, NULL), 10);
}

Test(report, gc)
{
	static const char *const want[] = {
		"x.data: 2.0 s, 1 process, 200 samples at 100 Hz (cpu), ruby 3.3.6",
		"garbage collection: 1.0 s of 2.0 s (50.0%)",
		"",
		" TIME    GC%   CPU%  PHASE",
		"0.70s  70.0%  35.0%  marking",
		"0.20s  20.0%  10.0%  sweeping",
		"0.10s  10.0%   5.0%  other",
		"",
		" SELF  SELF%   +/-  TOTAL  TOTAL%  CAUSED BY       WHERE",
		"0.70s  70.0%  8.8%  0.70s   70.0%  Array#push (C)",
		"0.20s  20.0%  7.8%  0.90s   90.0%  A#x             /app/x.rb:1",
		"  1 more line hidden by -n",
		"  0.10s (10.0%) below no Ruby method",
		"",
		"  lost 0, truncated 0, unresolved 0, failed 0 (0.0% of samples)",
	};
	struct fixture f;

	fixture_init(&f);
	add_collections(&f);
	f.report.limit = 2;
	expect_lines(render(&f, report_gc), 0, want, ARRAY_SIZE(want));
	cr_expect_null(strstr(buf_str(&f.out), "few samples"));
	fixture_deinit(&f);
}

Test(report, gc_by_line_process_and_thread)
{
	static const char *const want[] = {
		"",
		" TIME    GC%   CPU%  PROCESS           COMMAND",
		"1.00s  90.9%  50.0%  ruby (pid 42)     ruby shop.rb",
		"0.10s   9.1%  33.3%  sidekiq (pid 50)  sidekiq",
		"",
		" TIME    GC%   CPU%  THREAD           PROCESS",
		"1.00s  90.9%  50.0%  ruby (tid 42)    ruby (pid 42)",
		"0.10s   9.1%  33.3%  worker (tid 51)  sidekiq (pid 50)",
		"",
	};
	const char *text, *at;
	struct fixture f;
	uint32_t thread;

	fixture_init(&f);
	add_collections(&f);
	thread = builder_thread(&f.builder, builder_process(&f.builder, 50, "sidekiq"), 51,
				"worker");
	builder_add(&f.builder, thread, builder_path(&f.builder, "<main>"), 20);
	builder_add(&f.builder, thread,
		    builder_gc(&f.builder, builder_path(&f.builder, "<main>"), "(marking)"), 10);
	f.report.by = FLAT_BY_LINE;
	text = render(&f, report_gc);
	cr_expect(strstr(text, "  Array#push (C)  /app/x.rb:7\n"), "%s", text);
	at = strstr(text, "\n\n TIME    GC%   CPU%  PROCESS");
	cr_assert_not_null(at, "%s", text);
	expect_lines(at + 1, 0, want, ARRAY_SIZE(want));
	fixture_deinit(&f);
}

Test(report, gc_where_there_is_none)
{
	static const char *const want[] = {
		"garbage collection: 0 s of 2.0 s (0.0%)",
		"  lost 0, truncated 0, unresolved 0, failed 0 (0.0% of samples)",
	};
	struct fixture f;

	fixture_init(&f);
	builder_add(&f.builder, f.thread, builder_path(&f.builder, "<main>"), 200);
	expect_lines(render(&f, report_gc), 1, want, ARRAY_SIZE(want));
	fixture_deinit(&f);
}

Test(report, gc_of_few_samples)
{
	struct fixture f;
	const char *text;

	fixture_init(&f);
	add_collections(&f);
	builder_add(&f.builder, f.thread, builder_path(&f.builder, "<main>"), 200);
	text = render(&f, report_gc);
	cr_expect_null(strstr(text, "few samples"), "%s", text);
	builder_select(&f.builder, 110 * BUILDER_PERIOD, 0);
	text = render(&f, report_gc);
	cr_expect(strstr(text, "  few samples: 90 of garbage collection\n"), "%s", text);
	builder_select(&f.builder, 110 * BUILDER_PERIOD, 150 * BUILDER_PERIOD);
	text = render(&f, report_gc);
	cr_expect(strstr(text, "  few samples: 40 in all;"), "%s", text);
	cr_expect_null(strstr(text, "few samples: 40 of"), "said once: %s", text);
	fixture_deinit(&f);
}

Test(report, gc_machine_output)
{
	static const char want_gc[] =
		"{s:i,s:I,s:{s:i,s:i},s:[{s:s,s:i,s:I},{s:s,s:i,s:I},{s:s,s:i,s:I},{s:s,s:i,s:I}],"
		"s:[{s:i,s:s,s:i,s:I,s:I}],s:[{s:i,s:i,s:s,s:i,s:I,s:I}]}";
	const json_int_t ms10 = BUILDER_PERIOD;
	json_t *root, *want, *rows;
	struct fixture f;
	const char *text;

	fixture_init(&f);
	add_collections(&f);
	root = json_loads(render(&f, report_gc_json), 0, NULL);
	cr_assert_not_null(root);
	want = json_pack(want_gc, "samples", 100, "ns", 100 * ms10, "unknown", "samples", 0, "ns",
			 0, "phases", "phase", "marking", "samples", 70, "ns", 70 * ms10, "phase",
			 "sweeping", "samples", 20, "ns", 20 * ms10, "phase", "compacting",
			 "samples", 0, "ns", 0 * ms10, "phase", "other", "samples", 10, "ns",
			 10 * ms10, "processes", "pid", 42, "process", "ruby shop.rb", "samples",
			 100, "ns", 100 * ms10, "cpu_ns", 200 * ms10, "threads", "pid", 42, "tid",
			 42, "thread", "ruby", "samples", 100, "ns", 100 * ms10, "cpu_ns",
			 200 * ms10);
	cr_assert_not_null(want);
	cr_expect(json_equal(json_object_get(root, "gc"), want), "%s", buf_str(&f.out));
	cr_expect_eq(json_integer_value(
			     json_object_get(json_object_get(root, "summary"), "selected_samples")),
		     200);
	rows = json_object_get(root, "rows");
	cr_assert_eq(json_array_size(rows), 3);
	cr_expect_str_eq(json_string_value(json_object_get(json_array_get(rows, 0), "label")),
			 "Array#push");
	cr_expect_eq(json_integer_value(json_object_get(json_array_get(rows, 1), "total_ns")),
		     90 * ms10);
	json_decref(want);
	json_decref(root);
	text = render(&f, report_gc_csv);
	cr_expect(strstr(text, "\r\nruby,A#x,/app/x.rb,1,,20,90,200000000,900000000,"), "%s", text);
	fixture_deinit(&f);
}

/* @unknown samples of a Ruby with a collector that is not known, and @known of another. */
static void add_unknown_gc(struct fixture *f, unsigned int unknown, unsigned int known)
{
	uint32_t stack = builder_path(&f->builder, "<main>");

	for (unsigned int i = 0; i < unknown; i++)
		builder_sample(&f->builder, f->thread, stack, BUILDER_PERIOD, SAMPLE_GC_UNKNOWN);
	builder_add(&f->builder, f->thread, stack, known);
}

Test(report, unknown_gc)
{
	static const char *const want[] = {
		"garbage collection: unknown",
		"  GC unknown for 2.0 s (100.0%), as it is not known who collects: "
		"'rbpf doctor -p PID' says more",
	};
	struct fixture f;
	json_t *root, *gc;

	fixture_init(&f);
	add_unknown_gc(&f, 200, 0);
	expect_lines(render(&f, report_gc), 1, want, ARRAY_SIZE(want));
	root = json_loads(render(&f, report_gc_json), 0, NULL);
	gc = json_object_get(root, "gc");
	cr_expect(json_is_null(json_object_get(gc, "samples")), "%s", buf_str(&f.out));
	cr_expect(json_is_null(json_object_get(gc, "ns")));
	cr_expect_eq(json_integer_value(json_object_get(json_object_get(gc, "unknown"), "ns")),
		     200 * BUILDER_PERIOD);
	json_decref(root);
	buf_reset(&f.out);
	cr_expect_eq(report_gc_csv(&f.report, &f.out, &f.err), -ENODATA);
	cr_expect_eq(f.err.kind, ERR_EMPTY);
	cr_expect(strstr(f.err.msg, "garbage collection in x.data is unknown"), "%s", f.err.msg);
	fixture_deinit(&f);
}

Test(report, gc_that_is_unknown_in_part)
{
	static const char *const want[] = {
		"garbage collection: 1.0 s of 2.5 s (40.0%)",
		"  GC unknown for 500 ms (20.0%), as it is not known who collects: "
		"'rbpf doctor -p PID' says more",
	};
	struct fixture f;

	fixture_init(&f);
	add_collections(&f);
	add_unknown_gc(&f, 50, 0);
	expect_lines(render(&f, report_gc), 1, want, ARRAY_SIZE(want));
	fixture_deinit(&f);
}

Test(report, unknown_gc_by_kind)
{
	static const char *const want[] = {
		"   SELF   SELF%   +/-    TOTAL  TOTAL%  KIND",
		"  2.00s  100.0%  0.9%    2.00s  100.0%  ruby",
		"unknown                unknown          gc",
		"  GC unknown for 1.5 s (75.0%), as it is not known who collects: "
		"'rbpf doctor -p PID' says more",
	};
	struct fixture f;
	json_t *root, *row;
	const char *text;

	fixture_init(&f);
	add_unknown_gc(&f, 150, 50);
	f.report.by = FLAT_BY_KIND;
	expect_lines(render(&f, report_text), 1, want, ARRAY_SIZE(want));
	root = json_loads(render(&f, report_json), 0, NULL);
	cr_assert_eq(json_array_size(json_object_get(root, "rows")), 2, "%s", buf_str(&f.out));
	row = json_array_get(json_object_get(root, "rows"), 1);
	cr_expect_str_eq(json_string_value(json_object_get(row, "kind")), "gc");
	cr_expect(json_is_null(json_object_get(row, "self_ns")), "%s", buf_str(&f.out));
	cr_expect(json_is_null(json_object_get(row, "samples")));
	json_decref(root);
	text = render(&f, report_csv);
	cr_expect(strstr(text, "\r\ngc,unknown,unknown,unknown,unknown,unknown,unknown\r\n"), "%s",
		  text);

	/* What is known is told, and that it is not all. */
	builder_add(&f.builder, f.thread, builder_gc(&f.builder, 0, NULL), 50);
	text = render(&f, report_text);
	cr_expect(strstr(text, "0.50s  20.0%  "), "%s", text);
	cr_expect(strstr(text, "  GC unknown for 1.5 s (60.0%), as"), "%s", text);
	fixture_deinit(&f);
}

#define LONG_ID "3f2a9c1b0d4e5f60718293a4b5c6d7e8f90123456789abcdef0123456789abcd"

/* 100 samples of pid 42 and 60 of pid 50 in a container, 40 of pid 51 on the host, without Ruby. */
static void add_containers(struct fixture *f)
{
	uint32_t job = builder_process(&f->builder, 50, "ruby job.rb");
	uint32_t bash = builder_process(&f->builder, 51, "bash -i");
	uint32_t stack = builder_path(&f->builder, "<main>");

	builder_contain(&f->builder, 0, LONG_ID, 1);
	builder_contain(&f->builder, job, LONG_ID, 50);
	f->builder.out.profile.processes[bash].ruby_version = 0;
	builder_add(&f->builder, f->thread, stack, 100);
	builder_add(&f->builder, builder_thread(&f->builder, job, 50, "ruby"), stack, 60);
	builder_add(&f->builder, builder_thread(&f->builder, bash, 51, "bash"), stack, 40);
}

Test(report, containers_and_rubies)
{
	static const char *const by_container[] = {
		" SELF  SELF%   +/-  TOTAL  TOTAL%  CONTAINER       PROCESSES",
		"1.60s  80.0%  5.5%  1.60s   80.0%  3f2a9c1b0d4e    ruby (pid 42) and 1 more",
		"0.40s  20.0%  5.5%  0.40s   20.0%  [no container]  bash (pid 51)",
	};
	static const char *const by_ruby[] = {
		" SELF  SELF%   +/-  TOTAL  TOTAL%  RUBY       PROCESSES",
		"1.60s  80.0%  5.5%  1.60s   80.0%  3.3.6      ruby (pid 42) and 1 more",
		"0.40s  20.0%  5.5%  0.40s   20.0%  [no Ruby]  bash (pid 51)",
	};
	struct fixture f;
	const char *text;

	fixture_init(&f);
	add_containers(&f);
	f.report.by = FLAT_BY_CONTAINER;
	expect_lines(render(&f, report_text), 1, by_container, ARRAY_SIZE(by_container));
	f.report.by = FLAT_BY_RUBY;
	expect_lines(render(&f, report_text), 1, by_ruby, ARRAY_SIZE(by_ruby));
	f.report.by = FLAT_BY_PROCESS;
	text = render(&f, report_text);
	cr_expect(strstr(text, "  ruby (pid 42, 1 in 3f2a9c1b0d4e)  ruby shop.rb\n"), "%s", text);
	cr_expect(strstr(text, "  ruby (pid 50, in 3f2a9c1b0d4e)  "), "%s", text);
	cr_expect(strstr(text, "  bash (pid 51)  "), "%s", text);
	fixture_deinit(&f);
}

Test(report, containers_and_rubies_for_programs)
{
	struct fixture f;
	json_t *root, *row;
	const char *text;

	fixture_init(&f);
	add_containers(&f);
	f.report.by = FLAT_BY_CONTAINER;
	root = json_loads(render(&f, report_json), 0, NULL);
	row = json_array_get(json_object_get(root, "rows"), 0);
	cr_expect_str_eq(json_string_value(json_object_get(row, "container")), LONG_ID);
	cr_expect_eq(json_integer_value(json_object_get(row, "processes")), 2);
	cr_expect_eq(json_integer_value(json_object_get(row, "samples")), 160);
	row = json_array_get(json_object_get(root, "rows"), 1);
	cr_expect_str_eq(json_string_value(json_object_get(row, "container")), "");
	json_decref(root);
	text = render(&f, report_csv);
	cr_expect(strstr(text, "container,processes,samples,"), "%s", text);
	cr_expect(strstr(text, "\r\n,1,40,40,400000000,"), "%s", text);

	f.report.by = FLAT_BY_RUBY;
	text = render(&f, report_csv);
	cr_expect(strstr(text, "ruby,processes,samples,"), "%s", text);
	cr_expect(strstr(text, "\r\n3.3.6,2,160,160,"), "%s", text);
	text = render(&f, report_json);
	cr_expect(strstr(text, "{\"ruby\":\"\",\"processes\":1,\"samples\":40,"), "%s", text);

	f.report.by = FLAT_BY_PROCESS;
	text = render(&f, report_csv);
	cr_expect(strstr(text, "pid,process,samples,total_samples,self_ns,total_ns,self_error_ns,"
			       "ns_pid,container,cgroup,ruby,total_error_ns,"
			       "service,attributes\r\n"),
		  "%s", text);
	cr_expect(strstr(text, ",1," LONG_ID ",/docker/" LONG_ID ",3.3.6,137260000,,\r\n"), "%s",
		  text);
	cr_expect(strstr(text, ",0,,,,110400000,,\r\n"), "%s", text);
	f.builder.out.profile.processes[0].attributes =
		builder_str(&f.builder, "service.version=3,service.name=a%3Db");
	text = render(&f, report_csv);
	cr_expect(strstr(text, ",a=b,\"service.version=3,service.name=a%3Db\"\r\n"), "%s", text);
	fixture_deinit(&f);
}

Test(report, info_follows_filters)
{
	struct fixture f;
	const char *text;

	fixture_init(&f);
	add_containers(&f);
	builder_process(&f.builder, 60, "without samples");
	text = render(&f, report_info);
	cr_expect(strstr(text,
			 "processes  4\n  pid 42, 1 in 3f2a9c1b0d4e  ruby 3.3.6  ruby shop.rb\n"),
		  "%s", text);
	cr_expect(strstr(text, "\n  pid 51  no ruby  bash -i\n"), "%s", text);
	f.builder.out.profile.processes[0].attributes = builder_str(&f.builder,
								    "service.name=a%3Db,k=%1b[0m");
	text = render(&f, report_info);
	cr_expect(strstr(text, "ruby shop.rb\n    service.name = a=b\n    k = \uFFFD[0m\n"), "%s",
		  text);
	cr_expect(strstr(text, "\n  pid 60  ruby 3.3.6  without samples\nthreads    3\n"), "%s",
		  text);

	cr_assert_eq(view_filter_regex(&f.filter.container, &f.filter.has_container, "^3f2a",
				       "--container", &f.err),
		     0);
	text = render(&f, report_info);
	cr_expect(strstr(text, "processes  2 of 4\n  pid 42, "), "%s", text);
	cr_expect(strstr(text, "threads    2 of 3\n"), "%s", text);
	cr_expect_null(strstr(text, "bash"), "%s", text);
	cr_expect_null(strstr(text, "without samples"), "%s", text);
	fixture_deinit(&f);
}

Test(report, warns_of_few_samples)
{
	struct fixture f;
	const char *text;

	fixture_init(&f);
	builder_add(&f.builder, f.thread, builder_path(&f.builder, "<main>|A#x"), 60);
	text = render(&f, report_text);
	cr_expect(strstr(text, "  few samples: 60 in all; "), "%s", text);
	builder_add(&f.builder, f.thread, builder_path(&f.builder, "<main>|B#y"), 60);
	text = render(&f, report_text);
	cr_expect(strstr(text, "  few samples: the first row has 60; "), "%s", text);
	f.report.sort = FLAT_SORT_TOTAL; /* now the first row is <main>, with all */
	text = render(&f, report_text);
	cr_expect_null(strstr(text, "few samples"), "%s", text);
	fixture_deinit(&f);
}

Test(report, tree_moves_to_the_right_at_forks_only)
{
	static const char *const want[] = {
		" TOTAL%    SELF%  METHOD",
		" 100.0%     0.0%  all",
		" 100.0%     0.0%  <main>  /app/x.rb:1",
		"  70.0%    10.0%  ├─ A#x  /app/x.rb:1",
		"  60.0%     0.0%  │  A#y  /app/x.rb:1",
		"  35.0%    35.0%  │  ├─ A#p  /app/x.rb:1",
		"  25.0%    25.0%  │  └─ A#q  /app/x.rb:1",
		"  30.0%     0.0%  └─ B#z  /app/x.rb:1",
		"  30.0%    30.0%     B#w  /app/x.rb:1",
	};
	struct fixture f;

	fixture_init(&f);
	builder_add(&f.builder, f.thread, builder_path(&f.builder, "<main>|B#z|B#w"), 300);
	builder_add(&f.builder, f.thread, builder_path(&f.builder, "<main>|A#x"), 100);
	builder_add(&f.builder, f.thread, builder_path(&f.builder, "<main>|A#x|A#y|A#q"), 250);
	builder_add(&f.builder, f.thread, builder_path(&f.builder, "<main>|A#x|A#y|A#p"), 350);
	expect_lines(render(&f, report_tree), 1, want, ARRAY_SIZE(want));
	fixture_deinit(&f);
}

Test(report, tree_hides_small_branches_and_says_so)
{
	struct fixture f;
	const char *text;

	fixture_init(&f);
	builder_add(&f.builder, f.thread, builder_path(&f.builder, "<main>|A#x"), 9949);
	builder_add(&f.builder, f.thread, builder_path(&f.builder, "<main>|half"), 50);
	builder_add(&f.builder, f.thread, builder_path(&f.builder, "<main>|small"), 1);
	text = render(&f, report_tree);
	cr_expect(strstr(text, "└─ half"), "exactly 0.5%% is shown: %s", text);
	cr_expect_null(strstr(text, "small"), "%s", text);
	cr_expect(strstr(text, "  1 frame below 0.5% hidden\n"), "%s", text);
	f.report.limit = 2;
	text = render(&f, report_tree);
	cr_expect(strstr(text, "  2 more lines hidden by -n\n"), "%s", text);
	fixture_deinit(&f);
}

/* Each level forks, so that each moves to the right; far beyond the terminal. */
Test(report, tree_of_many_forks_fits)
{
	struct fixture f;
	uint32_t stack = 0, frame, leaf, depth, lines = 0;
	const char *line, *end;
	char copy[400];

	fixture_init(&f);
	frame = builder_frame(&f.builder, FRAME_RUBY, "Déjà#vu", "/app/x.rb", 2, 1);
	leaf = builder_frame(&f.builder, FRAME_RUBY, "leaf", "/app/x.rb", 2, 1);
	/* No more: each leaf must have 0.5 % of the whole to be shown. */
	for (depth = 0; depth < 190; depth++) {
		stack = builder_stack(&f.builder, stack, frame);
		builder_add(&f.builder, f.thread, builder_stack(&f.builder, stack, leaf), 1);
	}
	f.report.width = 60;
	for (line = render(&f, report_tree); *line; line = end + 1) {
		end = strchr(line, '\n');
		snprintf(copy, sizeof(copy), "%.*s", (int)(end - line), line);
		if (!strstr(copy, "─ "))
			continue;
		lines++;
		cr_expect_leq(utf8_len(copy), 60, "%s", copy);
		cr_expect(strstr(copy, "─ Déjà#vu") || strstr(copy, "─ leaf"), "%s", copy);
	}
	cr_expect_eq(lines, 2 * 189, "%u", lines);
	fixture_deinit(&f);
}

/* What is at the end tells most: the method, and the file and line. */
Test(report, narrow_terminals_keep_both_ends)
{
	struct fixture f;
	const char *text;

	fixture_init(&f);
	builder_add(&f.builder, f.thread,
		    builder_stack(&f.builder, 0,
				  builder_frame(&f.builder, FRAME_RUBY,
						"Ledger::Accounts::Yearly::Closing#postings",
						"/srv/app/models/ledger/closing.rb", 12, 10)),
		    100);
	f.report.width = 80;
	text = render(&f, report_text);
	cr_expect(strstr(text, "  Ledger::Ac…g#postings  …ledger/closing.rb:10\n"), "%s", text);
	text = render(&f, report_tree);
	cr_expect(strstr(text, "Ledger::Accounts::Yearly::"), "%s", text);
	cr_expect(strstr(text, "…"), "%s", text);
	cr_expect(strstr(text, "ledger/closing.rb:10\n"), "%s", text);
	fixture_deinit(&f);
}

Test(report, machine_output_is_exact)
{
	struct fixture f;
	json_error_t error;
	json_t *root, *row;
	const char *text;
	size_t i;

	fixture_init(&f);
	builder_add(&f.builder, f.thread,
		    builder_stack(
			    &f.builder, 0,
			    builder_frame(&f.builder, FRAME_CFUNC, "A#\"x\", y", "/a,b.rb", 3, 0)),
		    2);
	builder_add(&f.builder, f.thread,
		    builder_stack(&f.builder, 0,
				  builder_frame(&f.builder, FRAME_NATIVE, "memcpy",
						"/lib/libc.so.6", 0, 0)),
		    1);
	for (i = FLAT_BY_FUNCTION; i <= FLAT_BY_RUBY; i++) {
		f.report.by = (enum flat_by)i;
		text = render(&f, report_json);
		root = json_loads(text, 0, &error);
		cr_assert_not_null(root, "%s: %s", error.text, text);
		row = json_array_get(json_object_get(root, "rows"), 0);
		cr_expect_gt(json_integer_value(json_object_get(row, "self_ns")), 0, "%s", text);
		json_decref(root);
	}

	f.report.by = FLAT_BY_FUNCTION;
	text = render(&f, report_csv);
	cr_expect(strstr(text, "\r\ncfunc,\"A#\"\"x\"\", y\",,0,,2,2,20000000,20000000,"), "%s",
		  text);
	cr_expect(strstr(text, "\r\nnative,memcpy,,0,libc.so.6,1,1,10000000,10000000,"), "%s",
		  text);
	f.report.by = FLAT_BY_LINE;
	text = render(&f, report_csv);
	cr_expect(strstr(text, "\r\ncfunc,\"A#\"\"x\"\", y\",\"/a,b.rb\",3,,2,2,"), "%s", text);
	f.report.by = FLAT_BY_THREAD;
	cr_expect_eq(strncmp(render(&f, report_csv), "pid,tid,thread,samples,", 23), 0);
	fixture_deinit(&f);
}

Test(report, nothing_selected_is_empty_not_an_error_of_ours)
{
	static const renderer renderers[] = { report_text,    report_tree,  report_json,
					      report_csv,     report_info,  report_gc,
					      report_gc_json, report_gc_csv };
	struct fixture f;
	size_t i;

	fixture_init(&f);
	builder_add(&f.builder, f.thread, builder_path(&f.builder, "<main>"), 3);
	render(&f, report_info);
	cr_assert_eq(view_filter_regex(&f.filter.include, &f.filter.has_include, "nothing",
				       "--include", &f.err),
		     0);
	for (i = 0; i < ARRAY_SIZE(renderers); i++) {
		buf_reset(&f.out);
		f.err = (struct err) { 0 };
		cr_expect_eq(renderers[i](&f.report, &f.out, &f.err), -ENODATA);
		cr_expect_eq(f.err.kind, ERR_EMPTY);
		cr_expect_eq(f.out.len, 0);
	}
	fixture_deinit(&f);
}

Test(report, callers_and_callees)
{
	static const char *const want[] = {
		"Cart#total  /app/x.rb:1  self 0.20s (20.0%)  total 0.60s (60.0% +/- 9.4%)",
		" TIME  METHOD%   ALL%   +/-  CALLED BY  WHERE",
		"0.60s   100.0%  60.0%  9.4%  <main>     /app/x.rb:1",
		" TIME  METHOD%   ALL%   +/-  CALLS      WHERE",
		"0.40s    66.7%  40.0%  9.4%  Array#map  /app/x.rb:1",
		"0.20s    33.3%  20.0%  7.8%  [itself]",
	};
	struct fixture f;
	json_t *root, *method;
	const char *text;
	regex_t re;

	fixture_init(&f);
	builder_add(&f.builder, f.thread, builder_path(&f.builder, "<main>|Cart#total"), 20);
	builder_add(&f.builder, f.thread, builder_path(&f.builder, "<main>|Cart#total|Array#map"),
		    40);
	builder_add(&f.builder, f.thread, builder_path(&f.builder, "<main>|other"), 40);
	cr_assert_eq(regcomp(&re, "^Cart", REG_EXTENDED | REG_NOSUB), 0);
	f.report.method = &re;
	f.report.callers = f.report.callees = true;
	expect_lines(render(&f, report_neighbours), 2, want, ARRAY_SIZE(want));
	root = json_loads(render(&f, report_neighbours_json), 0, NULL);
	cr_assert_not_null(root);
	cr_assert_eq(json_array_size(json_object_get(root, "methods")), 1);
	method = json_array_get(json_object_get(root, "methods"), 0);
	cr_expect_eq(json_integer_value(json_object_get(method, "total_ns")), 600000000);
	cr_expect_eq(json_integer_value(json_object_get(method, "self_ns")), 200000000);
	cr_expect_eq(json_array_size(json_object_get(method, "callees")), 2);
	json_decref(root);
	f.report.callers = false;
	text = render(&f, report_neighbours_csv);
	cr_expect(strstr(text, "\r\ncallee,ruby,Array#map,/app/x.rb,1,,40,400000000,"), "%s", text);
	cr_expect(strstr(text, "\r\ncallee,none,,,0,,20,200000000,"), "%s", text);
	cr_expect_null(strstr(text, "\r\ncaller"), "%s", text);
	regfree(&re);
	fixture_deinit(&f);
}

Test(report, rows_that_match)
{
	struct fixture f;
	const char *text;
	regex_t re;

	fixture_init(&f);
	builder_add(&f.builder, f.thread, builder_path(&f.builder, "<main>|Cart#total"), 20);
	cr_assert_eq(regcomp(&re, "^Cart", REG_EXTENDED | REG_NOSUB), 0);
	f.report.match = &re;
	text = render(&f, report_text);
	cr_expect(strstr(text, "100.0%  Cart#total"), "%s", text);
	cr_expect_null(strstr(text, "<main>"), "%s", text);
	regfree(&re);
	fixture_deinit(&f);
}
