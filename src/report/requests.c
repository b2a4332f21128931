/* SPDX-License-Identifier: GPL-2.0-only */
/* Requests for people and as JSON: a row for each kind. */
#include <errno.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "report/fields.h"
#include "report/report.h"
#include "ui/summary.h"
#include "ui/table.h"
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

static void add_row(const struct report *r, const struct request_stats *stats,
		    const struct request_row *row, struct table *t)
{
	const struct profile *p = &r->rec->profile;
	const enum value_unit unit = profile_event(p)->unit;

	table_cell(t, "%s", num_column(unit, row->value).s);
	table_cell(t, "%s", num_percent(row->value, stats->value).s);
	table_cell(t, "%s", num_percent(row->gc_value, row->value).s);
	if (row->requests) {
		table_cell(t, "%s", num_count(row->requests).s);
		table_cell(t, "%s", num_value(unit, row->value / row->requests).s);
		table_cell(t, "%s", num_duration(row->p50).s);
		table_cell(t, "%s", num_duration(row->p95).s);
		table_cell(t, "%s", num_duration(row->p99).s);
	} else {
		for (int i = 0; i < 5; i++)
			table_cell(t, "-");
	}
	table_cell(t, "%s", request_label(p, row->kind));
	table_cell(t, "%s", request_framework(p, row->kind));
}

int report_requests(const struct report *r, struct buf *out, struct err *err)
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
	_cleanup_request_stats_ struct request_stats stats = REQUEST_STATS_INIT;
	_cleanup_table_ struct table table;
	size_t shown;
	int ret;

	table_init(&table, columns, ARRAY_SIZE(columns));
	ret = build(r, &stats, err);
	if (ret)
		return ret;
	shown = rows_shown(r, &stats);
	report_header(r, stats.samples, stats.value, out);
	for (size_t i = 0; i < shown; i++)
		add_row(r, &stats, &stats.rows[i], &table);
	if (table_render(&table, r->width, r->color, out))
		return err_oom(err);
	report_hidden(stats.n_rows, shown, out);
	buf_addstr(out, "  P50, P95, P99: from the first sample of a request to its last; requests "
			"without a sample are not seen\n");
	report_footer(r, stats.samples, out);
	return buf_failed(out) ? err_oom(err) : 0;
}

int report_requests_json(const struct report *r, struct buf *out, struct err *err)
{
	const struct profile *p = &r->rec->profile;
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
	for (size_t i = 0; i < rows_shown(r, &stats); i++) {
		const struct request_row *row = &stats.rows[i];

		json_object_begin(&j, NULL);
		json_str(&j, "request", request_label(p, row->kind));
		json_str(&j, "framework", request_framework(p, row->kind));
		json_u64(&j, "seen", row->requests);
		json_u64(&j, "samples", row->samples);
		json_u64(&j, field_value_key(r, "self").s, row->value);
		json_u64(&j, field_value_key(r, "gc").s, row->gc_value);
		json_u64(&j, "p50_ns", row->p50);
		json_u64(&j, "p95_ns", row->p95);
		json_u64(&j, "p99_ns", row->p99);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	buf_addch(out, '\n');
	return buf_failed(out) ? err_oom(err) : 0;
}
