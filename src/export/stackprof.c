/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The dump of stackprof (https://github.com/tmm1/stackprof), version 1.2, as JSON, which its
 * reports read in place of Ruby's Marshal format: `stackprof --text FILE`.
 *
 * Numbers are samples, for its reports print no other: of an event whose samples have durations,
 * one for each millisecond or microsecond. Unlike stackprof's own, a call and a line count once a
 * sample also where a method is in a stack several times, as in reports of rbpf. "raw" has each
 * stack once, in no order of time.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "export/call_counts.h"
#include "export/export.h"
#include "export/exporters.h"
#include "export/function.h"
#include "export/origin.h"
#include "export/shown.h"
#include "profile/profile.h"
#include "view/filter.h"
#include "view/group.h"

/* A line of a function, or none (0). */
struct line_count {
	uint32_t function, line;
	uint64_t self, total;
};

struct stackprof {
	const struct profile *profile;
	struct shown shown;
	struct groups functions;
	struct stack_count *counts; /* by shown stack; owned */
	uint64_t interval;	    /* ns that a sample stands for */
	struct call_counts calls;   /* of functions */
	struct line_count *lines;   /* in the order of functions; owned */
	size_t n_lines;
	uint32_t *frames; /* scratch: of a stack; owned */
	size_t cap_frames;
	struct json json;
};

static void stackprof_deinit(struct stackprof *s)
{
	shown_deinit(&s->shown);
	groups_deinit(&s->functions);
	call_counts_deinit(&s->calls);
	free(s->counts);
	free(s->lines);
	free(s->frames);
}

/* ---- lines ---- */

static int compare_lines(const void *a, const void *b)
{
	const struct line_count *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

static int count_lines(struct stackprof *s)
{
	const struct profile *p = s->profile;
	_cleanup_line_groups_ struct line_groups groups = { 0 };
	_cleanup_call_counts_ struct call_counts counts = CALL_COUNTS_INIT;

	if (line_groups_init(p, s->functions.of_frame, &groups) ||
	    call_counts_init(&s->shown, s->counts, groups.of_frame, groups.n, &counts))
		return -ENOMEM;
	s->lines = calloc(groups.n + 1, sizeof(*s->lines));
	if (!s->lines)
		return -ENOMEM;
	for (size_t i = 0; i < groups.n; i++) {
		const uint32_t frame = groups.frame[i];

		if (counts.total[i] && p->frames[frame].line &&
		    p->frames[frame].kind != FRAME_CFUNC)
			s->lines[s->n_lines++] = (struct line_count) {
				.function = s->functions.of_frame[frame],
				.line = p->frames[frame].line,
				.self = counts.self[i],
				.total = counts.total[i],
			};
	}
	if (s->n_lines)
		qsort(s->lines, s->n_lines, sizeof(*s->lines), compare_lines);
	return 0;
}

/* ---- frames ---- */

/* Ids are above 0. */
static const char *id_text(uint32_t id, char text[16])
{
	snprintf(text, 16, "%" PRIu32, id + 1);
	return text;
}

static void add_edges(struct stackprof *s, uint32_t function, const struct call_edge **edge)
{
	const struct call_edge *end = s->calls.edges + s->calls.n_edges;
	char id[16];

	while (*edge < end && (*edge)->from < function)
		++*edge;
	if (*edge == end || (*edge)->from != function)
		return;
	json_object_begin(&s->json, "edges");
	for (; *edge < end && (*edge)->from == function; ++*edge)
		json_u64(&s->json, id_text((*edge)->to, id), (*edge)->samples);
	json_object_end(&s->json);
}

static void add_lines(struct stackprof *s, uint32_t function, const struct line_count **line)
{
	const struct line_count *end = s->lines + s->n_lines;
	char text[16];

	if (*line == end || (*line)->function != function)
		return;
	json_object_begin(&s->json, "lines");
	for (; *line < end && (*line)->function == function; ++*line) {
		snprintf(text, sizeof(text), "%" PRIu32, (*line)->line);
		json_array_begin(&s->json, text);
		json_u64(&s->json, NULL, (*line)->total);
		json_u64(&s->json, NULL, (*line)->self);
		json_array_end(&s->json);
	}
	json_object_end(&s->json);
}

static void begin_frame(struct stackprof *s, uint32_t id, const struct function *f)
{
	struct json *j = &s->json;
	char text[16];

	json_object_begin(j, id_text(id, text));
	json_str(j, "name", f->name);
	json_str(j, "file", f->file);
	if (f->line)
		json_u64(j, "line", f->line);
	else
		json_nil(j, "line");
	json_u64(j, "total_samples", s->calls.total[id]);
	json_u64(j, "samples", s->calls.self[id]);
}

/* The functions that samples have. */
static void add_frames(struct stackprof *s)
{
	const struct function none = FUNCTION_INIT(FUNCTION_NONE);
	const struct call_edge *edge = s->calls.edges;
	const struct line_count *line = s->lines;

	json_object_begin(&s->json, "frames");
	for (uint32_t i = 0; i < s->functions.n; i++) {
		struct function f;

		if (!s->calls.total[i])
			continue;
		function_of_frame(s->profile, s->functions.frame[i], &f);
		begin_frame(s, i, &f);
		add_edges(s, i, &edge);
		add_lines(s, i, &line);
		json_object_end(&s->json);
	}
	if (s->calls.total[s->functions.n]) {
		begin_frame(s, (uint32_t)s->functions.n, &none);
		json_object_end(&s->json);
	}
	json_object_end(&s->json);
}

/* ---- stacks ---- */

/* Each stack: its length, functions from the outermost to the innermost, and samples. */
static int add_raw(struct stackprof *s)
{
	struct json *j = &s->json;
	int r = 0;

	json_array_begin(j, "raw");
	for (uint32_t i = 0; i < s->profile->n_stacks && !r; i++) {
		size_t n;

		if (!s->counts[i].samples)
			continue;
		r = shown_frames(&s->shown, i, &s->frames, &s->cap_frames, &n);
		if (r)
			break;
		json_u64(j, NULL, n ? n : 1);
		if (!n)
			json_u64(j, NULL, s->functions.n + 1);
		while (n--)
			json_u64(j, NULL, (uint64_t)s->functions.of_frame[s->frames[n]] + 1);
		json_u64(j, NULL, s->counts[i].samples);
		if (buf_failed(j->out))
			r = -ENOMEM;
	}
	json_array_end(j);
	return r;
}

/*
 * The value of each sample in µs, which is known of all of a stack together; of CPU time it is the
 * interval. That of a stack which got no sample goes to the next one that has some. speedscope
 * looks for this member.
 */
static int add_deltas(struct stackprof *s, bool wanted)
{
	struct json *j = &s->json;
	uint64_t ns = 0;

	json_array_begin(j, "raw_timestamp_deltas");
	for (uint32_t i = 0; wanted && i < s->profile->n_stacks; i++) {
		const struct stack_count *c = &s->counts[i];
		uint64_t us;

		profile_add(&ns, c->value);
		if (!c->samples)
			continue;
		us = ns / NSEC_PER_USEC;
		ns %= NSEC_PER_USEC;
		for (uint64_t left = c->samples; left; left--) {
			json_u64(j, NULL, us / left);
			us -= us / left;
			if (buf_failed(j->out))
				return -ENOMEM;
		}
	}
	json_array_end(j);
	return 0;
}

/* ---- the whole ---- */

/* Samples, and those of garbage collection, counted as @counts are. */
static void add_totals(struct stackprof *s)
{
	const struct profile *p = s->profile;
	uint64_t samples = 0, gc = 0, gc_ns = s->interval / 2;

	for (size_t i = 0; i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];

		if (!(a->flags & SAMPLE_GC) || !view_selected(s->shown.selection, a))
			continue;
		gc += a->samples;
		profile_add(&gc_ns, a->value);
	}
	if (event_has_durations(profile_event(p)))
		gc = gc_ns / s->interval;
	for (size_t i = 0; i < p->n_stacks; i++)
		samples += s->counts[i].samples;
	json_u64(&s->json, "samples", samples);
	json_u64(&s->json, "gc_samples", gc);
	json_u64(&s->json, "missed_samples", p->totals.lost);
}

static int write_all(struct stackprof *s)
{
	const struct profile_event *event = profile_event(s->profile);
	const bool is_time = event->unit == UNIT_NS, is_cpu = event_is_cpu(event);
	struct json *j = &s->json;
	int r;

	json_object_begin(j, NULL);
	json_decimal(j, "version", 12, 1);
	json_str(j, "mode", is_cpu ? "cpu" : is_time ? "wall" : "object");
	json_u64(j, "interval", is_time ? s->interval / NSEC_PER_USEC : 1);
	add_totals(s);
	json_object_begin(j, "metadata");
	json_str(j, "exporter", "rbpf " RBPF_VERSION);
	json_str(j, "command", s->profile->meta.command ? s->profile->meta.command : "");
	json_str(j, "event", event->name);
	origin_add_json(s->profile, j, "recording");
	json_object_end(j);
	add_frames(s);
	r = add_raw(s);
	if (!r)
		r = add_deltas(s, is_time && !is_cpu);
	json_object_end(j);
	buf_addch(j->out, '\n');
	return r;
}

int export_stackprof(const struct profile *p, const struct export_options *opts, struct buf *out,
		     struct err *err)
{
	struct stackprof s = { .profile = p, .json = JSON_INIT(out) };
	int r = shown_init(p, opts->filter, &s.shown);

	if (!r)
		r = groups_init(p, GROUP_BY_FUNCTION, &s.functions);
	if (!r)
		r = stack_counts(&s.shown, &s.counts);
	if (!r)
		s.interval = stack_counts_of_time(p, s.counts);
	if (!r)
		r = call_counts_init(&s.shown, s.counts, s.functions.of_frame, s.functions.n,
				     &s.calls);
	if (!r)
		r = count_lines(&s);
	if (!r)
		r = write_all(&s);
	stackprof_deinit(&s);
	if (!r && buf_failed(out))
		r = -ENOMEM;
	return export_error(r, err);
}
