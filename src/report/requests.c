/* SPDX-License-Identifier: GPL-2.0-only */
/* Requests for people, as JSON and as CSV: a row for each kind. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "report/fields.h"
#include "report/report.h"
#include "ui/summary.h"
#include "ui/table.h"
#include "view/gvl_pairs.h"
#include "view/request.h"
#include "view/request_stats.h"

static int build(const struct report *r, struct request_stats *ret, struct err *err)
{
	int failed = request_stats_build(&r->rec->profile, r->filter, ret);

	if (failed)
		return err_code(err, failed);
	return ret->samples ? 0 : report_nothing(r, err);
}

static size_t rows_shown(const struct report *r, const struct request_stats *stats)
{
	return stats->n_rows < r->limit ? stats->n_rows : (size_t)r->limit;
}

/* Whether it is known what threads did all the time, and whom they kept waiting. */
static bool with_states(const struct report *r)
{
	return !strcmp(profile_event(&r->rec->profile)->name, EVENT_WALL);
}

static uint64_t cpu_time(const struct request_row *row)
{
	uint64_t sum = row->states[STATE_USER];

	profile_add(&sum, row->states[STATE_SYSTEM]);
	return sum;
}

/* ---- text ---- */

static void add_length(const struct request_row *row, uint64_t ns, struct table *t)
{
	table_cell(t, "%s", row->requests ? num_duration(ns).s : "-");
}

static void add_row(const struct report *r, const struct request_stats *stats,
		    const struct request_row *row, struct table *t)
{
	const struct profile *p = &r->rec->profile;
	const enum value_unit unit = profile_event(p)->unit;

	table_cell(t, "%s", num_column(unit, row->value).s);
	table_cell(t, "%s", num_percent(row->value, stats->value).s);
	table_cell(t, "%s",
		   row->gc_unknown && !row->gc_value ? "?"
						     : num_percent(row->gc_value, row->value).s);
	table_cell(t, "%s", row->requests ? num_count(row->requests).s : "-");
	table_cell(t, "%s", row->requests ? num_value(unit, row->value / row->requests).s : "-");
	add_length(row, row->p50, t);
	add_length(row, row->p95, t);
	add_length(row, row->p99, t);
	table_cell(t, "%s", request_label(p, row->kind));
	table_cell(t, "%s", request_framework(p, row->kind));
}

static int add_table(const struct report *r, const struct request_stats *stats, struct buf *out)
{
	static const struct table_column columns[] = {
		{ "TIME", TABLE_RIGHT, TABLE_WHOLE },
		{ "TIME%", TABLE_RIGHT, TABLE_WHOLE },
		{ "GC%", TABLE_RIGHT, TABLE_WHOLE },
		{ "SEEN", TABLE_RIGHT, TABLE_WHOLE },
		{ "EACH", TABLE_RIGHT, TABLE_WHOLE },
		{ "P50", TABLE_RIGHT, TABLE_WHOLE },
		{ "P95", TABLE_RIGHT, TABLE_WHOLE },
		{ "P99", TABLE_RIGHT, TABLE_WHOLE },
		{ "REQUEST", TABLE_LEFT, TABLE_CUT_MIDDLE },
		{ "FRAMEWORK", TABLE_LEFT, TABLE_WHOLE },
	};
	_cleanup_table_ struct table table;

	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < rows_shown(r, stats); i++)
		add_row(r, stats, &stats->rows[i], &table);
	return report_add_table(r, &table, out);
}

/* With waits: what others waited for the GVL matters more than what each took. */
static int add_wall_table(const struct report *r, const struct request_stats *stats,
			  struct buf *out)
{
	static const struct table_column columns[] = {
		{ "TIME", TABLE_RIGHT, TABLE_WHOLE }, { "CPU", TABLE_RIGHT, TABLE_WHOLE },
		{ "GVL", TABLE_RIGHT, TABLE_WHOLE },  { "CAUSED", TABLE_RIGHT, TABLE_WHOLE },
		{ "SEEN", TABLE_RIGHT, TABLE_WHOLE }, { "P50", TABLE_RIGHT, TABLE_WHOLE },
		{ "P99", TABLE_RIGHT, TABLE_WHOLE },  { "REQUEST", TABLE_LEFT, TABLE_CUT_MIDDLE },
	};
	_cleanup_table_ struct table table;

	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < rows_shown(r, stats); i++) {
		const struct request_row *row = &stats->rows[i];

		table_cell(&table, "%s", num_column(UNIT_NS, row->value).s);
		table_cell(&table, "%s", num_column(UNIT_NS, cpu_time(row)).s);
		table_cell(&table, "%s", num_column(UNIT_NS, row->states[STATE_GVL]).s);
		table_cell(&table, "%s", num_column(UNIT_NS, row->gvl_caused).s);
		table_cell(&table, "%s", row->requests ? num_count(row->requests).s : "-");
		add_length(row, row->p50, &table);
		add_length(row, row->p99, &table);
		table_cell(&table, "%s", request_label(&r->rec->profile, row->kind));
	}
	return report_add_table(r, &table, out);
}

/* What their time was. */
static int add_states_table(const struct report *r, const struct request_stats *stats,
			    struct buf *out)
{
	struct table_column columns[TABLE_MAX_COLUMNS];
	_cleanup_table_ struct table table;
	uint8_t shown[STATES];
	uint32_t noted = 0;
	size_t n;

	report_note_all_states(stats->states, stats->value, &noted);
	for (size_t i = 0; i < rows_shown(r, stats); i++)
		report_note_states(stats->rows[i].states, stats->rows[i].value, &noted);
	n = report_choose_states(noted, shown, ARRAY_SIZE(columns) - 1);
	for (size_t i = 0; i < n; i++)
		columns[i] = (struct table_column) { state_word(shown[i]), TABLE_RIGHT,
						     TABLE_WHOLE };
	columns[n] = (struct table_column) { "REQUEST", TABLE_LEFT, TABLE_CUT_MIDDLE };
	table_init(&table, columns, n + 1);
	for (size_t i = 0; i < rows_shown(r, stats); i++) {
		const struct request_row *row = &stats->rows[i];

		for (size_t k = 0; k < n; k++)
			table_cell(&table, "%s", num_percent(row->states[shown[k]], row->value).s);
		table_cell(&table, "%s", request_label(&r->rec->profile, row->kind));
	}
	return report_add_table(r, &table, out);
}

/* ---- who waited for whom ---- */

/* Rows of pairs in a table for people. */
#define PAIRS_SHOWN 10

/* Returns 1, 0 if they cannot be told, or -ENOMEM. */
static int build_pairs(const struct report *r, struct gvl_pairs *ret)
{
	int failed;

	if (!r->gvl_pairs || !with_states(r))
		return 0;
	failed = gvl_pairs_build(&r->rec->profile, r->filter, ret);
	return failed == -E2BIG ? 0 : failed ? failed : 1;
}

static int add_pairs(const struct report *r, struct buf *out)
{
	static const struct table_column columns[] = {
		{ "WAITED", TABLE_RIGHT, TABLE_WHOLE },
		{ "REQUEST", TABLE_LEFT, TABLE_CUT_MIDDLE },
		{ "WHILE THE GVL WAS HELD BY", TABLE_LEFT, TABLE_CUT_MIDDLE },
	};
	_cleanup_gvl_pairs_ struct gvl_pairs pairs = GVL_PAIRS_INIT;
	const struct profile *p = &r->rec->profile;
	_cleanup_table_ struct table table;
	int known;

	table_init(&table, columns, ARRAY_SIZE(columns));
	known = build_pairs(r, &pairs);
	if (known < 0 || !pairs.n)
		return known < 0 ? known : 0;
	for (size_t i = 0; i < pairs.n && i < PAIRS_SHOWN; i++) {
		table_cell(&table, "%s", num_column(UNIT_NS, pairs.v[i].ns).s);
		table_cell(&table, "%s", request_label(p, pairs.v[i].waiting));
		table_cell(&table, "%s", request_label(p, pairs.v[i].holding));
	}
	buf_addch(out, '\n');
	return report_add_table(r, &table, out);
}

static int add_pairs_json(const struct report *r, struct json *j)
{
	_cleanup_gvl_pairs_ struct gvl_pairs pairs = GVL_PAIRS_INIT;
	const struct profile *p = &r->rec->profile;
	const int known = build_pairs(r, &pairs);

	if (known <= 0)
		return known;
	json_array_begin(j, "gvl_waits");
	for (size_t i = 0; i < pairs.n; i++) {
		json_object_begin(j, NULL);
		json_str(j, "request", request_label(p, pairs.v[i].waiting));
		json_str(j, "held_by", request_label(p, pairs.v[i].holding));
		json_u64(j, "waited_ns", pairs.v[i].ns);
		json_object_end(j);
	}
	json_array_end(j);
	return 0;
}

int report_requests(const struct report *r, struct buf *out, struct err *err)
{
	_cleanup_request_stats_ struct request_stats stats = REQUEST_STATS_INIT;
	const bool wall = with_states(r);
	int ret;

	ret = build(r, &stats, err);
	if (ret)
		return ret;
	report_header(r, stats.samples, stats.value, out);
	ret = wall ? add_wall_table(r, &stats, out) : add_table(r, &stats, out);
	report_hidden(stats.n_rows, rows_shown(r, &stats), out);
	if (!ret && wall) {
		buf_addstr(out, "\n");
		ret = add_states_table(r, &stats, out);
		if (!ret)
			ret = add_pairs(r, out);
		buf_addstr(out,
			   "  GVL: waited for the GVL; CAUSED: others waited for it meanwhile\n");
	}
	if (ret)
		return err_oom(err);
	buf_addstr(out, wall ? "  P50, P99: how long requests took\n"
			     : "  P50, P95, P99: from the first sample of a request to its last; "
			       "requests without a sample are not seen\n");
	if (!wall)
		report_gc_unknown(r, stats.gc_unknown, stats.value, out);
	report_footer(r, stats.samples, out);
	return buf_failed(out) ? err_oom(err) : 0;
}

/* ---- for programs ---- */

static void row_json(const struct report *r, const struct request_row *row, struct json *j)
{
	const struct profile *p = &r->rec->profile;

	json_object_begin(j, NULL);
	json_str(j, "request", request_label(p, row->kind));
	json_str(j, "framework", request_framework(p, row->kind));
	json_u64(j, "seen", row->requests);
	json_u64(j, "samples", row->samples);
	json_u64(j, field_value_key(r, "self").s, row->value);
	json_u64(j, field_value_key(r, "gc").s, row->gc_value);
	json_u64(j, field_value_key(r, "gc_unknown").s, row->gc_unknown);
	json_u64(j, "p50_ns", row->p50);
	json_u64(j, "p95_ns", row->p95);
	json_u64(j, "p99_ns", row->p99);
	if (with_states(r)) {
		json_u64(j, "gvl_caused_ns", row->gvl_caused);
		json_object_begin(j, "states");
		for (size_t i = 0; i < STATES; i++)
			json_u64(j, state_word(i), row->states[i]);
		json_object_end(j);
	}
	json_object_end(j);
}

int report_requests_json(const struct report *r, struct buf *out, struct err *err)
{
	_cleanup_request_stats_ struct request_stats stats = REQUEST_STATS_INIT;
	struct json j = JSON_INIT(out);
	int ret = build(r, &stats, err);

	if (ret)
		return ret;
	json_object_begin(&j, NULL);
	json_str(&j, "format", "rbpf-report");
	json_u64(&j, "version", 1);
	report_json_summary(r, stats.samples, stats.value, &j);
	json_array_begin(&j, "requests");
	for (size_t i = 0; i < rows_shown(r, &stats); i++)
		row_json(r, &stats.rows[i], &j);
	json_array_end(&j);
	if (add_pairs_json(r, &j))
		return err_oom(err);
	json_object_end(&j);
	buf_addch(out, '\n');
	return buf_failed(out) ? err_oom(err) : 0;
}

static void csv_header(const struct report *r, struct buf *out)
{
	buf_addf(out, "request,framework,seen,samples,%s,", field_value_key(r, "self").s);
	buf_addf(out, "%s,p50_ns,p95_ns,p99_ns", field_value_key(r, "gc").s);
	if (with_states(r)) {
		buf_addstr(out, ",gvl_caused_ns");
		for (size_t i = 0; i < STATES; i++)
			buf_addf(out, ",%s_ns", state_word(i));
	}
	buf_addf(out, ",%s", field_value_key(r, "gc_unknown").s);
	buf_addstr(out, "\r\n");
}

static void row_csv(const struct report *r, const struct request_row *row, struct buf *out)
{
	const struct profile *p = &r->rec->profile;
	const uint64_t numbers[] = { row->requests, row->samples, row->value, row->gc_value,
				     row->p50,	    row->p95,	  row->p99,   row->gvl_caused };
	const size_t n = ARRAY_SIZE(numbers) - !with_states(r);

	field_add_csv((struct field_value) { .str = request_label(p, row->kind) }, out);
	buf_addch(out, ',');
	field_add_csv((struct field_value) { .str = request_framework(p, row->kind) }, out);
	for (size_t i = 0; i < n; i++) {
		buf_addch(out, ',');
		buf_add_u64(out, numbers[i]);
	}
	for (size_t i = 0; i < STATES && with_states(r); i++) {
		buf_addch(out, ',');
		buf_add_u64(out, row->states[i]);
	}
	buf_addch(out, ',');
	buf_add_u64(out, row->gc_unknown);
	buf_addstr(out, "\r\n");
}

int report_requests_csv(const struct report *r, struct buf *out, struct err *err)
{
	_cleanup_request_stats_ struct request_stats stats = REQUEST_STATS_INIT;
	int ret = build(r, &stats, err);

	if (ret)
		return ret;
	csv_header(r, out);
	for (size_t i = 0; i < rows_shown(r, &stats); i++)
		row_csv(r, &stats.rows[i], out);
	return buf_failed(out) ? err_oom(err) : 0;
}
