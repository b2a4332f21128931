/* SPDX-License-Identifier: GPL-2.0-only */
/* The text of instructions: what of a function is shown, and below which source lines. */
#include "report/annotate_code.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "support/profile_builder.h"
#include "view/instructions.h"

#define N_ROWS 8

static struct profile_builder b;
static struct recording rec;
static struct view_filter filter;
static struct annotate a;
static struct instructions code;
static struct buf out;
static regex_t method;

static void setup(void)
{
	builder_init(&b);
	rec = (struct recording) { .path = "x.data" };
	filter = (struct view_filter) { .stack = STACK_NATIVE };
	a = (struct annotate) {
		.report = { .limit = REPORT_NO_LIMIT, .rec = &rec, .filter = &filter },
		.target = "f",
		.context = 1
	};
	code = (struct instructions)INSTRUCTIONS_INIT;
	cr_assert_eq(regcomp(&method, "^f$", REG_EXTENDED), 0);
}

static void teardown(void)
{
	builder_deinit(&b);
	buf_deinit(&out);
	instructions_deinit(&code);
	regfree(&method);
}

TestSuite(annotate_code, .init = setup, .fini = teardown);

static uint32_t string(const char *s)
{
	uint32_t id;

	cr_assert_eq(intern_str(&code.strings, s, &id), 0);
	return id;
}

/* Samples of f() at the @n addresses in @v: i + 1 of the one with number i. */
static void sample(const uint64_t *v, size_t n)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 1, "ruby"), 1, "main");

	for (size_t i = 0; i < n; i++) {
		struct profile_frame frame;

		memset(&frame, 0, sizeof(frame));
		frame.kind = FRAME_NATIVE;
		frame.name = builder_str(&b, "f");
		frame.module = builder_module(&b, "/lib/libx.so");
		frame.address = v[i];
		builder_add(&b, thread, builder_stack(&b, 0, builder_add_frame(&b, &frame)), i + 1);
	}
	rec.profile = *builder_finish(&b);
	cr_assert_eq(instructions_find(&rec.profile, &filter, &method, 9, &code), 0);
}

/* Instructions at 0x10, 0x12, …, the lines of which are @lines. */
static void add_block(const uint32_t lines[N_ROWS], const char *note)
{
	struct code_block block = { .start = 0x10, .end = 0x10 + 2 * N_ROWS };

	block.note = string(note);
	cr_assert_eq(instructions_add_block(&code, &block), 0);
	for (uint32_t i = 0; i < N_ROWS; i++) {
		const struct code_row row = { .address = 0x10 + 2 * i,
					      .size = 2,
					      .text = string("nop"),
					      .file = string("src/x.c"),
					      .line = lines[i] };

		cr_assert_eq(instructions_add_row(&code, &row), 0);
	}
	cr_assert_eq(instructions_end_block(&code, code.places, code.n_places), 0);
	cr_assert_eq(instructions_add_up(&rec.profile, &filter, &code), 0);
}

static void expect_text(const char *want)
{
	struct err err = { 0 };

	buf_reset(&out);
	cr_assert_eq(annotate_code_text(&a, &code, &out, &err), 0, "%s", err.msg);
	cr_expect_not_null(strstr(buf_str(&out), want), "%s\nis not in\n%s", want, buf_str(&out));
}

/* Behind a gap the line is told again, even if it is the same; without one it is not. */
Test(annotate_code, lines_and_gaps)
{
	sample((const uint64_t[]) { 0x10, 0x1c }, 2);
	add_block((const uint32_t[N_ROWS]) { 7, 7, 7, 7, 7, 7, 7, 8 }, "");
	expect_text("f  /lib/libx.so\n"
		    "HOT  TOTAL  TOTAL%    +/-   SELF  SELF%    +/-  ADDRESS  CODE\n"
		    "                                                         x.c:7\n"
		    "     0.01s   33.3%  36.5%  0.01s  33.3%  36.5%       10      nop\n"
		    "                                                     12      nop\n"
		    "                                                    ...\n"
		    "                                                         x.c:7\n"
		    "                                                     1a      nop\n"
		    "##   0.02s   66.7%  36.5%  0.02s  66.7%  36.5%       1c      nop\n"
		    "                                                         x.c:8\n"
		    "                                                     1e      nop\n"
		    "\n");
}

/* Of code of which no line is known there are none. */
Test(annotate_code, no_lines)
{
	sample((const uint64_t[]) { 0x14 }, 1);
	add_block((const uint32_t[N_ROWS]) { 0 }, "why");
	expect_text("f  /lib/libx.so\n"
		    "  not all instructions: why\n"
		    "HOT  TOTAL  TOTAL%    +/-   SELF   SELF%    +/-  ADDRESS  CODE\n"
		    "                                                      12      nop\n"
		    "##   0.01s  100.0%  39.6%  0.01s  100.0%  39.6%       14      nop\n"
		    "                                                      16      nop\n"
		    "\n");
}

/* An inlined function is told with that which has its code. */
Test(annotate_code, inlined)
{
	sample((const uint64_t[]) { 0x14 }, 1);
	add_block((const uint32_t[N_ROWS]) { 0 }, "");
	code.blocks[0].inlined = true;
	code.blocks[0].symbol = string("g");
	expect_text("\n\nf, inlined into g  /lib/libx.so\nHOT ");
	code.blocks[0].symbol = 0;
	expect_text("\n\nf, inlined into [unnamed]  /lib/libx.so\nHOT ");
}

/* What is not shown is told; what has no samples is no block. */
Test(annotate_code, left_out)
{
	sample((const uint64_t[]) { 0x14 }, 1);
	add_block((const uint32_t[N_ROWS]) { 0 }, "");
	code.n_more = 2;
	expect_text("\n  not shown: 2 functions that match; a narrower pattern shows them\n");
	code.rows[2].time = (struct group_total) { .total.samples = 0 };
	buf_reset(&out);
	cr_assert_eq(annotate_code_text(&a, &code, &out, NULL), 0);
	cr_expect_null(strstr(buf_str(&out), "/lib/libx.so\n"));
}

Test(annotate_code, no_such_function)
{
	struct err err = { 0 };

	regfree(&method);
	cr_assert_eq(regcomp(&method, "other", REG_EXTENDED), 0);
	sample((const uint64_t[]) { 0x14 }, 1);
	cr_expect_eq(annotate_code_text(&a, &code, &out, &err), -ENODATA);
	cr_expect_eq(err.kind, ERR_EMPTY);
	cr_expect_str_eq(err.msg, "no native function in x.data is called 'f'");
}
