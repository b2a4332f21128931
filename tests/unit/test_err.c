/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"

/* What every filled error must be. */
static void assert_sane_err(const struct err *err)
{
	const char *texts[] = { err->msg, err->hint };

	cr_assert(err->kind >= ERR_RUNTIME && err->kind <= ERR_EMPTY, "kind %d", (int)err->kind);
	for (size_t t = 0; t < 2; t++) {
		size_t len = strnlen(texts[t], sizeof(err->msg));
		size_t i = 0;

		cr_assert_lt(len, sizeof(err->msg), "text %zu is not terminated", t);
		while (i < len) {
			size_t n = utf8_sequence(texts[t] + i, len - i);

			cr_assert_gt(n, 0, "text %zu is no UTF-8 at byte %zu", t, i);
			cr_assert((unsigned char)texts[t][i] >= 0x20 && texts[t][i] != 0x7f,
				  "text %zu has control 0x%02x at byte %zu", t, texts[t][i], i);
			i += n;
		}
	}
}

Test(err, set_fills_all_and_returns_the_code)
{
	struct err err = { 0 };

	cr_expect_eq(err_set(&err, -ESRCH, ERR_TARGET, "pid %d: %s", 42, "gone"), -ESRCH);
	assert_sane_err(&err);
	cr_expect_eq(err.code, -ESRCH);
	cr_expect_eq(err.kind, ERR_TARGET);
	cr_expect_str_eq(err.msg, "pid 42: gone");
	cr_expect_str_eq(err.hint, "", "no hint unless one is given");
}

Test(err, null_is_accepted)
{
	cr_expect_eq(err_set(NULL, -EIO, ERR_RUNTIME, "unseen"), -EIO, "the code passes through");
	err_hint(NULL, "unseen");
	cr_expect_eq(err_oom(NULL), -ENOMEM);
}

Test(err, hint_is_added_and_a_new_error_forgets_it)
{
	struct err err = { 0 };

	err_set(&err, -EPERM, ERR_ENV, "not permitted");
	err_hint(&err, "try: sudo %s", "rbpf");
	assert_sane_err(&err);
	cr_expect_str_eq(err.msg, "not permitted", "a hint leaves the message alone");
	cr_expect_str_eq(err.hint, "try: sudo rbpf");
	err_set(&err, -EINVAL, ERR_USAGE, "another");
	cr_expect_str_eq(err.hint, "", "the hint of the first error does not fit the second");
	cr_expect_eq(err.kind, ERR_USAGE);
}

Test(err, its_own_message_may_be_an_argument)
{
	struct err err = { 0 };

	err_set(&err, -EIO, ERR_PROFILE, "bad chunk");
	err_set(&err, err.code, err.kind, "cannot read %s: %s", "rbpf.data", err.msg);
	cr_expect_str_eq(err.msg, "cannot read rbpf.data: bad chunk");
	err_hint(&err, "one");
	err_hint(&err, "%s and two", err.hint);
	cr_expect_str_eq(err.hint, "one and two");
}

Test(err, oom)
{
	struct err err = { 0 };

	cr_expect_eq(err_oom(&err), -ENOMEM);
	cr_expect_eq(err.kind, ERR_RUNTIME);
	cr_expect_str_eq(err.msg, "out of memory");
}

Test(err, message_is_one_line_without_controls)
{
	struct err err = { 0 };

	err_set(&err, -EINVAL, ERR_USAGE, "a\nb\tc\x1b[31md\x7f\r");
	assert_sane_err(&err);
	cr_expect_str_eq(err.msg, "a?b?c?[31md??");
	err_hint(&err, "line 1\nline 2");
	assert_sane_err(&err);
	cr_expect_str_eq(err.hint, "line 1?line 2");
}

Test(err, no_character_that_a_terminal_obeys_or_hides)
{
	struct err err = { 0 };

	err_set(&err, -EINVAL, ERR_USAGE,
		"a\xc2\x9b"
		"31m b\xe2\x80\xae"
		"c\xe2\x80\xa8"
		"d\xf3\xa0\x80\x81");
	assert_sane_err(&err);
	cr_expect_str_eq(err.msg, "a??31m b???c???d????");
}

Test(err, invalid_utf8_is_replaced_and_valid_utf8_kept)
{
	struct err err = { 0 };

	err_set(&err, -EINVAL, ERR_USAGE, "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xff \xe2\x82 .");
	assert_sane_err(&err);
	cr_expect_str_eq(err.msg, "gr\xc3\xbc\xc3\x9f \xe2\x82\xac ? ?? .");
}

Test(err, long_message_is_cut_at_the_size_of_the_field)
{
	struct err err = { 0 };
	char text[2000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	err_set(&err, -EINVAL, ERR_USAGE, "%s", text);
	assert_sane_err(&err);
	cr_expect_eq(strlen(err.msg), sizeof(err.msg) - 1);
	text[sizeof(err.msg) - 1] = '\0';
	err_set(&err, -EINVAL, ERR_USAGE, "%s", text);
	cr_expect_str_eq(err.msg, text, "what just fits is not cut");
}

Test(err, cut_never_splits_a_character)
{
	static const char *const chars[] = { "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x98\x80" };
	struct err err = { 0 };

	for (size_t c = 0; c < 3; c++) {
		size_t size = strlen(chars[c]);

		/* Every position of a character relative to the end of the field. */
		for (size_t shift = 0; shift < size; shift++) {
			char text[1300] = "";

			memset(text, '.', shift);
			for (size_t i = 0; i < 300; i++)
				strcat(text, chars[c]);
			err_set(&err, -EINVAL, ERR_USAGE, "%s", text);
			assert_sane_err(&err);
			cr_expect_eq(strlen(err.msg),
				     shift + (sizeof(err.msg) - 1 - shift) / size * size,
				     "characters of %zu bytes, shift %zu: %zu bytes are left", size,
				     shift, strlen(err.msg));
			cr_expect_null(strchr(err.msg, '?'), "no half character, shift %zu", shift);
		}
	}
}

Test(err, context_stands_before_the_message)
{
	struct err err = { 0 };

	err_set(&err, -EIO, ERR_ENV, "cannot read %s", "x");
	err_hint(&err, "hint");
	cr_expect_eq(err_context(&err, "while attaching to pid %d", 42), -EIO);
	cr_expect_str_eq(err.msg, "while attaching to pid 42: cannot read x");
	cr_expect_str_eq(err.hint, "hint");
	cr_expect_eq(err.kind, ERR_ENV);
	cr_expect_eq(err_context(&err, "%s", err.msg), -EIO);
	cr_expect_str_eq(err.msg, "while attaching to pid 42: cannot read x: "
				  "while attaching to pid 42: cannot read x");
	cr_expect_eq(err_context(NULL, "unseen"), 0);
}

Test(err, context_that_does_not_fit_is_cut)
{
	char what[sizeof(((struct err *)NULL)->msg)];
	struct err err = { 0 };

	memset(what, 'x', sizeof(what));
	what[sizeof(what) - 1] = '\0';
	err_set(&err, -EIO, ERR_RUNTIME, "y");
	err_context(&err, "%s", what);
	cr_expect_str_eq(err.msg, what);
	err_set(&err, -EIO, ERR_RUNTIME, "%s", what);
	err_context(&err, "z");
	cr_expect_eq(strlen(err.msg), sizeof(err.msg) - 1);
	cr_expect_eq(strncmp(err.msg, "z: xxx", 6), 0);
}

Test(err, codes_without_words)
{
	struct err err = { 0 };

	cr_expect_eq(err_code(&err, 0), 0);
	cr_expect_eq(err.code, 0, "0 is no error");
	cr_expect_eq(err_code(&err, -ENOMEM), -ENOMEM);
	cr_expect_str_eq(err.msg, "out of memory");
	cr_expect_eq(err_code(&err, -EINVAL), -EINVAL);
	cr_expect_str_eq(err.msg, "internal error: Invalid argument");
	cr_expect_eq(err.kind, ERR_RUNTIME);
	cr_expect_eq(err_code(NULL, -EINVAL), -EINVAL);
}
