/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/annotate.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "base/json.h"
#include "base/utf8.h"
#include "report/annotate_parts.h"
#include "report/fields.h"
#include "report/source_text.h"
#include "ui/summary.h"
#include "ui/table.h"
#include "view/filter.h"
#include "view/label.h"
#include "view/neighbours.h"

#define MAX_METHODS    5 /* of which callers and callees are told */
#define MAX_NEIGHBOURS 5

/* A frame of a method in C that was asked for; PROFILE_NONE if there is none. */
static uint32_t find_cfunc(const struct annotate *a)
{
	const struct profile *p = &a->report.rec->profile;

	for (uint32_t i = 0; a->choice.method && i < p->n_frames; i++)
		if (p->frames[i].kind == FRAME_CFUNC &&
		    !regexec(a->choice.method, label_frame(p, i), 0, NULL, 0))
			return i;
	return PROFILE_NONE;
}

static int no_lines(const struct annotate *a, struct err *err)
{
	const struct recording *rec = a->report.rec;
	const uint32_t cfunc = find_cfunc(a);

	if (cfunc != PROFILE_NONE) {
		err_set(err, -ENODATA, ERR_EMPTY,
			"%.200s is written in C: it has no lines of source",
			label_frame(&rec->profile, cfunc));
		err_hint(err,
			 "rbpf report --sandwich '%.200s' shows who calls it and what it calls",
			 a->target);
		return -ENODATA;
	}
	if (a->choice.line)
		return err_set(err, -ENODATA, ERR_EMPTY, "no sample of %s is of line %u of %.200s",
			       recording_name(rec), a->choice.line, a->choice.file);
	err_set(err, -ENODATA, ERR_EMPTY, "no file and no method in %s is called '%.200s'",
		recording_name(rec), a->target);
	err_hint(err, "rbpf report -n 0 lists the methods, rbpf report --by file the files; with "
		      "--stack native, native functions are looked for");
	return -ENODATA;
}

static int build(const struct annotate *a, struct source_lines *ret, struct err *err)
{
	const struct report *r = &a->report;
	int failed = source_lines_build(&r->rec->profile, r->filter, &a->choice, ret);

	if (failed)
		return err_code(err, failed);
	/* Not filters, but the event has left none where nothing was sampled of it. */
	if (!ret->all.samples && r->rec->profile.n_samples)
		return report_nothing(r, err);
	return ret->n ? 0 : no_lines(a, err);
}

/* The number of lines from @from on that are of one file. */
static size_t count_of_file(const struct source_lines *s, size_t from)
{
	size_t n = 0;

	while (from + n < s->n && s->lines[from + n].file == s->lines[from].file)
		n++;
	return n;
}

bool annotate_was_changed(const struct annotate *a, const struct source_text *text)
{
	const struct recording *rec = a->report.rec;
	uint64_t start = rec->profile.meta.start_realtime_ns;

	if (text->kept)
		return text->differs;
	return text->path && start && text->changed_ns > 0 &&
	       (uint64_t)text->changed_ns > start + recording_duration(rec);
}

/* ---- text ---- */

/* "called by  Checkout#quote 9.10s, [nothing] 0.10s" */
static void add_list(const struct report *r, const char *title, const char *none,
		     const struct neighbour_list *list, struct buf *out)
{
	enum value_unit unit = profile_event(&r->rec->profile)->unit;

	buf_addf(out, "  %-10s", title);
	for (size_t i = 0; i < list->n && i < MAX_NEIGHBOURS; i++) {
		buf_addstr(out, i ? ", " : "");
		if (list->rows[i].frame == PROFILE_NONE)
			buf_addstr(out, none);
		else
			report_frame_name(r, list->rows[i].frame, out);
		buf_addf(out, " %s", num_column(unit, list->rows[i].sum.value).s);
	}
	if (list->n > MAX_NEIGHBOURS)
		buf_addf(out, ", %s more", num_count(list->n - MAX_NEIGHBOURS).s);
	buf_addch(out, '\n');
}

int annotate_add_methods(const struct report *r, struct buf *out)
{
	_cleanup_neighbours_ struct neighbours n = NEIGHBOURS_INIT;
	size_t i;

	if (!r->method)
		return 0;
	if (neighbours_build(&r->rec->profile, r->filter, GROUP_BY_FUNCTION, r->method, &n))
		return -ENOMEM;
	for (i = 0; i < n.n_methods && i < MAX_METHODS; i++) {
		report_add_method(r, &n, &n.methods[i], out);
		add_list(r, "called by", "[nothing]", &n.methods[i].callers, out);
		add_list(r, "calls", "[itself]", &n.methods[i].callees, out);
	}
	if (i < n.n_methods)
		buf_addf(out, "\n  %s match; rbpf report --sandwich has all\n",
			 num_of(n.n_methods, "method", "methods").s);
	return 0;
}

static void add_title(const struct annotate *a, uint32_t file, const struct source_text *text,
		      struct buf *out)
{
	const char *path = profile_str(&a->report.rec->profile, file);

	buf_addf(out, "\n%s", path);
	if (!text->path) {
		buf_addf(out, "  (no source: %s)",
			 a->source_root ? strerror(-text->why) : "--source-root names where it is");
	} else if (text->kept) {
		buf_addstr(out, "  (as it was recorded");
		if (text->versions > 1)
			buf_addf(out, "; %s, this is the first",
				 num_of(text->versions, "version", "versions").s);
		buf_addch(out, ')');
	} else if (strcmp(text->path, path) != 0) {
		buf_addstr(out, "  (from ");
		utf8_sanitise(out, text->path, strlen(text->path));
		buf_addch(out, ')');
	}
	buf_addch(out, '\n');
	if (text->differs)
		buf_addstr(out, "  the file that is there now is another: it was changed since\n");
	else if (annotate_was_changed(a, text))
		buf_addstr(out,
			   "  the file was changed after it was recorded: lines may be others\n");
}

static void add_numbers(const struct annotate *a, const struct view_sum *all,
			const struct view_sum *sum, uint64_t error, struct table *t)
{
	enum value_unit unit = profile_event(&a->report.rec->profile)->unit;

	table_cell(t, "%s", num_column(unit, sum->value).s);
	table_cell(t, "%s", num_percent(sum->value, all->value).s);
	table_cell(t, "%s", num_percent(error, all->value).s);
}

void annotate_add_time(const struct annotate *a, const struct view_sum *all,
		       const struct group_total *time, bool hot, struct table *t)
{
	if (time && report_is_vague(&time->total))
		table_dim_row(t);
	table_cell(t, "%s", hot ? "##" : "");
	if (time) {
		add_numbers(a, all, &time->total, view_sum_error(&time->total, all), t);
		add_numbers(a, all, &time->self, view_self_error(&time->self, &time->total, all),
			    t);
	}
	for (size_t i = 0; !time && i < 6; i++)
		table_cell(t, "%s", "");
}

/* The row of a source line; @l is NULL if it has no samples. */
static void add_line(const struct annotate *a, const struct view_sum *all,
		     const struct source_line *l, uint32_t line, bool hot,
		     const struct source_text *text, struct table *t)
{
	_cleanup_buf_ struct buf source = BUF_INIT;

	annotate_add_time(a, all, l ? &l->time : NULL, hot, t);
	table_cell(t, "%" PRIu32, line);
	source_text_line(text, line, &source);
	table_cell(t, "%s", buf_str(&source));
}

void annotate_add_gap(struct table *t)
{
	for (size_t i = 0; i < 9; i++)
		table_cell(t, "%s", i == 7 ? "..." : "");
}

/* The lines around @lines, which are @n of one file. */
static void add_lines(const struct annotate *a, const struct view_sum *all,
		      const struct source_line *lines, size_t n, const struct source_text *text,
		      struct table *t)
{
	uint64_t hottest = 0, last = 0; /* the last line that was added */
	size_t i;

	for (i = 0; i < n; i++)
		if (lines[i].time.self.value > hottest)
			hottest = lines[i].time.self.value;
	for (i = 0; i < n; i++) {
		const struct source_line *l = &lines[i];
		uint64_t before = text->n && l->line <= text->n ? a->context : 0;
		uint64_t at = l->line > before ? l->line - before : 1;
		uint64_t end = (uint64_t)l->line + a->context;

		if (at <= last)
			at = last + 1;
		else if (i && at > last + 1)
			annotate_add_gap(t);
		for (; at < l->line; at++)
			add_line(a, all, NULL, (uint32_t)at, false, text, t);
		add_line(a, all, l, l->line, annotate_is_hot(l->time.self.value, hottest), text, t);
		last = l->line;
		if (i + 1 < n && lines[i + 1].line <= end)
			end = lines[i + 1].line - 1;
		for (at = last + 1; at <= end && at <= text->n; at++, last++)
			add_line(a, all, NULL, (uint32_t)at, false, text, t);
	}
}

static int add_file(const struct annotate *a, const struct source_lines *s, size_t from, size_t n,
		    struct buf *out)
{
	static const struct table_column columns[] = {
		ANNOTATE_COLUMNS,
		{ "LINE", TABLE_RIGHT, TABLE_WHOLE },
		{ "SOURCE", TABLE_LEFT, TABLE_CUT_END },
	};
	const char *path = profile_str(&a->report.rec->profile, s->lines[from].file);
	_cleanup_source_text_ struct source_text text = SOURCE_TEXT_INIT;
	_cleanup_table_ struct table table;

	table_init(&table, columns, ARRAY_SIZE(columns));
	if (source_text_choose(&a->report.rec->profile.sources, path, a->source_root, &text))
		return -ENOMEM;
	add_title(a, s->lines[from].file, &text, out);
	add_lines(a, &s->all, &s->lines[from], n, &text, &table);
	return report_add_table(&a->report, &table, out);
}

int annotate_text(const struct annotate *a, struct buf *out, struct err *err)
{
	_cleanup_source_lines_ struct source_lines s = SOURCE_LINES_INIT;
	size_t i, n;
	int ret;

	ret = build(a, &s, err);
	if (ret)
		return ret;
	report_header(&a->report, s.all.samples, s.all.value, out);
	if (annotate_add_methods(&a->report, out))
		return err_oom(err);
	for (i = 0; i < s.n; i += n) {
		n = count_of_file(&s, i);
		if (add_file(a, &s, i, n, out))
			return err_oom(err);
	}
	buf_addch(out, '\n');
	report_footer(&a->report, out);
	return buf_failed(out) ? err_oom(err) : 0;
}

/* ---- JSON and CSV ---- */

void annotate_json_time(const struct annotate *a, const struct view_sum *all,
			const struct group_total *time, struct json *j)
{
	const struct report *r = &a->report;

	json_u64(j, "samples", time->self.samples);
	json_u64(j, "total_samples", time->total.samples);
	json_u64(j, field_value_key(r, "self").s, time->self.value);
	json_u64(j, field_value_key(r, "total").s, time->total.value);
	json_u64(j, field_value_key(r, "self_error").s,
		 view_self_error(&time->self, &time->total, all));
	json_u64(j, field_value_key(r, "total_error").s, view_sum_error(&time->total, all));
}

static int json_file(const struct annotate *a, const struct source_lines *s, size_t from, size_t n,
		     struct json *j)
{
	const char *path = profile_str(&a->report.rec->profile, s->lines[from].file);
	_cleanup_source_text_ struct source_text text = SOURCE_TEXT_INIT;
	_cleanup_buf_ struct buf line = BUF_INIT;

	if (source_text_choose(&a->report.rec->profile.sources, path, a->source_root, &text))
		return -ENOMEM;
	json_object_begin(j, NULL);
	json_str(j, "path", path);
	if (text.path) {
		utf8_sanitise(&line, text.path, strlen(text.path));
		json_str(j, "source", buf_str(&line));
		json_bool(j, "kept", text.kept);
		json_bool(j, "changed", annotate_was_changed(a, &text));
	} else {
		json_nil(j, "source");
	}
	json_array_begin(j, "lines");
	for (size_t i = from; i < from + n; i++) {
		json_object_begin(j, NULL);
		json_u64(j, "line", s->lines[i].line);
		annotate_json_time(a, &s->all, &s->lines[i].time, j);
		buf_reset(&line);
		source_text_line(&text, s->lines[i].line, &line);
		if (text.path)
			json_str(j, "text", buf_str(&line));
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
	return 0;
}

int annotate_json(const struct annotate *a, struct buf *out, struct err *err)
{
	_cleanup_source_lines_ struct source_lines s = SOURCE_LINES_INIT;
	struct json j = JSON_INIT(out);
	size_t i, n;
	int ret;

	ret = build(a, &s, err);
	if (ret)
		return ret;
	json_object_begin(&j, NULL);
	report_json_summary(&a->report, s.all.samples, s.all.value, &j);
	json_array_begin(&j, "files");
	for (i = 0; i < s.n; i += n) {
		n = count_of_file(&s, i);
		if (json_file(a, &s, i, n, &j))
			return err_oom(err);
	}
	json_array_end(&j);
	json_object_end(&j);
	buf_addch(out, '\n');
	return buf_failed(out) ? err_oom(err) : 0;
}

int annotate_csv(const struct annotate *a, struct buf *out, struct err *err)
{
	_cleanup_source_lines_ struct source_lines s = SOURCE_LINES_INIT;
	const struct report *r = &a->report;
	int ret;

	ret = build(a, &s, err);
	if (ret)
		return ret;
	buf_addf(out, "path,line,samples,total_samples,%s,%s,%s,%s\r\n",
		 field_value_key(r, "self").s, field_value_key(r, "total").s,
		 field_value_key(r, "self_error").s, field_value_key(r, "total_error").s);
	for (size_t i = 0; i < s.n; i++) {
		const struct group_total *t = &s.lines[i].time;
		const struct field_value path = {
			.str = profile_str(&r->rec->profile, s.lines[i].file),
		};

		field_add_csv(path, out);
		buf_addf(out,
			 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
			 ",%" PRIu64 "\r\n",
			 s.lines[i].line, t->self.samples, t->total.samples, t->self.value,
			 t->total.value, view_self_error(&t->self, &t->total, &s.all),
			 view_sum_error(&t->total, &s.all));
	}
	return buf_failed(out) ? err_oom(err) : 0;
}
