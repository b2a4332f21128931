/* SPDX-License-Identifier: GPL-2.0-only */
/* What rbpf report says of native stacks: the view of two columns, the summary, the modules. */
#include <criterion/criterion.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "report/report.h"
#include "support/merged.h"
#include "view/filter.h"

static struct profile_builder b;
static struct recording rec;
static struct view_filter filter;
static struct report report;
static struct buf out;

static void setup(void)
{
	builder_init(&b);
	rec = (struct recording) { .path = "x.data" };
	filter = (struct view_filter) { .stack = STACK_BOTH };
	report = (struct report) { .limit = REPORT_NO_LIMIT, .rec = &rec, .filter = &filter };
}

static void teardown(void)
{
	builder_deinit(&b);
	buf_deinit(&out);
}

TestSuite(report_both, .init = setup, .fini = teardown);

typedef int (*renderer)(const struct report *r, struct buf *out, struct err *err);

static const char *render(renderer fn)
{
	struct err err = { 0 };

	builder_finish(&b);
	cr_assert_eq(stack_mode_prepare(&b.out.profile, filter.stack), 0);
	rec.profile = b.out.profile;
	buf_reset(&out);
	cr_assert_eq(fn(&report, &out, &err), 0, "%s", err.msg);
	return buf_str(&out);
}

static void expect_part(const char *text, const char *want)
{
	cr_expect_not_null(strstr(text, want), "%s\nis not in\n%s", want, text);
}

Test(report_both, at_160_columns)
{
	merged_build(&b);
	report.width = 160;
	report.limit = 2;
	expect_part(render(report_both),
		    "\n"
		    "27.3%  0.06s  6 samples  ruby (tid 42)\n"
		    "RUBY                       NATIVE\n"
		    "                           deflate  libz.so.1\n"
		    "                           zstream_run  zlib.so\n"
		    "                           rb_deflate_deflate  zlib.so\n"
		    "Zlib::Deflate#deflate (C)\n"
		    "                           vm_call_cfunc  libruby-3.1.so.3.1\n"
		    "Foo#bar\n"
		    "<main>\n"
		    "                           rb_vm_exec  libruby-3.1.so.3.1\n"
		    "                           ruby_run_node  libruby-3.1.so.3.1\n"
		    "                           main  ruby3.1\n"
		    "\n"
		    "18.2%  0.04s  4 samples  ruby (tid 42)\n"
		    "RUBY              NATIVE\n"
		    "                  vm_exec_core  libruby-3.1.so.3.1\n"
		    "block in Foo#bar\n"
		    "                  rb_yield  libruby-3.1.so.3.1\n"
		    "                  rb_ary_each  libruby-3.1.so.3.1\n"
		    "Array#each (C)\n"
		    "Foo#bar\n"
		    "<main>\n"
		    "                  rb_vm_exec  libruby-3.1.so.3.1\n"
		    "                  ruby_run_node  libruby-3.1.so.3.1\n"
		    "                  main  ruby3.1\n"
		    "\n"
		    "  7 more stacks hidden by -n\n");
}

Test(report_both, at_80_columns)
{
	uint32_t thread, stack;

	thread = builder_thread(&b, builder_process(&b, 42, "ruby"), 42, "ruby");
	stack = builder_path(&b, "ActiveRecord::ConnectionAdapters::PostgreSQLAdapter#exec_query");
	stack = merged_native(&b, stack, "a_function_with_a_name_that_is_rather_long_for_c",
			      "/lib/libpq.so.5", 1, 0);
	stack = merged_native(&b, stack, "libpq.so.5+0x1234", "/lib/libpq.so.5", 1, 0);
	stack = merged_other(&b, stack, FRAME_KERNEL, "do_syscall_64");
	merged_add(&b, thread, stack, 1, 0);
	report.width = 80;
	expect_part(
		render(report_both),
		"RUBY                                     NATIVE\n"
		"                                         do_syscall_64  kernel\n"
		"                                         libpq.so.5+0x1234\n"
		"                                         a_function_with_a_n…g_for_c  libpq.so.5\n"
		"ActiveRecord::Conne…LAdapter#exec_query\n");
}

Test(report_both, by_line)
{
	merged_build(&b);
	report.by = FLAT_BY_LINE;
	report.limit = 2;
	expect_part(render(report_both), "\nFoo#bar  x.rb:3\n");
}

static const char *str_of(const json_t *array, size_t i, const char *key)
{
	return json_string_value(json_object_get(json_array_get(array, i), key));
}

static json_int_t int_of(const json_t *array, size_t i, const char *key)
{
	return json_integer_value(json_object_get(json_array_get(array, i), key));
}

Test(report_both, json)
{
	json_t *root, *stacks, *ruby, *native;

	merged_build(&b);
	root = json_loads(render(report_both_json), JSON_REJECT_DUPLICATES, NULL);
	cr_assert_not_null(root);
	stacks = json_object_get(root, "stacks");
	cr_assert_eq(json_array_size(stacks), 9);
	cr_expect_eq(int_of(stacks, 0, "ns"), 6 * BUILDER_PERIOD);
	cr_expect_eq(int_of(stacks, 0, "samples"), 6);
	cr_expect_eq(int_of(stacks, 0, "tid"), 42);
	ruby = json_object_get(json_array_get(stacks, 0), "ruby");
	native = json_object_get(json_array_get(stacks, 0), "native");
	cr_assert_eq(json_array_size(ruby), 3);
	cr_assert_eq(json_array_size(native), 7);
	cr_expect_str_eq(str_of(ruby, 0, "label"), "Zlib::Deflate#deflate");
	cr_expect_eq(int_of(ruby, 0, "row"), 3);
	cr_expect_str_eq(str_of(ruby, 2, "label"), "<main>");
	cr_expect_str_eq(str_of(native, 0, "label"), "deflate");
	cr_expect_str_eq(str_of(native, 0, "module"), "libz.so.1");
	cr_expect_eq(int_of(native, 0, "row"), 0);
	cr_expect_str_eq(str_of(native, 2, "label"), "rb_deflate_deflate");
	cr_expect_eq(int_of(native, 2, "row"), 2);
	cr_expect_eq(int_of(native, 3, "row"), 4, "the C method is between");
	json_decref(root);
}

Test(report_both, summary_tells_how_many_native_stacks_are_complete)
{
	json_t *root, *native, *gaps;

	merged_build(&b);
	builder_add(&b, 0, builder_path(&b, "<main>"), 4);
	filter.stack = STACK_RUBY;
	expect_part(render(report_text), "  native stacks: 19 of 22 complete (86.4%); gaps: "
					 "the file has no unwind table 2, unknown code 1\n");
	expect_part(render(report_info), "  native stacks: 19 of 22 complete (86.4%); gaps: ");
	root = json_loads(render(report_json), JSON_REJECT_DUPLICATES, NULL);
	native = json_object_get(json_object_get(root, "summary"), "native");
	cr_expect_eq(json_integer_value(json_object_get(native, "samples")), 22);
	cr_expect_eq(json_integer_value(json_object_get(native, "complete")), 19);
	gaps = json_object_get(native, "gaps");
	cr_expect_eq(json_object_size(gaps), 2);
	cr_expect_eq(json_integer_value(json_object_get(gaps, "the file has no unwind table")), 2);
	cr_expect_eq(json_integer_value(json_object_get(gaps, "unknown code")), 1);
	json_decref(root);
}

Test(report_both, summary_is_silent_where_there_are_no_native_stacks)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "ruby"), 42, "ruby");

	builder_add(&b, thread, builder_path(&b, "<main>"), 4);
	filter.stack = STACK_RUBY;
	cr_expect_null(strstr(render(report_text), "native"));
	cr_expect_null(strstr(render(report_json), "\"native\""));
}

Test(report_both, by_module)
{
	const char *text;

	merged_build(&b);
	report.by = FLAT_BY_MODULE;
	filter.stack = STACK_NATIVE;
	text = render(report_csv);
	expect_part(text,
		    "module,samples,total_samples,self_ns,total_ns,self_error_ns,total_error_ns\r\n"
		    "libruby-3.1.so.3.1,7,20,");
	expect_part(text, "\r\nlibz.so.1,6,9,");
	expect_part(text, "\r\nkernel,3,3,");
	expect_part(text, "\r\nlibfoo.so,2,2,");
	filter.stack = STACK_MIXED;
	text = render(report_csv);
	expect_part(text, "\r\nlibz.so.1,6,9,");
	expect_part(text, "\r\napp,5,19,");
	cr_expect_null(strstr(text, "libruby"), "what it does is its methods'");
	expect_part(render(report_text), "TOTAL%  MODULE\n");
	expect_part(render(report_json), "{\"module\":\"kernel\",\"samples\":3,");
}
