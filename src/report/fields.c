/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/fields.h"

#include <stdio.h>
#include <string.h>

#include "base/attributes.h"
#include "base/buf.h"
#include "base/clock.h"
#include "report/report.h"
#include "view/gem.h"
#include "view/label.h"
#include "view/request.h"
#include "view/peer.h"
#include "view/state.h"
#include "view/thread_series.h"
#include "view/trace.h"

static const char *const field_names[] = {
	[FIELD_KIND] = "kind",
	[FIELD_LABEL] = "label",
	[FIELD_PATH] = "path",
	[FIELD_LINE] = "line",
	[FIELD_APPROXIMATE] = "approximate",
	[FIELD_MODULE] = "module",
	[FIELD_FILE] = "file",
	[FIELD_PID] = "pid",
	[FIELD_TID] = "tid",
	[FIELD_THREAD] = "thread",
	[FIELD_PROCESS] = "process",
	[FIELD_NS_PID] = "ns_pid",
	[FIELD_CONTAINER] = "container",
	[FIELD_CGROUP] = "cgroup",
	[FIELD_RUBY] = "ruby",
	[FIELD_SERVICE] = "service",
	[FIELD_ATTRIBUTES] = "attributes",
	[FIELD_GEM] = "gem",
	[FIELD_VERSION] = "version",
	[FIELD_ORIGIN] = "origin",
	[FIELD_STATE] = "state",
	[FIELD_HELD] = "gvl_held",
	[FIELD_PEER] = "peer",
	[FIELD_TURN] = "gvl_turn",
	[FIELD_REQUEST] = "request",
	[FIELD_FRAMEWORK] = "framework",
	[FIELD_TRACE] = "trace_id",
	[FIELD_FROM] = "from_ns",
	[FIELD_CLOCK] = "clock_ns",
	[FIELD_PROCESSES] = "processes",
	[FIELD_THREADS] = "threads",
	[FIELD_SAMPLES] = "samples",
	[FIELD_TOTAL_SAMPLES] = "total_samples",
	[FIELD_SELF] = "self",
	[FIELD_TOTAL] = "total",
	[FIELD_SELF_ERROR] = "self_error",
	[FIELD_TOTAL_ERROR] = "total_error",
	[FIELD_WAITS] = "waits",
	[FIELD_MEAN_WAIT] = "mean_wait_ns",
	[FIELD_LONGEST_WAIT] = "longest_wait_ns",
	[FIELD_P50] = "p50_ns",
	[FIELD_P95] = "p95_ns",
	[FIELD_P99] = "p99_ns",
};

#define FIELD_NUMBERS FIELD_SAMPLES, FIELD_TOTAL_SAMPLES, FIELD_SELF, FIELD_TOTAL, FIELD_SELF_ERROR

struct num_text field_value_key(const struct report *r, const char *what)
{
	struct num_text ret;

	snprintf(ret.s, sizeof(ret.s), "%.40s_%s", what,
		 value_unit_name(profile_event(&r->rec->profile)->unit));
	return ret;
}

struct num_text field_key(const struct report *r, enum report_field field)
{
	struct num_text ret;

	if (field == FIELD_SELF || field == FIELD_TOTAL || field == FIELD_SELF_ERROR ||
	    field == FIELD_TOTAL_ERROR)
		return field_value_key(r, field_names[field]);
	snprintf(ret.s, sizeof(ret.s), "%s", field_names[field]);
	return ret;
}

/* The fields that all rows have, in their order. */
static const enum report_field *fields_of_all(enum flat_by by)
{
	static const enum report_field fields[][FIELDS_MAX] = {
		[FLAT_BY_FUNCTION] = { FIELD_KIND, FIELD_LABEL, FIELD_PATH, FIELD_LINE,
				       FIELD_MODULE, FIELD_NUMBERS, FIELD_TOTAL_ERROR },
		[FLAT_BY_LINE] = { FIELD_KIND, FIELD_LABEL, FIELD_PATH, FIELD_LINE, FIELD_MODULE,
				   FIELD_NUMBERS, FIELD_APPROXIMATE, FIELD_TOTAL_ERROR },
		[FLAT_BY_FILE] = { FIELD_FILE, FIELD_NUMBERS, FIELD_TOTAL_ERROR },
		[FLAT_BY_THREAD] = { FIELD_PID, FIELD_TID, FIELD_THREAD, FIELD_NUMBERS,
				     FIELD_TOTAL_ERROR, FIELD_THREADS },
		[FLAT_BY_PROCESS] = { FIELD_PID, FIELD_PROCESS, FIELD_NUMBERS, FIELD_NS_PID,
				      FIELD_CONTAINER, FIELD_CGROUP, FIELD_RUBY, FIELD_TOTAL_ERROR,
				      FIELD_SERVICE, FIELD_ATTRIBUTES },
		[FLAT_BY_KIND] = { FIELD_KIND, FIELD_NUMBERS, FIELD_TOTAL_ERROR },
		[FLAT_BY_CONTAINER] = { FIELD_CONTAINER, FIELD_PROCESSES, FIELD_NUMBERS,
					FIELD_TOTAL_ERROR },
		[FLAT_BY_RUBY] = { FIELD_RUBY, FIELD_PROCESSES, FIELD_NUMBERS, FIELD_TOTAL_ERROR },
		[FLAT_BY_MODULE] = { FIELD_MODULE, FIELD_NUMBERS, FIELD_TOTAL_ERROR },
		[FLAT_BY_REQUEST] = { FIELD_REQUEST, FIELD_FRAMEWORK, FIELD_NUMBERS,
				      FIELD_TOTAL_ERROR },
		[FLAT_BY_TRACE] = { FIELD_TRACE, FIELD_REQUEST, FIELD_FRAMEWORK, FIELD_NUMBERS,
				    FIELD_TOTAL_ERROR },
		[FLAT_BY_STATE] = { FIELD_STATE, FIELD_HELD, FIELD_TURN, FIELD_NUMBERS,
				    FIELD_TOTAL_ERROR },
		[FLAT_BY_PEER] = { FIELD_PEER, FIELD_STATE, FIELD_NUMBERS, FIELD_TOTAL_ERROR },
		[FLAT_BY_TIME] = { FIELD_FROM, FIELD_CLOCK, FIELD_NUMBERS, FIELD_TOTAL_ERROR },
		[FLAT_BY_GEM] = { FIELD_GEM, FIELD_VERSION, FIELD_ORIGIN, FIELD_NUMBERS,
				  FIELD_TOTAL_ERROR },
	};

	return fields[by];
}

void fields_of_rows(const struct report *r, enum report_field ret[FIELDS_MAX])
{
	const enum report_field *all = fields_of_all(r->by);
	size_t n = 0;

	for (; *all != FIELD_END; all++)
		ret[n++] = *all;
	if (r->rec->profile.with_lengths) {
		ret[n++] = FIELD_WAITS;
		ret[n++] = FIELD_MEAN_WAIT;
		ret[n++] = FIELD_LONGEST_WAIT;
	}
	if (r->rec->profile.whole_waits) {
		ret[n++] = FIELD_P50;
		ret[n++] = FIELD_P95;
		ret[n++] = FIELD_P99;
	}
	ret[n] = FIELD_END;
}

static struct field_value text(const char *s)
{
	return (struct field_value) { .str = s };
}

static struct field_value number(uint64_t n)
{
	return (struct field_value) { .num = n };
}

static const char *module_path(const struct profile *p, const struct profile_frame *f)
{
	return f->module == PROFILE_NONE ? "" : profile_str(p, p->modules[f->module].path);
}

/* A row of a file stands for the path of a module, or for a kind, where the frames have no file. */
static const char *file_name(const struct profile *p, const struct profile_frame *f)
{
	static const char *const kinds[FRAME_KIND_COUNT] = {
		[FRAME_RUBY] = "[ruby]",
		[FRAME_CFUNC] = "[cfunc]",
		[FRAME_NATIVE] = "[native]",
		[FRAME_KERNEL] = "[kernel]",
		[FRAME_GC] = "[gc]",
		[FRAME_TRUNCATED] = "[truncated]",
		[FRAME_UNKNOWN] = "[unknown]",
		[FRAME_FIBER] = "[fiber]",
		[FRAME_GAP] = "[gap]",
		[FRAME_WAIT] = "[wait]",
		[FRAME_NOT_RECORDED] = "[not-recorded]",
	};

	if (f->file)
		return profile_str(p, f->file);
	if (f->module != PROFILE_NONE)
		return module_path(p, f);
	return kinds[f->kind < FRAME_KIND_COUNT ? f->kind : FRAME_UNKNOWN];
}

/* File and line of a C function are those of its callers, of which a row of functions has many. */
static bool has_place(const struct report *r, const struct profile_frame *f)
{
	return f->kind != FRAME_CFUNC || r->by == FLAT_BY_LINE;
}

struct field_value field_of_frame(const struct report *r, uint32_t frame, enum report_field field,
				  struct buf *scratch)
{
	const struct profile *p = &r->rec->profile;
	const struct profile_frame *f = &p->frames[frame];

	switch (field) {
	case FIELD_KIND:
		return text(frame_kind_name(f->kind));
	case FIELD_LABEL:
		return text(profile_str(p, f->name));
	case FIELD_PATH:
		return text(has_place(r, f) ? profile_str(p, f->file) : "");
	case FIELD_LINE:
		if (!has_place(r, f))
			return number(0);
		return number(r->by == FLAT_BY_LINE ? f->line : f->func_line);
	case FIELD_APPROXIMATE:
		return number(f->flags & FRAME_LINE_APPROXIMATE ? 1 : 0);
	case FIELD_MODULE:
		if (r->by != FLAT_BY_MODULE)
			return text(label_basename(module_path(p, f)));
		buf_reset(scratch);
		label_package(p, frame, scratch);
		return text(buf_str(scratch));
	case FIELD_FILE:
		return text(file_name(p, f));
	default:
		return number(0);
	}
}

static struct field_value gem_value(const struct profile *p, uint32_t frame,
				    enum report_field field, struct buf *scratch)
{
	struct gem gem;

	gem_of_frame(p, frame, &gem);
	if (field == FIELD_ORIGIN)
		return text(gem_origin_word(gem.origin));
	buf_reset(scratch);
	if (field == FIELD_GEM)
		gem_name(&gem, scratch);
	else
		buf_add(scratch, gem.version.s, gem.version.len);
	return text(buf_str(scratch));
}

static struct field_value time_value(const struct profile *p, uint32_t second,
				     enum report_field field)
{
	const uint64_t from_ns = second * NSEC_PER_SEC, start = p->meta.start_realtime_ns;

	if (field == FIELD_CLOCK)
		return number(start ? start + from_ns : 0);
	return number(from_ns);
}

static struct field_value request_value(const struct profile *p, uint32_t kind,
					enum report_field field)
{
	return text(field == FIELD_REQUEST ? request_label(p, kind) : request_framework(p, kind));
}

/* Of who ended waits and is no thread of the recording: numbers are 0. */
static struct field_value not_recorded_value(enum report_field field)
{
	switch (field) {
	case FIELD_PID:
	case FIELD_TID:
	case FIELD_NS_PID:
	case FIELD_THREADS:
		return number(0);
	case FIELD_THREAD:
		return text(LABEL_NOT_RECORDED);
	case FIELD_PROCESS:
		return text(LABEL_NO_RECORDED_PROCESS);
	default:
		return text("");
	}
}

static struct field_value process_value(const struct profile *p, uint32_t id,
					enum report_field field, struct buf *scratch)
{
	const struct profile_process *process = &p->processes[id];

	switch (field) {
	case FIELD_PID:
		return number(process->pid);
	case FIELD_PROCESS:
		return text(profile_str(p, process->cmdline));
	case FIELD_NS_PID:
		return number(process->ns_pid);
	case FIELD_CONTAINER:
		return text(profile_str(p, process->container));
	case FIELD_CGROUP:
		return text(profile_str(p, process->cgroup));
	case FIELD_RUBY:
		return text(profile_str(p, process->ruby_version));
	case FIELD_SERVICE:
		attributes_get(profile_str(p, process->attributes), "service.name", scratch);
		return text(buf_str(scratch));
	case FIELD_ATTRIBUTES:
		return text(profile_str(p, process->attributes));
	default:
		return number(0);
	}
}

static struct field_value thread_value(const struct profile *p, uint32_t id,
				       enum report_field field, struct buf *scratch)
{
	const struct profile_thread *thread = &p->threads[id];

	switch (field) {
	case FIELD_TID: /* several have none in common */
		return number(thread_series_count(p, id) > 1 ? 0 : thread->tid);
	case FIELD_THREAD:
		buf_reset(scratch);
		thread_series_name(p, id, scratch);
		return text(buf_str(scratch));
	case FIELD_THREADS:
		return number(thread_series_count(p, id));
	default:
		return process_value(p, thread->process, field, scratch);
	}
}

/* The fields that make a row the one that it is. */
static struct field_value key_value(const struct report *r, const struct flat_row *row,
				    enum report_field field, struct buf *scratch)
{
	const struct profile *p = &r->rec->profile;

	switch (r->by) {
	case FLAT_BY_THREAD:
		return row->id < p->n_threads ? thread_value(p, row->id, field, scratch)
					      : not_recorded_value(field);
	case FLAT_BY_PROCESS:
		return row->id < p->n_processes ? process_value(p, row->id, field, scratch)
						: not_recorded_value(field);
	case FLAT_BY_GEM:
		return gem_value(p, row->frame, field, scratch);
	case FLAT_BY_TIME:
		return time_value(p, row->id, field);
	case FLAT_BY_REQUEST:
		return request_value(p, row->id, field);
	case FLAT_BY_TRACE:
		if (field != FIELD_TRACE)
			return request_value(p, row->request, field);
		buf_reset(scratch);
		if (row->id)
			trace_label(p, row->id, scratch);
		return text(buf_str(scratch));
	case FLAT_BY_KIND:
		return text(frame_kind_name(row->id));
	case FLAT_BY_STATE:
		if (field == FIELD_STATE)
			return text(state_word(row->id & STATE_MASK));
		return number(row->id & (field == FIELD_HELD ? STATE_HELD : STATE_TURN) ? 1 : 0);
	case FLAT_BY_PEER:
		if (field == FIELD_STATE)
			return text(state_word(peer_state(p, row)));
		buf_reset(scratch);
		peer_name(p, row, scratch);
		return text(buf_str(scratch));
	case FLAT_BY_CONTAINER:
	case FLAT_BY_RUBY:
		return field == FIELD_PROCESSES ? number(row->n_processes)
						: text(profile_str(p, row->id));
	default:
		return field_of_frame(r, row->frame, field, scratch);
	}
}

struct field_value field_of_row(const struct report *r, const struct flat_row *row,
				enum report_field field, struct buf *scratch)
{
	if (row->unknown && field >= FIELD_SAMPLES)
		return (struct field_value) { .unknown = true };
	switch (field) {
	case FIELD_SAMPLES:
		return number(row->samples);
	case FIELD_TOTAL_SAMPLES:
		return number(row->total_samples);
	case FIELD_SELF:
		return number(row->self_value);
	case FIELD_TOTAL:
		return number(row->total_value);
	case FIELD_SELF_ERROR:
		return number(row->self_error);
	case FIELD_TOTAL_ERROR:
		return number(row->total_error);
	case FIELD_WAITS:
		return number(row->waits.n);
	case FIELD_MEAN_WAIT:
		return number(row->waits.n ? row->waits.ns / row->waits.n : 0);
	case FIELD_LONGEST_WAIT:
		return number(row->waits.longest_ns);
	case FIELD_P50:
		return number(row->percentiles.p50);
	case FIELD_P95:
		return number(row->percentiles.p95);
	case FIELD_P99:
		return number(row->percentiles.p99);
	default:
		return key_value(r, row, field, scratch);
	}
}

size_t report_rows_shown(const struct report *r, const struct flat *flat)
{
	return flat->n_rows < r->limit ? flat->n_rows : (size_t)r->limit;
}
