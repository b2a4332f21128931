/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tables of text, as wide as their contents or fitted to a terminal.
 *
 * Cells are valid UTF-8 and are measured in code points. Columns marked flexible share what the
 * others leave of the width; text that does not fit is cut, and shows where by an ellipsis.
 * Not thread-safe.
 */
#ifndef RBPF_UI_TABLE_H
#define RBPF_UI_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum table_align { TABLE_LEFT, TABLE_RIGHT };

enum table_fit {
	TABLE_WHOLE,	  /* never cut */
	TABLE_CUT_END,	  /* "ActiveRecord::Resu…" */
	TABLE_CUT_START,  /* "…/models/cart.rb:57": of a path the end says most */
	TABLE_CUT_MIDDLE, /* "ActiveReco…lt#each": of a qualified name both do */
};

struct table_column {
	const char *title;
	enum table_align align;
	enum table_fit fit;
};

struct table {
	const struct table_column *columns; /* not owned */
	size_t n_columns;
	struct buf text; /* all cells, each followed by a NUL */
	size_t *cells;	 /* offsets into text, by rows; owned */
	size_t n_cells, cap_cells;
	size_t *dim; /* rows that are dimmed, ascending; owned */
	size_t n_dim, cap_dim;
};

#define TABLE_MAX_COLUMNS 22

/* @columns (at most TABLE_MAX_COLUMNS) must outlive the table. */
void table_init(struct table *t, const struct table_column *columns, size_t n_columns);
void table_deinit(struct table *t);
#define _cleanup_table_ _cleanup_(table_deinit)

/* Add the next cell, from left to right, row after row. Running out of memory shows at the end. */
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Print the row that the next cell begins dimmed, where there is colour. */
void table_dim_row(struct table *t);

/*
 * Append the table to @out: a line of titles (in bold, with @color), then the rows; lines have no
 * trailing blanks. @width is in columns, 0 for no limit; columns that are never cut may exceed it.
 * Returns 0 or -ENOMEM.
 */
int table_render(const struct table *t, size_t width, bool color, struct buf *out);

/* The same as a table of GitHub's Markdown, with nothing cut. Returns 0 or -ENOMEM. */
int table_render_markdown(const struct table *t, struct buf *out);

/* Append @s with a backslash before each character that means something in Markdown. */
void table_add_markdown(struct buf *out, const char *s);

/* Append @s cut to at most @max code points, as @fit says. */
void table_add_cut(struct buf *out, const char *s, size_t max, enum table_fit fit);

#endif
