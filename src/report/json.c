/* SPDX-License-Identifier: GPL-2.0-only */
/* The report as JSON. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "report/fields.h"
#include "report/report.h"
#include "view/gc.h"
#include "view/native.h"

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

/* The versions of Ruby, each once. */
static void json_rubies(const struct profile *p, struct json *j)
{
	_cleanup_free_ uint32_t *versions = NULL;
	size_t n;

	if (profile_rubies(p, &versions, &n)) {
		j->out->failed = true;
		return;
	}
	json_array_begin(j, "rubies");
	for (size_t i = 0; i < n; i++)
		json_str(j, NULL, profile_str(p, versions[i]));
	json_array_end(j);
}

void report_json_totals(const struct report *r, uint64_t samples, uint64_t value, struct json *j)
{
	const struct profile *p = &r->rec->profile;
	const struct profile_totals *t = &p->totals;

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
	json_u64(j, "gc_unknown_ns", t->gc_unknown_ns);
	json_u64(j, "cpu_kernel_ns", t->cpu_kernel_ns);
	json_bool(j, "cpu_differs", summary_cpu_differs(t, p->meta.frequency));
	json_u64(j, "rbpf_cpu_ns", t->rbpf_cpu_ns);
	json_u64(j, "rbpf_start_cpu_ns", t->rbpf_start_cpu_ns);
	json_u64(j, "kernel_ns_per_sample", t->kernel_ns_per_sample);
	json_u64(j, "other_ticks", t->other_ticks);
	json_u64(j, "other_ticks_ns", t->other_ticks_ns);
	json_u64(j, "switches", t->switches);
	json_u64(j, "switches_ns", t->switches_ns);
	json_u64(j, "wakeups", t->wakeups);
	json_u64(j, "wakeups_ns", t->wakeups_ns);
	json_u64(j, "bpf_ns", t->bpf_ns);
	json_u64(j, "machine_busy_ns", t->machine_busy_ns);
	json_u64(j, "machine_stolen_ns", t->machine_stolen_ns);
	json_u64(j, "lowest_hz", t->lowest_hz);
	json_u64(j, "lowered_ns", t->lowered_ns);
	json_u64(j, "frequency", p->meta.frequency);
	json_str(j, "event", profile_event(p)->name);
	json_str(j, "command", p->meta.command ? p->meta.command : "");
	json_rubies(p, j);
	json_bool(j, "complete", r->rec->report.complete);
	json_u64(j, "selected_samples", samples);
	json_u64(j, field_value_key(r, "selected").s, value);
	profile_counters_json(t, j);
	json_native(r, j);
}

void report_json_summary(const struct report *r, uint64_t samples, uint64_t value, struct json *j)
{
	json_object_begin(j, "summary");
	report_json_totals(r, samples, value, j);
	json_object_end(j);
}

static void json_field(const struct report *r, struct json *j, enum report_field field,
		       struct field_value v)
{
	if (v.unknown)
		json_nil(j, field_key(r, field).s);
	else if (v.str)
		json_str(j, field_key(r, field).s, v.str);
	else if (field != FIELD_APPROXIMATE)
		json_u64(j, field_key(r, field).s, v.num);
	else if (v.num) /* the exception is told, the rule is not */
		json_bool(j, field_key(r, field).s, true);
}

void report_json_frame(const struct report *r, uint32_t frame, struct json *j)
{
	static const enum report_field fields[] = {
		FIELD_KIND, FIELD_LABEL, FIELD_PATH, FIELD_LINE, FIELD_MODULE,
	};
	_cleanup_buf_ struct buf scratch = BUF_INIT;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fields); i++)
		json_field(r, j, fields[i], field_of_frame(r, frame, fields[i], &scratch));
	if (r->by == FLAT_BY_LINE)
		json_field(r, j, FIELD_APPROXIMATE,
			   field_of_frame(r, frame, FIELD_APPROXIMATE, &scratch));
}

static void json_row(const struct report *r, const enum report_field *fields,
		     const struct flat_row *row, struct json *j)
{
	_cleanup_buf_ struct buf scratch = BUF_INIT;
	size_t i;

	json_object_begin(j, NULL);
	for (i = 0; fields[i] != FIELD_END; i++)
		json_field(r, j, fields[i], field_of_row(r, row, fields[i], &scratch));
	json_object_end(j);
}

static void json_rows(const struct report *r, const struct flat *flat, struct json *j)
{
	enum report_field fields[FIELDS_MAX];
	size_t i;

	fields_of_rows(r, fields);
	json_array_begin(j, "rows");
	for (i = 0; i < report_rows_shown(r, flat); i++)
		json_row(r, fields, &flat->rows[i], j);
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
	if (gc_report_is_unknown(gc)) {
		json_nil(j, "samples");
		json_nil(j, unit_of(p));
	} else {
		json_u64(j, "samples", gc->gc.samples);
		json_u64(j, unit_of(p), gc->gc.value);
	}
	json_object_begin(j, "unknown");
	json_u64(j, "samples", gc->unknown.samples);
	json_u64(j, unit_of(p), gc->unknown.value);
	json_object_end(j);
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
