/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/diff.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "base/json.h"
#include "report/fields.h"
#include "ui/summary.h"
#include "ui/table.h"
#include "view/filter.h"

const char *diff_normalize_name(size_t normalize)
{
	static const char *const words[] = {
		[COMPARE_TOTAL] = "total",
		[COMPARE_TIME] = "time",
		[COMPARE_NONE] = "none",
	};

	return normalize < ARRAY_SIZE(words) ? words[normalize] : NULL;
}

static const char *text_of(const struct diff *d, uint32_t text)
{
	return intern_get(&d->comparison->texts, text, NULL);
}

static const struct compare_sum *sums(const struct diff *d, const struct compare_row *row)
{
	return d->options.self ? row->self : row->total;
}

/* "new", "gone", or "" if it is on both sides. */
static const char *status_of(const struct diff *d, const struct compare_row *row)
{
	const struct compare_sum *s = sums(d, row);

	if (!s[COMPARE_BEFORE].samples == !s[COMPARE_AFTER].samples)
		return "";
	return s[COMPARE_AFTER].samples ? "new" : "gone";
}

static size_t rows_shown(const struct diff *d)
{
	size_t n = d->comparison->n_rows;

	return n < d->limit ? n : (size_t)d->limit;
}

/* ---- text ---- */

/* A value as the normalisation has it: "+12.3%", "+0.12 cores", "+1.20s". */
static struct num_text shown(const struct diff *d, double v, bool sign)
{
	const char *plus = !sign ? "" : v < 0 ? "-" : "+";
	double size = sign && v < 0 ? -v : v;
	enum value_unit unit = d->comparison->event.unit;
	struct num_text ret;

	if (d->options.normalize == COMPARE_TOTAL)
		snprintf(ret.s, sizeof(ret.s), "%s%.1f%%", plus, size * 100);
	else if (d->options.normalize == COMPARE_TIME)
		snprintf(ret.s, sizeof(ret.s), "%s%.3f/s", plus, size);
	else
		snprintf(ret.s, sizeof(ret.s), "%s%.40s", plus, num_column(unit, (uint64_t)size).s);
	return ret;
}

static void add_row(const struct diff *d, const struct compare_row *row, struct table *t)
{
	const char *path = text_of(d, row->path);

	if (!row->significant)
		table_dim_row(t);
	table_cell(t, "%s", shown(d, row->delta, true).s);
	table_cell(t, "%s", shown(d, row->low, true).s);
	table_cell(t, "%s", shown(d, row->high, true).s);
	table_cell(t, "%s", shown(d, row->value[COMPARE_BEFORE], false).s);
	table_cell(t, "%s", shown(d, row->value[COMPARE_AFTER], false).s);
	/* Of waits, which are exact, no difference is none by chance. */
	table_cell(t, "%s",
		   row->significant || row->low == row->high ? status_of(d, row) : "chance?");
	table_cell(t, "%s%s", text_of(d, row->label), row->kind == FRAME_CFUNC ? " (C)" : "");
	if (row->line)
		table_cell(t, "%s:%" PRIu32, path, row->line);
	else
		table_cell(t, "%s", path);
}

static void add_sides(const struct diff *d, struct buf *out)
{
	static const char *const titles[] = { "before", "after" };
	static const char *const how[] = {
		[COMPARE_TOTAL] = "shares of all time",
		[COMPARE_TIME] = "per second of the recordings",
		[COMPARE_NONE] = "not normalised",
	};
	const struct comparison *c = d->comparison;
	enum value_unit unit = c->event.unit;

	for (size_t i = 0; i < COMPARE_SIDES; i++)
		buf_addf(out, "%s:\n%s", titles[i], buf_str(&d->sides[i]));
	buf_addf(out, "%s times, %s: %s", d->options.self ? "self" : "total",
		 how[d->options.normalize], num_value(unit, c->all[COMPARE_BEFORE].value).s);
	buf_addf(out, " and %s\n", num_value(unit, c->all[COMPARE_AFTER].value).s);
}

static void add_conclusion(const struct diff *d, struct buf *out)
{
	const bool requests = d->comparison->by_request;
	size_t significant = 0, n = d->comparison->n_rows;

	if (d->rule) {
		buf_addf(out, "  %zu of %s by more than '%s' allows\n", rows_shown(d),
			 requests ? num_of(n, "request has grown", "requests have grown").s
				  : num_of(n, "method has grown", "methods have grown").s,
			 d->rule);
		return;
	}
	for (size_t i = 0; i < n; i++)
		significant += d->comparison->rows[i].significant;
	if (rows_shown(d) < n)
		buf_addf(out, "  %s hidden by -n\n",
			 num_of(n - rows_shown(d), "more line", "more lines").s);
	buf_addf(out, "  %s of %s by more than chance (95 %% intervals)\n",
		 num_count(significant).s,
		 requests ? num_of(n, "request differs", "requests differ").s
			  : num_of(n, "method differs", "methods differ").s);
}

int diff_text(const struct diff *d, struct buf *out, struct err *err)
{
	const bool requests = d->comparison->by_request;
	const struct table_column columns[] = {
		{ "DELTA", TABLE_RIGHT, TABLE_WHOLE },
		{ "FROM", TABLE_RIGHT, TABLE_WHOLE },
		{ "TO", TABLE_RIGHT, TABLE_WHOLE },
		{ "BEFORE", TABLE_RIGHT, TABLE_WHOLE },
		{ "AFTER", TABLE_RIGHT, TABLE_WHOLE },
		{ "", TABLE_LEFT, TABLE_WHOLE },
		{ requests ? "REQUEST" : "METHOD", TABLE_LEFT, TABLE_CUT_MIDDLE },
		{ requests ? "FRAMEWORK" : "WHERE", TABLE_LEFT, TABLE_CUT_START },
	};
	_cleanup_table_ struct table table;

	table_init(&table, columns, ARRAY_SIZE(columns));
	add_sides(d, out);
	for (size_t i = 0; i < rows_shown(d); i++)
		add_row(d, &d->comparison->rows[i], &table);
	if (table.n_cells && table_render(&table, d->width, d->color, out))
		return err_oom(err);
	add_conclusion(d, out);
	return buf_failed(out) ? err_oom(err) : 0;
}

/* ---- JSON and CSV ---- */

static void json_side(const struct diff *d, const char *key, enum compare_side side, struct json *j)
{
	const struct comparison *c = d->comparison;

	json_object_begin(j, key);
	json_u64(j, "duration_ns", c->duration_ns[side]);
	json_u64(j, "samples", c->all[side].samples);
	json_u64(j, value_unit_name(c->event.unit), c->all[side].value);
	json_array_begin(j, "recordings");
	json_values(j, &d->objects[side]);
	json_array_end(j);
	json_object_end(j);
}

static void json_row(const struct diff *d, const struct compare_row *row, struct json *j)
{
	const struct compare_sum *s = sums(d, row);
	const char *unit = value_unit_name(d->comparison->event.unit);
	char key[40];

	json_object_begin(j, NULL);
	if (d->comparison->by_request) {
		json_str(j, "request", text_of(d, row->label));
		json_str(j, "framework", text_of(d, row->path));
	} else {
		json_str(j, "kind", frame_kind_name(row->kind));
		json_str(j, "label", text_of(d, row->label));
		json_str(j, "path", text_of(d, row->path));
		json_u64(j, "line", row->line);
	}
	json_double(j, "delta", row->delta);
	json_double(j, "low", row->low);
	json_double(j, "high", row->high);
	json_double(j, "before", row->value[COMPARE_BEFORE]);
	json_double(j, "after", row->value[COMPARE_AFTER]);
	json_bool(j, "significant", row->significant);
	json_str(j, "status", status_of(d, row));
	json_u64(j, "before_samples", s[COMPARE_BEFORE].samples);
	json_u64(j, "after_samples", s[COMPARE_AFTER].samples);
	snprintf(key, sizeof(key), "before_%s", unit);
	json_u64(j, key, s[COMPARE_BEFORE].value);
	snprintf(key, sizeof(key), "after_%s", unit);
	json_u64(j, key, s[COMPARE_AFTER].value);
	json_object_end(j);
}

int diff_json(const struct diff *d, struct buf *out, struct err *err)
{
	struct json j = JSON_INIT(out);

	json_object_begin(&j, NULL);
	json_str(&j, "normalize", diff_normalize_name(d->options.normalize));
	json_str(&j, "time", d->options.self ? "self" : "total");
	json_str(&j, "event", d->comparison->event.name);
	json_side(d, "before", COMPARE_BEFORE, &j);
	json_side(d, "after", COMPARE_AFTER, &j);
	json_array_begin(&j, "rows");
	for (size_t i = 0; i < rows_shown(d); i++)
		json_row(d, &d->comparison->rows[i], &j);
	json_array_end(&j);
	json_object_end(&j);
	buf_addch(out, '\n');
	return buf_failed(out) ? err_oom(err) : 0;
}

int diff_csv(const struct diff *d, struct buf *out, struct err *err)
{
	const char *unit = value_unit_name(d->comparison->event.unit);
	const bool requests = d->comparison->by_request;

	buf_addf(out,
		 "%s,delta,low,high,before,after,significant,status,"
		 "before_samples,after_samples,before_%s,after_%s\r\n",
		 requests ? "request,framework" : "kind,label,path,line", unit, unit);
	for (size_t i = 0; i < rows_shown(d); i++) {
		const struct compare_row *row = &d->comparison->rows[i];
		const struct compare_sum *s = sums(d, row);

		if (!requests)
			buf_addf(out, "%s,", frame_kind_name(row->kind));
		field_add_csv((struct field_value) { .str = text_of(d, row->label) }, out);
		buf_addch(out, ',');
		field_add_csv((struct field_value) { .str = text_of(d, row->path) }, out);
		if (!requests)
			buf_addf(out, ",%" PRIu32, row->line);
		buf_addf(out, ",%.9g,%.9g,%.9g,%.9g,%.9g,%d,%s", row->delta, row->low, row->high,
			 row->value[COMPARE_BEFORE], row->value[COMPARE_AFTER], row->significant,
			 status_of(d, row));
		buf_addf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\r\n",
			 s[COMPARE_BEFORE].samples, s[COMPARE_AFTER].samples,
			 s[COMPARE_BEFORE].value, s[COMPARE_AFTER].value);
	}
	return buf_failed(out) ? err_oom(err) : 0;
}
