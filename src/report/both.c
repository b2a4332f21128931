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

/* A path, as the one that it goes on and its last frame. */
struct path_step {
	uint32_t parent, frame;
};

/* What a thread did with one stack. */
struct stack {
	uint64_t value, samples;
	uint64_t order; /* in the order of the whole tree */
	uint32_t thread, path;
};

struct stacks {
	struct path_step *paths; /* by id; owned */
	struct stack *v;	 /* the heaviest ones, heaviest first; owned */
	size_t n, cap;
	size_t limit;	   /* of n; SIZE_MAX: none */
	uint64_t lightest; /* value of the last one of so many; 0: there are fewer */
	uint32_t thread;   /* whose stacks are being added up */
	uint64_t n_all;	   /* stacks, with those that are not among the heaviest */
	uint64_t value, samples;
	struct row *rows; /* scratch; owned */
	size_t n_rows, cap_rows;
};

static void stacks_deinit(struct stacks *s)
{
	free(s->paths);
	free(s->v);
	free(s->rows);
}

/* Descending time; the tree's own order decides ties, which keeps output deterministic. */
static int compare_stacks(const void *a, const void *b)
{
	const struct stack *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? 1 : -1;
	return (x->order > y->order) - (x->order < y->order);
}

static void leave_heaviest(struct stacks *s)
{
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), compare_stacks);
	if (s->n < s->limit)
		return;
	s->n = s->limit;
	s->lightest = s->v[s->n - 1].value;
}

/* A path of s->thread. Of stacks, twice as many as are asked for are kept until they are sorted. */
static int add_path(void *arg, const struct tree_path *path)
{
	struct stacks *s = arg;
	uint64_t order;

	s->paths[path->id] = (struct path_step) { path->parent, path->frame };
	if (!path->self_samples)
		return 0;
	order = s->n_all++;
	s->value += path->self_value;
	s->samples += path->self_samples;
	if (s->lightest && path->self_value <= s->lightest)
		return 0;
	if (s->n / 2 >= s->limit)
		leave_heaviest(s);
	if (array_reserve(s->v, s->cap, s->n + 1))
		return -ENOMEM;
	s->v[s->n++] = (struct stack) { path->self_value, path->self_samples, order, s->thread,
					path->id };
	return 0;
}

static int add_threads(struct tree_parts *threads, struct stacks *s)
{
	const size_t n = tree_parts_count(threads);
	size_t i;
	int ret = 0;

	s->paths = calloc(tree_parts_paths(threads) + 1, sizeof(*s->paths));
	if (!s->paths)
		return -ENOMEM;
	for (i = 0; i < n && !ret; i++) {
		s->thread = tree_parts_owner(threads, i);
		ret = tree_parts_walk(threads, i, add_path, s);
	}
	leave_heaviest(s);
	return ret;
}

/* @ret is all zero before; the caller releases it in any case. */
static int stacks_init(const struct report *r, struct stacks *ret, struct err *err)
{
	const struct tree_options opts = {
		.by_line = r->by == FLAT_BY_LINE,
		.split = TREE_SPLIT_THREAD,
		.stack = STACK_ALL,
	};
	_cleanup_tree_parts_ struct tree_parts *threads = NULL;
	int failed;

	ret->limit = r->limit < SIZE_MAX ? (size_t)r->limit : SIZE_MAX;
	failed = tree_parts_new(&r->rec->profile, r->filter, &opts, &threads);
	if (!failed)
		failed = add_threads(threads, ret);
	if (failed)
		return tree_error(failed, err);
	return ret->samples ? 0 : report_nothing(r, err);
}

static enum column column_of(const struct profile *p, uint32_t frame)
{
	return stack_mode_shows(STACK_RUBY, p, frame) ? COLUMN_RUBY : COLUMN_NATIVE;
}

/* Fill s->rows with those of @path. */
static int find_rows(const struct profile *p, struct stacks *s, uint32_t path)
{
	s->n_rows = 0;
	for (; path; path = s->paths[path].parent) {
		uint32_t frame = s->paths[path].frame;

		if (array_reserve(s->rows, s->cap_rows, s->n_rows + 1))
			return -ENOMEM;
		s->rows[s->n_rows++] = (struct row) { column_of(p, frame), frame };
	}
	return 0;
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

static int add_block(const struct report *r, struct stacks *s, const struct stack *stack,
		     struct buf *out)
{
	static const struct table_column columns[N_COLUMNS] = {
		{ "RUBY", TABLE_LEFT, TABLE_CUT_MIDDLE },
		{ "NATIVE", TABLE_LEFT, TABLE_CUT_MIDDLE },
	};
	_cleanup_table_ struct table table;
	size_t i;

	table_init(&table, columns, ARRAY_SIZE(columns));
	if (find_rows(&r->rec->profile, s, stack->path))
		return -ENOMEM;
	buf_addf(out, "\n%s  %s  %s  ", num_percent(stack->value, s->value).s,
		 num_column(profile_event(&r->rec->profile)->unit, stack->value).s,
		 num_of(stack->samples, "sample", "samples").s);
	owner_label(&r->rec->profile, OWNER_THREAD, stack->thread, out);
	buf_addch(out, '\n');
	for (i = 0; i < s->n_rows; i++)
		add_row(r, &s->rows[i], &table);
	return table_render(&table, r->width, r->color, out);
}

static int render_blocks(const struct report *r, struct stacks *s, struct buf *out)
{
	size_t i;
	int ret = 0;

	report_header(r, s->samples, s->value, out);
	for (i = 0; i < s->n && !ret; i++)
		ret = add_block(r, s, &s->v[i], out);
	buf_addch(out, '\n');
	if (s->n < s->n_all)
		buf_addf(out, "  %s hidden by -n\n",
			 num_of(s->n_all - s->n, "more stack", "more stacks").s);
	report_footer(r, out);
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

static int json_stack(const struct report *r, struct stacks *s, const struct stack *stack,
		      struct json *j)
{
	const struct profile *p = &r->rec->profile;
	const struct profile_thread *thread = &p->threads[stack->thread];

	if (find_rows(p, s, stack->path))
		return -ENOMEM;
	json_object_begin(j, NULL);
	json_u64(j, "pid", p->processes[thread->process].pid);
	json_u64(j, "tid", thread->tid);
	json_str(j, "thread", profile_str(p, thread->name));
	json_u64(j, "samples", stack->samples);
	json_u64(j, value_unit_name(profile_event(p)->unit), stack->value);
	json_column(r, s, COLUMN_RUBY, "ruby", j);
	json_column(r, s, COLUMN_NATIVE, "native", j);
	json_object_end(j);
	return 0;
}

static int render_json(const struct report *r, struct stacks *s, struct buf *out)
{
	struct json j = JSON_INIT(out);
	size_t i;
	int ret = 0;

	json_object_begin(&j, NULL);
	report_json_summary(r, s->samples, s->value, &j);
	json_array_begin(&j, "stacks");
	for (i = 0; i < s->n && !ret; i++)
		ret = json_stack(r, s, &s->v[i], &j);
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
