/* SPDX-License-Identifier: GPL-2.0-only */
/* The report for people: a header, a table, and what to think of it. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/utf8.h"
#include "report/number_columns.h"
#include "report/report.h"
#include "ui/summary.h"
#include "ui/table.h"
#include "view/filter.h"
#include "view/gem.h"
#include "view/label.h"
#include "view/request.h"
#include "view/native.h"
#include "view/owner.h"
#include "view/peer.h"
#include "view/state.h"
#include "view/trace.h"

int report_nothing(const struct report *r, struct err *err)
{
	return err_set(err, -ENODATA, ERR_EMPTY, "no sample of %s passes the filters",
		       recording_name(r->rec));
}

/* Remove the rows whose name --match does not match. */
static int keep_matching(const struct report *r, struct flat *flat)
{
	_cleanup_buf_ struct buf name = BUF_INIT;
	size_t n = 0;

	if (!r->match)
		return 0;
	for (size_t i = 0; i < flat->n_rows && !buf_failed(&name); i++) {
		buf_reset(&name);
		report_row_name(r, r->by, &flat->rows[i], &name);
		if (!regexec(r->match, buf_str(&name), 0, NULL, 0))
			flat->rows[n++] = flat->rows[i];
	}
	flat->n_rows = n;
	return buf_failed(&name) ? -ENOMEM : 0;
}

int report_flat(const struct report *r, struct flat *ret, struct err *err)
{
	const struct profile *p = &r->rec->profile;
	int failed;

	if (r->by == FLAT_BY_TIME)
		failed = flat_build_time(p, &r->from, r->filter, r->sort, ret, err);
	else
		failed = err_code(err, flat_build(p, r->filter, r->by, r->sort, ret));
	if (!failed && p->whole_waits)
		failed = wait_percentiles(p, &r->from, r->filter, r->by, ret, err);
	if (failed)
		return failed;
	if (!ret->samples)
		return report_nothing(r, err);
	return keep_matching(r, ret) ? err_oom(err) : 0;
}

bool report_is_vague(const struct view_sum *s)
{
	return view_sum_is_few(s, REPORT_VAGUE_SAMPLES);
}

void report_frame_name(const struct report *r, uint32_t frame, struct buf *out)
{
	const struct profile *p = &r->rec->profile;

	buf_addstr(out, label_frame(p, frame));
	if (p->frames[frame].kind == FRAME_CFUNC)
		buf_addstr(out, " (C)");
}

void report_frame_place(const struct report *r, uint32_t frame, bool line_of_execution,
			struct buf *out)
{
	const struct profile *p = &r->rec->profile;
	const struct profile_frame *f = &p->frames[frame];

	/*
	 * File and line of a C function are its caller's: they say where it was called, not where
	 * it is.
	 */
	if (f->file && (f->kind != FRAME_CFUNC || line_of_execution)) {
		buf_addstr(out, profile_str(p, f->file));
		if (line_of_execution && f->line) {
			buf_addch(out, ':');
			label_line(f, out);
		} else if (!line_of_execution && f->func_line) {
			buf_addf(out, ":%" PRIu32, f->func_line);
		}
	} else if (f->module != PROFILE_NONE) {
		buf_addstr(out, label_basename(profile_str(p, p->modules[f->module].path)));
	}
}

/* "ruby 3.3.6", or "ruby 3.1.2, 3.3.6": the versions of all processes, each once. */
static void add_versions(const struct profile *p, struct buf *out)
{
	uint32_t seen[4];
	size_t n = 0, i, j;

	for (i = 0; i < p->n_processes; i++) {
		uint32_t version = p->processes[i].ruby_version;

		for (j = 0; j < n && seen[j] != version; j++)
			;
		if (!version || j < n)
			continue;
		if (n == ARRAY_SIZE(seen)) {
			buf_addstr(out, ", ...");
			return;
		}
		buf_addf(out, "%s%s", n ? ", " : ", ruby ", profile_str(p, version));
		seen[n++] = version;
	}
}

void report_header(const struct report *r, uint64_t samples, uint64_t value, struct buf *out)
{
	const struct profile *p = &r->rec->profile;
	const enum value_unit unit = profile_event(p)->unit;

	/* The name may be that of a file that somebody sent. */
	utf8_sanitise(out, r->rec->path, strlen(r->rec->path));
	buf_addf(out, ": %s, %s, %s", num_duration(recording_duration(r->rec)).s,
		 num_of(p->n_processes, "process", "processes").s,
		 num_of(p->n_samples, "sample", "samples").s);
	if (p->meta.frequency && event_is_cpu(profile_event(p)))
		buf_addf(out, " at %s", num_frequency(p->totals.lowest_hz, p->meta.frequency).s);
	buf_addf(out, " (%s)", profile_event(p)->name);
	add_versions(p, out);
	buf_addch(out, '\n');
	if (samples != p->n_samples)
		buf_addf(out, "filtered: %s of %s (%s), %s\n", num_value(unit, value).s,
			 num_value(unit, p->value).s, num_percent(value, p->value).s,
			 num_of(samples, "sample", "samples").s);
}

void report_native(const struct report *r, struct buf *out)
{
	const struct profile *p = &r->rec->profile;
	struct native_stacks native;
	size_t i;

	if (native_stacks_count(p, &native)) {
		out->failed = true;
		return;
	}
	if (!native.samples)
		return;
	buf_addf(out, "  native stacks: %s of %s complete (%s)", num_count(native.complete).s,
		 num_count(native.samples).s, num_percent(native.complete, native.samples).s);
	for (i = 0; i < native.n_gaps; i++) {
		buf_addf(out, "%s%s %s",
			 i ? ", " : "; gaps: ", frame_reason_why(native.gaps[i].reason),
			 num_count(native.gaps[i].samples).s);
	}
	buf_addch(out, '\n');
}

struct summary_recording report_summary_recording(const struct report *r)
{
	return (struct summary_recording) { .duration_ns = recording_duration(r->rec),
					    .frequency = r->rec->profile.meta.frequency,
					    .waits = profile_has_waits(&r->rec->profile) };
}

void report_quality(const struct report *r, struct buf *out)
{
	const struct profile *p = &r->rec->profile;
	const struct summary_recording recording = report_summary_recording(r);

	if (p->meta.command && *p->meta.command)
		buf_addf(out, "  command: %s\n", p->meta.command);
	summary_defects(&p->totals, &recording, out);
}

/* Less of the time than this, one part of so many, makes a program one that waits. */
#define BUSY_PART 5

static const char *advice_for_few(const struct report *r)
{
	const struct profile *p = &r->rec->profile;
	const uint64_t cpu_ns = p->totals.cpu_kernel_ns;

	if (cpu_ns && cpu_ns < recording_duration(r->rec) / BUSY_PART)
		return profile_has_waits(p)
			       ? "it waited most of the time: see 'rbpf report --states'"
			       : "it waited most of the time: 'rbpf record --mode states' tells "
				 "for what";
	return p->totals.lowest_hz ? "record longer or with a higher --max-cost"
				   : "record longer or with a higher -F";
}

/* More samples make waits no more exact than they are. */
static void warn_few_samples(const struct report *r, struct buf *out)
{
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	struct view_sum all;

	if (view_selection_new(&r->rec->profile, r->filter, &sel)) {
		out->failed = true;
		return;
	}
	all = view_selected_sum(sel);
	if (view_sum_is_few(&all, REPORT_FEW_SAMPLES))
		buf_addf(out, "  few samples: %s in all; %s\n",
			 num_count(all.samples - all.exact_samples).s, advice_for_few(r));
}

void report_footer(const struct report *r, struct buf *out)
{
	report_quality(r, out);
	report_native(r, out);
	warn_few_samples(r, out);
}

struct headings {
	const char *name;
	const char *place; /* NULL: there is no such column */
};

static const struct headings headings[] = {
	[FLAT_BY_FUNCTION] = { "METHOD", "WHERE" },
	[FLAT_BY_LINE] = { "METHOD", "WHERE" },
	[FLAT_BY_FILE] = { "FILE", NULL },
	[FLAT_BY_THREAD] = { "THREAD", "PROCESS" },
	[FLAT_BY_PROCESS] = { "PROCESS", "COMMAND" },
	[FLAT_BY_KIND] = { "KIND", NULL },
	[FLAT_BY_CONTAINER] = { "CONTAINER", "PROCESSES" },
	[FLAT_BY_RUBY] = { "RUBY", "PROCESSES" },
	[FLAT_BY_MODULE] = { "MODULE", NULL },
	[FLAT_BY_GEM] = { "GEM", "ORIGIN" },
	[FLAT_BY_STATE] = { "STATE", "WHAT A THREAD DOES" },
	[FLAT_BY_PEER] = { "PEER", "WHAT A THREAD DOES" },
	[FLAT_BY_REQUEST] = { "REQUEST", "FRAMEWORK" },
	[FLAT_BY_TRACE] = { "TRACE", "REQUEST" },
	[FLAT_BY_TIME] = { "FROM", "CLOCK" },
};

void report_row_name(const struct report *r, enum flat_by by, const struct flat_row *row,
		     struct buf *out)
{
	const struct profile *p = &r->rec->profile;
	const struct profile_frame *f;
	struct gem gem;

	switch (by) {
	case FLAT_BY_FUNCTION:
	case FLAT_BY_LINE:
		report_frame_name(r, row->frame, out);
		return;
	case FLAT_BY_FILE:
		f = &p->frames[row->frame];
		if (f->file)
			buf_addstr(out, profile_str(p, f->file));
		else if (f->module != PROFILE_NONE)
			buf_addstr(out, profile_str(p, p->modules[f->module].path));
		else
			buf_addf(out, "[%s]", frame_kind_name(f->kind));
		return;
	case FLAT_BY_THREAD:
		owner_label(p, OWNER_THREAD, row->id, out);
		return;
	case FLAT_BY_PROCESS:
		owner_label(p, OWNER_PROCESS, row->id, out);
		return;
	case FLAT_BY_CONTAINER:
		label_container(p, row->id, out);
		return;
	case FLAT_BY_RUBY:
		label_ruby(p, row->id, out);
		return;
	case FLAT_BY_KIND:
		buf_addstr(out, frame_kind_name(row->id));
		return;
	case FLAT_BY_STATE:
		buf_addstr(out, state_word(row->id & STATE_MASK));
		return;
	case FLAT_BY_PEER:
		peer_name(p, row, out);
		return;
	case FLAT_BY_MODULE:
		label_package(p, row->frame, out);
		return;
	case FLAT_BY_GEM:
		gem_of_frame(p, row->frame, &gem);
		gem_label(&gem, out);
		return;
	case FLAT_BY_REQUEST:
		buf_addstr(out, request_label(p, row->id));
		return;
	case FLAT_BY_TRACE:
		trace_label(p, row->id, out);
		return;
	case FLAT_BY_TIME:
		buf_addf(out, "%" PRIu32 "s", row->id);
		return;
	}
}

/* Rounded up: --from drops what is before the time that it is given. */
void report_add_clock(const struct profile *p, uint64_t ns, struct buf *out)
{
	const uint64_t at_ns = p->meta.start_realtime_ns + ns;
	const uint64_t ms = (at_ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;
	time_t at = (time_t)(ms / 1000);
	char text[40];
	struct tm tm;

	if (p->meta.start_realtime_ns && localtime_r(&at, &tm) &&
	    strftime(text, sizeof(text), "%H:%M:%S", &tm))
		buf_addf(out, "%s.%03u", text, (unsigned int)(ms % 1000));
}

/* The buffers of the kernel may hold samples of just before the start. */
uint64_t report_since_start(const struct report *r, uint64_t ts)
{
	const uint64_t start = r->rec->profile.meta.start_monotonic_ns;

	return ts > start ? ts - start : 0;
}

void report_add_begin(uint64_t ns, struct table *t)
{
	const uint64_t ms = ns / NSEC_PER_MSEC;

	table_cell(t, "%" PRIu64 ".%03us", ms / 1000, (unsigned int)(ms % 1000));
}

/* What is at --to is left out. */
void report_add_between(uint64_t from_ns, uint64_t to_ns, struct buf *out)
{
	const uint64_t from = from_ns / NSEC_PER_USEC, to = to_ns / NSEC_PER_USEC + 1;

	buf_addf(out, " --from %" PRIu64 ".%06us --to %" PRIu64 ".%06us", from / 1000000,
		 (unsigned int)(from % 1000000), to / 1000000, (unsigned int)(to % 1000000));
}

void report_row_place(const struct report *r, enum flat_by by, const struct flat_row *row,
		      struct buf *out)
{
	const struct profile *p = &r->rec->profile;
	struct gem gem;

	switch (by) {
	case FLAT_BY_FUNCTION:
	case FLAT_BY_LINE:
		report_frame_place(r, row->frame, by == FLAT_BY_LINE, out);
		return;
	case FLAT_BY_THREAD:
		if (row->id < p->n_threads)
			owner_label(p, OWNER_PROCESS, p->threads[row->id].process, out);
		return;
	case FLAT_BY_CONTAINER:
	case FLAT_BY_RUBY:
		if (!row->n_processes)
			return;
		label_process(p, row->process, out);
		buf_addf(out, " (pid %" PRIu32 ")", p->processes[row->process].pid);
		if (row->n_processes > 1)
			buf_addf(out, " and %s more", num_count(row->n_processes - 1).s);
		return;
	case FLAT_BY_PROCESS:
		if (row->id < p->n_processes)
			buf_addstr(out, profile_str(p, p->processes[row->id].cmdline));
		return;
	case FLAT_BY_GEM:
		gem_of_frame(p, row->frame, &gem);
		buf_addstr(out, gem_origin_word(gem.origin));
		return;
	case FLAT_BY_REQUEST:
		buf_addstr(out, request_framework(p, row->id));
		return;
	case FLAT_BY_TRACE:
		buf_addstr(out, request_label(p, row->request));
		return;
	case FLAT_BY_TIME:
		report_add_clock(p, row->id * (uint64_t)NSEC_PER_SEC, out);
		return;
	case FLAT_BY_STATE:
		buf_addf(out, "%s%s%s", state_text(row->id & STATE_MASK),
			 *state_and_gvl(row->id) ? ", " : "", state_and_gvl(row->id));
		return;
	case FLAT_BY_PEER:
		buf_addstr(out, state_text(peer_state(p, row)));
		return;
	case FLAT_BY_FILE:
	case FLAT_BY_KIND:
	case FLAT_BY_MODULE:
		return;
	}
}

static void add_row(const struct report *r, const struct flat *flat, const struct flat_row *row,
		    unsigned int numbers, struct table *t)
{
	const struct view_sum total = flat_total(row);
	_cleanup_buf_ struct buf text = BUF_INIT;

	if (report_is_vague(&total))
		table_dim_row(t);
	number_cells(r, flat, row, numbers, t);
	report_row_name(r, r->by, row, &text);
	table_cell(t, "%s", buf_str(&text));
	if (!headings[r->by].place)
		return;
	buf_reset(&text);
	report_row_place(r, r->by, row, &text);
	table_cell(t, "%s", buf_str(&text));
}

/* With too few samples in all the footer has said so already. */
static void warn_of_first_row(const struct report *r, const struct flat *flat, struct buf *out)
{
	const struct view_sum all = flat_all(flat);
	struct view_sum top;

	if (!flat->n_rows || view_sum_is_few(&all, REPORT_FEW_SAMPLES))
		return;
	top = r->sort == FLAT_SORT_SELF ? flat_self(flat->rows) : flat_total(flat->rows);
	if (view_sum_is_few(&top, REPORT_FEW_SAMPLES))
		buf_addf(out,
			 "  few samples: the first row has %s; record longer or with a higher -F\n",
			 num_count(top.samples - top.exact_samples).s);
}

void report_hidden(size_t rows, size_t shown, struct buf *out)
{
	if (shown < rows)
		buf_addf(out, "  %s hidden by -n\n",
			 num_of(rows - shown, "more line", "more lines").s);
}

/* Of a path the end tells most. */
static bool place_is_path(enum flat_by by)
{
	return by == FLAT_BY_FUNCTION || by == FLAT_BY_LINE;
}

/* The columns of the table, into @ret; returns how many. */
static size_t columns_of(const struct report *r, const char *title, unsigned int numbers,
			 struct table_column ret[TABLE_MAX_COLUMNS])
{
	size_t n = number_titles(numbers, ret);

	ret[n++] = (struct table_column) { title ? title : headings[r->by].name, TABLE_LEFT,
					   r->by == FLAT_BY_FILE ? TABLE_CUT_START
								 : TABLE_CUT_MIDDLE };
	if (headings[r->by].place)
		ret[n++] = (struct table_column) { headings[r->by].place, TABLE_LEFT,
						   place_is_path(r->by) ? TABLE_CUT_START
									: TABLE_CUT_MIDDLE };
	return n;
}

int report_table(const struct report *r, const struct flat *flat, const char *title,
		 struct buf *out)
{
	const unsigned int numbers = number_columns(r, flat);
	struct table_column columns[TABLE_MAX_COLUMNS];
	size_t n_columns = columns_of(r, title, numbers, columns);
	size_t shown = flat->n_rows < r->limit ? flat->n_rows : (size_t)r->limit;
	_cleanup_table_ struct table table;
	size_t i;
	int ret;

	table_init(&table, columns, n_columns);
	for (i = 0; i < shown; i++)
		add_row(r, flat, &flat->rows[i], numbers, &table);
	ret = report_add_table(r, &table, out);
	if (!ret)
		report_hidden(flat->n_rows, shown, out);
	return ret;
}

/* The time that no row has, where --hide leaves stacks without any frame. */
static void add_unshown(const struct report *r, const struct flat *flat, struct buf *out)
{
	uint64_t shown = 0;

	for (size_t i = 0; i < flat->n_rows; i++)
		shown += flat->rows[i].self_value;
	if (!r->match && r->filter && r->filter->hide && shown < flat->value)
		buf_addf(out, "  %s (%s) in stacks of which all frames are hidden\n",
			 num_value(profile_event(&r->rec->profile)->unit, flat->value - shown).s,
			 num_percent(flat->value - shown, flat->value).s);
}

/* Of which part of the waits it is known who ended them: of all, also where a filter leaves some
 * out. */
static void add_waited(const struct report *r, struct buf *out)
{
	const struct profile *p = &r->rec->profile;

	if (p->waited_ns)
		buf_addf(out,
			 "  who ended them is known of %s of %s of waits (%s); the others went on, "
			 "or their end was not seen\n",
			 num_duration(p->ended_ns).s, num_duration(p->waited_ns).s,
			 num_percent(p->ended_ns, p->waited_ns).s);
}

static int render_flat(const struct report *r, const struct flat *flat, struct buf *out)
{
	int ret;

	report_header(r, flat->samples, flat->value, out);
	ret = report_table(r, flat, NULL, out);
	if (ret)
		return ret;
	add_unshown(r, flat, out);
	report_gc_unknown(r, flat->gc_unknown, flat->value, out);
	add_waited(r, out);
	report_footer(r, out);
	warn_of_first_row(r, flat, out);
	return buf_failed(out) ? -ENOMEM : 0;
}

int report_text(const struct report *r, struct buf *out, struct err *err)
{
	_cleanup_flat_ struct flat flat = FLAT_INIT;
	int ret;

	ret = report_flat(r, &flat, err);
	if (ret)
		return ret;
	return render_flat(r, &flat, out) ? err_oom(err) : 0;
}
