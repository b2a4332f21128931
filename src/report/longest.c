/* SPDX-License-Identifier: GPL-2.0-only */
/* The requests that took longest, one by one: for people and as JSON. */
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "report/fields.h"
#include "report/report.h"
#include "ui/shell_path.h"
#include "ui/summary.h"
#include "ui/table.h"
#include "view/filter.h"
#include "view/label.h"
#include "view/longest_requests.h"
#include "view/request.h"

/* States that are shown of each, and the part of its time that one must have: one of so many. */
#define STATES_SHOWN 2
#define STATES_PART  100

static const struct profile_request *request_of(const struct report *r,
						const struct longest_request *one)
{
	return &r->rec->profile.requests[one->id];
}

static const struct profile_thread *thread_of(const struct report *r,
					      const struct longest_request *one)
{
	return &r->rec->profile.threads[request_of(r, one)->thread];
}

/* Of what was added up by the second it is not known which request a sample is of. */
static bool is_told(const struct report *r)
{
	return r->longest && !r->rec->profile.meta.by_second;
}

static int build(const struct report *r, struct longest_requests *ret, struct err *err)
{
	return longest_requests_build(&r->rec->profile, r->filter, &r->from, r->longest, ret, err);
}

/* ---- text ---- */

static void add_length(const struct longest_request *one, struct table *t)
{
	if (one->length.most)
		report_add_length(&one->length, t);
	else
		table_cell(t, "≥%s", num_duration_at_least(one->length.least).s);
}

/* Of the states that are not in @shown the one with most time, STATES if none has enough. */
static size_t next_state(const struct longest_request *one, uint32_t shown)
{
	size_t most = STATES;

	for (size_t i = 0; i < STATES; i++)
		if (!(shown >> i & 1) && one->states[i] > one->value / STATES_PART &&
		    (most == STATES || one->states[i] > one->states[most]))
			most = i;
	return most;
}

/*
 * "network 60 ms, user 10 ms". Times, not shares: those of waits are exact, as the length is, but
 * the sum of all has CPU time in it, which is an estimate.
 */
static void add_states(const struct longest_request *one, struct table *t)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	uint32_t shown = 0;
	size_t state;

	for (size_t n = 0; n < STATES_SHOWN; n++) {
		state = next_state(one, shown);
		if (state == STATES)
			break;
		buf_addf(&text, "%s%s %s", n ? ", " : "", state_word(state),
			 num_duration(one->states[state]).s);
		shown |= 1u << state;
	}
	table_cell(t, "%s", buf_str(&text));
}

static void add_row(const struct report *r, const struct longest_request *one, bool states,
		    struct table *t)
{
	const struct profile *p = &r->rec->profile;
	const struct profile_request *request = request_of(r, one);
	_cleanup_buf_ struct buf thread = BUF_INIT;

	add_length(one, t);
	report_add_begin(report_since_start(r, request->first_ts), t);
	if (states)
		add_states(one, t);
	else
		table_cell(t, "%s", num_column(profile_event(p)->unit, one->value).s);
	table_cell(t, "%s", request_label(p, request->kind));
	table_cell(t, "%" PRIu32, thread_of(r, one)->tid);
	label_thread(p, request->thread, &thread);
	table_cell(t, "%s", buf_str(&thread));
}

static int add_table(const struct report *r, const struct longest_requests *list, struct buf *out)
{
	const struct table_column columns[] = {
		{ "LONGEST", TABLE_RIGHT, TABLE_WHOLE },
		{ "BEGAN", TABLE_RIGHT, TABLE_WHOLE },
		{ list->has_states ? "MOSTLY" : "TIME", list->has_states ? TABLE_LEFT : TABLE_RIGHT,
		  TABLE_WHOLE },
		{ "REQUEST", TABLE_LEFT, TABLE_CUT_MIDDLE },
		{ "TID", TABLE_RIGHT, TABLE_WHOLE },
		{ "THREAD", TABLE_LEFT, TABLE_CUT_MIDDLE },
	};
	_cleanup_table_ struct table table;

	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < list->n; i++)
		add_row(r, &list->v[i], list->has_states, &table);
	return report_add_table(r, &table, out);
}

/* What the lengths say, and what they do not. */
static void add_notes(const struct report *r, const struct longest_requests *list, struct buf *out)
{
	const bool bounded = profile_has_waits(&r->rec->profile);
	bool beyond = false;

	for (size_t i = 0; i < list->n; i++)
		beyond |= list->v[i].begin_unknown || list->v[i].end_unknown;
	if (bounded)
		buf_addstr(
			out,
			"  LONGEST: single requests, with the same bounds; BEGAN: since the start "
			"of the recording\n");
	else
		buf_addstr(out,
			   "  LONGEST: single requests, at least, from the first sample to the "
			   "last; others may have waited longer without one\n");
	if (list->has_states)
		buf_addstr(out,
			   "  MOSTLY: waits are exact, CPU time is by the ticks of its clock\n");
	if (bounded && beyond)
		buf_addstr(out, "  ≥: at least; it may have begun before the recording, or gone on "
				"after it\n");
	if (r->filter && (r->filter->from_ns || r->filter->to_ns))
		buf_addstr(out, "  of a request that goes beyond --from or --to, at least what is "
				"between them\n");
}

/* How to look at the first one. What came from a pipe cannot be read again. */
static void add_next(const struct report *r, const struct longest_request *first, struct buf *out)
{
	const struct profile_request *request = request_of(r, first);

	if (!strcmp(r->rec->path, "-"))
		return;
	buf_addstr(out, "  the first one: rbpf flame -i ");
	shell_path_add(r->rec->path, out);
	buf_addf(out, " --event %s --tid %" PRIu32, profile_event(&r->rec->profile)->name,
		 thread_of(r, first)->tid);
	report_add_between(report_since_start(r, request->first_ts),
			   report_since_start(r, request->last_ts), out);
	buf_addstr(out, " > longest.svg\n");
}

int report_longest(const struct report *r, struct buf *out, struct err *err)
{
	_cleanup_longest_requests_ struct longest_requests list = LONGEST_REQUESTS_INIT;
	int ret;

	if (!is_told(r))
		return 0;
	ret = build(r, &list, err);
	if (ret || !list.n)
		return ret;
	buf_addch(out, '\n');
	if (add_table(r, &list, out))
		return err_oom(err);
	add_notes(r, &list, out);
	add_next(r, &list.v[0], out);
	return 0;
}

/* ---- for programs ---- */

static void row_json(const struct report *r, const struct longest_request *one, bool states,
		     struct json *j)
{
	const struct profile *p = &r->rec->profile;
	const struct profile_request *request = request_of(r, one);
	const struct profile_thread *thread = thread_of(r, one);

	json_object_begin(j, NULL);
	json_str(j, "request", request_label(p, request->kind));
	json_str(j, "framework", request_framework(p, request->kind));
	json_u64(j, "pid", p->processes[thread->process].pid);
	json_u64(j, "tid", thread->tid);
	json_str(j, "thread", profile_str(p, thread->name));
	json_u64(j, "from_ns", report_since_start(r, request->first_ts));
	json_u64(j, "length_ns", one->length.least);
	json_u64(j, "length_most_ns", one->length.most);
	if (one->begin_unknown)
		json_bool(j, "begin_unknown", true);
	if (one->end_unknown)
		json_bool(j, "end_unknown", true);
	json_u64(j, "samples", one->samples);
	json_u64(j, field_value_key(r, "self").s, one->value);
	if (states) {
		json_object_begin(j, "states");
		for (size_t i = 0; i < STATES; i++)
			json_u64(j, state_word(i), one->states[i]);
		json_object_end(j);
	}
	json_object_end(j);
}

int report_longest_json(const struct report *r, struct json *j, struct err *err)
{
	_cleanup_longest_requests_ struct longest_requests list = LONGEST_REQUESTS_INIT;
	int ret;

	if (!is_told(r))
		return 0;
	ret = build(r, &list, err);
	if (ret)
		return ret;
	json_array_begin(j, "longest");
	for (size_t i = 0; i < list.n; i++)
		row_json(r, &list.v[i], list.has_states, j);
	json_array_end(j);
	return 0;
}
