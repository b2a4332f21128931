/* SPDX-License-Identifier: GPL-2.0-only */
#include "ui/table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "ui/term.h"

#define GAP	 2 /* blanks between columns */
#define MIN_FLEX 8 /* a flexible column is not made narrower than this */
#define ELLIPSIS "…"

void table_init(struct table *t, const struct table_column *columns, size_t n_columns)
{
	*t = (struct table) { .columns = columns, .n_columns = n_columns };
}

void table_deinit(struct table *t)
{
	buf_deinit(&t->text);
	free(t->cells);
	free(t->dim);
	*t = (struct table) { 0 };
}

void table_dim_row(struct table *t)
{
	if (array_reserve(t->dim, t->cap_dim, t->n_dim + 1)) {
		t->text.failed = true;
		return;
	}
	t->dim[t->n_dim++] = t->n_cells / t->n_columns;
}

void table_cell(struct table *t, const char *fmt, ...)
{
	va_list ap;

	if (array_reserve(t->cells, t->cap_cells, t->n_cells + 1)) {
		t->text.failed = true;
		return;
	}
	t->cells[t->n_cells++] = t->text.len;
	va_start(ap, fmt);
	buf_vaddf(&t->text, fmt, ap);
	va_end(ap);
	buf_addch(&t->text, '\0');
}

static const char *cell(const struct table *t, size_t row, size_t column)
{
	size_t i = row * t->n_columns + column;

	return i < t->n_cells ? t->text.data + t->cells[i] : "";
}

void table_add_cut(struct buf *out, const char *s, size_t max, enum table_fit fit)
{
	size_t len = utf8_len(s);

	if (len <= max || fit == TABLE_WHOLE) {
		buf_addstr(out, s);
	} else if (max == 0) {
		return;
	} else if (fit == TABLE_CUT_START) {
		buf_addstr(out, ELLIPSIS);
		buf_addstr(out, s + utf8_prefix(s, len - (max - 1)));
	} else if (fit == TABLE_CUT_MIDDLE) {
		buf_add(out, s, utf8_prefix(s, max / 2));
		buf_addstr(out, ELLIPSIS);
		buf_addstr(out, s + utf8_prefix(s, len - (max - max / 2 - 1)));
	} else {
		buf_add(out, s, utf8_prefix(s, max - 1));
		buf_addstr(out, ELLIPSIS);
	}
}

/*
 * Give back what is too wide: the widest flexible column first, so that a column of short texts is
 * not cut for the sake of a long neighbour.
 */
static void shrink(const struct table *t, size_t *widths, size_t width)
{
	size_t sum = (t->n_columns - 1) * GAP;
	size_t c, widest, second, cut;

	for (c = 0; c < t->n_columns; c++)
		sum += widths[c];
	while (sum > width) {
		widest = t->n_columns;
		for (c = 0; c < t->n_columns; c++)
			if (t->columns[c].fit != TABLE_WHOLE &&
			    (widest == t->n_columns || widths[c] > widths[widest]))
				widest = c;
		if (widest == t->n_columns || widths[widest] <= MIN_FLEX)
			return;
		second = MIN_FLEX;
		for (c = 0; c < t->n_columns; c++)
			if (c != widest && t->columns[c].fit != TABLE_WHOLE && widths[c] > second)
				second = widths[c];
		/* Down to the second widest, or by one column when they are equal. */
		cut = widths[widest] > second ? widths[widest] - second : 1;
		if (cut > sum - width)
			cut = sum - width;
		widths[widest] -= cut;
		sum -= cut;
	}
}

static void add_cell(const struct table *t, struct buf *out, size_t column, size_t width,
		     const char *s)
{
	const struct table_column *col = &t->columns[column];
	size_t len = utf8_len(s);
	size_t pad = len < width ? width - len : 0;
	bool last = column + 1 == t->n_columns;

	if (col->align == TABLE_RIGHT)
		buf_add_repeat(out, ' ', pad);
	table_add_cut(out, s, width, col->fit);
	if (last)
		return;
	if (col->align == TABLE_LEFT)
		buf_add_repeat(out, ' ', pad);
	buf_add_repeat(out, ' ', GAP);
}

/* @row TITLES stands for the titles. */
#define TITLES SIZE_MAX
static void add_line(const struct table *t, struct buf *out, const size_t *widths, size_t row,
		     const char *style)
{
	size_t start;

	if (style)
		buf_addstr(out, style);
	start = out->len;
	for (size_t c = 0; c < t->n_columns; c++)
		add_cell(t, out, c, widths[c],
			 row == TITLES ? t->columns[c].title : cell(t, row, c));
	/* An empty last cell would leave the blanks of its neighbour at the end of the line. */
	while (out->len > start && out->data[out->len - 1] == ' ')
		out->len--;
	if (out->data)
		out->data[out->len] = '\0';
	if (style)
		buf_addstr(out, TERM_RESET);
	buf_addch(out, '\n');
}

int table_render(const struct table *t, size_t width, bool color, struct buf *out)
{
	size_t rows = t->n_columns ? (t->n_cells + t->n_columns - 1) / t->n_columns : 0;
	size_t widths[TABLE_MAX_COLUMNS];
	size_t r, c, len, next_dim = 0;

	if (buf_failed(&t->text))
		return -ENOMEM;
	for (c = 0; c < t->n_columns; c++) {
		widths[c] = utf8_len(t->columns[c].title);
		for (r = 0; r < rows; r++) {
			len = utf8_len(cell(t, r, c));
			if (len > widths[c])
				widths[c] = len;
		}
	}
	if (width)
		shrink(t, widths, width);

	add_line(t, out, widths, TITLES, color ? TERM_BOLD : NULL);
	for (r = 0; r < rows; r++) {
		bool dim = next_dim < t->n_dim && t->dim[next_dim] == r;

		next_dim += dim;
		add_line(t, out, widths, r, color && dim ? TERM_DIM : NULL);
	}
	return buf_failed(out) ? -ENOMEM : 0;
}

void table_add_markdown(struct buf *out, const char *s)
{
	for (; *s; s++) {
		if (strchr("\\`*_[]<>|~&#$", *s))
			buf_addch(out, '\\');
		buf_addch(out, *s);
	}
}

int table_render_markdown(const struct table *t, struct buf *out)
{
	size_t rows = t->n_cells / t->n_columns, r, c;

	if (buf_failed(&t->text))
		return -ENOMEM;
	for (c = 0; c < t->n_columns; c++) {
		buf_addstr(out, "| ");
		table_add_markdown(out, t->columns[c].title);
		buf_addch(out, ' ');
	}
	buf_addstr(out, "|\n");
	for (c = 0; c < t->n_columns; c++)
		buf_addstr(out, t->columns[c].align == TABLE_RIGHT ? "| ---: " : "| :--- ");
	buf_addstr(out, "|\n");
	for (r = 0; r < rows; r++) {
		for (c = 0; c < t->n_columns; c++) {
			buf_addstr(out, "| ");
			table_add_markdown(out, cell(t, r, c));
			buf_addch(out, ' ');
		}
		buf_addstr(out, "|\n");
	}
	return buf_failed(out) ? -ENOMEM : 0;
}
