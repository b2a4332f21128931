/* SPDX-License-Identifier: GPL-2.0-only */
/* The waits that were longest, one by one: for people and as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "profile/reason.h"
#include "report/fields.h"
#include "report/report.h"
#include "ui/shell_path.h"
#include "ui/summary.h"
#include "ui/table.h"
#include "view/filter.h"
#include "view/longest_waits.h"
#include "view/owner.h"
#include "view/request.h"

/* Before and after a wait so much of it is drawn: one part of so many. */
#define MARGIN_PART 10

/* None of what passes the filters is listed. */
static int say_none(const struct report *r, const struct longest_waits *list, struct err *err)
{
	const char *but = list->idle	? " but idle ones"
			  : list->joins ? " but for threads to end"
					: "";

	err_set(err, -ENODATA, ERR_EMPTY, "no wait%s of %s passes the filters", but,
		recording_name(r->rec));
	if (list->idle)
		err_hint(err, "'--state idle' shows what threads with nothing to do wait in");
	else if (list->joins)
		err_hint(err, "'--state join' shows where threads wait for others to end");
	return -ENODATA;
}

static int build(const struct report *r, struct longest_waits *ret, struct err *err)
{
	int failed = longest_waits_build(&r->rec->profile, r->filter, &r->from, r->waits,
					 r->by_state, ret, err);

	return failed || ret->n ? failed : say_none(r, ret, err);
}

/* For whom, or for which file: *@n bytes. */
static const char *peer_of(const struct profile *p, const struct longest_wait *wait, size_t *n)
{
	const struct profile_frame *f = &p->frames[wait->frame];

	return wait_label_on(f->reason, profile_str(p, f->name), n);
}

/* ---- text ---- */

/* What waits of a list have, and so what is in the table. */
struct wait_columns {
	bool clock, request, holder, beyond;
};

static struct wait_columns find(const struct report *r, const struct longest_waits *list)
{
	struct wait_columns ret = { .clock = r->rec->profile.meta.start_realtime_ns };

	for (size_t i = 0; i < list->n; i++) {
		ret.request |= list->v[i].request;
		ret.holder |= list->v[i].holder != PROFILE_NONE;
		ret.beyond |= list->v[i].began_before || list->v[i].went_on;
	}
	return ret;
}

/* "disk: production.log, and holds the GVL" */
static void add_reason(const struct profile *p, const struct longest_wait *wait, struct table *t)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	const char *and_gvl = state_and_gvl(wait->state);
	size_t n;
	const char *peer = peer_of(p, wait, &n);

	buf_addstr(&text, state_word(wait->state & STATE_MASK));
	buf_addstr(&text, n ? ": " : "");
	buf_add(&text, peer, n);
	buf_addf(&text, "%s%s", *and_gvl ? ", " : "", and_gvl);
	table_cell(t, "%s", buf_str(&text));
}

/* "worker (tid 43), 98.0%" */
static void add_holder(const struct profile *p, const struct longest_wait *wait, struct table *t)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	if (wait->holder != PROFILE_NONE) {
		owner_label(p, OWNER_THREAD, wait->holder, &text);
		buf_addf(&text, ", %s", num_percent(wait->held_ns, wait->ns).s);
	}
	table_cell(t, "%s", buf_str(&text));
}

static void add_method(const struct report *r, const struct longest_wait *wait, struct table *t)
{
	_cleanup_buf_ struct buf name = BUF_INIT, place = BUF_INIT;

	if (wait->method != PROFILE_NONE) {
		report_frame_name(r, wait->method, &name);
		report_frame_place(r, wait->method, true, &place);
	}
	table_cell(t, "%s", buf_str(&name));
	table_cell(t, "%s", buf_str(&place));
}

static void add_row(const struct report *r, const struct longest_wait *wait,
		    const struct wait_columns *found, struct table *t)
{
	const struct profile *p = &r->rec->profile;
	const uint64_t begin = report_since_start(r, wait->begin_ts);
	_cleanup_buf_ struct buf text = BUF_INIT;

	if (wait->began_before || wait->went_on)
		table_cell(t, "≥%s", num_duration_at_least(wait->ns).s);
	else
		table_cell(t, "%s", num_duration_fine(wait->ns).s);
	report_add_begin(begin, t);
	if (found->clock) {
		report_add_clock(p, begin, &text);
		table_cell(t, "%s", buf_str(&text));
		buf_reset(&text);
	}
	add_reason(p, wait, t);
	if (found->holder)
		add_holder(p, wait, t);
	owner_label(p, OWNER_THREAD, wait->thread, &text);
	table_cell(t, "%s", buf_str(&text));
	if (found->request)
		table_cell(t, "%s", wait->request ? request_label(p, wait->request) : "");
	add_method(r, wait, t);
}

static int add_table(const struct report *r, const struct longest_waits *list,
		     const struct wait_columns *found, struct buf *out)
{
	struct table_column columns[TABLE_MAX_COLUMNS] = {
		{ "WAITED", TABLE_RIGHT, TABLE_WHOLE },
		{ "BEGAN", TABLE_RIGHT, TABLE_WHOLE },
	};
	_cleanup_table_ struct table table;
	size_t n = 2;

	if (found->clock)
		columns[n++] = (struct table_column) { "CLOCK", TABLE_LEFT, TABLE_WHOLE };
	columns[n++] = (struct table_column) { "FOR", TABLE_LEFT, TABLE_CUT_MIDDLE };
	if (found->holder)
		columns[n++] = (struct table_column) { "HELD BY", TABLE_LEFT, TABLE_CUT_MIDDLE };
	columns[n++] = (struct table_column) { "THREAD", TABLE_LEFT, TABLE_CUT_MIDDLE };
	if (found->request)
		columns[n++] = (struct table_column) { "REQUEST", TABLE_LEFT, TABLE_CUT_MIDDLE };
	columns[n++] = (struct table_column) { "METHOD", TABLE_LEFT, TABLE_CUT_MIDDLE };
	columns[n++] = (struct table_column) { "WHERE", TABLE_LEFT, TABLE_CUT_START };
	table_init(&table, columns, n);
	for (size_t i = 0; i < list->n; i++)
		add_row(r, &list->v[i], found, &table);
	return report_add_table(r, &table, out);
}

/* What the list has, and what it has not. */
static void add_notes(const struct report *r, const struct longest_waits *list,
		      const struct wait_columns *found, struct buf *out)
{
	buf_addf(out,
		 "  the longest %s of %s; WAITED is exact; BEGAN: since the start of the "
		 "recording\n",
		 num_count(list->n).s, num_of(list->waits, "wait", "waits").s);
	if (list->idle)
		buf_addf(
			out,
			"  %s of threads with nothing to do left out; '--state idle' shows these\n",
			num_of(list->idle, "wait", "waits").s);
	if (list->joins)
		buf_addf(out, "  %s for threads to end left out; '--state join' shows these\n",
			 num_of(list->joins, "wait", "waits").s);
	if (found->holder)
		buf_addstr(out,
			   "  HELD BY: the thread that had the GVL for most of that time, as far "
			   "as threads were charged with it\n");
	if (found->beyond)
		buf_addstr(out,
			   "  ≥: at least; it began before the recording, or went on after it\n");
	if (!r->rec->report.complete)
		buf_addstr(out,
			   "  the recording was not closed properly: waits at its end may have "
			   "gone on\n");
	if (r->filter && (r->filter->from_ns || r->filter->to_ns))
		buf_addstr(out, "  of a wait that goes beyond --from or --to, all of it\n");
}

/*
 * How to look at what the process did around the first one. What came from a pipe cannot be read
 * again.
 */
static void add_next(const struct report *r, const struct longest_wait *first, struct buf *out)
{
	const struct profile *p = &r->rec->profile;
	const uint64_t margin = first->ns / MARGIN_PART;
	const uint64_t begin = report_since_start(r, first->begin_ts);

	if (!strcmp(r->rec->path, "-"))
		return;
	buf_addstr(out, "  around the first one: rbpf timeline -i ");
	shell_path_add(r->rec->path, out);
	buf_addf(out, " -p %" PRIu32, p->processes[p->threads[first->thread].process].pid);
	report_add_between(begin > margin ? begin - margin : 0,
			   report_since_start(r, first->begin_ts + first->ns + margin), out);
	buf_addstr(out, " > wait.html\n");
}

int report_waits(const struct report *r, struct buf *out, struct err *err)
{
	_cleanup_longest_waits_ struct longest_waits list = LONGEST_WAITS_INIT;
	struct wait_columns found;
	int ret;

	ret = build(r, &list, err);
	if (ret)
		return ret;
	found = find(r, &list);
	report_header(r, list.selected.samples, list.selected.value, out);
	if (add_table(r, &list, &found, out))
		return err_oom(err);
	add_notes(r, &list, &found, out);
	add_next(r, &list.v[0], out);
	report_quality(r, out);
	return buf_failed(out) ? err_oom(err) : 0;
}

/* ---- for programs ---- */

static void reason_json(const struct profile *p, const struct longest_wait *wait, struct json *j)
{
	_cleanup_buf_ struct buf peer = BUF_INIT;
	size_t n;
	const char *on = peer_of(p, wait, &n);

	buf_add(&peer, on, n);
	json_str(j, "state", state_word(wait->state & STATE_MASK));
	json_u64(j, "gvl_held", !!(wait->state & STATE_HELD));
	json_u64(j, "gvl_turn", !!(wait->state & STATE_TURN));
	json_str(j, "peer", buf_str(&peer));
	if (wait->holder == PROFILE_NONE)
		return;
	json_u64(j, "held_by_tid", p->threads[wait->holder].tid);
	json_str(j, "held_by", profile_str(p, p->threads[wait->holder].name));
	json_u64(j, "held_by_ns", wait->held_ns);
}

static void row_json(const struct report *r, const struct longest_wait *wait, struct json *j)
{
	const struct profile *p = &r->rec->profile;
	const struct profile_thread *thread = &p->threads[wait->thread];
	const uint64_t begin = report_since_start(r, wait->begin_ts);
	const uint64_t start = p->meta.start_realtime_ns;
	struct report by_line = *r;

	by_line.by = FLAT_BY_LINE;
	json_object_begin(j, NULL);
	json_u64(j, "length_ns", wait->ns);
	if (wait->began_before)
		json_bool(j, "began_before", true);
	if (wait->went_on)
		json_bool(j, "went_on", true);
	json_u64(j, "from_ns", begin);
	json_u64(j, "clock_ns", start ? start + begin : 0);
	reason_json(p, wait, j);
	json_u64(j, "pid", p->processes[thread->process].pid);
	json_u64(j, "tid", thread->tid);
	json_str(j, "thread", profile_str(p, thread->name));
	json_str(j, "request", wait->request ? request_label(p, wait->request) : "");
	json_str(j, "framework", wait->request ? request_framework(p, wait->request) : "");
	if (wait->method != PROFILE_NONE)
		report_json_frame(&by_line, wait->method, j);
	json_object_end(j);
}

int report_waits_json(const struct report *r, struct buf *out, struct err *err)
{
	_cleanup_longest_waits_ struct longest_waits list = LONGEST_WAITS_INIT;
	struct json j = JSON_INIT(out);
	int ret;

	ret = build(r, &list, err);
	if (ret)
		return ret;
	json_object_begin(&j, NULL);
	json_str(&j, "format", "rbpf-report");
	json_u64(&j, "version", 1);
	report_json_summary(r, list.selected.samples, list.selected.value, &j);
	json_u64(&j, "selected_waits", list.waits);
	json_u64(&j, "idle_left_out", list.idle);
	json_u64(&j, "joins_left_out", list.joins);
	json_array_begin(&j, "waits");
	for (size_t i = 0; i < list.n; i++)
		row_json(r, &list.v[i], &j);
	json_array_end(&j);
	json_object_end(&j);
	buf_addch(out, '\n');
	return buf_failed(out) ? err_oom(err) : 0;
}

static const enum report_field method_fields[] = { FIELD_KIND, FIELD_LABEL,  FIELD_PATH,
						   FIELD_LINE, FIELD_MODULE, FIELD_APPROXIMATE };

static void holder_csv(const struct profile *p, const struct longest_wait *wait, struct buf *out)
{
	if (wait->holder == PROFILE_NONE) {
		buf_addstr(out, ",,,");
		return;
	}
	buf_addf(out, "%" PRIu32 ",", p->threads[wait->holder].tid);
	field_add_csv((struct field_value) { .str = profile_str(p, p->threads[wait->holder].name) },
		      out);
	buf_addf(out, ",%" PRIu64 ",", wait->held_ns);
}

static void row_csv(const struct report *r, const struct longest_wait *wait, struct buf *out)
{
	const struct profile *p = &r->rec->profile;
	const struct profile_thread *thread = &p->threads[wait->thread];
	const uint64_t begin = report_since_start(r, wait->begin_ts);
	const uint64_t start = p->meta.start_realtime_ns;
	_cleanup_buf_ struct buf peer = BUF_INIT, scratch = BUF_INIT;
	size_t n;
	const char *on = peer_of(p, wait, &n);
	struct report by_line = *r;

	by_line.by = FLAT_BY_LINE;
	buf_add(&peer, on, n);
	buf_addf(out, "%" PRIu64 ",%d,%d,%" PRIu64 ",%" PRIu64 ",%s,%d,%d,", wait->ns,
		 wait->began_before, wait->went_on, begin, start ? start + begin : 0,
		 state_word(wait->state & STATE_MASK), !!(wait->state & STATE_HELD),
		 !!(wait->state & STATE_TURN));
	field_add_csv((struct field_value) { .str = buf_str(&peer) }, out);
	buf_addch(out, ',');
	holder_csv(p, wait, out);
	buf_addf(out, "%" PRIu32 ",%" PRIu32 ",", p->processes[thread->process].pid, thread->tid);
	field_add_csv((struct field_value) { .str = profile_str(p, thread->name) }, out);
	buf_addch(out, ',');
	if (wait->request)
		field_add_csv((struct field_value) { .str = request_label(p, wait->request) }, out);
	buf_addch(out, ',');
	if (wait->request)
		field_add_csv((struct field_value) { .str = request_framework(p, wait->request) },
			      out);
	for (size_t i = 0; i < ARRAY_SIZE(method_fields); i++) {
		buf_addch(out, ',');
		if (wait->method != PROFILE_NONE)
			field_add_csv(
				field_of_frame(&by_line, wait->method, method_fields[i], &scratch),
				out);
	}
	buf_addstr(out, "\r\n");
}

int report_waits_csv(const struct report *r, struct buf *out, struct err *err)
{
	_cleanup_longest_waits_ struct longest_waits list = LONGEST_WAITS_INIT;
	int ret = build(r, &list, err);

	if (ret)
		return ret;
	buf_addstr(out, "length_ns,began_before,went_on,from_ns,clock_ns,state,gvl_held,gvl_turn,"
			"peer,held_by_tid,held_by,held_by_ns,pid,tid,thread,request,framework");
	for (size_t i = 0; i < ARRAY_SIZE(method_fields); i++)
		buf_addf(out, ",%s", field_key(r, method_fields[i]).s);
	buf_addstr(out, "\r\n");
	for (size_t i = 0; i < list.n; i++)
		row_csv(r, &list.v[i], out);
	return buf_failed(out) ? err_oom(err) : 0;
}
