/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How each thread spent its time, or those of each owner, or all of them each second, as a table
 * and as JSON.
 */
#include <errno.h>
#include <inttypes.h>
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
#include "view/filter.h"
#include "view/owner.h"
#include "view/thread_series.h"
#include "view/thread_states.h"

/*
 * Beside those of the states: ELAPSED, SUM, gvl-held, THREAD and PROCESS; FROM, CLOCK, TIME and
 * gvl-held.
 */
#define OTHER_COLUMNS 5

_Static_assert(STATES + OTHER_COLUMNS <= TABLE_MAX_COLUMNS, "each state can have a column");

static bool by_time(const struct report *r)
{
	return r->by == FLAT_BY_TIME;
}

/* Whose rows there are, if not those of seconds: without --by those of threads. */
static enum owner_kind owners_of(const struct report *r)
{
	enum owner_kind kind;

	return flat_by_owner(r->by, &kind) ? kind : OWNER_THREAD;
}

static int build(const struct report *r, struct thread_states_table *ret, struct err *err)
{
	const struct profile *p = &r->rec->profile;
	const enum owner_kind kind = owners_of(r);
	int failed = by_time(r) ? second_states_build(p, r->filter, ret)
				: thread_states_build(p, r->filter, ret);

	if (!failed && !by_time(r) && (kind != OWNER_THREAD || p->series))
		failed = thread_states_by_owner(p, kind, ret);
	if (failed)
		return err_code(err, failed);
	return ret->n ? 0 : report_nothing(r, err);
}

static void note_parts(const uint64_t ns[STATES], uint64_t sum_ns, unsigned int parts,
		       uint32_t *shown)
{
	for (size_t i = 0; i < STATES; i++)
		if (ns[i] && ns[i] >= sum_ns / parts)
			*shown |= 1u << i;
}

void report_note_all_states(const uint64_t ns[STATES], uint64_t sum_ns, uint32_t *shown)
{
	note_parts(ns, sum_ns, 1000, shown);
}

void report_note_states(const uint64_t ns[STATES], uint64_t sum_ns, uint32_t *shown)
{
	note_parts(ns, sum_ns, 100, shown);
}

size_t report_choose_states(uint32_t noted, uint8_t shown[STATES], size_t room)
{
	size_t n = 0;

	for (size_t i = 0; i < STATES && n < room; i++)
		if (noted >> i & 1)
			shown[n++] = (uint8_t)i;
	return n;
}

/* Where nothing passed, as in a second before a program began, there are no shares. */
static void add_share(struct table *table, uint64_t part, uint64_t whole)
{
	table_cell(table, "%s", whole ? num_percent(part, whole).s : "");
}

static void add_states(const struct thread_states *t, const uint8_t *shown, size_t n,
		       struct table *table)
{
	for (size_t i = 0; i < n; i++)
		add_share(table, t->ns[shown[i]], t->sum_ns);
	add_share(table, t->held_ns, t->sum_ns);
}

/* Whether threads of several processes are shown, which may have the same names. */
static bool tells_process(const struct report *r)
{
	return !by_time(r) && owners_of(r) == OWNER_THREAD && r->rec->profile.n_processes > 1;
}

static void add_owner(const struct report *r, const struct thread_states *t, bool in_part,
		      const uint8_t *shown, size_t n, struct table *table)
{
	_cleanup_buf_ struct buf name = BUF_INIT;
	const enum owner_kind kind = owners_of(r);

	table_cell(table, "%s", num_column(UNIT_NS, in_part ? t->sum_ns : t->elapsed_ns).s);
	if (!in_part)
		add_share(table, t->sum_ns, t->elapsed_ns);
	add_states(t, shown, n, table);
	if (t->id == PROFILE_NONE)
		buf_addstr(&name, "all threads");
	else
		owner_label(&r->rec->profile, kind, t->id, &name);
	if (t->id != PROFILE_NONE && kind != OWNER_THREAD)
		buf_addf(&name, ", %s", num_of(t->n_threads, "thread", "threads").s);
	table_cell(table, "%s", buf_str(&name));
	if (!tells_process(r))
		return;
	buf_reset(&name);
	if (t->id != PROFILE_NONE)
		owner_label(&r->rec->profile, OWNER_PROCESS, r->rec->profile.threads[t->id].process,
			    &name);
	table_cell(table, "%s", buf_str(&name));
}

static void add_second(const struct report *r, const struct thread_states *t, const uint8_t *shown,
		       size_t n, struct table *table)
{
	_cleanup_buf_ struct buf clock = BUF_INIT;

	if (t->id == PROFILE_NONE) {
		table_cell(table, "all");
	} else {
		table_cell(table, "%" PRIu32 "s", t->id);
		report_add_clock(&r->rec->profile, t->id * (uint64_t)NSEC_PER_SEC, &clock);
	}
	table_cell(table, "%s", buf_str(&clock));
	table_cell(table, "%s", num_column(UNIT_NS, t->sum_ns).s);
	add_states(t, shown, n, table);
}

/* What each state is, for those who do not know the words. */
static void add_legend(const uint8_t *shown, size_t n, struct buf *out)
{
	static const char held[] = "gvl-held";
	size_t width = strlen(held);

	for (size_t i = 0; i < n; i++)
		if (strlen(state_word(shown[i])) > width)
			width = strlen(state_word(shown[i]));
	for (size_t i = 0; i < n; i++)
		buf_addf(out, "  %-*s  %s\n", (int)width, state_word(shown[i]),
			 state_text(shown[i]));
	buf_addf(out, "  %-*s  of its waits, those in which the thread held the GVL\n", (int)width,
		 held);
}

/*
 * Whether threads want the GVL for long, or come back from something else and cannot go on. Older
 * recordings do not tell.
 */
static void add_turns(const struct thread_states *all, struct buf *out)
{
	if (all->turn_ns)
		buf_addf(out,
			 "  %s of gvl: threads whose turn was over; the rest: threads that come "
			 "back from what they waited for, begin, or gave it away themselves\n",
			 num_percent(all->turn_ns, all->ns[STATE_GVL]).s);
}

/* Of a wait that is longer than the recording there is only what is in it. */
static void add_cut(const struct thread_states_table *t, struct buf *out)
{
	const char *between = " (";

	if (!t->began_before && !t->went_on)
		return;
	buf_addf(out, "  %s began before the recording, and %s went on after it",
		 num_of(t->began_before, "wait", "waits").s, num_count(t->went_on).s);
	for (size_t i = 0; i < STATES; i++) {
		if (!t->cut[i])
			continue;
		buf_addf(out, "%s%s %s", between, state_word(i), num_count(t->cut[i]).s);
		between = ", ";
	}
	buf_addstr(out, "): only what is in it is counted\n");
}

/* Whether the states tell all that passed. */
static void add_check(const struct report *r, const struct thread_states_table *t, struct buf *out)
{
	static const char *const words[] = { [OWNER_PROCESS] = "processes",
					     [OWNER_THREAD] = "threads",
					     [OWNER_CONTAINER] = "containers",
					     [OWNER_RUBY] = "versions" };
	const struct thread_states *all = &t->all;
	size_t differ = 0;

	for (size_t i = 0; i < t->n; i++)
		differ += thread_states_differ(&t->v[i]);
	buf_addf(out, "  states add up to %s of %s that passed (%s)\n",
		 num_value(UNIT_NS, all->sum_ns).s, num_value(UNIT_NS, all->elapsed_ns).s,
		 num_percent(all->sum_ns, all->elapsed_ns).s);
	if (differ || thread_states_differ(all))
		buf_addf(out,
			 "  warning: these differ by more than %d %% for %zu of %zu %s: "
			 "samples were lost, or a hypervisor took CPU time\n",
			 THREAD_STATES_PART, differ, t->n,
			 r->rec->profile.series ? "rows" : words[owners_of(r)]);
}

/* The columns of the table; returns how many they are. */
static size_t choose_columns(const struct report *r, bool in_part, const uint8_t *shown, size_t n,
			     struct table_column columns[TABLE_MAX_COLUMNS])
{
	static const char *const titles[] = { [OWNER_PROCESS] = "PROCESS",
					      [OWNER_THREAD] = "THREAD",
					      [OWNER_CONTAINER] = "CONTAINER",
					      [OWNER_RUBY] = "RUBY" };
	static const struct table_column seconds[] = { { "FROM", TABLE_LEFT, TABLE_WHOLE },
						       { "CLOCK", TABLE_LEFT, TABLE_WHOLE },
						       { "TIME", TABLE_RIGHT, TABLE_WHOLE } };
	static const struct table_column threads[] = { { "ELAPSED", TABLE_RIGHT, TABLE_WHOLE },
						       { "SUM", TABLE_RIGHT, TABLE_WHOLE } };
	static const struct table_column parts[] = { { "TIME", TABLE_RIGHT, TABLE_WHOLE } };
	size_t at = by_time(r) ? ARRAY_SIZE(seconds)
		    : in_part  ? ARRAY_SIZE(parts)
			       : ARRAY_SIZE(threads);

	memcpy(columns, by_time(r) ? seconds : in_part ? parts : threads, at * sizeof(*columns));
	for (size_t i = 0; i < n; i++)
		columns[at++] = (struct table_column) { state_word(shown[i]), TABLE_RIGHT,
							TABLE_WHOLE };
	columns[at++] = (struct table_column) { "gvl-held", TABLE_RIGHT, TABLE_WHOLE };
	if (!by_time(r))
		columns[at++] = (struct table_column) { titles[owners_of(r)], TABLE_LEFT,
							TABLE_CUT_MIDDLE };
	if (tells_process(r))
		columns[at++] = (struct table_column) { "PROCESS", TABLE_LEFT, TABLE_CUT_MIDDLE };
	return at;
}

int report_states(const struct report *r, struct buf *out, struct err *err)
{
	struct table_column columns[TABLE_MAX_COLUMNS];
	_cleanup_thread_states_ struct thread_states_table t = THREAD_STATES_INIT;
	_cleanup_table_ struct table table = { 0 };
	uint8_t shown[STATES];
	uint32_t noted = 0;
	size_t n, rows;
	int ret;

	ret = build(r, &t, err);
	if (ret)
		return ret;
	rows = t.n < r->limit ? t.n : (size_t)r->limit;
	report_note_all_states(t.all.ns, t.all.sum_ns, &noted);
	for (size_t i = 0; i < rows; i++)
		report_note_states(t.v[i].ns, t.v[i].sum_ns, &noted);
	n = report_choose_states(noted, shown, ARRAY_SIZE(columns) - OTHER_COLUMNS);
	table_init(&table, columns, choose_columns(r, t.in_part, shown, n, columns));
	for (size_t i = 0; i <= rows; i++) {
		const struct thread_states *row = i ? &t.v[i - 1] : &t.all;

		if (by_time(r))
			add_second(r, row, shown, n, &table);
		else
			add_owner(r, row, t.in_part, shown, n, &table);
	}
	if (report_add_table(r, &table, out))
		return err_oom(err);
	report_hidden(t.n, rows, out);
	if (!t.in_part && !by_time(r)) {
		add_check(r, &t, out);
		add_cut(&t, out);
	} else if (!by_time(r)) {
		buf_addstr(out,
			   "  TIME: that of the samples that pass the filters, of which these are "
			   "the shares\n");
	}
	add_legend(shown, n, out);
	add_turns(&t.all, out);
	return buf_failed(out) ? err_oom(err) : 0;
}

static void thread_json(const struct profile *p, uint32_t id, struct json *j)
{
	const struct profile_thread *thread = &p->threads[id];
	_cleanup_buf_ struct buf name = BUF_INIT;

	thread_series_name(p, id, &name);
	json_u64(j, "pid", p->processes[thread->process].pid);
	json_u64(j, "tid", thread_series_count(p, id) > 1 ? 0 : thread->tid);
	json_str(j, "name", buf_str(&name));
}

/* Named as in the other reports (fields.c). */
static void owner_json(const struct profile *p, enum owner_kind kind, const struct thread_states *t,
		       struct json *j)
{
	switch (kind) {
	case OWNER_PROCESS:
		json_u64(j, "pid", p->processes[t->id].pid);
		json_str(j, "process", profile_str(p, p->processes[t->id].cmdline));
		break;
	case OWNER_CONTAINER:
		json_str(j, "container", profile_str(p, t->id));
		break;
	case OWNER_RUBY:
		json_str(j, "ruby", profile_str(p, t->id));
		break;
	default:
		thread_json(p, t->id, j);
	}
	json_u64(j, "threads", t->n_threads);
	json_u64(j, "elapsed_ns", t->elapsed_ns);
}

static void row_json(const struct report *r, const struct thread_states *t, struct json *j)
{
	const enum owner_kind kind = owners_of(r);

	json_object_begin(j, NULL);
	if (by_time(r))
		json_u64(j, "from_ns", t->id * NSEC_PER_SEC);
	else
		owner_json(&r->rec->profile, kind, t, j);
	json_u64(j, "sum_ns", t->sum_ns);
	json_object_begin(j, "states");
	for (size_t i = 0; i < STATES; i++)
		json_u64(j, state_word(i), t->ns[i]);
	json_object_end(j);
	json_u64(j, "gvl_held_ns", t->held_ns);
	json_u64(j, "gvl_turn_ns", t->turn_ns);
	json_object_end(j);
}

int report_states_json(const struct report *r, struct buf *out, struct err *err)
{
	_cleanup_thread_states_ struct thread_states_table t = THREAD_STATES_INIT;
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	struct json j = JSON_INIT(out);
	int ret;

	ret = build(r, &t, err);
	if (ret)
		return ret;
	if (view_selection_new(&r->rec->profile, r->filter, &sel))
		return err_oom(err);
	json_object_begin(&j, NULL);
	report_json_summary(r, view_selected_sum(sel).samples, t.all.sum_ns, &j);
	json_array_begin(&j, "rows");
	for (size_t i = 0; i < t.n && i < r->limit; i++)
		row_json(r, &t.v[i], &j);
	json_array_end(&j);
	json_u64(&j, "began_before", t.began_before);
	json_u64(&j, "went_on", t.went_on);
	json_object_end(&j);
	buf_addch(out, '\n');
	return buf_failed(out) ? err_oom(err) : 0;
}

static void csv_header(const struct report *r, struct buf *out)
{
	static const char *const owners[] = { [OWNER_PROCESS] = "pid,process",
					      [OWNER_THREAD] = "pid,tid,name",
					      [OWNER_CONTAINER] = "container",
					      [OWNER_RUBY] = "ruby" };

	if (by_time(r))
		buf_addstr(out, "from_ns");
	else
		buf_addf(out, "%s,threads,elapsed_ns", owners[owners_of(r)]);
	buf_addstr(out, ",sum_ns");
	for (size_t i = 0; i < STATES; i++)
		buf_addf(out, ",%s_ns", state_word(i));
	buf_addstr(out, ",gvl_held_ns,gvl_turn_ns\r\n");
}

static void thread_csv(const struct profile *p, uint32_t id, struct buf *out)
{
	const struct profile_thread *thread = &p->threads[id];
	_cleanup_buf_ struct buf name = BUF_INIT;

	thread_series_name(p, id, &name);
	buf_addf(out, "%" PRIu32 ",%" PRIu32 ",", p->processes[thread->process].pid,
		 thread_series_count(p, id) > 1 ? 0 : thread->tid);
	field_add_csv((struct field_value) { .str = buf_str(&name) }, out);
}

static void owner_csv(const struct profile *p, enum owner_kind kind, const struct thread_states *t,
		      struct buf *out)
{
	struct field_value name = { 0 };

	switch (kind) {
	case OWNER_PROCESS:
		buf_addf(out, "%" PRIu32 ",", p->processes[t->id].pid);
		name.str = profile_str(p, p->processes[t->id].cmdline);
		break;
	case OWNER_CONTAINER:
	case OWNER_RUBY:
		name.str = profile_str(p, t->id);
		break;
	default:
		thread_csv(p, t->id, out);
	}
	if (name.str)
		field_add_csv(name, out);
	buf_addf(out, ",%" PRIu32 ",%" PRIu64, t->n_threads, t->elapsed_ns);
}

static void row_csv(const struct report *r, const struct thread_states *t, struct buf *out)
{
	if (by_time(r))
		buf_add_u64(out, t->id * NSEC_PER_SEC);
	else
		owner_csv(&r->rec->profile, owners_of(r), t, out);
	buf_addf(out, ",%" PRIu64, t->sum_ns);
	for (size_t i = 0; i < STATES; i++)
		buf_addf(out, ",%" PRIu64, t->ns[i]);
	buf_addf(out, ",%" PRIu64 ",%" PRIu64 "\r\n", t->held_ns, t->turn_ns);
}

int report_states_csv(const struct report *r, struct buf *out, struct err *err)
{
	_cleanup_thread_states_ struct thread_states_table t = THREAD_STATES_INIT;
	int ret = build(r, &t, err);

	if (ret)
		return ret;
	csv_header(r, out);
	for (size_t i = 0; i < t.n && i < r->limit; i++)
		row_csv(r, &t.v[i], out);
	return buf_failed(out) ? err_oom(err) : 0;
}
