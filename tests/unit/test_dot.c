/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "export/export.h"
#include "support/profile_builder.h"

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static void export(struct profile_builder *b, struct buf *out)
{
	const struct export_options opts = { 0 };
	struct err err = { 0 };

	cr_assert_eq(exporter_find("dot")->run(builder_finish(b), &opts, out, &err), 0, "%s",
		     err.msg);
}

Test(dot, functions_and_calls_are_pruned)
{
	struct profile_builder b;
	_cleanup_buf_ struct buf out = BUF_INIT;
	char path[32];
	uint32_t thread;

	builder_init(&b);
	thread = builder_thread(&b, builder_process(&b, 7, "ruby"), 7, "ruby");
	for (int i = 0; i < 150; i++) {
		snprintf(path, sizeof(path), "main|m%03d", i);
		builder_add(&b, thread, builder_path(&b, path), i < 100 ? 10 : 1);
	}
	export(&b, &out);
	cr_expect_eq(count(buf_str(&out), "[label=\"m0"), 79, "and main are 80");
	cr_expect_eq(count(buf_str(&out), " -> "), 79);
	cr_expect_not_null(strstr(buf_str(&out), "80 functions of 151, 79 calls"), "%s",
			   buf_str(&out));
	cr_expect_null(strstr(buf_str(&out), "m149"), "it has less than a 200th");
	builder_deinit(&b);
}

Test(dot, names_are_quoted_and_cut)
{
	struct profile_builder b;
	_cleanup_buf_ struct buf out = BUF_INIT;
	char name[1001];

	builder_init(&b);
	memset(name, 'a', sizeof(name) - 1);
	memcpy(name, "\"\\", 2);
	name[sizeof(name) - 1] = '\0';
	builder_add(&b, builder_thread(&b, builder_process(&b, 7, "ruby"), 7, "ruby"),
		    builder_path(&b, name), 1);
	export(&b, &out);
	cr_expect_not_null(strstr(buf_str(&out), "[label=\"\\\"\\\\aaa"), "%s", buf_str(&out));
	cr_expect_not_null(strstr(buf_str(&out), "a…\\n"));
	cr_expect_null(strstr(buf_str(&out), name + sizeof(name) - 201), "cut after 200");
	builder_deinit(&b);
}

Test(dot, recursion_counts_once_a_sample)
{
	struct profile_builder b;
	_cleanup_buf_ struct buf out = BUF_INIT;

	builder_init(&b);
	builder_add(&b, builder_thread(&b, builder_process(&b, 7, "ruby"), 7, "ruby"),
		    builder_path(&b, "a|b|a|b|a"), 3);
	export(&b, &out);
	cr_expect_eq(count(buf_str(&out), "self=\"30000000\", total=\"30000000\""), 1, "%s",
		     buf_str(&out));
	cr_expect_eq(count(buf_str(&out), "self=\"0\", total=\"30000000\""), 1);
	cr_expect_eq(count(buf_str(&out), "value=\"30000000\""), 2);
	builder_deinit(&b);
}
