/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A processed profile of the Firefox Profiler, https://profiler.firefox.com, in version 66 of its
 * format: https://github.com/firefox-devtools/profiler/blob/main/docs-developer/CHANGELOG-formats.md
 * Newer front ends read older versions, but not the other way round.
 *
 * Methods in Ruby are what the profiler takes for JavaScript, so that its filter of stacks shows
 * Ruby, native code or both. A thread is sampled when it uses CPU time: its samples weigh that much,
 * and its graph shows how much of the time between samples that is. Of a recording with waits, a wait
 * is a sample at its end that weighs as much as it was long, and a marker. Times of samples are written as what passed
 * since the one before: a sixth less to write, and to read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/attributes.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "export/export.h"
#include "export/exporters.h"
#include "export/firefox_markers.h"
#include "export/firefox_tables.h"
#include "export/function.h"
#include "export/origin.h"
#include "export/thread_samples.h"
#include "view/label.h"
#include "view/state.h"

#define FORMAT_VERSION 66

/* Columns of the samples of a thread. */
enum firefox_column {
	COLUMN_STACK,
	COLUMN_TIME,
	COLUMN_WEIGHT,
	COLUMN_CPU,
};

struct firefox {
	const struct profile *profile;
	struct firefox_tables tables;
	struct json json;
	struct thread_samples *samples;
	size_t thread; /* of @samples */
	struct firefox_markers markers;

	enum firefox_column column; /* that is written */
	uint64_t n;		    /* its values */
	uint64_t ts;		    /* of the sample before, or of the start */
	struct err *err;
};

/* ---- samples ---- */

static void add_value(struct firefox *w, uint64_t value, bool as_weight)
{
	if (as_weight && profile_event(w->profile)->unit == UNIT_NS)
		json_decimal(&w->json, NULL, value, FIREFOX_MS_DECIMALS);
	else
		json_u64(&w->json, NULL, value);
	w->n++;
}

static int add_sample(void *arg, const struct thread_sample *s)
{
	struct firefox *w = arg;

	switch (w->column) {
	case COLUMN_STACK:
		if (s->stack)
			json_u64(&w->json, NULL, w->tables.index[s->stack]);
		else
			json_nil(&w->json, NULL);
		w->n++;
		break;
	case COLUMN_TIME:
		json_decimal(&w->json, NULL, s->ts > w->ts ? s->ts - w->ts : 0,
			     FIREFOX_MS_DECIMALS);
		if (s->ts > w->ts)
			w->ts = s->ts;
		w->n++;
		break;
	case COLUMN_WEIGHT:
		add_value(w, s->value, true);
		break;
	case COLUMN_CPU:
		add_value(w, state_waits(s->state) ? 0 : s->value, false);
		break;
	}
	return buf_failed(w->json.out) ? err_oom(w->err) : 0;
}

static int add_column(struct firefox *w, const char *name, enum firefox_column column)
{
	int r;

	w->column = column;
	w->n = 0;
	w->ts = w->profile->meta.start_monotonic_ns;
	json_array_begin(&w->json, name);
	r = thread_samples_each(w->samples, w->thread, add_sample, w, w->err);
	json_array_end(&w->json);
	return r;
}

/* Whether the samples are of CPU time, or of that and of waits. */
static bool is_time(const struct profile *p)
{
	const struct profile_event *event = profile_event(p);

	return event_is_cpu(event) || !strcmp(event->name, EVENT_WALL);
}

static int add_samples(struct firefox *w)
{
	static const char *const weights[VALUE_UNITS] = {
		[UNIT_NS] = "tracing-ms",
		[UNIT_BYTES] = "bytes",
		[UNIT_OBJECTS] = "samples",
		[UNIT_COUNT] = "samples",
	};
	uint32_t unit = profile_event(w->profile)->unit;
	int r;

	json_object_begin(&w->json, "samples");
	r = add_column(w, "stack", COLUMN_STACK);
	if (!r)
		r = add_column(w, "timeDeltas", COLUMN_TIME);
	if (!r)
		r = add_column(w, "weight", COLUMN_WEIGHT);
	if (!r && is_time(w->profile))
		r = add_column(w, "threadCPUDelta", COLUMN_CPU);
	json_str(&w->json, "weightType", weights[unit]);
	json_u64(&w->json, "length", w->n);
	json_object_end(&w->json);
	return r;
}

/* ---- threads ---- */

static int add_thread(struct firefox *w)
{
	const struct profile *p = w->profile;
	uint32_t id = thread_samples_thread(w->samples, w->thread);
	const struct profile_thread *t = &p->threads[id];
	const struct profile_process *process = &p->processes[t->process];
	_cleanup_buf_ struct buf text = BUF_INIT, service = BUF_INIT, pid = BUF_INIT;
	struct json *j = &w->json;
	int r;

	json_object_begin(j, NULL);
	json_str(j, "processType", "default");
	json_u64(j, "processStartupTime", 0);
	if (process->exited)
		firefox_add_time(&w->tables, j, "processShutdownTime", process->exit_ts);
	else
		json_nil(j, "processShutdownTime");
	json_u64(j, "registerTime", 0);
	json_nil(j, "unregisterTime");
	json_array_begin(j, "pausedRanges");
	json_array_end(j);
	label_thread(p, id, &text);
	json_str(j, "name", buf_str(&text));
	json_bool(j, "isMainThread", t->tid == process->pid);
	buf_reset(&text);
	label_process(p, t->process, &text);
	if (attributes_get(profile_str(p, process->attributes), "service.name", &service))
		buf_addf(&text, " (%s)", buf_str(&service));
	text.failed |= buf_failed(&service);
	json_str(j, "processName", buf_str(&text));
	buf_add_u64(&pid, process->pid);
	json_str(j, "pid", buf_str(&pid));
	json_u64(j, "tid", t->tid);
	r = buf_failed(&text) || buf_failed(&pid) ? -ENOMEM : add_samples(w);
	if (!r)
		r = firefox_add_markers(&w->markers, w->thread, j, w->err);
	json_object_end(j);
	return r;
}

/* ---- meta ---- */

static void add_extra(const struct profile *p, struct json *j)
{
	const struct profile_totals *t = &p->totals;
	const struct {
		const char *label;
		uint64_t value;
	} counts[] = {
		{ "Lost samples", t->lost },
		{ "Samples with a cut stack", t->truncated },
		{ "Samples with unnamed frames", t->unresolved },
	};

	json_array_begin(j, "extra");
	json_object_begin(j, NULL);
	json_str(j, "label", "Recording");
	json_array_begin(j, "entries");
	json_object_begin(j, NULL);
	json_str(j, "label", "Command");
	json_str(j, "format", "string");
	json_str(j, "value", p->meta.command ? p->meta.command : "");
	json_object_end(j);
	json_object_begin(j, NULL);
	json_str(j, "label", "Summary");
	json_str(j, "format", "string");
	origin_add_json(p, j, "value");
	json_object_end(j);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		json_object_begin(j, NULL);
		json_str(j, "label", counts[i].label);
		json_str(j, "format", "integer");
		json_u64(j, "value", json_clamp(counts[i].value));
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
	json_array_end(j);
}

static void add_meta(struct firefox *w)
{
	static const char *const lists[] = { "baseURL", "id", "name" };
	const struct profile_meta *meta = &w->profile->meta;
	struct json *j = &w->json;

	json_object_begin(j, "meta");
	json_u64(j, "preprocessedProfileVersion", FORMAT_VERSION);
	json_u64(j, "version", 24);
	json_double(j, "interval", meta->frequency ? 1000.0 / meta->frequency : 1);
	json_decimal(j, "startTime", meta->start_realtime_ns, FIREFOX_MS_DECIMALS);
	json_u64(j, "processType", 0);
	json_str(j, "product", "rbpf");
	json_str(j, "importedFrom", "rbpf");
	json_u64(j, "stackwalk", 1);
	json_bool(j, "debug", false);
	json_bool(j, "symbolicated", true);
	json_bool(j, "symbolicationNotSupported", true);
	json_bool(j, "sourceCodeIsNotOnSearchfox", true);
	json_bool(j, "usesOnlyOneStackType", false);
	json_str(j, "oscpu", meta->kernel ? meta->kernel : "");
	json_u64(j, "logicalCPUs", meta->cpus);
	firefox_add_categories(j);
	firefox_add_marker_schemas(j);
	json_object_begin(j, "sampleUnits");
	json_str(j, "time", "ms");
	json_str(j, "eventDelay", "ms");
	json_str(j, "threadCPUDelta", "ns");
	json_object_end(j);
	json_object_begin(j, "extensions");
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		json_array_begin(j, lists[i]);
		json_array_end(j);
	}
	json_u64(j, "length", 0);
	json_object_end(j);
	add_extra(w->profile, j);
	json_object_end(j);
}

static int write_all(struct firefox *w, const struct replay *from)
{
	static const char *const empty[] = { "pages", "counters", "profilerOverhead" };
	struct json *j = &w->json;
	int r;

	r = thread_samples_new(&w->tables.shown, from, THREAD_SAMPLES_MAX, &w->samples);
	if (!r)
		r = firefox_markers_init(&w->tables, w->samples, &w->markers);
	if (r)
		return r;
	json_object_begin(j, NULL);
	add_meta(w);
	firefox_add_libs(w->profile, j);
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
		json_array_begin(j, empty[i]);
		json_array_end(j);
	}
	json_array_begin(j, "threads");
	for (; !r && w->thread < thread_samples_count(w->samples); w->thread++)
		r = add_thread(w);
	json_array_end(j);
	if (!r)
		r = firefox_add_shared(&w->tables, j);
	json_object_end(j);
	buf_addch(j->out, '\n');
	return r;
}

int export_firefox(const struct profile *p, const struct export_options *opts, struct buf *out,
		   struct err *err)
{
	struct firefox w = { .profile = p, .json = JSON_INIT(out), .err = err };
	int r = firefox_tables_init(p, opts->filter, &w.tables);

	if (!r)
		r = write_all(&w, &opts->replay);
	firefox_markers_deinit(&w.markers);
	thread_samples_free(w.samples);
	firefox_tables_deinit(&w.tables);
	if (!r && buf_failed(out))
		r = -ENOMEM;
	return export_error(r, err);
}
