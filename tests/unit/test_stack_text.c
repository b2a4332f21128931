/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>

#include "export/shown.h"
#include "export/stack_text.h"
#include "support/profile_builder.h"

static struct profile_builder b;
static struct shown shown;
static unsigned int made;

static void setup(void)
{
	builder_init(&b);
	made = 0;
}

static void teardown(void)
{
	shown_deinit(&shown);
	builder_deinit(&b);
}

TestSuite(stack_text, .init = setup, .fini = teardown);

/* The names of frames, the innermost first. */
static int make(void *arg, const uint32_t *frames, size_t n, struct buf *out)
{
	const struct profile *p = arg;

	made++;
	for (size_t i = 0; i < n; i++)
		buf_addf(out, "%s ", profile_str(p, p->frames[frames[i]].name));
	return n == 3 ? -EDOM : 0;
}

static void expect_text(struct stack_texts *t, uint32_t stack, const char *expected,
			unsigned int times)
{
	const char *text;
	size_t len;

	made = 0;
	cr_assert_eq(stack_text(t, stack, &text, &len), 0);
	cr_expect_eq(len, strlen(expected));
	cr_expect_eq(strncmp(text, expected, len), 0, "%.*s", (int)len, text);
	cr_expect_eq(made, times);
}

Test(stack_text, is_made_once_if_it_fits)
{
	uint32_t ab = builder_path(&b, "a|b"), cd = builder_path(&b, "c|d");
	uint32_t abc = builder_path(&b, "a|b|c");
	struct stack_texts t;
	const char *text;
	size_t len;

	cr_assert_eq(shown_init(&b.out.profile, NULL, &shown), 0);
	/* Room for one of four characters and the empty one, with their lengths. */
	cr_assert_eq(stack_texts_init(&shown, 12, make, &b.out.profile, &t), 0);
	expect_text(&t, ab, "b a ", 1);
	expect_text(&t, 0, "", 1);
	expect_text(&t, cd, "d c ", 1);
	expect_text(&t, ab, "b a ", 0);
	expect_text(&t, 0, "", 0);
	expect_text(&t, cd, "d c ", 1);
	cr_expect_eq(stack_text(&t, abc, &text, &len), -EDOM);
	expect_text(&t, ab, "b a ", 0);
	stack_texts_deinit(&t);
}
