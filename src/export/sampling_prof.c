/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The text of sampling_prof (https://github.com/xli/sampling_prof): four parts with a blank line
 * between.
 *
 *	runtime of all threads, in ms
 *	PATH:LINE:METHOD,ID		an element: a line of a method
 *	ID,SELF,TOTAL			its samples
 *	FROM,TO,SAMPLES			calls of one element by another; -1 calls the outermost
 *
 * An element and a call count once a sample. Readers know no other measure, so of an event whose
 * samples have durations, each millisecond or microsecond is one. What reads it splits at commas,
 * so a comma in a name becomes a semicolon.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "export/call_counts.h"
#include "export/export.h"
#include "export/exporters.h"
#include "export/function.h"
#include "export/shown.h"
#include "profile/profile.h"
#include "view/group.h"

struct sampling_prof {
	const struct profile *profile;
	struct shown shown;
	struct groups functions;
	struct line_groups lines;
	struct stack_count *counts; /* by shown stack; owned */
	struct call_counts calls;   /* of lines */
	struct buf *out;
};

static void sampling_prof_deinit(struct sampling_prof *s)
{
	shown_deinit(&s->shown);
	groups_deinit(&s->functions);
	line_groups_deinit(&s->lines);
	call_counts_deinit(&s->calls);
	free(s->counts);
}

static void add_runtime(struct sampling_prof *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->profile->n_stacks; i++)
		profile_add(&sum, s->counts[i].value);
	buf_add_u64(s->out, sum / NSEC_PER_MSEC);
	buf_addch(s->out, '\n');
}

static void add_text(struct sampling_prof *s, const char *text)
{
	for (; *text; text++)
		buf_addch(s->out, *text == ',' ? ';' : *text);
}

static void add_element(struct sampling_prof *s, uint32_t id)
{
	const struct profile *p = s->profile;
	struct function f = FUNCTION_INIT(FUNCTION_NONE);
	uint32_t line = 0;

	if (id < s->lines.n) {
		const uint32_t frame = s->lines.frame[id];

		function_of_frame(p, frame, &f);
		line = p->frames[frame].kind == FRAME_CFUNC ? 0 : p->frames[frame].line;
	}
	add_text(s, f.file);
	buf_addf(s->out, ":%" PRIu32 ":", line);
	add_text(s, f.name);
	buf_addf(s->out, ",%" PRIu32 "\n", id);
}

static void add_calls(struct sampling_prof *s)
{
	for (size_t i = 0; i < s->calls.n_edges; i++) {
		const struct call_edge *e = &s->calls.edges[i];

		if (e->from == CALLS_ROOT)
			buf_addstr(s->out, "-1");
		else
			buf_add_u64(s->out, e->from);
		buf_addch(s->out, ',');
		buf_add_u64(s->out, e->to);
		buf_addch(s->out, ',');
		buf_add_u64(s->out, e->samples);
		buf_addch(s->out, '\n');
	}
}

static void write_all(struct sampling_prof *s)
{
	add_runtime(s);
	buf_addch(s->out, '\n');
	for (uint32_t i = 0; i <= s->lines.n; i++)
		if (s->calls.total[i])
			add_element(s, i);
	buf_addch(s->out, '\n');
	for (uint32_t i = 0; i <= s->lines.n; i++)
		if (s->calls.total[i])
			buf_addf(s->out, "%" PRIu32 ",%" PRIu64 ",%" PRIu64 "\n", i,
				 s->calls.self[i], s->calls.total[i]);
	buf_addch(s->out, '\n');
	add_calls(s);
}

int export_sampling_prof(const struct profile *p, const struct export_options *opts,
			 struct buf *out, struct err *err)
{
	const struct profile_event *event = profile_event(p);
	struct sampling_prof s = { .profile = p, .out = out };
	int r;

	if (event->unit != UNIT_NS)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "-f sampling-prof is for time, but the event '%s' is in %s",
			       event->name, value_unit_name(event->unit));
	r = shown_init(p, opts->filter, &s.shown);
	if (!r)
		r = groups_init(p, GROUP_BY_FUNCTION, &s.functions);
	if (!r)
		r = line_groups_init(p, s.functions.of_frame, &s.lines);
	if (!r)
		r = stack_counts(&s.shown, &s.counts);
	if (!r)
		stack_counts_of_time(p, s.counts);
	if (!r)
		r = call_counts_init(&s.shown, s.counts, s.lines.of_frame, s.lines.n, &s.calls);
	if (!r)
		write_all(&s);
	sampling_prof_deinit(&s);
	if (!r && buf_failed(out))
		r = -ENOMEM;
	return export_error(r, err);
}
