/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/number_columns.h"

#include "report/report.h"
#include "ui/summary.h"
#include "ui/table.h"

/* Columns of a terminal that there must be … */
#define LENGTHS_MIN_WIDTH     100 /* … for WAITS, MEAN and LONGEST; … */
#define PERCENTILES_MIN_WIDTH 80  /* … with percentiles, for these and the ones that matter … */
#define ALL_MIN_WIDTH	      120 /* … and for all of them */

/* In their order. */
enum number_column {
	COLUMN_SELF,
	COLUMN_SELF_SHARE,
	COLUMN_ERROR,
	COLUMN_TOTAL,
	COLUMN_TOTAL_SHARE,
	COLUMN_WAITS,
	COLUMN_MEAN,
	COLUMN_P50,
	COLUMN_P99,
	COLUMN_LONGEST,
	NUMBER_COLUMNS,
};

#define COLUMN(name)	 (1u << COLUMN_##name)
#define COLUMNS_USUAL	 (COLUMN(WAITS) - 1)
#define COLUMNS_LENGTHS	 (COLUMN(WAITS) | COLUMN(MEAN) | COLUMN(LONGEST))
#define COLUMNS_PERCENTS (COLUMN(P50) | COLUMN(P99))

size_t number_titles(unsigned int columns, struct table_column *ret)
{
	static const char *const titles[NUMBER_COLUMNS] = {
		"SELF", "SELF%", "+/-", "TOTAL", "TOTAL%", "WAITS", "MEAN", "P50", "P99", "LONGEST",
	};
	size_t n = 0;

	for (size_t i = 0; i < NUMBER_COLUMNS; i++)
		if (columns >> i & 1)
			ret[n++] = (struct table_column) { titles[i], TABLE_RIGHT, TABLE_WHOLE };
	return n;
}

/* A cell of @column, one of the usual ones. */
static struct num_text usual_cell(const struct flat *flat, const struct flat_row *row,
				  enum value_unit unit, enum number_column column)
{
	switch (column) {
	case COLUMN_SELF:
		return num_column(unit, row->self_value);
	case COLUMN_SELF_SHARE:
		return num_percent(row->self_value, flat->value);
	case COLUMN_ERROR:
		return num_percent(row->self_error, flat->value);
	case COLUMN_TOTAL:
		return num_column(unit, row->total_value);
	default:
		return num_percent(row->total_value, flat->value);
	}
}

static struct num_text length_cell(const struct flat_row *row, enum number_column column)
{
	const struct wait_sum *w = &row->waits;

	if (!w->n)
		return (struct num_text) { "" };
	switch (column) {
	case COLUMN_WAITS:
		return num_count(w->n);
	case COLUMN_MEAN:
		return num_duration_fine(w->ns / w->n);
	case COLUMN_P50:
		return num_duration_fine(row->percentiles.p50);
	case COLUMN_P99:
		return num_duration_fine(row->percentiles.p99);
	default:
		return num_duration_fine(w->longest_ns);
	}
}

void number_cells(const struct report *r, const struct flat *flat, const struct flat_row *row,
		  unsigned int columns, struct table *t)
{
	const enum value_unit unit = profile_event(&r->rec->profile)->unit;

	for (enum number_column i = 0; i < NUMBER_COLUMNS; i++) {
		if (!(columns >> i & 1))
			continue;
		if (i >= COLUMN_WAITS)
			table_cell(t, "%s", length_cell(row, i).s);
		else if (row->unknown)
			table_cell(t, "%s", i == COLUMN_SELF || i == COLUMN_TOTAL ? "unknown" : "");
		else
			table_cell(t, "%s", usual_cell(flat, row, unit, i).s);
	}
}

/*
 * Which columns of numbers rows with percentiles have. Each is of one state, so that TOTAL is SELF
 * once more; that gives way first, and the mean, of which the percentiles tell more. Of waits alone
 * +/- is 0 in all rows.
 */
static unsigned int columns_with_percentiles(const struct report *r, bool exact)
{
	unsigned int columns = COLUMNS_USUAL | COLUMNS_LENGTHS | COLUMNS_PERCENTS;

	if (!r->width || r->width >= ALL_MIN_WIDTH)
		return columns;
	if (r->width < PERCENTILES_MIN_WIDTH)
		return COLUMNS_USUAL;
	columns &= ~(COLUMN(TOTAL) | COLUMN(TOTAL_SHARE) | COLUMN(MEAN));
	return exact ? columns & ~COLUMN(ERROR) : columns;
}

unsigned int number_columns(const struct report *r, const struct flat *flat)
{
	const struct view_sum all = flat_all(flat);
	const bool exact = view_sum_is_exact(&all);

	if (r->rec->profile.whole_waits)
		return columns_with_percentiles(r, exact);
	if (r->rec->profile.with_lengths && (!r->width || r->width >= LENGTHS_MIN_WIDTH) && exact)
		return COLUMNS_USUAL | COLUMNS_LENGTHS;
	return COLUMNS_USUAL;
}
