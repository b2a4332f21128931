/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A processed profile of the Firefox Profiler, https://profiler.firefox.com, in version 66 of its
 * format:
 * https://github.com/firefox-devtools/profiler/blob/main/docs-developer/CHANGELOG-formats.md Newer
 * front ends read older versions, but not the other way round.
 *
 * Methods in Ruby are what the profiler takes for JavaScript, so that its filter of stacks shows
 * Ruby, native code or both. A thread is sampled when it uses CPU time: its samples weigh that
 * much, and its graph shows how much of the time between samples that is.
 *
 * Of a recording with waits, a wait is a sample that weighs as much as it was long, and a marker.
 * To the stack chart a stack lasts until the next sample, so that each then has the time at which
 * it starts (stack_times.h). Ticks alone keep their own times, and what CPU time each stands for:
 * all that is known is that it was used since the tick before.
 *
 * Times of samples are written as what passed since the one before: a sixth less to write, and to
 * read.
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
#include "base/thread.h"
#include "export/export.h"
#include "export/exporters.h"
#include "export/firefox_markers.h"
#include "export/firefox_tables.h"
#include "export/function.h"
#include "export/origin.h"
#include "export/stack_times.h"
#include "export/thread_samples.h"
#include "view/label.h"
#include "view/state.h"

#define FORMAT_VERSION 66

/*
 * Of a thread, so that half of its columns are written by a thread of their own: they are kept
 * until all are.
 */
#define FEW_SAMPLES    10000
#define MANY_SAMPLES   600000

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
	enum stack_times_kind kind;
	struct firefox_markers markers;
	struct buf half; /* write_half(): kept for the next thread, as pages are dear */
	struct err *err;
};

/* Writes a column of the samples of a thread. */
struct column_writer {
	const struct firefox *file;
	struct json *json;
	enum firefox_column column;
	struct stack_times times;
	enum stack_times_kind kind;
	uint64_t n;  /* values so far */
	uint64_t ts; /* of the sample before, or of the start */
	bool runs;   /* struct timed_stack, of the sample before */
	struct err *err;
};

/* ---- samples ---- */

/* CPU time since the sample before. */
static uint64_t cpu_since(const struct column_writer *c, const struct timed_stack *s)
{
	if (c->kind == STACK_TIMES_NONE)
		return s->runs ? s->value : 0;
	return c->runs && s->ts > c->ts ? s->ts - c->ts : 0;
}

static void add_value(struct column_writer *c, const struct timed_stack *s)
{
	const struct firefox *w = c->file;

	switch (c->column) {
	case COLUMN_STACK:
		if (s->stack)
			json_u64(c->json, NULL, w->tables.index[s->stack]);
		else
			json_nil(c->json, NULL);
		break;
	case COLUMN_TIME:
		json_decimal(c->json, NULL, s->ts > c->ts ? s->ts - c->ts : 0, FIREFOX_MS_DECIMALS);
		break;
	case COLUMN_WEIGHT:
		json_decimal(c->json, NULL, s->value,
			     profile_event(w->profile)->unit == UNIT_NS ? FIREFOX_MS_DECIMALS : 0);
		break;
	case COLUMN_CPU:
		json_u64(c->json, NULL, cpu_since(c, s));
		break;
	}
	if (s->ts > c->ts)
		c->ts = s->ts;
	c->runs = s->runs;
	c->n++;
}

/* A sample as it is: most recordings have no others. */
static void add_moment(struct column_writer *c, const struct thread_sample *s)
{
	const struct timed_stack stack = {
		.ts = s->ts,
		.value = s->value,
		.stack = s->stack,
		.runs = !state_waits(s->state),
	};

	add_value(c, &stack);
}

static void add_stacks(struct column_writer *c, const struct thread_sample *s)
{
	const bool waits = state_waits(s->state);
	const struct stack_sample sample = {
		.ts = s->ts,
		.value = s->value,
		.stack = s->stack,
		.after_wait = waits ? shown_without_wait(&c->file->tables.shown, s->stack) : 0,
		.waits = waits,
	};
	struct timed_stack stacks[STACK_TIMES_MAX];
	size_t n;

	if (s->after_hidden)
		stack_times_hide(&c->times);
	n = stack_times_add(&c->times, c->kind, &sample, stacks);
	for (size_t i = 0; i < n; i++)
		add_value(c, &stacks[i]);
}

static int add_sample(void *arg, const struct thread_sample *s)
{
	struct column_writer *c = arg;

	if (c->kind == STACK_TIMES_NONE)
		add_moment(c, s);
	else
		add_stacks(c, s);
	return buf_failed(c->json->out) ? err_oom(c->err) : 0;
}

/* @n: how many values it has; the same for each. */
static int add_column(const struct firefox *w, struct json *json, const char *name,
		      enum firefox_column column, uint64_t *n, struct err *err)
{
	struct column_writer c = { .file = w,
				   .json = json,
				   .column = column,
				   .kind = w->kind,
				   .ts = w->profile->meta.start_monotonic_ns,
				   .err = err };
	struct timed_stack stacks[STACK_TIMES_MAX];
	size_t last;
	int r;

	json_array_begin(json, name);
	r = thread_samples_each(w->samples, w->thread, add_sample, &c, err);
	last = stack_times_end(&c.times, c.kind, stacks);
	for (size_t i = 0; i < last; i++)
		add_value(&c, &stacks[i]);
	json_array_end(json);
	*n = c.n;
	return r;
}

/* Whether the samples are of CPU time, or of that and of waits. */
static bool is_time(const struct profile *p)
{
	const struct profile_event *event = profile_event(p);

	return event_is_cpu(event) || !strcmp(event->name, EVENT_WALL);
}

static int add_first_half(const struct firefox *w, struct json *json, uint64_t *n, struct err *err)
{
	int r = add_column(w, json, "stack", COLUMN_STACK, n, err);

	return r ? r : add_column(w, json, "timeDeltas", COLUMN_TIME, n, err);
}

static int add_second_half(const struct firefox *w, struct json *json, struct err *err)
{
	uint64_t n;
	int r = add_column(w, json, "weight", COLUMN_WEIGHT, &n, err);

	if (!r && is_time(w->profile))
		r = add_column(w, json, "threadCPUDelta", COLUMN_CPU, &n, err);
	return r;
}

/* The second half of the columns, written beside the first one. */
struct half {
	const struct firefox *file;
	struct buf *text; /* members of an object, the braces around them */
	struct err err;
	int result;
};

static void *write_half(void *arg)
{
	struct half *half = arg;
	struct json json = JSON_INIT(half->text);

	json_object_begin(&json, NULL);
	half->result = add_second_half(half->file, &json, &half->err);
	json_object_end(&json);
	return NULL;
}

static int add_columns(struct firefox *w, uint64_t *n)
{
	struct half half = { .file = w, .text = &w->half };
	pthread_t thread;
	bool begun;
	int r = thread_samples_load(w->samples, w->thread, n, w->err);

	if (r)
		return r;
	buf_reset(&w->half);
	begun = *n >= FEW_SAMPLES && *n <= MANY_SAMPLES && thread_begin(&thread, write_half, &half);
	r = add_first_half(w, &w->json, n, w->err);
	if (begun)
		pthread_join(thread, NULL);
	else if (!r)
		r = add_second_half(w, &w->json, w->err);
	if (!r && begun && half.result) {
		if (w->err)
			*w->err = half.err;
		r = half.result;
	}
	if (!r && begun)
		json_members(&w->json, &w->half);
	return r;
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
	uint64_t n = 0;
	int r;

	json_object_begin(&w->json, "samples");
	r = add_columns(w, &n);
	json_str(&w->json, "weightType", weights[unit]);
	json_u64(&w->json, "length", n);
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
		r = firefox_markers_init(&w->tables, w->samples, from, &w->markers, w->err);
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

	w.kind = event_is_cpu(profile_event(p)) ? STACK_TIMES_NONE
						: stack_times_kind(p, opts->filter);
	if (!r)
		r = write_all(&w, &opts->replay);
	firefox_markers_deinit(&w.markers);
	thread_samples_free(w.samples);
	buf_deinit(&w.half);
	firefox_tables_deinit(&w.tables);
	if (!r && buf_failed(out))
		r = -ENOMEM;
	return export_error(r, err);
}
