/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/annotate_code.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "base/json.h"
#include "report/annotate_parts.h"
#include "report/fields.h"
#include "report/source_text.h"
#include "ui/table.h"
#include "view/label.h"
#include "view/instructions.h"

#define MAX_SOURCES 64 /* files of a function whose text is read */

static const char *str(const struct instructions *c, uint32_t id)
{
	return intern_get(&c->strings, id, NULL);
}

static const struct code_function *function_of(const struct instructions *c,
					       const struct code_block *b)
{
	return &c->functions[b->function];
}

static int check(const struct annotate *a, const struct instructions *c, struct err *err)
{
	const struct report *r = &a->report;

	if (c->all.samples && c->n_functions)
		return 0;
	if (!c->all.samples && (c->n_functions || r->rec->profile.n_samples))
		return report_nothing(r, err);
	err_set(err, -ENODATA, ERR_EMPTY, "no native function in %s is called '%.200s'",
		recording_name(r->rec), a->target);
	err_hint(err, "rbpf report --stack native -n 0 lists the functions");
	return -ENODATA;
}

static const struct profile_module *module_of(const struct annotate *a, const struct code_block *b)
{
	return &a->report.rec->profile.modules[b->module];
}

/* ---- text ---- */

struct source_cache {
	uint32_t file[MAX_SOURCES];
	struct source_text text[MAX_SOURCES];
	size_t n;
};

static void source_cache_deinit(struct source_cache *s)
{
	while (s->n)
		source_text_deinit(&s->text[--s->n]);
}

/* *@ret is the text of a source file; NULL if there are too many. */
static int find_source(const struct annotate *a, const struct instructions *c, uint32_t file,
		       struct source_cache *s, const struct source_text **ret)
{
	size_t i;

	*ret = NULL;
	for (i = 0; i < s->n && s->file[i] != file; i++)
		;
	if (i == MAX_SOURCES)
		return 0;
	if (i == s->n) {
		if (source_text_choose(&a->report.rec->profile.sources, str(c, file),
				       a->source_root, &s->text[i]))
			return -ENOMEM;
		s->file[s->n++] = file;
	}
	*ret = &s->text[i];
	return 0;
}

/* "deflate.c:1150  while (…)", above the first instruction of it. */
static int add_source(const struct annotate *a, const struct instructions *c,
		      const struct code_row *row, struct source_cache *sources, struct table *t)
{
	_cleanup_buf_ struct buf line = BUF_INIT;
	const struct source_text *text;

	if (find_source(a, c, row->file, sources, &text))
		return -ENOMEM;
	if (text)
		source_text_line(text, row->line, &line);
	annotate_add_time(a, &c->all, NULL, false, t);
	table_cell(t, "%s", "");
	table_cell(t, "%s:%" PRIu32 "%s%s", label_basename(str(c, row->file)), row->line,
		   line.len ? "  " : "", buf_str(&line));
	return 0;
}

static bool is_used(const struct code_row *row)
{
	return row->time.total.samples;
}

static bool same_line(const struct code_row *a, const struct code_row *b)
{
	return a->file == b->file && a->line == b->line;
}

static int add_instruction(const struct annotate *a, const struct instructions *c,
			   const struct code_row *row, const struct code_row *before,
			   uint64_t hottest, struct source_cache *sources, struct table *t)
{
	if (row->line && (!before || !same_line(before, row)) && add_source(a, c, row, sources, t))
		return -ENOMEM;
	annotate_add_time(a, &c->all, is_used(row) ? &row->time : NULL,
			  annotate_is_hot(row->time.self.value, hottest), t);
	table_cell(t, "%" PRIx64, row->address);
	table_cell(t, "    %s", str(c, row->text));
	return 0;
}

/* The rows of @b that have samples, and those around them. */
static int add_rows(const struct annotate *a, const struct instructions *c,
		    const struct code_block *b, struct source_cache *sources, struct table *t)
{
	const struct code_row *rows = c->rows + b->first, *before = NULL;
	uint64_t hottest = 0;
	size_t last = SIZE_MAX, next = 0; /* rows with samples: up to, and from this one on */

	for (size_t i = 0; i < b->n; i++)
		if (rows[i].time.self.value > hottest)
			hottest = rows[i].time.self.value;
	for (size_t i = 0; i < b->n; i++) {
		if (is_used(&rows[i]))
			last = i;
		while (next < b->n && (next < i || !is_used(&rows[next])))
			next++;
		if ((last == SIZE_MAX || i - last > a->context) &&
		    (next == b->n || next - i > a->context))
			continue;
		if (before && before != &rows[i - 1]) {
			annotate_add_gap(t);
			before = NULL;
		}
		if (add_instruction(a, c, &rows[i], before, hottest, sources, t))
			return -ENOMEM;
		before = &rows[i];
	}
	return 0;
}

static void add_title(const struct annotate *a, const struct instructions *c,
		      const struct code_block *b, const struct source_cache *sources,
		      struct buf *out)
{
	const struct profile *p = &a->report.rec->profile;

	buf_addf(out, "\n%s", label_frame(p, function_of(c, b)->frame));
	if (b->inlined)
		buf_addf(out, ", inlined into %s",
			 str(c, b->symbol)[0] ? str(c, b->symbol) : "[unnamed]");
	buf_addf(out, "  %s\n", profile_str(p, module_of(a, b)->path));
	if (str(c, b->note)[0])
		buf_addf(out, "  %s: %s\n",
			 b->n && c->rows[b->first].text ? "not all instructions"
							: "no instructions",
			 str(c, b->note));
	for (size_t i = 0; i < sources->n; i++)
		if (annotate_was_changed(a, &sources->text[i]))
			buf_addf(out,
				 "  %s was changed after it was recorded: lines may be others\n",
				 str(c, sources->file[i]));
}

static int add_block(const struct annotate *a, const struct instructions *c,
		     const struct code_block *b, struct buf *out)
{
	static const struct table_column columns[] = {
		ANNOTATE_COLUMNS,
		{ "ADDRESS", TABLE_RIGHT, TABLE_WHOLE },
		{ "CODE", TABLE_LEFT, TABLE_CUT_END },
	};
	_cleanup_(source_cache_deinit) struct source_cache sources = { .n = 0 };
	_cleanup_table_ struct table table;

	table_init(&table, columns, ARRAY_SIZE(columns));
	if (add_rows(a, c, b, &sources, &table))
		return -ENOMEM;
	add_title(a, c, b, &sources, out);
	return report_add_table(&a->report, &table, out);
}

/* Whether a sample that was selected was in it. */
static bool has_samples(const struct instructions *c, const struct code_block *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (is_used(&c->rows[b->first + i]))
			return true;
	return false;
}

int annotate_code_text(const struct annotate *a, const struct instructions *c, struct buf *out,
		       struct err *err)
{
	int ret = check(a, c, err);

	if (ret)
		return ret;
	report_header(&a->report, c->all.samples, c->all.value, out);
	if (annotate_add_methods(&a->report, out))
		return err_oom(err);
	for (size_t i = 0; i < c->n_blocks; i++)
		if (has_samples(c, &c->blocks[i]) && add_block(a, c, &c->blocks[i], out))
			return err_oom(err);
	if (c->n_more)
		buf_addf(out, "\n  not shown: %s that match; a narrower pattern shows them\n",
			 num_of(c->n_more, "function", "functions").s);
	buf_addch(out, '\n');
	report_footer(&a->report, out);
	return buf_failed(out) ? err_oom(err) : 0;
}

/* ---- JSON and CSV ---- */

static void json_row(const struct annotate *a, const struct instructions *c,
		     const struct code_row *row, struct json *j)
{
	json_object_begin(j, NULL);
	json_u64(j, "address", row->address);
	json_u64(j, "size", row->size);
	json_str(j, "instruction", str(c, row->text));
	json_str(j, "path", str(c, row->file));
	json_u64(j, "line", row->line);
	annotate_json_time(a, &c->all, &row->time, j);
	json_object_end(j);
}

static void json_block(const struct annotate *a, const struct instructions *c,
		       const struct code_block *b, struct json *j)
{
	const struct profile *p = &a->report.rec->profile;

	json_object_begin(j, NULL);
	json_str(j, "label", label_frame(p, function_of(c, b)->frame));
	json_str(j, "module", profile_str(p, module_of(a, b)->path));
	json_str(j, "build_id", profile_str(p, module_of(a, b)->build_id));
	if (b->inlined)
		json_str(j, "inlined_into", str(c, b->symbol));
	else
		json_nil(j, "inlined_into");
	json_u64(j, "start", b->start);
	json_u64(j, "end", b->end);
	if (str(c, b->note)[0])
		json_str(j, "note", str(c, b->note));
	else
		json_nil(j, "note");
	json_array_begin(j, "instructions");
	for (size_t i = 0; i < b->n; i++)
		json_row(a, c, &c->rows[b->first + i], j);
	json_array_end(j);
	json_object_end(j);
}

int annotate_code_json(const struct annotate *a, const struct instructions *c, struct buf *out,
		       struct err *err)
{
	struct json j = JSON_INIT(out);
	int ret = check(a, c, err);

	if (ret)
		return ret;
	json_object_begin(&j, NULL);
	report_json_summary(&a->report, c->all.samples, c->all.value, &j);
	json_u64(&j, "left_out", c->n_more);
	json_array_begin(&j, "functions");
	for (size_t i = 0; i < c->n_blocks; i++)
		if (has_samples(c, &c->blocks[i]))
			json_block(a, c, &c->blocks[i], &j);
	json_array_end(&j);
	json_object_end(&j);
	buf_addch(out, '\n');
	return buf_failed(out) ? err_oom(err) : 0;
}

static void csv_row(const struct annotate *a, const struct instructions *c,
		    const struct code_block *b, const struct code_row *row, struct buf *out)
{
	const struct profile *p = &a->report.rec->profile;
	const struct group_total *t = &row->time;
	const char *const text[] = { profile_str(p, module_of(a, b)->path),
				     label_frame(p, function_of(c, b)->frame), str(c, row->text),
				     str(c, row->file) };

	for (size_t i = 0; i < ARRAY_SIZE(text); i++) {
		field_add_csv((struct field_value) { .str = text[i] }, out);
		buf_addch(out, ',');
		if (i == 1)
			buf_addf(out, "%" PRIu64 ",", row->address);
	}
	buf_addf(out,
		 "%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
		 "\r\n",
		 row->line, t->self.samples, t->total.samples, t->self.value, t->total.value,
		 view_self_error(&t->self, &t->total, &c->all), view_sum_error(&t->total, &c->all));
}

int annotate_code_csv(const struct annotate *a, const struct instructions *c, struct buf *out,
		      struct err *err)
{
	const struct report *r = &a->report;
	int ret = check(a, c, err);

	if (ret)
		return ret;
	buf_addf(out,
		 "module,label,address,instruction,path,line,samples,total_samples,%s,%s,%s,%s\r\n",
		 field_value_key(r, "self").s, field_value_key(r, "total").s,
		 field_value_key(r, "self_error").s, field_value_key(r, "total_error").s);
	for (size_t i = 0; i < c->n_blocks; i++)
		for (size_t k = 0; has_samples(c, &c->blocks[i]) && k < c->blocks[i].n; k++)
			csv_row(a, c, &c->blocks[i], &c->rows[c->blocks[i].first + k], out);
	return buf_failed(out) ? err_oom(err) : 0;
}
