/* SPDX-License-Identifier: GPL-2.0-only */
/* What rbpf annotate says where there are no lines. */
#include "report/annotate.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "support/profile_builder.h"
#include "view/filter.h"

static void expect_error(const char *pattern, const char *message, const char *hint)
{
	const struct view_filter filter = VIEW_FILTER_INIT;
	struct recording rec = { .path = "x.data" };
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct profile_builder b;
	struct err err = { 0 };
	struct annotate a;
	uint32_t stack;
	regex_t re;

	builder_init(&b);
	stack = builder_stack(&b, builder_path(&b, "<main>"),
			      builder_frame(&b, FRAME_CFUNC, "Class#new", "/app/x.rb", 7, 0));
	builder_add(&b, builder_thread(&b, builder_process(&b, 1, "ruby"), 1, "main"), stack, 1);
	rec.profile = *builder_finish(&b);
	cr_assert_eq(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
	a = (struct annotate) { .report = { .rec = &rec, .filter = &filter },
				.choice.method = &re,
				.target = pattern };
	cr_expect_eq(annotate_text(&a, &out, &err), -ENODATA);
	cr_expect_eq(err.kind, ERR_EMPTY);
	cr_expect_str_eq(err.msg, message, "%s", err.msg);
	cr_expect_eq(strncmp(err.hint, hint, strlen(hint)), 0, "%s", err.hint);
	regfree(&re);
	builder_deinit(&b);
}

Test(annotate, a_method_in_C_has_no_lines)
{
	expect_error("^Class#n", "Class#new is written in C: it has no lines of source",
		     "rbpf report --sandwich '^Class#n' shows who calls it");
	expect_error("^Foo#n", "no file and no method in x.data is called '^Foo#n'",
		     "rbpf report -n 0 lists the methods");
}
