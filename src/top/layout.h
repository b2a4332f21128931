/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rows of top as lines of text that are never wider than the terminal. It knows of no terminal
 * but its size, and whether it shows UTF-8.
 *
 * Columns are counted as wcwidth(3) counts them, so LC_CTYPE must be set; without UTF-8, what is
 * not ASCII becomes '?'.
 */
#ifndef RBPF_TOP_LAYOUT_H
#define RBPF_TOP_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "top/choice.h"

struct top_model;

enum top_style {
	TOP_PLAIN,
	TOP_TITLE,    /* the first line */
	TOP_DIM,      /* what is not so important */
	TOP_COLUMNS,  /* titles of columns */
	TOP_SELECTED, /* the row that keys act on */
	TOP_NOTICE,   /* what has just happened; the filter while it is typed */
};

struct top_line {
	enum top_style style;
	size_t text; /* offset in the page's text */
};

struct top_page {
	struct top_line *lines; /* owned */
	size_t n_lines, cap_lines;
	struct buf text; /* of all lines */
	size_t n_shown;	 /* rows of the model, or lines of text, on the page from its first on */
};

/* What is shown beside the rows. */
struct top_frame {
	size_t width, height; /* columns; lines, 0: as many as there are */
	bool utf8;
	const char *targets; /* "all Rubies", "pid 42"; not owned */
	uint32_t frequency;  /* Hz */
	size_t first;	     /* row at the top of the list */
	size_t selected;     /* row; SIZE_MAX: none */
	bool paused, typing; /* a filter */
	const char *notice;  /* one line; NULL: none; not owned */
	const char *footer;  /* keys, in the last line; NULL: none; not owned */
};

void top_page_deinit(struct top_page *page);

/*
 * Lay @m out, which was made for @choice; what @page had is gone. At most @frame->height lines.
 * Returns 0 or -ENOMEM.
 */
int top_layout(const struct top_model *m, const struct top_choice *choice,
	       const struct top_frame *frame, struct top_page *page);

/*
 * Lay out the @n lines of @text, cut to the width: the first one as a title, then those from
 * @frame->first on, counted without it, that there is room for. Returns 0 or -ENOMEM.
 */
int top_layout_text(const char *const *text, size_t n, const struct top_frame *frame,
		    struct top_page *page);

static inline const char *top_line_text(const struct top_page *page, size_t i)
{
	return page->text.data + page->lines[i].text;
}

/* Columns that @s, valid UTF-8, takes. */
size_t top_width(const char *s, bool utf8);

/*
 * Append @s, cut to @max columns; from the left if @tail, so that its end stays. Returns its
 * columns.
 */
size_t top_add_cut(struct buf *out, const char *s, size_t max, bool tail, bool utf8);

#endif
