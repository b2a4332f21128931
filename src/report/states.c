/* SPDX-License-Identifier: GPL-2.0-only */
/* How each thread spent its time, as a table and as JSON. */
#include <errno.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "report/report.h"
#include "ui/summary.h"
#include "ui/table.h"
#include "view/filter.h"
#include "view/owner.h"
#include "view/thread_states.h"

/* Percent by which the sum of the states may differ from the time that passed without a warning. */
#define PART_PERCENT	5

/* A column of a state that nothing was in for so long, in thousandths of all time, is left out. */
#define SHOWN_PER_MILLE 1

_Static_assert(STATES + 3 <= TABLE_MAX_COLUMNS, "each state can have a column");

static int build(const struct report *r, struct thread_states_table *ret, struct err *err)
{
	int failed = thread_states_build(&r->rec->profile, r->filter, ret);

	if (failed)
		return err_code(err, failed);
	return ret->n ? 0 : report_nothing(r, err);
}

size_t report_choose_states(const uint64_t ns[STATES], uint64_t sum_ns, uint8_t shown[STATES],
			    size_t room)
{
	size_t n = 0;

	for (size_t i = 0; i < STATES && n < room; i++)
		if (ns[i] && ns[i] >= sum_ns / 1000 * SHOWN_PER_MILLE)
			shown[n++] = (uint8_t)i;
	return n;
}

static void add_row(const struct report *r, const struct thread_states *t, const uint8_t *shown,
		    size_t n, struct table *table)
{
	_cleanup_buf_ struct buf name = BUF_INIT;

	table_cell(table, "%s", num_column(UNIT_NS, t->elapsed_ns).s);
	for (size_t i = 0; i < n; i++)
		table_cell(table, "%s", num_percent(t->ns[shown[i]], t->sum_ns).s);
	table_cell(table, "%s", num_percent(t->held_ns, t->sum_ns).s);
	if (t->thread == PROFILE_NONE)
		buf_addstr(&name, "all threads");
	else
		owner_label(&r->rec->profile, OWNER_THREAD, t->thread, &name);
	table_cell(table, "%s", buf_str(&name));
}

/* What each state is, for those who do not know the words. */
static void add_legend(const uint8_t *shown, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n; i++)
		buf_addf(out, "  %-9s %s\n", state_word(shown[i]), state_text(shown[i]));
	buf_addstr(out, "  gvl-held  of its waits, those in which the thread held the GVL\n");
}

/* Whether the states tell all that passed. */
static void add_check(const struct thread_states *all, struct buf *out)
{
	uint64_t difference = all->sum_ns > all->elapsed_ns ? all->sum_ns - all->elapsed_ns
							    : all->elapsed_ns - all->sum_ns;

	buf_addf(out, "  states add up to %s of %s that passed (%s)\n",
		 num_value(UNIT_NS, all->sum_ns).s, num_value(UNIT_NS, all->elapsed_ns).s,
		 num_percent(all->sum_ns, all->elapsed_ns).s);
	if (difference > all->elapsed_ns / 100 * PART_PERCENT)
		buf_addf(out,
			 "  warning: these differ by more than %d %%: samples were lost, or a "
			 "hypervisor took CPU time\n",
			 PART_PERCENT);
}

int report_states(const struct report *r, struct buf *out, struct err *err)
{
	struct table_column columns[TABLE_MAX_COLUMNS] = { { "ELAPSED", TABLE_RIGHT,
							     TABLE_WHOLE } };
	_cleanup_thread_states_ struct thread_states_table t = THREAD_STATES_INIT;
	_cleanup_table_ struct table table = { 0 };
	uint8_t shown[STATES];
	size_t n, rows;
	int ret;

	ret = build(r, &t, err);
	if (ret)
		return ret;
	n = report_choose_states(t.all.ns, t.all.sum_ns, shown, ARRAY_SIZE(columns) - 3);
	for (size_t i = 0; i < n; i++)
		columns[1 + i] = (struct table_column) { state_word(shown[i]), TABLE_RIGHT,
							 TABLE_WHOLE };
	columns[1 + n] = (struct table_column) { "gvl-held", TABLE_RIGHT, TABLE_WHOLE };
	columns[2 + n] = (struct table_column) { "THREAD", TABLE_LEFT, TABLE_CUT_MIDDLE };
	table_init(&table, columns, n + 3);
	add_row(r, &t.all, shown, n, &table);
	rows = t.n < r->limit ? t.n : (size_t)r->limit;
	for (size_t i = 0; i < rows; i++)
		add_row(r, &t.v[i], shown, n, &table);
	if (table_render(&table, r->width, r->color, out))
		return err_oom(err);
	report_hidden(t.n, rows, out);
	if (!t.in_part)
		add_check(&t.all, out);
	add_legend(shown, n, out);
	return buf_failed(out) ? err_oom(err) : 0;
}

static void row_json(const struct report *r, const struct thread_states *t, struct json *j)
{
	const struct profile *p = &r->rec->profile;
	const struct profile_thread *thread = &p->threads[t->thread];

	json_object_begin(j, NULL);
	json_u64(j, "pid", p->processes[thread->process].pid);
	json_u64(j, "tid", thread->tid);
	json_str(j, "name", profile_str(p, thread->name));
	json_u64(j, "elapsed_ns", t->elapsed_ns);
	json_object_begin(j, "states");
	for (size_t i = 0; i < STATES; i++)
		json_u64(j, state_word(i), t->ns[i]);
	json_object_end(j);
	json_u64(j, "gvl_held_ns", t->held_ns);
	json_object_end(j);
}

int report_states_json(const struct report *r, struct buf *out, struct err *err)
{
	_cleanup_thread_states_ struct thread_states_table t = THREAD_STATES_INIT;
	struct json j = JSON_INIT(out);
	int ret;

	ret = build(r, &t, err);
	if (ret)
		return ret;
	json_object_begin(&j, NULL);
	report_json_summary(r, r->rec->profile.n_samples, t.all.sum_ns, &j);
	json_array_begin(&j, "rows");
	for (size_t i = 0; i < t.n && i < r->limit; i++)
		row_json(r, &t.v[i], &j);
	json_array_end(&j);
	json_object_end(&j);
	buf_addch(out, '\n');
	return buf_failed(out) ? err_oom(err) : 0;
}
