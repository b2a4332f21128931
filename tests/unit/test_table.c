/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "ui/table.h"
#include "ui/term.h"

static const struct table_column columns[] = {
	{ "N", TABLE_RIGHT, TABLE_WHOLE },
	{ "NAME", TABLE_LEFT, TABLE_CUT_END },
	{ "WHERE", TABLE_LEFT, TABLE_CUT_START },
};

static void add_row(struct table *t, const char *n, const char *name, const char *where)
{
	table_cell(t, "%s", n);
	table_cell(t, "%s", name);
	table_cell(t, "%s", where);
}

static void expect_render(const struct table *t, size_t width, const char *want)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	cr_assert_eq(table_render(t, width, false, &out), 0);
	cr_expect_str_eq(buf_str(&out), want, "got:\n%s", buf_str(&out));
}

Test(table, is_as_wide_as_its_contents)
{
	_cleanup_table_ struct table t;

	table_init(&t, columns, ARRAY_SIZE(columns));
	expect_render(&t, 0, "N  NAME  WHERE\n");
	add_row(&t, "1", "a", "b");
	add_row(&t, "10000", "Foo#bar", "");
	expect_render(&t, 0,
		      "    N  NAME     WHERE\n"
		      "    1  a        b\n"
		      "10000  Foo#bar\n");
}

Test(table, measures_code_points)
{
	_cleanup_table_ struct table t;

	table_init(&t, columns, ARRAY_SIZE(columns));
	add_row(&t, "1", "Café#menü", "x");
	add_row(&t, "2", "123456789", "x");
	expect_render(&t, 0,
		      "N  NAME       WHERE\n"
		      "1  Café#menü  x\n"
		      "2  123456789  x\n");
}

Test(table, cuts_the_widest_column_first)
{
	_cleanup_table_ struct table t;

	table_init(&t, columns, ARRAY_SIZE(columns));
	add_row(&t, "1", "Foo#bar", "/app/models/concerns/cart.rb:57");
	expect_render(&t, 30,
		      "N  NAME     WHERE\n"
		      "1  Foo#bar  …ncerns/cart.rb:57\n");
	add_row(&t, "2", "ActiveRecord::Result#hash_rows", "result.rb");
	expect_render(&t, 37,
		      "N  NAME              WHERE\n"
		      "1  Foo#bar           …erns/cart.rb:57\n"
		      "2  ActiveRecord::R…  result.rb\n");
}

Test(table, never_cuts_numbers)
{
	_cleanup_table_ struct table t;

	table_init(&t, columns, ARRAY_SIZE(columns));
	add_row(&t, "1234567890123456789", "0123456789", "0123456789");
	expect_render(&t, 10,
		      "                  N  NAME      WHERE\n"
		      "1234567890123456789  0123456…  …3456789\n");
}

/* Whatever the width, nothing is wider unless it is as narrow as can be, and all is valid UTF-8. */
Test(table, fits_every_width)
{
	_cleanup_table_ struct table t;
	_cleanup_buf_ struct buf out = BUF_INIT;
	size_t width, len;
	char *line, *save;

	table_init(&t, columns, ARRAY_SIZE(columns));
	add_row(&t, "12345", "日本語クラス#とても長いメソッド名",
		"/app/日本語/モデル/カート.rb:57");
	for (width = 25; width < 80; width++) {
		buf_reset(&out);
		cr_assert_eq(table_render(&t, width, false, &out), 0);
		for (line = strtok_r(out.data, "\n", &save); line;
		     line = strtok_r(NULL, "\n", &save)) {
			cr_expect_leq(utf8_len(line), width, "%zu: '%s'", width, line);
			for (char *s = line; *s; s += len) {
				len = utf8_sequence(s, strlen(s));
				cr_assert_neq(len, 0, "%zu: '%s'", width, line);
			}
		}
	}
}

Test(table, colours_the_titles_only)
{
	_cleanup_table_ struct table t;
	_cleanup_buf_ struct buf out = BUF_INIT;

	table_init(&t, columns, ARRAY_SIZE(columns));
	add_row(&t, "1", "a", "b");
	cr_assert_eq(table_render(&t, 0, true, &out), 0);
	cr_expect_str_eq(buf_str(&out), TERM_BOLD "N  NAME  WHERE" TERM_RESET "\n1  a     b\n");
}

Test(table, cut)
{
	static const struct {
		const char *s;
		size_t max;
		enum table_fit fit;
		const char *want;
	} cases[] = {
		{ "abc", 3, TABLE_CUT_END, "abc" },	 { "abcd", 3, TABLE_CUT_END, "ab…" },
		{ "abcd", 3, TABLE_CUT_START, "…cd" },	 { "abcd", 3, TABLE_WHOLE, "abcd" },
		{ "abcd", 1, TABLE_CUT_END, "…" },	 { "abcd", 0, TABLE_CUT_END, "" },
		{ "äöüß", 3, TABLE_CUT_START, "…üß" },	 { "", 0, TABLE_CUT_END, "" },
		{ "abcd", 4, TABLE_CUT_MIDDLE, "abcd" }, { "äöüßx", 4, TABLE_CUT_MIDDLE, "äö…x" },
		{ "abcde", 3, TABLE_CUT_MIDDLE, "a…e" }, { "abc", 1, TABLE_CUT_MIDDLE, "…" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_buf_ struct buf out = BUF_INIT;

		table_add_cut(&out, cases[i].s, cases[i].max, cases[i].fit);
		cr_expect_str_eq(buf_str(&out), cases[i].want, "%zu", i);
	}
}

Test(table, dimmed_rows)
{
	static const struct table_column two[] = {
		{ "N", TABLE_RIGHT, TABLE_WHOLE },
		{ "NAME", TABLE_LEFT, TABLE_WHOLE },
	};
	struct buf out = BUF_INIT;
	struct table t;

	table_init(&t, two, ARRAY_SIZE(two));
	table_cell(&t, "1");
	table_cell(&t, "a");
	table_dim_row(&t);
	table_cell(&t, "2");
	table_cell(&t, "%s", "");
	cr_assert_eq(table_render(&t, 0, true, &out), 0);
	cr_expect_str_eq(buf_str(&out),
			 TERM_BOLD "N  NAME" TERM_RESET "\n1  a\n" TERM_DIM "2" TERM_RESET "\n");
	buf_reset(&out);
	cr_assert_eq(table_render(&t, 0, false, &out), 0);
	cr_expect_str_eq(buf_str(&out), "N  NAME\n1  a\n2\n");
	table_deinit(&t);
	buf_deinit(&out);
}

Test(table, markdown)
{
	static const struct table_column two[] = {
		{ "+/-", TABLE_RIGHT, TABLE_WHOLE },
		{ "A|B", TABLE_LEFT, TABLE_CUT_END },
	};
	struct buf out = BUF_INIT;
	struct table t;

	table_init(&t, two, ARRAY_SIZE(two));
	table_cell(&t, "1");
	table_cell(&t, "%s", "<main> | Foo#bar_baz `*[x]\\");
	cr_assert_eq(table_render_markdown(&t, &out), 0);
	cr_expect_str_eq(buf_str(&out),
			 "| +/- | A\\|B |\n| ---: | :--- |\n"
			 "| 1 | \\<main\\> \\| Foo\\#bar\\_baz \\`\\*\\[x\\]\\\\ |\n");
	table_deinit(&t);
	buf_deinit(&out);
}
