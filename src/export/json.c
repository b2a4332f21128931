/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The whole recording as one JSON object; doc/json.md is its description and must follow it.
 *
 * Ids are places in arrays, the same as in the recording. A filter takes samples away; frames that
 * it hides stay defined, but the stacks that are referred to have none of them: a stack's parent
 * and a sample's stack are the nearest ones whose innermost frame is shown. A sample of whose stack
 * nothing is shown has the one that stands for it (view_stack_instead()).
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/attributes.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/json_row.h"
#include "export/export.h"
#include "export/exporters.h"
#include "export/function.h"
#include "export/shown.h"
#include "profile/meta.h"
#include "profile/profile.h"
#include "profile/reason.h"
#include "profile/replay.h"
#include "view/request.h"

static void add_optional_str(struct json *j, const char *key, const char *s)
{
	if (s)
		json_str(j, key, s);
	else
		json_nil(j, key);
}

static void add_id(struct json *j, const char *key, uint32_t id)
{
	if (id == PROFILE_NONE)
		json_nil(j, key);
	else
		json_u64(j, key, id);
}

static void add_meta(struct json *j, const struct profile_meta *meta)
{
	json_object_begin(j, "meta");
	add_optional_str(j, "rbpf_version", meta->rbpf_version);
	add_optional_str(j, "command", meta->command);
	add_optional_str(j, "hostname", meta->hostname);
	add_optional_str(j, "kernel", meta->kernel);
	add_optional_str(j, "arch", meta->arch);
	add_optional_str(j, "mode", meta->mode);
	json_u64(j, "frequency_hz", meta->frequency);
	json_u64(j, "cpus", meta->cpus);
	json_u64(j, "start_realtime_ns", meta->start_realtime_ns);
	json_u64(j, "start_ns", meta->start_monotonic_ns);
	meta_events_json(meta, j);
	json_object_end(j);
}

static void add_totals(struct json *j, const struct profile_totals *totals)
{
	json_object_begin(j, "totals");
	json_u64(j, "end_ns", totals->end_monotonic_ns);
	json_u64(j, "samples", totals->samples);
	json_u64(j, "lost", totals->lost);
	json_u64(j, "truncated", totals->truncated);
	json_u64(j, "unresolved", totals->unresolved);
	json_u64(j, "failed", totals->failed);
	json_u64(j, "no_ruby", totals->no_ruby);
	json_u64(j, "native_samples", totals->native_samples);
	json_u64(j, "native_gaps", totals->native_gaps);
	json_u64(j, "cpu_sampled_ns", totals->cpu_sampled_ns);
	json_u64(j, "gc_ns", totals->gc_ns);
	json_u64(j, "gc_unknown_ns", totals->gc_unknown_ns);
	json_u64(j, "cpu_kernel_ns", totals->cpu_kernel_ns);
	json_u64(j, "rbpf_cpu_ns", totals->rbpf_cpu_ns);
	json_u64(j, "rbpf_start_cpu_ns", totals->rbpf_start_cpu_ns);
	json_u64(j, "kernel_ns_per_sample", totals->kernel_ns_per_sample);
	json_u64(j, "other_ticks", totals->other_ticks);
	json_u64(j, "other_ticks_ns", totals->other_ticks_ns);
	json_u64(j, "switches", totals->switches);
	json_u64(j, "switches_ns", totals->switches_ns);
	json_u64(j, "wakeups", totals->wakeups);
	json_u64(j, "wakeups_ns", totals->wakeups_ns);
	json_u64(j, "bpf_ns", totals->bpf_ns);
	json_u64(j, "machine_busy_ns", totals->machine_busy_ns);
	json_u64(j, "machine_stolen_ns", totals->machine_stolen_ns);
	json_u64(j, "lowest_hz", totals->lowest_hz);
	json_u64(j, "lowered_ns", totals->lowered_ns);
	profile_counters_json(totals, j);
	json_object_end(j);
}

static void add_processes(struct json *j, const struct profile *p)
{
	json_array_begin(j, "processes");
	for (size_t i = 0; i < p->n_processes; i++) {
		const struct profile_process *process = &p->processes[i];

		json_object_begin(j, NULL);
		json_u64(j, "pid", process->pid);
		add_id(j, "parent", process->parent);
		json_u64(j, "start_ticks", process->start_ticks);
		json_str(j, "exe", profile_str(p, process->exe));
		json_str(j, "command", profile_str(p, process->cmdline));
		json_str(j, "ruby", profile_str(p, process->ruby_version));
		json_str(j, "cgroup", profile_str(p, process->cgroup));
		json_str(j, "container", profile_str(p, process->container));
		attributes_json(profile_str(p, process->attributes), "attributes", j);
		json_u64(j, "ns_pid", process->ns_pid);
		add_id(j, "uid", process->uid);
		if (process->exited) {
			json_u64(j, "exit_ns", process->exit_ts);
			if (process->exit_status < 0)
				json_nil(j, "exit_status");
			else
				json_i64(j, "exit_status", process->exit_status);
		}
		json_object_end(j);
	}
	json_array_end(j);
}

static void add_threads(struct json *j, const struct profile *p)
{
	json_array_begin(j, "threads");
	for (size_t i = 0; i < p->n_threads; i++) {
		const struct profile_thread *thread = &p->threads[i];

		json_object_begin(j, NULL);
		json_u64(j, "process", thread->process);
		json_u64(j, "tid", thread->tid);
		json_str(j, "name", profile_str(p, thread->name));
		if (thread->cpu_known)
			json_u64(j, "cpu_ns", thread->cpu_ns);
		else
			json_nil(j, "cpu_ns");
		json_object_end(j);
	}
	json_array_end(j);
}

static void add_modules(struct json *j, const struct profile *p)
{
	json_array_begin(j, "modules");
	for (size_t i = 0; i < p->n_modules; i++) {
		json_object_begin(j, NULL);
		json_str(j, "path", profile_str(p, p->modules[i].path));
		json_str(j, "build_id", profile_str(p, p->modules[i].build_id));
		json_object_end(j);
	}
	json_array_end(j);
}

/* The exception is told, the rule is not. */
static void add_frame_flags(struct json *j, uint32_t flags)
{
	if (flags & FRAME_INTERNAL)
		json_bool(j, "internal", true);
	if (flags & FRAME_JIT)
		json_str(j, "jit", flags & FRAME_YJIT ? "yjit" : "zjit");
	if (flags & FRAME_INLINED)
		json_bool(j, "inlined", true);
}

static void add_frames(struct json *j, const struct profile *p)
{
	json_array_begin(j, "frames");
	for (size_t i = 0; i < p->n_frames; i++) {
		const struct profile_frame *frame = &p->frames[i];

		json_object_begin(j, NULL);
		json_str(j, "kind", frame_kind_name(frame->kind));
		if (frame->reason)
			json_str(j, "reason", frame_reason_word(frame->reason));
		json_str(j, "label", profile_str(p, frame->name));
		if (frame->raw_name)
			json_str(j, "raw_label", profile_str(p, frame->raw_name));
		json_str(j, "path", profile_str(p, frame->file));
		json_u64(j, "line", frame->line);
		if (frame->flags & FRAME_LINE_APPROXIMATE)
			json_bool(j, "approximate", true);
		json_u64(j, "func_line", frame->func_line);
		add_id(j, "module", frame->module);
		json_u64(j, "address", frame->address);
		add_frame_flags(j, frame->flags);
		json_object_end(j);
	}
	json_array_end(j);
}

static void add_stacks(struct json *j, const struct shown *shown)
{
	const struct profile *p = shown->profile;

	json_array_begin(j, "stacks");
	for (size_t i = 0; i < p->n_stacks; i++) {
		json_object_begin(j, NULL);
		add_id(j, "parent", i ? shown->nearest[p->stacks[i].parent] : PROFILE_NONE);
		add_id(j, "frame", i ? p->stacks[i].frame : PROFILE_NONE);
		json_object_end(j);
	}
	json_array_end(j);
}

static void add_sample_flags(struct json_row *row, unsigned int flags)
{
	static const struct {
		unsigned int flag;
		const char *name;
	} names[] = {
		{ SAMPLE_KERNEL, "kernel" },	     { SAMPLE_TRUNCATED, "truncated" },
		{ SAMPLE_UNRESOLVED, "unresolved" }, { SAMPLE_NO_RUBY, "no-ruby" },
		{ SAMPLE_FAILED, "failed" },	     { SAMPLE_GC, "gc" },
		{ SAMPLE_NATIVE, "native" },	     { SAMPLE_GAP, "gap" },
		{ SAMPLE_GC_UNKNOWN, "gc-unknown" }, { SAMPLE_PAGE_FAULT, "page-fault" },
	};

	bool first = true;

	JSON_ROW_KEY(row, "flags");
	json_row_put(row, "[", 1);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!(flags & names[i].flag))
			continue;
		if (!first)
			json_row_put(row, ",", 1);
		json_row_put(row, "\"", 1);
		json_row_put(row, names[i].name, strlen(names[i].name));
		json_row_put(row, "\"", 1);
		first = false;
	}
	json_row_put(row, "]", 1);
}

/* Request 0 stands for none. */
static void add_requests(struct json *j, const struct profile *p)
{
	json_array_begin(j, "requests");
	for (uint32_t i = 0; i < p->n_requests; i++) {
		json_object_begin(j, NULL);
		add_id(j, "thread", i ? p->requests[i].thread : PROFILE_NONE);
		json_str(j, "framework", request_framework(p, p->requests[i].kind));
		json_str(j, "name", request_label(p, p->requests[i].kind));
		json_object_end(j);
	}
	json_array_end(j);
}

static void add_hex(struct json *j, const char *key, const uint8_t *bytes, size_t n)
{
	char hex[2 * sizeof(((struct profile_span *)NULL)->trace_id) + 1];

	hex_of_bytes(bytes, n, hex);
	json_str(j, key, hex);
}

/* Span 0 stands for none. */
static void add_spans(struct json *j, const struct profile *p)
{
	json_array_begin(j, "spans");
	for (uint32_t i = 0; p->spans.count && i <= p->spans.count; i++) {
		const struct profile_span none = { 0 }, *span = i ? profile_span(p, i) : &none;

		json_object_begin(j, NULL);
		add_hex(j, "trace_id", span->trace_id, sizeof(span->trace_id));
		add_hex(j, "span_id", span->span_id, sizeof(span->span_id));
		json_object_end(j);
	}
	json_array_end(j);
}

/* What writes samples while the recording is read. */
struct sample_writer {
	struct json json;
	struct shown shown;
	struct err *err;
};

static int add_sample(void *arg, const struct profile_sample *s)
{
	struct sample_writer *w = arg;
	struct json_row row;

	if (!shown_sample(&w->shown, s))
		return 0;
	json_row_begin(&row);
	JSON_ROW_U64(&row, "ts_ns", s->ts);
	JSON_ROW_U64(&row, "value", s->value);
	if (w->shown.profile->meta.n_events > 1)
		JSON_ROW_U64(&row, "event", s->event);
	JSON_ROW_U64(&row, "thread", s->thread);
	JSON_ROW_U64(&row, "stack", shown_stack(&w->shown, s->stack));
	JSON_ROW_U64(&row, "cpu", s->cpu);
	if (s->request)
		JSON_ROW_U64(&row, "request", s->request);
	if (s->span)
		JSON_ROW_U64(&row, "span", s->span);
	add_sample_flags(&row, s->flags);
	json_row_end(&row, &w->json);
	return buf_failed(w->json.out) ? err_oom(w->err) : 0;
}

static void add_lost(struct json *j, const struct profile *p)
{
	json_array_begin(j, "lost");
	for (size_t i = 0; i < p->n_lost; i++) {
		json_object_begin(j, NULL);
		json_u64(j, "ts_ns", p->lost[i].ts);
		json_u64(j, "count", p->lost[i].count);
		json_str(j, "reason", lost_reason_name(p->lost[i].reason));
		json_object_end(j);
	}
	json_array_end(j);
}

int export_json(const struct profile *p, const struct export_options *opts, struct buf *out,
		struct err *err)
{
	struct sample_writer w = { .json = JSON_INIT(out), .err = err };
	struct json *j = &w.json;
	int r = shown_init(p, opts->filter, &w.shown);

	if (r)
		return err_code(err, r);
	json_object_begin(j, NULL);
	json_str(j, "format", "rbpf-recording");
	json_u64(j, "version", 2);
	json_bool(j, "complete", p->complete);
	add_meta(j, &p->meta);
	add_totals(j, &p->totals);
	add_processes(j, p);
	add_threads(j, p);
	add_modules(j, p);
	add_frames(j, p);
	add_stacks(j, &w.shown);
	add_requests(j, p);
	add_spans(j, p);
	json_array_begin(j, "samples");
	r = profile_each_of_all(p, &opts->replay, add_sample, &w, err);
	json_array_end(j);
	add_lost(j, p);
	json_object_end(j);
	buf_addch(out, '\n');
	shown_deinit(&w.shown);
	if (!r && buf_failed(out))
		r = -ENOMEM;
	return export_error(r, err);
}
