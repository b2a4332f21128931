/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A line is made of numbers of fixed width, and of two texts that share what is left. What a narrow
 * terminal has no room for goes in this order: where a method is, the bar, the second number.
 */
#include "top/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/number.h"
#include "profile/window.h"
#include "top/model.h"

#define NUMBER	    7 /* columns of "123.4%" with a blank */
#define ID	    8 /* … of a pid */
#define BAR	    8
#define WIDE	    72 /* columns from which on there is room for where */
#define WITH_BAR    56
#define WITH_SECOND 44
#define LABEL_PART  0.6 /* of the room for texts */

void top_page_deinit(struct top_page *page)
{
	free(page->lines);
	buf_deinit(&page->text);
	*page = (struct top_page) { 0 };
}

static void begin(struct top_page *page)
{
	page->n_lines = page->n_shown = 0;
	buf_reset(&page->text);
}

/* Add @line as a line, cut to the width. */
static int add_line(struct top_page *page, const struct top_frame *f, enum top_style style,
		    const char *line)
{
	const size_t at = page->text.len;
	int r = array_reserve(page->lines, page->cap_lines, page->n_lines + 1);

	if (r)
		return r;
	top_add_cut(&page->text, line, f->width, false, f->utf8);
	/* A line has no blanks at its end. */
	while (page->text.len > at && page->text.data[page->text.len - 1] == ' ')
		page->text.len--;
	buf_addch(&page->text, '\0');
	page->lines[page->n_lines++] = (struct top_line) { .style = style, .text = at };
	return buf_failed(&page->text) ? -ENOMEM : 0;
}

/* ---- the lines above the rows ---- */

/* What was measured is told apart from what could not be. */
static void add_gc(const struct top_model *m, struct buf *line)
{
	if (m->gc_unknown_ns && !m->gc_ns && m->gc_unknown_ns >= m->cpu_ns) {
		buf_addstr(line, "  GC unknown");
		return;
	}
	buf_addf(line, "  GC %s", num_percent(m->gc_ns, m->cpu_ns).s);
	if (m->gc_unknown_ns)
		buf_addf(line, ", unknown of %s", num_percent(m->gc_unknown_ns, m->cpu_ns).s);
}

static int add_title(const struct top_model *m, const struct top_frame *f, struct top_page *page)
{
	_cleanup_buf_ struct buf line = BUF_INIT;

	buf_addf(&line, "rbpf top  %s", f->targets);
	buf_addf(&line, "  CPU %s", num_percent(m->cpu_ns, m->window_ns).s);
	add_gc(m, &line);
	if (m->lost)
		buf_addf(&line, "  lost %s", num_count(m->lost).s);
	if (f->paused)
		buf_addstr(&line, "  PAUSED");
	buf_addf(&line, "  %u Hz", f->frequency);
	return add_line(page, f, TOP_TITLE, buf_str(&line));
}

static int add_choice(const struct top_model *m, const struct top_choice *c,
		      const struct top_frame *f, struct top_page *page)
{
	static const char *const sorts[TOP_SORTS] = { "self", "total", "name" };
	_cleanup_buf_ struct buf line = BUF_INIT;

	buf_addf(&line, "%s", top_view_word(c->view));
	if (c->pid)
		buf_addf(&line, " of pid %d", (int)c->pid);
	if (c->tid)
		buf_addf(&line, " tid %d", (int)c->tid);
	if (c->request)
		buf_addf(&line, " of %s", c->request);
	if (c->view == TOP_TREE && c->method)
		buf_addf(&line, " of %s", c->method);
	if (c->view == TOP_TREE && c->inverted)
		buf_addstr(&line, ", callers below");
	buf_addf(&line, "  last %s", num_clock(m->window_ns).s);
	if (c->back)
		buf_addf(&line, ", %s ago", num_clock(c->back * 1000000000ull).s);
	buf_addf(&line, "  by %s  %s",
		 sorts[c->view == TOP_TREE && c->sort == TOP_SORT_SELF ? TOP_SORT_TOTAL : c->sort],
		 num_of(m->samples, "sample", "samples").s);
	if (c->filter[0] || f->typing)
		buf_addf(&line, "  filter: %s%s", c->filter, f->typing ? "_" : "");
	return add_line(page, f, f->typing ? TOP_NOTICE : TOP_DIM, buf_str(&line));
}

/* ---- rows ---- */

enum second { SECOND_NONE, SECOND_TOTAL, SECOND_SELF };

/* Of the rows of a view. */
struct columns {
	bool pid, tid;
	enum second second;
	bool bar, where;
	bool tail; /* of where the end says most: a path */
	const char *label_title, *where_title;
	size_t label, where_width; /* columns */
	uint64_t whole;		   /* what a full bar stands for: one CPU, or the longest row */
};

static struct columns columns_of(const struct top_choice *c, const struct top_frame *f)
{
	static const struct {
		const char *label, *where;
		enum second second;
		bool pid, tid, tail;
	} views[TOP_VIEWS] = {
		[TOP_PROCESSES] = { "PROCESS", "RUBY", SECOND_NONE, true, false, false },
		[TOP_THREADS] = { "THREAD", "PROCESS", SECOND_NONE, true, true, false },
		[TOP_REQUESTS] = { "REQUEST", "FRAMEWORK", SECOND_NONE, false, false, false },
		[TOP_METHODS] = { "METHOD", "WHERE", SECOND_TOTAL, false, false, true },
		[TOP_TREE] = { "METHOD", "WHERE", SECOND_SELF, false, false, true },
		[TOP_STATES] = { "STATE", "", SECOND_NONE, false, false, false },
	};
	struct columns ret = {
		.pid = views[c->view].pid,
		.tid = views[c->view].tid,
		.tail = views[c->view].tail,
		.second = f->width >= WITH_SECOND ? views[c->view].second : SECOND_NONE,
		.bar = f->width >= WITH_BAR,
		.where = f->width >= WIDE,
		.label_title = views[c->view].label,
		.where_title = views[c->view].where,
	};
	size_t used = NUMBER + 1, room;

	used += (ret.second != SECOND_NONE) * NUMBER + ret.bar * (BAR + 1);
	used += (ret.pid + (size_t)ret.tid) * ID;
	room = f->width > used ? f->width - used : 0;
	ret.label = ret.where ? (size_t)((double)room * LABEL_PART) : room;
	ret.where_width = ret.where ? room - ret.label - 2 : 0;
	return ret;
}

static void add_blanks(struct buf *out, size_t n)
{
	for (; n; n--)
		buf_addch(out, ' ');
}

/* A cell that ends at column @width. */
static void add_right(struct buf *out, const char *s, size_t width)
{
	size_t len = strlen(s);

	add_blanks(out, len < width ? width - len : 0);
	buf_addstr(out, s);
}

/* @part of @whole, in eighths of a column where there are such characters. */
static void add_bar(struct buf *out, uint64_t part, uint64_t whole, bool utf8)
{
	static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
	double share = whole ? (double)part / (double)whole : 0;
	unsigned int n = (unsigned int)((share < 1 ? share : 1) * BAR * 8 + 0.5);
	size_t columns = n / 8;

	for (size_t i = 0; i < n / 8; i++)
		buf_addstr(out, utf8 ? "█" : "#");
	if (utf8 && n % 8) {
		buf_addstr(out, eighths[n % 8]);
		columns++;
	}
	add_blanks(out, BAR + 1 - columns);
}

static int add_titles(const struct columns *c, const struct top_choice *choice,
		      const struct top_frame *f, struct top_page *page)
{
	_cleanup_buf_ struct buf line = BUF_INIT;

	add_right(&line,
		  choice->view == TOP_METHODS  ? "SELF%"
		  : choice->view == TOP_TREE   ? "TOTAL%"
		  : choice->view == TOP_STATES ? "TIME%"
					       : "CPU%",
		  NUMBER - 1);
	add_blanks(&line, 1);
	if (c->second != SECOND_NONE) {
		add_right(&line, c->second == SECOND_TOTAL ? "TOTAL%" : "SELF%", NUMBER - 1);
		add_blanks(&line, 1);
	}
	if (c->bar)
		add_blanks(&line, BAR + 1);
	if (c->pid)
		buf_addf(&line, "%*s ", ID - 1, "PID");
	if (c->tid)
		buf_addf(&line, "%*s ", ID - 1, "TID");
	add_blanks(&line, top_add_cut(&line, c->label_title, c->label, false, f->utf8) < c->label
				  ? c->label - strlen(c->label_title)
				  : 0);
	if (c->where)
		buf_addf(&line, "  %s", c->where_title);
	return add_line(page, f, TOP_COLUMNS, buf_str(&line));
}

/* For one more line, above those at the bottom. */
static bool has_room(const struct top_frame *f, const struct top_page *page)
{
	const size_t below = (f->footer != NULL) + (f->notice != NULL);

	return !f->height || page->n_lines + below < f->height;
}

/* The label, for nodes of the tree indented and marked. */
static void add_label(const struct top_model *m, const struct top_row *row,
		      const struct top_choice *choice, const struct columns *c, bool utf8,
		      struct buf *line)
{
	size_t indent = 0, taken;

	if (choice->view == TOP_TREE) {
		/* Half of the room is for the name, however deep it is. */
		indent = row->depth < c->label / 2 ? row->depth : c->label / 2;
		add_blanks(line, indent);
		buf_addstr(line, !row->has_children ? "  " : row->open ? "- " : "+ ");
		indent += 2;
	}
	if (indent > c->label)
		indent = c->label;
	taken = indent + top_add_cut(line, top_label(m, row), c->label - indent, false, utf8);
	add_blanks(line, c->where && taken < c->label ? c->label - taken : 0);
}

static int add_row(const struct top_model *m, const struct top_choice *choice,
		   const struct top_frame *f, const struct columns *c, size_t i,
		   struct top_page *page)
{
	const struct top_row *row = &m->rows[i];
	const uint64_t shown = choice->view == TOP_TREE ? row->total_ns : row->self_ns;
	_cleanup_buf_ struct buf line = BUF_INIT;

	add_right(&line, num_percent(shown, m->window_ns).s, NUMBER - 1);
	add_blanks(&line, 1);
	if (c->second != SECOND_NONE) {
		add_right(&line,
			  num_percent(c->second == SECOND_TOTAL ? row->total_ns : row->self_ns,
				      m->window_ns)
				  .s,
			  NUMBER - 1);
		add_blanks(&line, 1);
	}
	if (c->bar)
		add_bar(&line, shown, c->whole, f->utf8);
	if (c->pid)
		buf_addf(&line, "%*u ", ID - 1, row->pid);
	if (c->tid)
		buf_addf(&line, "%*u ", ID - 1, row->tid);
	add_label(m, row, choice, c, f->utf8, &line);
	if (c->where) {
		buf_addstr(&line, "  ");
		top_add_cut(&line, top_where(m, row), c->where_width, c->tail, f->utf8);
	}
	return add_line(page, f, i == f->selected ? TOP_SELECTED : TOP_PLAIN, buf_str(&line));
}

static int add_rows(const struct top_model *m, const struct top_choice *choice,
		    const struct top_frame *f, struct top_page *page)
{
	struct columns c = columns_of(choice, f);
	size_t i;
	int r = add_titles(&c, choice, f, page);

	c.whole = m->window_ns;
	for (i = 0; i < m->n_rows; i++) {
		const struct top_row *row = &m->rows[i];
		uint64_t shown = choice->view == TOP_TREE ? row->total_ns : row->self_ns;

		if (shown > c.whole)
			c.whole = shown;
	}

	for (i = f->first; i < m->n_rows && !r; i++) {
		if (!has_room(f, page))
			break;
		r = add_row(m, choice, f, &c, i, page);
		page->n_shown++;
	}
	if (!r && !m->n_rows)
		r = add_line(
			page, f, TOP_DIM,
			m->n_hidden ? "no row fits the filter"
			: m->only_waits
				? "nothing used a CPU in this time; the view 'states' has the waits"
				: "no samples in this time");
	return r;
}

/* ---- all ---- */

/* The last lines are at the bottom of the terminal. */
static int add_bottom(const struct top_frame *f, struct top_page *page)
{
	int r = 0;

	while (!r && f->height && has_room(f, page))
		r = add_line(page, f, TOP_PLAIN, "");
	if (!r && f->notice)
		r = add_line(page, f, TOP_NOTICE, f->notice);
	if (!r && f->footer)
		r = add_line(page, f, TOP_DIM, f->footer);
	/* What a terminal of a few lines has no room for. */
	if (f->height && page->n_lines > f->height)
		page->n_lines = f->height;
	return r;
}

int top_layout(const struct top_model *m, const struct top_choice *choice,
	       const struct top_frame *frame, struct top_page *page)
{
	int r;

	begin(page);
	r = add_title(m, frame, page);
	if (!r)
		r = add_choice(m, choice, frame, page);
	if (!r)
		r = add_rows(m, choice, frame, page);
	return r ? r : add_bottom(frame, page);
}

int top_layout_text(const char *const *text, size_t n, const struct top_frame *frame,
		    struct top_page *page)
{
	int r;

	begin(page);
	r = n ? add_line(page, frame, TOP_TITLE, text[0]) : 0;
	for (size_t i = 1 + frame->first; i < n && !r && has_room(frame, page); i++) {
		r = add_line(page, frame, TOP_PLAIN, text[i]);
		page->n_shown++;
	}
	return r ? r : add_bottom(frame, page);
}
