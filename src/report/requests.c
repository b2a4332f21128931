/* SPDX-License-Identifier: GPL-2.0-only */
/* Requests for people, as JSON and as CSV: a row for each kind; longest.c has single ones. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
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
	uint64_t sum = 0;

	for (size_t i = 0; i < STATE_WAIT_CPU; i++)
		profile_add(&sum, row->states[i]);
	return sum;
}

/* ---- text ---- */

/* The unit of the first bound is left out where it is that of the second one: "11-19 ms". */
void report_add_length(const struct request_length *l, struct table *t)
{
	const struct num_text least = num_duration_at_least(l->least);
	const struct num_text most = num_duration_at_most(l->most);
	const char *unit = strchr(least.s, ' '), *other = strchr(most.s, ' ');
	const bool same = unit && other && !strcmp(unit, other);
	const int len = same ? (int)(unit - least.s) : (int)strlen(least.s);

	if (!strcmp(least.s, num_duration_at_least(l->most).s))
		table_cell(t, "%s", least.s);
	else if (l->least < l->most / 4)
		table_cell(t, "<%s", most.s);
	else
		table_cell(t, "%.*s-%s", len, least.s, most.s);
}

static void add_length(const struct request_row *row, const struct request_length *l,
		       struct table *t)
{
	if (!row->requests || (!l->least && !l->most))
		table_cell(t, "-");
	else if (!l->most)
		table_cell(t, "%s", num_duration_at_least(l->least).s);
	else
		report_add_length(l, t);
}

/*
 * What one of those that were seen took. Each has a tick at least: if they take but one or two,
 * others had none, and what all of them took is the time of fewer.
 */
static void add_each(const struct profile *p, const struct request_row *row, struct table *t)
{
	const struct profile_event *event = profile_event(p);
	const uint64_t each = row->requests ? row->value / row->requests : 0;
	const uint64_t period = event->period ? profile_period_of(p, row->samples, row->value) : 0;

	if (!row->requests)
		table_cell(t, "-");
	else
		table_cell(t, "%s%s", each / 2 < period ? "<" : "", num_value(event->unit, each).s);
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
	add_each(p, row, t);
	add_length(row, &row->p50, t);
	add_length(row, &row->p95, t);
	add_length(row, &row->p99, t);
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
		table_cell(&table, "%s",
			   r->by_state ? "-" : num_column(UNIT_NS, row->gvl_caused).s);
		table_cell(&table, "%s", row->requests ? num_count(row->requests).s : "-");
		add_length(row, &row->p50, &table);
		add_length(row, &row->p99, &table);
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

/* Said where it is at least this part of all waiting for the GVL: one of so many. */
#define BETWEEN_SHOWN 20

static void add_between(const struct gvl_pairs *pairs, struct buf *out)
{
	if (!pairs->between || pairs->between < pairs->waited / BETWEEN_SHOWN)
		return;
	buf_addf(out,
		 "  GVL of [no request]: %s between requests of a thread, when the next may have "
		 "come; not in its P50, P99\n",
		 num_seconds(pairs->between).s);
}

static int add_pairs_table(const struct report *r, const struct gvl_pairs *pairs, struct buf *out)
{
	static const struct table_column columns[] = {
		{ "WAITED", TABLE_RIGHT, TABLE_WHOLE },
		{ "REQUEST", TABLE_LEFT, TABLE_CUT_MIDDLE },
		{ "WHILE THE GVL WAS HELD BY", TABLE_LEFT, TABLE_CUT_MIDDLE },
	};
	const struct profile *p = &r->rec->profile;
	_cleanup_table_ struct table table;

	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < pairs->n && i < PAIRS_SHOWN; i++) {
		table_cell(&table, "%s", num_column(UNIT_NS, pairs->v[i].ns).s);
		table_cell(&table, "%s", request_label(p, pairs->v[i].waiting));
		table_cell(&table, "%s", request_label(p, pairs->v[i].holding));
	}
	buf_addch(out, '\n');
	return report_add_table(r, &table, out);
}

/* With what says how to read GVL and CAUSED. */
static int add_pairs(const struct report *r, struct buf *out)
{
	_cleanup_gvl_pairs_ struct gvl_pairs pairs = GVL_PAIRS_INIT;
	int known = build_pairs(r, &pairs);

	if (known < 0)
		return known;
	if (pairs.n && add_pairs_table(r, &pairs, out))
		return -ENOMEM;
	buf_addstr(out, "  GVL: waited for the GVL; CAUSED: others waited for it meanwhile\n");
	add_between(&pairs, out);
	return 0;
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
	json_u64(j, "gvl_between_ns", pairs.between);
	return 0;
}

/* ---- what the columns say, and what they do not ---- */

/* A line for each server. */
static void add_parts(const struct report *r, const struct request_stats *stats, struct buf *out)
{
	const struct profile *p = &r->rec->profile;

	for (size_t i = 0; i < rows_shown(r, stats); i++) {
		const char *server = request_framework(p, stats->rows[i].kind);
		bool said = !stats->rows[i].in_parts;

		for (size_t k = 0; k < i && !said; k++)
			said = stats->rows[k].in_parts &&
			       !strcmp(request_framework(p, stats->rows[k].kind), server);
		if (!said)
			buf_addf(out,
				 "  requests of %s: in parts, before and after what runs in them; "
				 "SEEN counts parts\n",
				 server);
	}
}

static void add_notes(const struct report *r, const struct request_stats *stats, struct buf *out)
{
	const char *percentiles = with_states(r) ? "P50, P99" : "P50, P95, P99";

	buf_addstr(out,
		   with_states(r)
			   ? "  SEEN: with a tick or a wait; requests without one are missing\n"
			   : "  SEEN: with a sample; requests without one are missing\n");
	if (profile_has_waits(&r->rec->profile))
		buf_addf(out, "  %s: how long those took: at least and at most; <: at most\n",
			 percentiles);
	else
		buf_addf(out,
			 "  %s: how long those took at least, from the first sample to the last; "
			 "-: it has one\n",
			 percentiles);
	add_parts(r, stats, out);
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
	}
	if (ret)
		return err_oom(err);
	add_notes(r, &stats, out);
	if (!wall)
		report_gc_unknown(r, stats.gc_unknown, stats.value, out);
	ret = report_longest(r, out, err);
	if (ret)
		return ret;
	report_footer(r, out);
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
	if (row->in_parts)
		json_bool(j, "in_parts", true);
	json_u64(j, "p50_ns", row->p50.least);
	json_u64(j, "p50_most_ns", row->p50.most);
	json_u64(j, "p95_ns", row->p95.least);
	json_u64(j, "p95_most_ns", row->p95.most);
	json_u64(j, "p99_ns", row->p99.least);
	json_u64(j, "p99_most_ns", row->p99.most);
	if (with_states(r)) {
		if (!r->by_state)
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
	ret = report_longest_json(r, &j, err);
	if (ret)
		return ret;
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
	buf_addstr(out, ",p50_most_ns,p95_most_ns,p99_most_ns,in_parts\r\n");
}

static void row_csv(const struct report *r, const struct request_row *row, struct buf *out)
{
	const struct profile *p = &r->rec->profile;
	const uint64_t numbers[] = { row->requests,  row->samples,   row->value,    row->gc_value,
				     row->p50.least, row->p95.least, row->p99.least };
	const uint64_t last[] = { row->gc_unknown, row->p50.most, row->p95.most, row->p99.most,
				  row->in_parts };

	field_add_csv((struct field_value) { .str = request_label(p, row->kind) }, out);
	buf_addch(out, ',');
	field_add_csv((struct field_value) { .str = request_framework(p, row->kind) }, out);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		buf_addch(out, ',');
		buf_add_u64(out, numbers[i]);
	}
	if (with_states(r)) {
		buf_addch(out, ',');
		if (!r->by_state)
			buf_add_u64(out, row->gvl_caused);
	}
	for (size_t i = 0; i < STATES && with_states(r); i++) {
		buf_addch(out, ',');
		buf_add_u64(out, row->states[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(last); i++) {
		buf_addch(out, ',');
		buf_add_u64(out, last[i]);
	}
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
