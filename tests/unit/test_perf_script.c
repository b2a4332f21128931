/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "export/export.h"
#include "export/origin.h"
#include "support/merged.h"
#include "support/profile_builder.h"
#include "view/filter.h"

static struct profile_builder b;

static void setup(void)
{
	builder_init(&b);
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(perf_script, .init = setup, .fini = teardown);

static void expect(const struct view_filter *f, const char *expected)
{
	const struct export_options opts = { .filter = f };
	struct buf out = BUF_INIT, all = BUF_INIT;
	struct err err = { 0 };

	builder_finish(&b);
	cr_assert_eq(exporter_find("perf-script")->run(&b.out.profile, &opts, &out, &err), 0, "%s",
		     err.msg);
	buf_addstr(&all, "# ========\n# recording : ");
	origin_add(&b.out.profile, &all);
	buf_addf(&all, "\n# ========\n#\n\n%s", expected);
	cr_expect_str_eq(out.data, buf_str(&all));
	buf_deinit(&all);
	buf_deinit(&out);
}

Test(perf_script, samples_of_all_kinds_of_frames)
{
	static const struct view_filter ruby = { .stack = STACK_RUBY };
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "ruby"), 43, "puma srv;1");
	uint32_t stack = builder_path(&b, "<main>");

	stack = builder_stack(&b, stack, builder_frame(&b, FRAME_CFUNC, "each", "/x.rb", 7, 0));
	stack = merged_native(&b, stack, "f", "/lib/my f.so", 0x1234, 0);
	stack = builder_stack(&b, stack, builder_frame(&b, FRAME_KERNEL, "read", "", 0, 0));
	b.now = 1234567890;
	builder_sample(&b, thread, stack, 500, 0);
	builder_sample(&b, thread, 0, 7, 0);
	expect(NULL, "puma_srv:1 42/43 [000]     1.234567:        500 cpu-clock: \n"
		     "\t               0 read ([kernel.kallsyms])\n"
		     "\t            1234 f (/lib/my\\x20f.so)\n"
		     "\t               0 each (cfunc)\n"
		     "\t               0 <main> (/app/x.rb)\n\n"
		     "puma_srv:1 42/43 [000]     1.244567:          7 cpu-clock: \n\n");
	expect(&ruby, "puma_srv:1 42/43 [000]     1.234567:        500 cpu-clock: \n"
		      "\t               0 each (cfunc)\n"
		      "\t               0 <main> (/app/x.rb)\n\n"
		      "puma_srv:1 42/43 [000]     1.244567:          7 cpu-clock: \n\n");
}

Test(perf_script, names_that_readers_would_take_apart)
{
	uint32_t process = builder_process(&b, 1, "ruby");

	builder_sample(&b, builder_thread(&b, process, 1, "x"),
		       builder_path(&b, "(eval)|block (2 levels) in a;b|p->q+0x12|  \t|"), 1, 0);
	builder_sample(&b, builder_thread(&b, process, 2, "# y"), 0, 1, 0);
	expect(NULL, "x_ 1/1 [000]     5.000000:          1 cpu-clock: \n"
		     "\t               0 [unnamed] (/app/x.rb)\n"
		     "\t               0 _ (/app/x.rb)\n"
		     "\t               0 p=>q+ 0x12 (/app/x.rb)\n"
		     "\t               0 block [2 levels] in a:b (/app/x.rb)\n"
		     "\t               0 [eval] (/app/x.rb)\n\n"
		     "__y 1/2 [000]     5.010000:          1 cpu-clock: \n\n");
}

/* As a recording may have them that was made to hurt. */
Test(perf_script, times_of_a_thread_never_go_back)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 1, "ruby"), 1, "aa");

	builder_sample(&b, thread, 0, 1, 0);
	b.now = 1;
	builder_sample(&b, thread, 0, 1, 0);
	expect(NULL, "aa 1/1 [000]     5.000000:          1 cpu-clock: \n\n"
		     "aa 1/1 [000]     5.000000:          1 cpu-clock: \n\n");
}

Test(perf_script, much_text_is_said_before)
{
	const struct exporter *exporter = exporter_find("perf-script");
	const struct export_options opts = { 0 };
	struct buf text = BUF_INIT;

	builder_add(&b, builder_thread(&b, builder_process(&b, 1, "ruby"), 1, "x"),
		    builder_path(&b, "a|b"), 1);
	builder_finish(&b);
	cr_assert_eq(exporter->warn(&b.out.profile, &opts, &text), 0);
	cr_expect_eq(text.len, 0);
	b.out.profile.aggregates[0].samples = 1u << 30;
	cr_assert_eq(exporter->warn(&b.out.profile, &opts, &text), 0);
	cr_expect(strstr(buf_str(&text), " GB in all"), "%s", buf_str(&text));
	buf_deinit(&text);
}
