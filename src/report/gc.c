/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Garbage collection for people: how much, of what, caused by which methods, and in whose time.
 *
 * In the tables of parts GC% is the share of all collection, and CPU% that of the CPU time of the
 * same process or thread: what it would gain if it did not have to collect. Of another event, such
 * as wall, the column has its name: WALL%.
 */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "report/report.h"
#include "ui/summary.h"
#include "ui/table.h"
#include "view/gc.h"

int report_gc_build(const struct report *r, struct gc_report *ret, struct err *err)
{
	int failed = gc_report_build(&r->rec->profile, r->filter, r->by, r->sort, ret);

	if (failed)
		return err_code(err, failed);
	return ret->all.samples ? 0 : report_nothing(r, err);
}

void report_gc_unknown(const struct report *r, uint64_t unknown, uint64_t all, struct buf *out)
{
	if (unknown)
		buf_addf(out,
			 "  GC unknown for %s (%s), as it is not known who collects: "
			 "'rbpf doctor -p PID' says more\n",
			 num_value(profile_event(&r->rec->profile)->unit, unknown).s,
			 num_percent(unknown, all).s);
}

/* What shares of all that was selected are called: "CPU%", by the event. */
struct share_title {
	char s[EVENT_MAX_NAME + sizeof("%")];
};

static struct share_title share_title(const struct report *r)
{
	const char *event = profile_event(&r->rec->profile)->name;
	struct share_title ret;
	size_t n = 0;

	for (; event[n] && n < EVENT_MAX_NAME; n++)
		ret.s[n] = event[n] >= 'a' && event[n] <= 'z' ? (char)(event[n] - 'a' + 'A')
							      : event[n];
	strcpy(ret.s + n, "%");
	return ret;
}

/* The cells of TIME, GC% and the share of all. */
static void add_numbers(const struct gc_report *gc, enum value_unit unit, uint64_t value,
			uint64_t of, struct table *t)
{
	table_cell(t, "%s", num_column(unit, value).s);
	table_cell(t, "%s", num_percent(value, gc->gc.value).s);
	table_cell(t, "%s", num_percent(value, of).s);
}

static int add_phases(const struct report *r, const struct gc_report *gc, struct buf *out)
{
	const struct share_title share = share_title(r);
	const struct table_column columns[] = {
		{ "TIME", TABLE_RIGHT, TABLE_WHOLE },
		{ "GC%", TABLE_RIGHT, TABLE_WHOLE },
		{ share.s, TABLE_RIGHT, TABLE_WHOLE },
		{ "PHASE", TABLE_LEFT, TABLE_WHOLE },
	};
	enum value_unit unit = profile_event(&r->rec->profile)->unit;
	_cleanup_table_ struct table table;
	unsigned int phase;

	table_init(&table, columns, ARRAY_SIZE(columns));
	for (phase = GC_NONE + 1; phase < GC_PHASE_COUNT; phase++) {
		if (!gc->phases[phase].samples)
			continue;
		add_numbers(gc, unit, gc->phases[phase].value, gc->all.value, &table);
		table_cell(&table, "%s", gc_phase_name(phase));
	}
	buf_addch(out, '\n');
	return report_add_table(r, &table, out);
}

static int add_causes(const struct report *r, const struct gc_report *gc, struct buf *out)
{
	int ret;

	buf_addch(out, '\n');
	ret = report_table(r, &gc->causes, "CAUSED BY", out);
	if (gc->uncaused.samples)
		buf_addf(out, "  %s (%s) below no Ruby method\n",
			 num_column(profile_event(&r->rec->profile)->unit, gc->uncaused.value).s,
			 num_percent(gc->uncaused.value, gc->gc.value).s);
	return ret;
}

/* Processes or threads. @all has the value of each in all, by id. */
static int add_collectors(const struct report *r, const struct gc_report *gc, enum flat_by by,
			  const struct flat *flat, const uint64_t *all, struct buf *out)
{
	const struct share_title share = share_title(r);
	const struct table_column columns[] = {
		{ "TIME", TABLE_RIGHT, TABLE_WHOLE },
		{ "GC%", TABLE_RIGHT, TABLE_WHOLE },
		{ share.s, TABLE_RIGHT, TABLE_WHOLE },
		{ by == FLAT_BY_THREAD ? "THREAD" : "PROCESS", TABLE_LEFT, TABLE_CUT_MIDDLE },
		{ by == FLAT_BY_THREAD ? "PROCESS" : "COMMAND", TABLE_LEFT, TABLE_CUT_MIDDLE },
	};
	size_t shown = flat->n_rows < r->limit ? flat->n_rows : (size_t)r->limit;
	enum value_unit unit = profile_event(&r->rec->profile)->unit;
	_cleanup_table_ struct table table;
	size_t i;
	int ret;

	table_init(&table, columns, ARRAY_SIZE(columns));
	for (i = 0; i < shown; i++) {
		const struct flat_row *row = &flat->rows[i];
		_cleanup_buf_ struct buf name = BUF_INIT, place = BUF_INIT;

		add_numbers(gc, unit, row->self_value, all[row->id], &table);
		report_row_name(r, by, row, &name);
		table_cell(&table, "%s", buf_str(&name));
		report_row_place(r, by, row, &place);
		table_cell(&table, "%s", buf_str(&place));
	}
	buf_addch(out, '\n');
	ret = report_add_table(r, &table, out);
	report_hidden(flat->n_rows, shown, out);
	return ret;
}

static int add_tables(const struct report *r, const struct gc_report *gc, struct buf *out)
{
	int ret;

	ret = add_phases(r, gc, out);
	if (!ret)
		ret = add_causes(r, gc, out);
	if (!ret && gc->processes.n_rows > 1)
		ret = add_collectors(r, gc, FLAT_BY_PROCESS, &gc->processes, gc->process_value,
				     out);
	if (!ret && gc->threads.n_rows > 1)
		ret = add_collectors(r, gc, FLAT_BY_THREAD, &gc->threads, gc->thread_value, out);
	buf_addch(out, '\n');
	return ret;
}

int report_gc(const struct report *r, struct buf *out, struct err *err)
{
	const struct profile_event *event = profile_event(&r->rec->profile);
	enum value_unit unit = event->unit;
	_cleanup_gc_report_ struct gc_report gc = GC_REPORT_INIT;
	int ret;

	ret = report_gc_build(r, &gc, err);
	if (ret)
		return ret;
	report_header(r, gc.all.samples, gc.all.value, out);
	if (gc_report_is_unknown(&gc))
		buf_addstr(out, "garbage collection: unknown\n");
	else
		buf_addf(out, "garbage collection: %s of %s (%s)\n", num_value(unit, gc.gc.value).s,
			 num_value(unit, gc.all.value).s, num_percent(gc.gc.value, gc.all.value).s);
	report_gc_unknown(r, gc.unknown.value, gc.all.value, out);
	if (gc.gc.samples && add_tables(r, &gc, out))
		return err_oom(err);
	report_footer(r, out);
	if (gc.all.samples >= REPORT_FEW_SAMPLES && gc.gc.samples &&
	    gc.gc.samples < REPORT_FEW_SAMPLES &&
	    (!event_is_exact(event) || event_is_charged(event->name)))
		buf_addf(out, "  few samples: %s of garbage collection\n",
			 num_count(gc.gc.samples).s);
	return buf_failed(out) ? err_oom(err) : 0;
}
