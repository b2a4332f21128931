/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The report for programs: JSON and CSV, from one table of fields.
 *
 * Both are stable (rbpf-report(1)): fields may be added, none renamed or given another meaning.
 * Names are exact, times are in ns, and line is 0 where there is none.
 */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "cmd/report.h"
#include "ui/summary.h"
#include "view/gc.h"
#include "view/label.h"
#include "view/native.h"

enum field {
	FIELD_END,
	FIELD_KIND,
	FIELD_LABEL,
	FIELD_PATH,
	FIELD_LINE,
	FIELD_APPROXIMATE,
	FIELD_MODULE,
	FIELD_FILE,
	FIELD_PID,
	FIELD_TID,
	FIELD_THREAD,
	FIELD_PROCESS,
	FIELD_NS_PID,
	FIELD_CONTAINER,
	FIELD_CGROUP,
	FIELD_RUBY,
	FIELD_PROCESSES,
	FIELD_SAMPLES,
	FIELD_TOTAL_SAMPLES,
	FIELD_SELF,
	FIELD_TOTAL,
	FIELD_SELF_ERROR,
};

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
	[FIELD_PROCESSES] = "processes",
	[FIELD_SAMPLES] = "samples",
	[FIELD_TOTAL_SAMPLES] = "total_samples",
	[FIELD_SELF] = "self",
	[FIELD_TOTAL] = "total",
	[FIELD_SELF_ERROR] = "self_error",
};

#define FIELD_NUMBERS FIELD_SAMPLES, FIELD_TOTAL_SAMPLES, FIELD_SELF, FIELD_TOTAL, FIELD_SELF_ERROR

/* "self_ns", "self_bytes": the key of a value of the event that is shown. */
static struct num_text value_key(const struct report *r, const char *what)
{
	struct num_text ret;

	snprintf(ret.s, sizeof(ret.s), "%.40s_%s", what,
		 value_unit_name(profile_event(&r->rec->profile)->unit));
	return ret;
}

static struct num_text key_of(const struct report *r, enum field field)
{
	struct num_text ret;

	if (field == FIELD_SELF || field == FIELD_TOTAL || field == FIELD_SELF_ERROR)
		return value_key(r, field_names[field]);
	snprintf(ret.s, sizeof(ret.s), "%s", field_names[field]);
	return ret;
}

/* What a row has, by --by. */
static const enum field row_fields[][16] = {
	[FLAT_BY_FUNCTION] = { FIELD_KIND, FIELD_LABEL, FIELD_PATH, FIELD_LINE, FIELD_MODULE,
			       FIELD_NUMBERS },
	[FLAT_BY_LINE] = { FIELD_KIND, FIELD_LABEL, FIELD_PATH, FIELD_LINE, FIELD_MODULE,
			   FIELD_NUMBERS, FIELD_APPROXIMATE },
	[FLAT_BY_FILE] = { FIELD_FILE, FIELD_NUMBERS },
	[FLAT_BY_THREAD] = { FIELD_PID, FIELD_TID, FIELD_THREAD, FIELD_NUMBERS },
	[FLAT_BY_PROCESS] = { FIELD_PID, FIELD_PROCESS, FIELD_NUMBERS, FIELD_NS_PID,
			      FIELD_CONTAINER, FIELD_CGROUP, FIELD_RUBY },
	[FLAT_BY_KIND] = { FIELD_KIND, FIELD_NUMBERS },
	[FLAT_BY_CONTAINER] = { FIELD_CONTAINER, FIELD_PROCESSES, FIELD_NUMBERS },
	[FLAT_BY_RUBY] = { FIELD_RUBY, FIELD_PROCESSES, FIELD_NUMBERS },
	[FLAT_BY_MODULE] = { FIELD_MODULE, FIELD_NUMBERS },
};

/* A value: a number if str is NULL. */
struct value {
	const char *str;
	uint64_t num;
};

static struct value text(const char *s)
{
	return (struct value) { .str = s };
}

static struct value number(uint64_t n)
{
	return (struct value) { .num = n };
}

static const char *module_path(const struct profile *p, const struct profile_frame *f)
{
	return f->module == PROFILE_NONE ? "" : profile_str(p, p->modules[f->module].path);
}

/* A row of a file stands for the path of a module, or for a kind, where the frames have no file. */
static const char *file_name(const struct profile *p, const struct profile_frame *f)
{
	static const char *const kinds[FRAME_KIND_COUNT] = {
		[FRAME_RUBY] = "[ruby]",       [FRAME_CFUNC] = "[cfunc]",
		[FRAME_NATIVE] = "[native]",   [FRAME_KERNEL] = "[kernel]",
		[FRAME_GC] = "[gc]",	       [FRAME_TRUNCATED] = "[truncated]",
		[FRAME_UNKNOWN] = "[unknown]", [FRAME_FIBER] = "[fiber]",
		[FRAME_GAP] = "[gap]",
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

/* The text of a value that is no string of the recording is put into @scratch. */
static struct value frame_value(const struct report *r, uint32_t frame, enum field field,
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

static struct value process_value(const struct profile *p, uint32_t id, enum field field)
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
	default:
		return number(0);
	}
}

static struct value thread_value(const struct profile *p, uint32_t id, enum field field)
{
	const struct profile_thread *thread = &p->threads[id];

	switch (field) {
	case FIELD_TID:
		return number(thread->tid);
	case FIELD_THREAD:
		return text(profile_str(p, thread->name));
	default:
		return process_value(p, thread->process, field);
	}
}

/* The fields that make a row the one that it is. */
static struct value key_value(const struct report *r, const struct flat_row *row, enum field field,
			      struct buf *scratch)
{
	const struct profile *p = &r->rec->profile;

	switch (r->by) {
	case FLAT_BY_THREAD:
		return thread_value(p, row->id, field);
	case FLAT_BY_PROCESS:
		return process_value(p, row->id, field);
	case FLAT_BY_CONTAINER:
	case FLAT_BY_RUBY:
		return field == FIELD_PROCESSES ? number(row->n_processes)
						: text(profile_str(p, row->id));
	default:
		return frame_value(r, row->frame, field, scratch);
	}
}

static struct value row_value(const struct report *r, const struct flat_row *row, enum field field,
			      struct buf *scratch)
{
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
	default:
		return key_value(r, row, field, scratch);
	}
}

static size_t rows_shown(const struct report *r, const struct flat *flat)
{
	return flat->n_rows < r->limit ? flat->n_rows : (size_t)r->limit;
}

static void json_native(const struct report *r, struct json *j)
{
	const struct profile *p = &r->rec->profile;
	struct native_stacks native;
	size_t i;

	if (native_stacks_count(p, &native)) {
		j->out->failed = true;
		return;
	}
	if (!native.samples)
		return;
	json_object_begin(j, "native");
	json_u64(j, "samples", native.samples);
	json_u64(j, "complete", native.complete);
	json_object_begin(j, "gaps");
	for (i = 0; i < native.n_gaps; i++)
		json_u64(j, frame_reason_why(native.gaps[i].reason), native.gaps[i].samples);
	json_object_end(j);
	json_object_end(j);
}

void report_json_summary(const struct report *r, uint64_t samples, uint64_t value, struct json *j)
{
	const struct profile *p = &r->rec->profile;
	const struct profile_totals *t = &p->totals;

	json_object_begin(j, "summary");
	json_u64(j, "duration_ns", recording_duration(r->rec));
	json_u64(j, "processes", p->n_processes);
	json_u64(j, "threads", p->n_threads);
	json_u64(j, "samples", p->n_samples);
	json_u64(j, "lost", t->lost);
	json_u64(j, "truncated", t->truncated);
	json_u64(j, "unresolved", t->unresolved);
	json_u64(j, "failed", t->failed);
	json_u64(j, "no_ruby", t->no_ruby);
	json_u64(j, "cpu_sampled_ns", t->cpu_sampled_ns);
	json_u64(j, "gc_ns", t->gc_ns);
	json_u64(j, "cpu_kernel_ns", t->cpu_kernel_ns);
	json_u64(j, "rbpf_cpu_ns", t->rbpf_cpu_ns);
	json_u64(j, "kernel_ns_per_sample", t->kernel_ns_per_sample);
	json_u64(j, "frequency", p->meta.frequency);
	json_str(j, "event", profile_event(p)->name);
	json_bool(j, "complete", r->rec->report.complete);
	json_u64(j, "selected_samples", samples);
	json_u64(j, value_key(r, "selected").s, value);
	profile_counters_json(t, j);
	json_native(r, j);
	json_object_end(j);
}

static void json_field(const struct report *r, struct json *j, enum field field, struct value v)
{
	if (v.str)
		json_str(j, key_of(r, field).s, v.str);
	else if (field != FIELD_APPROXIMATE)
		json_u64(j, key_of(r, field).s, v.num);
	else if (v.num) /* the exception is told, the rule is not */
		json_bool(j, key_of(r, field).s, true);
}

void report_json_frame(const struct report *r, uint32_t frame, struct json *j)
{
	static const enum field fields[] = {
		FIELD_KIND, FIELD_LABEL, FIELD_PATH, FIELD_LINE, FIELD_MODULE,
	};
	_cleanup_buf_ struct buf scratch = BUF_INIT;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fields); i++)
		json_field(r, j, fields[i], frame_value(r, frame, fields[i], &scratch));
	if (r->by == FLAT_BY_LINE)
		json_field(r, j, FIELD_APPROXIMATE,
			   frame_value(r, frame, FIELD_APPROXIMATE, &scratch));
}

static void json_row(const struct report *r, const struct flat_row *row, struct json *j)
{
	_cleanup_buf_ struct buf scratch = BUF_INIT;
	const enum field *f;

	json_object_begin(j, NULL);
	for (f = row_fields[r->by]; *f != FIELD_END; f++)
		json_field(r, j, *f, row_value(r, row, *f, &scratch));
	json_object_end(j);
}

static void json_rows(const struct report *r, const struct flat *flat, struct json *j)
{
	size_t i;

	json_array_begin(j, "rows");
	for (i = 0; i < rows_shown(r, flat); i++)
		json_row(r, &flat->rows[i], j);
	json_array_end(j);
}

int report_json(const struct report *r, struct buf *out, struct err *err)
{
	struct json j = JSON_INIT(out);
	_cleanup_flat_ struct flat flat = FLAT_INIT;
	int ret;

	ret = report_flat(r, &flat, err);
	if (ret)
		return ret;
	json_object_begin(&j, NULL);
	report_json_summary(r, flat.samples, flat.value, &j);
	json_rows(r, &flat, &j);
	json_object_end(&j);
	buf_addch(out, '\n');
	return buf_failed(out) ? err_oom(err) : 0;
}

/* The key of values of the event: "ns". */
static const char *unit_of(const struct profile *p)
{
	return value_unit_name(profile_event(p)->unit);
}

static void json_phases(const struct profile *p, const struct gc_report *gc, struct json *j)
{
	unsigned int phase;

	json_array_begin(j, "phases");
	for (phase = GC_NONE + 1; phase < GC_PHASE_COUNT; phase++) {
		json_object_begin(j, NULL);
		json_str(j, "phase", gc_phase_name(phase));
		json_u64(j, "samples", gc->phases[phase].samples);
		json_u64(j, unit_of(p), gc->phases[phase].value);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_process(const struct profile *p, uint32_t process, struct json *j)
{
	json_u64(j, "pid", p->processes[process].pid);
	json_str(j, "process", profile_str(p, p->processes[process].cmdline));
}

static void json_thread(const struct profile *p, uint32_t thread, struct json *j)
{
	json_u64(j, "pid", p->processes[p->threads[thread].process].pid);
	json_u64(j, "tid", p->threads[thread].tid);
	json_str(j, "thread", profile_str(p, p->threads[thread].name));
}

/* Who collected; @cpu_ns has the time of each in all, by id. */
static void json_collectors(const struct profile *p, const struct flat *flat,
			    const uint64_t *cpu_ns,
			    void (*add)(const struct profile *p, uint32_t id, struct json *j),
			    struct json *j)
{
	size_t i;

	for (i = 0; i < flat->n_rows; i++) {
		const struct flat_row *row = &flat->rows[i];

		json_object_begin(j, NULL);
		add(p, row->id, j);
		json_u64(j, "samples", row->samples);
		json_u64(j, unit_of(p), row->self_value);
		json_u64(j, "cpu_ns", cpu_ns[row->id]);
		json_object_end(j);
	}
}

static void json_gc(const struct profile *p, const struct gc_report *gc, struct json *j)
{
	json_object_begin(j, "gc");
	json_u64(j, "samples", gc->gc.samples);
	json_u64(j, unit_of(p), gc->gc.value);
	json_phases(p, gc, j);
	json_array_begin(j, "processes");
	json_collectors(p, &gc->processes, gc->process_value, json_process, j);
	json_array_end(j);
	json_array_begin(j, "threads");
	json_collectors(p, &gc->threads, gc->thread_value, json_thread, j);
	json_array_end(j);
	json_object_end(j);
}

int report_gc_json(const struct report *r, struct buf *out, struct err *err)
{
	struct json j = JSON_INIT(out);
	_cleanup_gc_report_ struct gc_report gc = GC_REPORT_INIT;
	int ret;

	ret = report_gc_build(r, &gc, err);
	if (ret)
		return ret;
	json_object_begin(&j, NULL);
	report_json_summary(r, gc.all.samples, gc.all.value, &j);
	json_gc(&r->rec->profile, &gc, &j);
	json_rows(r, &gc.causes, &j);
	json_object_end(&j);
	buf_addch(out, '\n');
	return buf_failed(out) ? err_oom(err) : 0;
}

/* RFC 4180: quoted where needed, quotes doubled. */
static void csv_text(struct buf *out, const char *s)
{
	if (!strpbrk(s, ",\"\r\n")) {
		buf_addstr(out, s);
		return;
	}
	buf_addch(out, '"');
	for (; *s; s++) {
		if (*s == '"')
			buf_addch(out, '"');
		buf_addch(out, *s);
	}
	buf_addch(out, '"');
}

static void csv_row(const struct report *r, const struct flat_row *row, struct buf *out)
{
	_cleanup_buf_ struct buf scratch = BUF_INIT;
	const enum field *f;

	for (f = row_fields[r->by]; *f != FIELD_END; f++) {
		struct value v = row_value(r, row, *f, &scratch);

		if (f != row_fields[r->by])
			buf_addch(out, ',');
		if (v.str)
			csv_text(out, v.str);
		else
			buf_addf(out, "%llu", (unsigned long long)v.num);
	}
	buf_addstr(out, "\r\n");
}

static void csv_rows(const struct report *r, const struct flat *flat, struct buf *out)
{
	const enum field *f;
	size_t i;

	for (f = row_fields[r->by]; *f != FIELD_END; f++)
		buf_addf(out, "%s%s", f == row_fields[r->by] ? "" : ",", key_of(r, *f).s);
	buf_addstr(out, "\r\n");
	for (i = 0; i < rows_shown(r, flat); i++)
		csv_row(r, &flat->rows[i], out);
}

int report_csv(const struct report *r, struct buf *out, struct err *err)
{
	_cleanup_flat_ struct flat flat = FLAT_INIT;
	int ret;

	ret = report_flat(r, &flat, err);
	if (ret)
		return ret;
	csv_rows(r, &flat, out);
	return buf_failed(out) ? err_oom(err) : 0;
}

int report_gc_csv(const struct report *r, struct buf *out, struct err *err)
{
	_cleanup_gc_report_ struct gc_report gc = GC_REPORT_INIT;
	int ret;

	ret = report_gc_build(r, &gc, err);
	if (ret)
		return ret;
	csv_rows(r, &gc.causes, out);
	return buf_failed(out) ? err_oom(err) : 0;
}
