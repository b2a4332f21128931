/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A report as Markdown: tables are Markdown's, all other lines are code, so that nothing in them
 * has a meaning there. Renderers write both into one buffer; until the end, lines of tables begin
 * with TABLE_MARK, which no text has (profile.h).
 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "report/report.h"
#include "ui/table.h"

#define TABLE_MARK '\001'
#define CODE	   "    "

static int add_marked(const struct table *t, struct buf *out)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	const char *line, *end;

	if (table_render_markdown(t, &text))
		return -ENOMEM;
	/* An empty line keeps it apart from another table. */
	buf_addch(out, TABLE_MARK);
	buf_addch(out, '\n');
	for (line = buf_str(&text); *line; line = end + 1) {
		end = strchr(line, '\n');
		buf_addch(out, TABLE_MARK);
		buf_add(out, line, (size_t)(end + 1 - line));
	}
	return buf_failed(out) ? -ENOMEM : 0;
}

int report_add_table(const struct report *r, const struct table *t, struct buf *out)
{
	return r->markdown ? add_marked(t, out) : table_render(t, r->width, r->color, out);
}

void report_to_markdown(struct buf *text)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	const char *line, *end;
	bool in_table = false;

	out.max = text->max;
	for (line = buf_str(text); *line; line = end) {
		bool is_table = *line == TABLE_MARK;

		end = strchrnul(line, '\n');
		end += *end == '\n';
		if (in_table && !is_table && *line != '\n')
			buf_addch(&out, '\n');
		in_table = is_table;
		if (is_table)
			line++;
		else if (*line != '\n')
			buf_addstr(&out, CODE);
		buf_add(&out, line, (size_t)(end - line));
	}
	text->failed |= out.failed;
	text->exceeded |= out.exceeded;
	if (out.failed)
		return;
	buf_reset(text);
	buf_add(text, out.data, out.len);
}
