/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "export/export.h"
#include "support/awkward.h"
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

TestSuite(callgrind, .init = setup, .fini = teardown);

static void export(struct buf *out)
{
	const struct export_options opts = { 0 };
	struct err err = { 0 };

	builder_finish(&b);
	cr_assert_eq(exporter_find("callgrind")->run(&b.out.profile, &opts, out, &err), 0, "%s",
		     err.msg);
}

/* Foo calls each calls Foo again, which calls bar. */
Test(callgrind, costs_of_lines_and_calls)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "ruby a.rb"), 43, "w");
	uint32_t foo = builder_frame(&b, FRAME_RUBY, "Foo", "/app/a.rb", 9, 1);
	uint32_t inner = builder_frame(&b, FRAME_RUBY, "Foo", "/app/a.rb", 7, 1);
	uint32_t each = builder_frame(&b, FRAME_CFUNC, "each", "/app/a.rb", 9, 0);
	uint32_t bar = builder_frame(&b, FRAME_RUBY, "bar", "/app/b.rb", 4, 3);
	uint32_t stack = builder_stack(&b, 0, foo);
	struct buf out = BUF_INIT;

	builder_sample(&b, thread, stack, 100, 0);
	stack = builder_stack(&b, builder_stack(&b, stack, each), inner);
	builder_sample(&b, thread, stack, 10, 0);
	builder_sample(&b, thread, builder_stack(&b, stack, bar), 1, 0);
	builder_sample(&b, thread, 0, 5, 0);
	export(&out);
	cr_expect_str_eq(out.data,
			 "# callgrind format\nversion: 1\ncreator: rbpf " RBPF_VERSION "\n"
			 "pid: 42\ncmd: ruby a.rb\n"
			 "desc: recording: 40 ms, ruby 3.3.6, 4 samples (0 truncated, 0 "
			 "unresolved, 0 failed), 0 lost\n"
			 "desc: calls are counted in samples\n"
			 "positions: line\nevents: cpu_ns samples\n"
			 "\nob=(1) threads\nfl=(2) [threads]\nfn=(1) ruby: w (pid 42, tid 43)\n"
			 "0 5 1\n"
			 "cob=(4) app\ncfi=(5) /app/a.rb\ncfn=(2) Foo\ncalls=3 1\n0 111 3\n"
			 "\nob=(4)\nfl=(5)\nfn=(2)\n9 100 1\n"
			 "cob=(7) ruby core\ncfi=(8) ???\ncfn=(3) each\ncalls=2 0\n9 11 2\n"
			 "\nob=(7)\nfl=(8)\nfn=(3)\n"
			 "cob=(4)\ncfi=(5)\ncfn=(4) Foo'2\ncalls=2 1\n0 11 2\n"
			 "\nob=(4)\nfl=(5)\nfn=(4)\n7 10 1\n"
			 "cob=(4)\ncfi=(10) /app/b.rb\ncfn=(5) bar\ncalls=1 3\n7 1 1\n"
			 "\nob=(4)\nfl=(10)\nfn=(5)\n4 1 1\n"
			 "\ntotals: 116 4\n");
	buf_deinit(&out);
}

static void expect_process(const struct view_filter *f, const char *lines)
{
	const struct export_options opts = { .filter = f };
	struct buf out = BUF_INIT;
	struct err err = { 0 };

	builder_finish(&b);
	cr_assert_eq(exporter_find("callgrind")->run(&b.out.profile, &opts, &out, &err), 0);
	cr_expect(strstr(buf_str(&out), lines), "%s: %.200s", lines, buf_str(&out));
	buf_deinit(&out);
}

Test(callgrind, the_process_is_one_that_is_in_it)
{
	pid_t pid = 43;
	const struct view_filter one = { .pids = &pid, .n_pids = 1 };
	const char *commands[] = { "ruby a.rb", "ruby b.rb", "ruby c.rb" };

	for (uint32_t i = 0; i < ARRAY_SIZE(commands); i++) {
		uint32_t process = builder_process(&b, 42 + i, commands[i]);

		if (i)
			builder_add(&b, builder_thread(&b, process, 42 + i, "x"),
				    builder_path(&b, "a"), 1);
	}
	expect_process(&one, "creator: rbpf " RBPF_VERSION "\npid: 43\ncmd: ruby b.rb\n");
	expect_process(NULL, "creator: rbpf " RBPF_VERSION "\ncmd: ruby b.rb\n");
}

/* KCachegrind has one function for each number: those of one name in two files have two. */
Test(callgrind, functions_of_one_name_have_numbers_of_their_own)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "ruby a.rb"), 43, "w");
	static const char *const files[] = { "/app/a.rb", "/app/b.rb" };
	struct buf out = BUF_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		builder_add(&b, thread,
			    builder_stack(&b, 0,
					  builder_frame(&b, FRAME_RUBY, "<top (required)>",
							files[i], 1, 1)),
			    1);
	export(&out);
	cr_expect(strstr(buf_str(&out), "cfi=(5) /app/a.rb\ncfn=(2) <top (required)>\n"));
	cr_expect(strstr(buf_str(&out), "cfi=(7) /app/b.rb\ncfn=(3) <top (required)>\n"));
	cr_expect(strstr(buf_str(&out), "fl=(5)\nfn=(2)\n"));
	cr_expect(strstr(buf_str(&out), "fl=(7)\nfn=(3)\n"));
	buf_deinit(&out);
}

/* No function calls itself, also not through others, so that none has more than the total. */
Test(callgrind, each_level_of_recursion_is_a_function)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "ruby a.rb"), 43, "w");
	uint32_t stack = 0;
	struct buf out = BUF_INIT;

	builder_add(&b, thread, builder_path(&b, "a|b|a|b|a"), 1);
	for (int i = 0; i < 40; i++)
		stack = builder_stack(&b, stack,
				      builder_frame(&b, FRAME_RUBY, "walk", "/app/w.rb", 7, 1));
	builder_add(&b, thread, stack, 1);
	export(&out);
	cr_expect(strstr(buf_str(&out), ") a\n") && strstr(buf_str(&out), ") b\n"));
	cr_expect(strstr(buf_str(&out), ") a'2\n") && strstr(buf_str(&out), ") b'2\n"));
	cr_expect(strstr(buf_str(&out), ") a'3\n") && !strstr(buf_str(&out), ") b'3\n"));
	cr_expect(strstr(buf_str(&out), ") walk'32\n") && !strstr(buf_str(&out), ") walk'33\n"),
		  "a bound");
	buf_deinit(&out);
}

/* Recursion is what readers take for it, who know a name in no file in two objects as one. */
Test(callgrind, functions_of_one_name_in_two_objects)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "ruby a.rb"), 43, "w");
	uint32_t stack = builder_stack(&b, 0, builder_frame(&b, FRAME_NATIVE, "f", "/x.so", 0, 0));
	struct buf out = BUF_INIT;

	builder_add(&b, thread, stack, 1);
	stack = builder_stack(&b, stack, builder_frame(&b, FRAME_NATIVE, "f", "/y.so", 0, 0));
	builder_add(&b, thread, stack, 1);
	builder_add(&b, thread,
		    builder_stack(&b, 0, builder_frame(&b, FRAME_NATIVE, "f", "/y.so", 0, 0)), 1);
	export(&out);
	cr_expect(strstr(buf_str(&out), "cob=(4) x.so\ncfi=(5) ???\ncfn=(2) f\n"), "%s",
		  buf_str(&out));
	cr_expect(strstr(buf_str(&out), "cob=(7) y.so\ncfi=(5)\ncfn=(3) f\n"));
	cr_expect(strstr(buf_str(&out), "cob=(7)\ncfi=(5)\ncfn=(4) f'2\n"));
	buf_deinit(&out);
}

/* What threads call is made of samples: the profile need not have pairs of threads and stacks. */
Test(callgrind, threads_need_not_be_told_apart)
{
	uint32_t process = builder_process(&b, 42, "ruby a.rb");
	const uint32_t threads[] = { builder_thread(&b, process, 43, "w"),
				     builder_thread(&b, process, 44, "w") };
	struct buf want = BUF_INIT, out = BUF_INIT;

	for (unsigned int i = 0; i < 300; i++)
		builder_add(&b, threads[i % 7 % 2],
			    i % 5 ? builder_path(&b, i % 3 ? "a|b|c" : "b|c") : 0, 1 + i % 2);
	export(&want);
	b.out.profile.by_thread = false;
	for (size_t i = 0; i < b.out.profile.n_aggregates; i++)
		b.out.profile.aggregates[i].thread = PROFILE_NONE;
	export(&out);
	cr_expect(strstr(buf_str(&want), "tid 44"));
	cr_expect_str_eq(buf_str(&out), buf_str(&want));
	buf_deinit(&want);
	buf_deinit(&out);
}

/* Each line is of the format, whatever the names are. */
Test(callgrind, any_names)
{
	static const char *const starts[] = { "#",     "version: ", "creator: ",   "pid: ",
					      "cmd: ", "desc: ",    "positions: ", "events: ",
					      "ob=(",  "fl=(",	    "fn=(",	   "cob=(",
					      "cfi=(", "cfn=(",	    "calls=",	   "totals: " };
	struct buf out = BUF_INIT;
	char *rest, *line;

	awkward_build(&b);
	builder_add_random(&b, 5, 500);
	export(&out);
	rest = out.data;
	while ((line = strsep(&rest, "\n"))) {
		bool known = !*line || strspn(line, "0123456789 ") == strlen(line);

		for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
			known |= !strncmp(line, starts[i], strlen(starts[i]));
		cr_expect(known, "%.100s", line);
	}
	buf_deinit(&out);
}
