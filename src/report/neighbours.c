/* SPDX-License-Identifier: GPL-2.0-only */
/* Callers and callees of methods: as text, JSON and CSV. */
#include <errno.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "report/fields.h"
#include "report/report.h"
#include "ui/summary.h"
#include "ui/table.h"
#include "view/filter.h"
#include "view/neighbours.h"

/* A pattern may match every method there is. */
#define MAX_METHODS 5

static int build(const struct report *r, struct neighbours *ret, struct err *err)
{
	enum group_by by = r->by == FLAT_BY_LINE ? GROUP_BY_LINE : GROUP_BY_FUNCTION;
	int failed = neighbours_build(&r->rec->profile, r->filter, by, r->method, ret);

	if (failed)
		return err_code(err, failed);
	if (!ret->all.samples)
		return report_nothing(r, err);
	if (!ret->n_methods)
		return err_set(err, -ENODATA, ERR_EMPTY,
			       "no method in %s has a name that matches '%.200s'",
			       recording_name(r->rec), r->method_pattern);
	return 0;
}

static size_t rows_shown(const struct report *r, const struct neighbour_list *list)
{
	return list->n < r->limit ? list->n : (size_t)r->limit;
}

/* ---- text ---- */

static void add_row(const struct report *r, const struct neighbours *n,
		    const struct method_neighbours *m, const struct neighbour *row,
		    const char *none, struct table *t)
{
	enum value_unit unit = profile_event(&r->rec->profile)->unit;
	const struct view_sum sum = { .plain = row->sum };
	_cleanup_buf_ struct buf name = BUF_INIT, place = BUF_INIT;

	if (row->frame == PROFILE_NONE) {
		buf_addstr(&name, none);
	} else {
		report_frame_name(r, row->frame, &name);
		report_frame_place(r, row->frame, r->by == FLAT_BY_LINE, &place);
	}
	if (report_is_vague(&sum))
		table_dim_row(t);
	table_cell(t, "%s", num_column(unit, sum.value).s);
	table_cell(t, "%s", num_percent(sum.value, m->time.total.value).s);
	table_cell(t, "%s", num_percent(sum.value, n->all.value).s);
	table_cell(t, "%s", num_percent(view_sum_error(&sum, &n->all), n->all.value).s);
	table_cell(t, "%s", buf_str(&name));
	table_cell(t, "%s", buf_str(&place));
}

static int add_list(const struct report *r, const struct neighbours *n,
		    const struct method_neighbours *m, const struct neighbour_list *list,
		    bool callers, struct buf *out)
{
	const struct table_column columns[] = {
		{ "TIME", TABLE_RIGHT, TABLE_WHOLE },
		{ "METHOD%", TABLE_RIGHT, TABLE_WHOLE },
		{ "ALL%", TABLE_RIGHT, TABLE_WHOLE },
		{ "+/-", TABLE_RIGHT, TABLE_WHOLE },
		{ callers ? "CALLED BY" : "CALLS", TABLE_LEFT, TABLE_CUT_MIDDLE },
		{ "WHERE", TABLE_LEFT, TABLE_CUT_START },
	};
	_cleanup_table_ struct table table;
	size_t i;
	int ret;

	table_init(&table, columns, ARRAY_SIZE(columns));
	for (i = 0; i < rows_shown(r, list); i++)
		add_row(r, n, m, &list->rows[i], callers ? "[nothing]" : "[itself]", &table);
	ret = report_add_table(r, &table, out);
	report_hidden(list->n, rows_shown(r, list), out);
	return ret;
}

void report_add_method(const struct report *r, const struct neighbours *n,
		       const struct method_neighbours *m, struct buf *out)
{
	enum value_unit unit = profile_event(&r->rec->profile)->unit;
	_cleanup_buf_ struct buf place = BUF_INIT;

	buf_addch(out, '\n');
	report_frame_name(r, m->frame, out);
	report_frame_place(r, m->frame, r->by == FLAT_BY_LINE, &place);
	buf_addf(out, "%s%s", place.len ? "  " : "", buf_str(&place));
	buf_addf(out, "  self %s (%s)  total %s (%s +/- %s)\n",
		 num_column(unit, m->time.self.value).s,
		 num_percent(m->time.self.value, n->all.value).s,
		 num_column(unit, m->time.total.value).s,
		 num_percent(m->time.total.value, n->all.value).s,
		 num_percent(view_sum_error(&m->time.total, &n->all), n->all.value).s);
}

int report_neighbours(const struct report *r, struct buf *out, struct err *err)
{
	_cleanup_neighbours_ struct neighbours n = NEIGHBOURS_INIT;
	size_t i, shown;
	int ret;

	ret = build(r, &n, err);
	if (ret)
		return ret;
	report_header(r, n.all.samples, n.all.value, out);
	shown = n.n_methods < MAX_METHODS ? n.n_methods : MAX_METHODS;
	for (i = 0; i < shown && !ret; i++) {
		const struct method_neighbours *m = &n.methods[i];

		report_add_method(r, &n, m, out);
		if (r->callers)
			ret = add_list(r, &n, m, &m->callers, true, out);
		if (r->callees && !ret)
			ret = add_list(r, &n, m, &m->callees, false, out);
	}
	if (ret)
		return err_oom(err);
	buf_addch(out, '\n');
	if (shown < n.n_methods)
		buf_addf(out, "  %s match, of which those with the most time are shown\n",
			 num_of(n.n_methods, "method", "methods").s);
	report_footer(r, out);
	return buf_failed(out) ? err_oom(err) : 0;
}

/* ---- JSON ---- */

/* What stands for no frame has a kind of its own and is called nothing. */
static void json_frame(const struct report *r, uint32_t frame, struct json *j)
{
	if (frame != PROFILE_NONE) {
		report_json_frame(r, frame, j);
		return;
	}
	json_str(j, "kind", "none");
	json_str(j, "label", "");
	json_str(j, "path", "");
	json_u64(j, "line", 0);
	json_str(j, "module", "");
}

static void json_sum(const struct report *r, const struct neighbours *n, const struct view_sum *sum,
		     struct json *j)
{
	json_u64(j, "total_samples", sum->samples);
	json_u64(j, field_value_key(r, "total").s, sum->value);
	json_u64(j, field_value_key(r, "total_error").s, view_sum_error(sum, &n->all));
}

static void json_list(const struct report *r, const struct neighbours *n, const char *key,
		      const struct neighbour_list *list, struct json *j)
{
	json_array_begin(j, key);
	for (size_t i = 0; i < rows_shown(r, list); i++) {
		const struct view_sum sum = { .plain = list->rows[i].sum };

		json_object_begin(j, NULL);
		json_frame(r, list->rows[i].frame, j);
		json_sum(r, n, &sum, j);
		json_object_end(j);
	}
	json_array_end(j);
}

int report_neighbours_json(const struct report *r, struct buf *out, struct err *err)
{
	_cleanup_neighbours_ struct neighbours n = NEIGHBOURS_INIT;
	struct json j = JSON_INIT(out);
	int ret;

	ret = build(r, &n, err);
	if (ret)
		return ret;
	json_object_begin(&j, NULL);
	report_json_summary(r, n.all.samples, n.all.value, &j);
	json_array_begin(&j, "methods");
	for (size_t i = 0; i < n.n_methods; i++) {
		const struct method_neighbours *m = &n.methods[i];

		json_object_begin(&j, NULL);
		json_frame(r, m->frame, &j);
		json_u64(&j, "samples", m->time.self.samples);
		json_u64(&j, field_value_key(r, "self").s, m->time.self.value);
		json_sum(r, &n, &m->time.total, &j);
		if (r->callers)
			json_list(r, &n, "callers", &m->callers, &j);
		if (r->callees)
			json_list(r, &n, "callees", &m->callees, &j);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	buf_addch(out, '\n');
	return buf_failed(out) ? err_oom(err) : 0;
}

/* ---- CSV ---- */

static const enum report_field frame_fields[] = { FIELD_KIND, FIELD_LABEL, FIELD_PATH, FIELD_LINE,
						  FIELD_MODULE };

static void csv_row(const struct report *r, const struct neighbours *n, const char *relation,
		    uint32_t frame, const struct view_sum *sum, struct buf *out)
{
	_cleanup_buf_ struct buf scratch = BUF_INIT;

	buf_addf(out, "%s,", relation);
	if (frame == PROFILE_NONE)
		buf_addstr(out, "none,,,0,,");
	for (size_t i = 0; frame != PROFILE_NONE && i < ARRAY_SIZE(frame_fields); i++) {
		field_add_csv(field_of_frame(r, frame, frame_fields[i], &scratch), out);
		buf_addch(out, ',');
	}
	buf_addf(out, "%llu,%llu,%llu\r\n", (unsigned long long)sum->samples,
		 (unsigned long long)sum->value, (unsigned long long)view_sum_error(sum, &n->all));
}

static void csv_list(const struct report *r, const struct neighbours *n, const char *relation,
		     const struct neighbour_list *list, struct buf *out)
{
	for (size_t i = 0; i < rows_shown(r, list); i++) {
		const struct view_sum sum = { .plain = list->rows[i].sum };

		csv_row(r, n, relation, list->rows[i].frame, &sum, out);
	}
}

int report_neighbours_csv(const struct report *r, struct buf *out, struct err *err)
{
	_cleanup_neighbours_ struct neighbours n = NEIGHBOURS_INIT;
	int ret;

	ret = build(r, &n, err);
	if (ret)
		return ret;
	buf_addf(out, "relation,kind,label,path,line,module,total_samples,%s,%s\r\n",
		 field_value_key(r, "total").s, field_value_key(r, "total_error").s);
	for (size_t i = 0; i < n.n_methods; i++) {
		const struct method_neighbours *m = &n.methods[i];

		csv_row(r, &n, "method", m->frame, &m->time.total, out);
		if (r->callers)
			csv_list(r, &n, "caller", &m->callers, out);
		if (r->callees)
			csv_list(r, &n, "callee", &m->callees, out);
	}
	return buf_failed(out) ? err_oom(err) : 0;
}
