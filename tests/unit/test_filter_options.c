/* SPDX-License-Identifier: GPL-2.0-only */
/* What commands make of the options of filters. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "base/array.h"
#include "base/err.h"
#include "cmd/command.h"
#include "cmd/filter_options.h"
#include "support/profile_file.h"
#include "view/filter.h"

static void expect_ids(const pid_t *ids, size_t n, pid_t first, pid_t second)
{
	cr_assert_eq(n, 2);
	cr_expect_eq(ids[0], first);
	cr_expect_eq(ids[1], second);
}

/* As of the picture of one time of a recording and of another that it is compared with. */
Test(filter_options, each_filter_of_the_same_options_has_lists_of_its_own)
{
	pid_t pids[] = { 7, 8 }, tids[] = { 70, 80 };
	const struct filter_options opts = {
		.pids = { .pids = pids, .n = ARRAY_SIZE(pids) },
		.tids = { .pids = tids, .n = ARRAY_SIZE(tids) },
		.stack = OPTION_UNSET,
	};
	struct err err = { 0 };

	for (int i = 0; i < 2; i++) {
		struct view_filter filter = VIEW_FILTER_INIT;

		cr_assert_eq(cmd_filter(&opts, STACK_MIXED, &filter, &err), 0, "%s", err.msg);
		expect_ids(filter.pids, filter.n_pids, 7, 8);
		expect_ids(filter.tids, filter.n_tids, 70, 80);
		view_filter_deinit(&filter);
	}
	expect_ids(opts.pids.pids, opts.pids.n, 7, 8);
	expect_ids(opts.tids.pids, opts.tids.n, 70, 80);
}

/* A recording of two processes, each of two seconds. */
static void write_recording(const char *path)
{
	struct profile_builder b;
	uint32_t threads[2];

	builder_init(&b);
	for (uint32_t i = 0; i < ARRAY_SIZE(threads); i++)
		threads[i] = builder_thread(&b, builder_process(&b, 7 + i, "ruby app.rb"), 70 + i,
					    "ruby");
	for (uint32_t i = 0; i < 200; i++)
		builder_add(&b, threads[i % 2], builder_path(&b, "<main>|Foo#bar"), 1);
	builder_finish(&b);
	profile_file_write(&b, path);
	builder_deinit(&b);
}

/* The whole command, for what sanitizers see of who owns the lists. */
Test(filter_options, a_picture_compares_times_of_some_processes_and_threads)
{
	char path[64], svg[64];
	char *lines[][8] = {
		{ "flame", "--base-to=1s", "--from=1s", "--pid=7", path, "-o", svg },
		{ "flame", "--base-to=1s", "--from=1s", "--tid=70,71", path, "-o", svg },
	};
	struct cmd_context ctx = { .command_line = "rbpf flame" };
	struct err err = { 0 };

	snprintf(path, sizeof(path), "/tmp/rbpf-test-%d.data", (int)getpid());
	snprintf(svg, sizeof(svg), "/tmp/rbpf-test-%d.svg", (int)getpid());
	write_recording(path);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		cr_expect_eq(command_flame.run(&ctx, 7, lines[i], &err), 0, "%s: %s", lines[i][3],
			     err.msg);
	unlink(svg);
	unlink(path);
}
