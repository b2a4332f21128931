/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The heaviest stacks with their Ruby and their native frames in two columns.
 *
 * A stack is merged of both. Each frame has a row of its own, in the order of calls, innermost on
 * top, so that what stands below a frame in either column has called it:
 *
 *	75.0%  1.50s  150 samples  ruby (tid 42)
 *	RUBY                       NATIVE
 *	                           deflate  libz.so.1
 *	                           rb_deflate_deflate  zlib.so
 *	Zlib::Deflate#deflate (C)
 *	                           vm_call_cfunc  libruby-3.1.so.3.1
 *	Foo#bar
 *
 * Stacks are those of the call tree, split by thread: frames that differ by line only are one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "report/report.h"
#include "ui/summary.h"
#include "ui/table.h"
#include "view/label.h"
#include "view/owner.h"
#include "view/tree.h"

enum column { COLUMN_RUBY, COLUMN_NATIVE, N_COLUMNS };

struct row {
	enum column column;
	uint32_t frame;
};

struct stacks {
	struct tree tree; /* of all frames */
	uint32_t *nodes;  /* those that stacks end in, heaviest first; owned */
	size_t n;
	struct row *rows; /* scratch; owned */
	size_t n_rows, cap_rows;
};

static void stacks_deinit(struct stacks *s)
{
	tree_deinit(&s->tree);
	free(s->nodes);
	free(s->rows);
}

/* Descending time; the tree's own order decides ties, which keeps output deterministic. */
static int compare_nodes(const void *a, const void *b, void *arg)
{
	const struct tree_node *nodes = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (nodes[x].self_value != nodes[y].self_value)
		return nodes[x].self_value < nodes[y].self_value ? 1 : -1;
	return (x > y) - (x < y);
}

/* @ret is all zero before; the caller releases it in any case. */
static int stacks_init(const struct report *r, struct stacks *ret, struct err *err)
{
	const struct tree_options opts = {
		.by_line = r->by == FLAT_BY_LINE,
		.split = TREE_SPLIT_THREAD,
		.stack = STACK_ALL,
	};
	struct tree *t = &ret->tree;
	uint32_t i;
	int failed;

	failed = tree_build(&r->rec->profile, r->filter, &opts, t);
	if (failed)
		return tree_error(failed, err);
	if (!t->nodes[0].total_samples)
		return report_nothing(r, err);
	ret->nodes = calloc(t->n_nodes, sizeof(*ret->nodes));
	if (!ret->nodes)
		return err_oom(err);
	for (i = tree_next(t, 0); i; i = tree_next(t, i))
		if (t->nodes[i].self_samples)
			ret->nodes[ret->n++] = i;
	qsort_r(ret->nodes, ret->n, sizeof(*ret->nodes), compare_nodes, t->nodes);
	return 0;
}

static enum column column_of(const struct profile *p, uint32_t frame)
{
	return stack_mode_shows(STACK_RUBY, p, frame) ? COLUMN_RUBY : COLUMN_NATIVE;
}

/* Fill s->rows with those of the stack that ends in @node. */
static int find_rows(const struct profile *p, struct stacks *s, uint32_t node)
{
	const struct tree_node *nodes = s->tree.nodes;

	s->n_rows = 0;
	for (; nodes[node].frame != PROFILE_NONE; node = nodes[node].parent) {
		uint32_t frame = nodes[node].frame;

		if (array_reserve(s->rows, s->cap_rows, s->n_rows + 1))
			return -ENOMEM;
		s->rows[s->n_rows++] = (struct row) { column_of(p, frame), frame };
	}
	return 0;
}

/* The thread of a stack. */
static uint32_t thread_of(const struct tree *t, uint32_t node)
{
	while (t->nodes[node].frame != PROFILE_NONE)
		node = t->nodes[node].parent;
	return t->nodes[node].label;
}

static size_t stacks_shown(const struct report *r, const struct stacks *s)
{
	return s->n < r->limit ? s->n : (size_t)r->limit;
}

/* A native frame with its module, unless it is named by that: "deflate  libz.so.1". */
static void add_native_name(const struct report *r, uint32_t frame, struct buf *out)
{
	const struct profile *p = &r->rec->profile;
	uint32_t module = p->frames[frame].module;
	const char *name = label_frame(p, frame), *package;

	buf_addstr(out, name);
	if (p->frames[frame].kind == FRAME_KERNEL) {
		buf_addstr(out, "  kernel");
	} else if (module != PROFILE_NONE) {
		package = label_basename(profile_str(p, p->modules[module].path));
		if (strncmp(name, package, strlen(package)) != 0)
			buf_addf(out, "  %s", package);
	}
}

static void add_row(const struct report *r, const struct row *row, struct table *t)
{
	const struct profile_frame *f = &r->rec->profile.frames[row->frame];
	_cleanup_buf_ struct buf text = BUF_INIT;
	enum column i;

	if (row->column == COLUMN_NATIVE)
		add_native_name(r, row->frame, &text);
	else
		report_frame_name(r, row->frame, &text);
	if (r->by == FLAT_BY_LINE && f->file) {
		buf_addf(&text, "  %s", label_basename(profile_str(&r->rec->profile, f->file)));
		if (f->line) {
			buf_addch(&text, ':');
			label_line(f, &text);
		}
	}
	for (i = 0; i < N_COLUMNS; i++)
		table_cell(t, "%s", i == row->column ? buf_str(&text) : "");
}

static int add_block(const struct report *r, struct stacks *s, uint32_t node, struct buf *out)
{
	static const struct table_column columns[N_COLUMNS] = {
		{ "RUBY", TABLE_LEFT, TABLE_CUT_MIDDLE },
		{ "NATIVE", TABLE_LEFT, TABLE_CUT_MIDDLE },
	};
	const struct tree_node *n = &s->tree.nodes[node];
	_cleanup_table_ struct table table;
	size_t i;

	table_init(&table, columns, ARRAY_SIZE(columns));
	if (find_rows(&r->rec->profile, s, node))
		return -ENOMEM;
	buf_addf(out, "\n%s  %s  %s  ", num_percent(n->self_value, s->tree.nodes[0].total_value).s,
		 num_column(profile_event(&r->rec->profile)->unit, n->self_value).s,
		 num_of(n->self_samples, "sample", "samples").s);
	owner_label(&r->rec->profile, OWNER_THREAD, thread_of(&s->tree, node), out);
	buf_addch(out, '\n');
	for (i = 0; i < s->n_rows; i++)
		add_row(r, &s->rows[i], &table);
	return table_render(&table, r->width, r->color, out);
}

static int render_blocks(const struct report *r, struct stacks *s, struct buf *out)
{
	const struct tree_node *root = &s->tree.nodes[0];
	size_t shown = stacks_shown(r, s), i;
	int ret = 0;

	report_header(r, root->total_samples, root->total_value, out);
	for (i = 0; i < shown && !ret; i++)
		ret = add_block(r, s, s->nodes[i], out);
	buf_addch(out, '\n');
	if (shown < s->n)
		buf_addf(out, "  %s hidden by -n\n",
			 num_of(s->n - shown, "more stack", "more stacks").s);
	report_footer(r, root->total_samples, out);
	return ret || buf_failed(out) ? -ENOMEM : 0;
}

int report_both(const struct report *r, struct buf *out, struct err *err)
{
	struct stacks s = { 0 };
	int ret;

	ret = stacks_init(r, &s, err);
	if (!ret && render_blocks(r, &s, out))
		ret = err_oom(err);
	stacks_deinit(&s);
	return ret;
}

/* The frames of a column; "row" says where in the stack they are, 0 being the innermost place. */
static void json_column(const struct report *r, const struct stacks *s, enum column column,
			const char *key, struct json *j)
{
	size_t i;

	json_array_begin(j, key);
	for (i = 0; i < s->n_rows; i++) {
		if (s->rows[i].column != column)
			continue;
		json_object_begin(j, NULL);
		json_u64(j, "row", i);
		report_json_frame(r, s->rows[i].frame, j);
		json_object_end(j);
	}
	json_array_end(j);
}

static int json_stack(const struct report *r, struct stacks *s, uint32_t node, struct json *j)
{
	const struct profile *p = &r->rec->profile;
	const struct profile_thread *thread = &p->threads[thread_of(&s->tree, node)];

	if (find_rows(p, s, node))
		return -ENOMEM;
	json_object_begin(j, NULL);
	json_u64(j, "pid", p->processes[thread->process].pid);
	json_u64(j, "tid", thread->tid);
	json_str(j, "thread", profile_str(p, thread->name));
	json_u64(j, "samples", s->tree.nodes[node].self_samples);
	json_u64(j, value_unit_name(profile_event(p)->unit), s->tree.nodes[node].self_value);
	json_column(r, s, COLUMN_RUBY, "ruby", j);
	json_column(r, s, COLUMN_NATIVE, "native", j);
	json_object_end(j);
	return 0;
}

static int render_json(const struct report *r, struct stacks *s, struct buf *out)
{
	const struct tree_node *root = &s->tree.nodes[0];
	struct json j = JSON_INIT(out);
	size_t i;
	int ret = 0;

	json_object_begin(&j, NULL);
	report_json_summary(r, root->total_samples, root->total_value, &j);
	json_array_begin(&j, "stacks");
	for (i = 0; i < stacks_shown(r, s) && !ret; i++)
		ret = json_stack(r, s, s->nodes[i], &j);
	json_array_end(&j);
	json_object_end(&j);
	buf_addch(out, '\n');
	return ret || buf_failed(out) ? -ENOMEM : 0;
}

int report_both_json(const struct report *r, struct buf *out, struct err *err)
{
	struct stacks s = { 0 };
	int ret;

	ret = stacks_init(r, &s, err);
	if (!ret && render_json(r, &s, out))
		ret = err_oom(err);
	stacks_deinit(&s);
	return ret;
}
