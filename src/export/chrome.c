/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The Trace Event Format, in JSON:
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
 *
 * What has a length are complete events ("ph":"X") on their thread: waits, requests, garbage
 * collections, which nest, as the format demands. Stacks are its "samples", each with the innermost
 * of its "stackFrames", which are the stacks of the profile. To speedscope a stack lasts from its
 * sample to the next one of the thread, whatever the "weight" is (stack_times.h).
 *
 * Both are written while the recording is read, in the order of the file. Readers sort events, but
 * not samples: speedscope refuses a file with a sample that is earlier than the one of its thread
 * before.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/json_row.h"
#include "export/export.h"
#include "export/exporters.h"
#include "export/function.h"
#include "export/origin.h"
#include "export/request_spans.h"
#include "export/shown.h"
#include "export/stack_times.h"
#include "profile/replay.h"
#include "view/filter.h"
#include "view/label.h"
#include "view/request.h"
#include "view/state.h"

#define US_DECIMALS 3 /* of ns in µs */

/* What is known of a thread from its samples so far. */
struct chrome_thread {
	bool selected;	   /* it has selected samples */
	bool in_gc;	   /* the last one is of garbage collection … */
	uint64_t gc_start; /* … in the same request since then */
	uint32_t request;  /* that the last one is of, 0: none */
	uint64_t last_ts;
	uint32_t line; /* of its samples, in .lines */
};

/*
 * The samples with one pid and tid. Readers take them for those of one thread, but there may have
 * been several: that of a program and of the one that it executes, or one that got the tid of
 * another.
 */
struct chrome_line {
	struct stack_times times;
	uint32_t thread; /* of the last sample */
	uint16_t cpu;	 /* that it was on */
};

struct chrome {
	const struct profile *profile;
	struct shown shown;
	struct json json;
	struct chrome_thread *threads; /* by id; owned */
	struct chrome_line *lines;     /* by id of the first thread with these ids; owned */
	uint8_t *states;	       /* by stack (state.h); owned */
	enum stack_times_kind kind;
	struct buf event; /* its name, as a JSON string */
	struct err *err;
};

static void chrome_deinit(struct chrome *c)
{
	shown_deinit(&c->shown);
	buf_deinit(&c->event);
	free(c->threads);
	free(c->lines);
	free(c->states);
}

static void add_time(struct chrome *c, const char *key, uint64_t ts)
{
	uint64_t start = c->profile->meta.start_monotonic_ns;

	json_decimal(&c->json, key, ts > start ? ts - start : 0, US_DECIMALS);
}

static void add_ids(struct chrome *c, uint32_t thread)
{
	const struct profile_thread *t = &c->profile->threads[thread];

	json_u64(&c->json, "pid", c->profile->processes[t->process].pid);
	json_u64(&c->json, "tid", t->tid);
}

/* ---- events ---- */

/* "process_name" or "thread_name". */
static void add_name(struct chrome *c, uint32_t thread, const char *what, const char *name)
{
	struct json *j = &c->json;

	json_object_begin(j, NULL);
	json_str(j, "ph", "M");
	json_str(j, "name", what);
	json_u64(j, "ts", 0);
	add_ids(c, thread);
	json_object_begin(j, "args");
	json_str(j, "name", name);
	json_object_end(j);
	json_object_end(j);
}

static int add_names(struct chrome *c)
{
	_cleanup_buf_ struct buf name = BUF_INIT;

	for (uint32_t i = 0; i < c->profile->n_threads; i++) {
		if (!c->threads[i].selected)
			continue;
		buf_reset(&name);
		label_process(c->profile, c->profile->threads[i].process, &name);
		add_name(c, i, "process_name", buf_str(&name));
		buf_reset(&name);
		label_thread(c->profile, i, &name);
		add_name(c, i, "thread_name", buf_str(&name));
		if (buf_failed(&name))
			return -ENOMEM;
	}
	return 0;
}

/* A complete event but for its end, json_object_end(). */
static void begin_span(struct chrome *c, uint32_t thread, const char *category, const char *name,
		       uint64_t start, uint64_t end)
{
	struct json *j = &c->json;

	json_object_begin(j, NULL);
	json_str(j, "ph", "X");
	json_str(j, "cat", category);
	json_str(j, "name", name);
	add_ids(c, thread);
	add_time(c, "ts", start);
	json_decimal(j, "dur", end - start, US_DECIMALS);
}

static void add_argument(struct json *j, const char *key, const char *value)
{
	json_object_begin(j, "args");
	json_str(j, key, value);
	json_object_end(j);
}

static int add_requests(struct chrome *c, const struct replay *from)
{
	const struct profile *p = c->profile;
	struct request_spans spans = REQUEST_SPANS_INIT;
	int r = request_spans_init(p, c->shown.selection, from, &spans, c->err);

	for (uint32_t i = 0; !r && i < p->n_threads; i++) {
		if (!c->threads[i].selected)
			continue;
		for (size_t k = spans.first[i]; k < spans.first[i + 1]; k++) {
			const struct request_span *span = &spans.spans[k];
			const uint32_t kind = p->requests[span->id].kind;

			begin_span(c, i, "request", request_label(p, kind), span->start, span->end);
			add_argument(&c->json, "framework", request_framework(p, kind));
			json_object_end(&c->json);
		}
	}
	request_spans_deinit(&spans);
	return r;
}

static void end_gc(struct chrome *c, uint32_t thread)
{
	struct chrome_thread *t = &c->threads[thread];

	if (t->in_gc) {
		begin_span(c, thread, "gc", "GC (sampled)", t->gc_start, t->last_ts);
		json_object_end(&c->json);
	}
	t->in_gc = false;
}

/* A wait that ends at @ts. Since the sample before of its thread: spans must nest. */
static void add_wait(struct chrome *c, const struct profile_sample *s, uint64_t ts)
{
	const enum thread_state state = state_of(c->states, s->stack, s->flags) & STATE_MASK;
	const uint64_t after = c->threads[s->thread].last_ts;
	uint64_t start = ts > s->value ? ts - s->value : 0;

	if (!profile_is_wait(c->profile, s))
		return;
	begin_span(c, s->thread, "wait", state_text(state), start > after ? start : after, ts);
	add_argument(&c->json, "state", state_word(state));
	json_object_end(&c->json);
}

static int take_spans(void *arg, const struct profile_sample *s)
{
	struct chrome *c = arg;
	struct chrome_thread *t = &c->threads[s->thread];
	/* Also in a damaged recording the times of a thread do not go back. */
	const uint64_t ts = s->ts > t->last_ts ? s->ts : t->last_ts;
	const bool in_gc = s->flags & SAMPLE_GC;

	if (!shown_sample(&c->shown, s))
		return 0;
	if (!in_gc || s->request != t->request)
		end_gc(c, s->thread);
	if (!t->in_gc)
		t->gc_start = ts;
	t->in_gc = in_gc;
	t->request = s->request;
	add_wait(c, s, ts);
	t->last_ts = ts;
	return buf_failed(c->json.out) ? err_oom(c->err) : 0;
}

static int add_events(struct chrome *c, const struct replay *from)
{
	int r;

	json_array_begin(&c->json, "traceEvents");
	r = add_names(c);
	if (!r)
		r = add_requests(c, from);
	if (!r && spans_in_samples(c->profile))
		r = profile_each_sample(c->profile, from, take_spans, c, c->err);
	for (uint32_t i = 0; i < c->profile->n_threads; i++)
		end_gc(c, i);
	json_array_end(&c->json);
	return r;
}

/* ---- stacks ---- */

/* Only ids above 0 are taken for ids by all readers: stack 0 is the empty one. */
static void add_stack(struct chrome *c, uint32_t stack)
{
	const struct profile *p = c->profile;
	const uint32_t frame = p->stacks[stack].frame, callers = shown_callers(&c->shown, stack);
	struct json *j = &c->json;
	struct function f;
	char id[16];

	function_of_frame(p, frame, &f);
	snprintf(id, sizeof(id), "%u", stack);
	json_object_begin(j, id);
	json_str(j, "name", f.name);
	json_str(j, "category",
		 *function_place(&f) ? function_place(&f) : frame_kind_name(p->frames[frame].kind));
	if (callers)
		json_u64(j, "parent", callers);
	json_object_end(j);
}

static void add_samples(struct chrome *c, const struct chrome_line *line,
			const struct timed_stack *stacks, size_t n)
{
	const struct profile *p = c->profile;
	const struct profile_thread *t = &p->threads[line->thread];
	const uint64_t start = p->meta.start_monotonic_ns;
	struct json_row row;

	for (size_t i = 0; i < n; i++) {
		json_row_begin(&row);
		JSON_ROW_U64(&row, "pid", p->processes[t->process].pid);
		JSON_ROW_U64(&row, "tid", t->tid);
		JSON_ROW_U64(&row, "cpu", line->cpu);
		JSON_ROW_DECIMAL(&row, "ts", stacks[i].ts > start ? stacks[i].ts - start : 0,
				 US_DECIMALS);
		JSON_ROW_RAW(&row, "name", c->event.data, c->event.len);
		if (stacks[i].stack)
			JSON_ROW_U64(&row, "sf", stacks[i].stack);
		JSON_ROW_U64(&row, "weight", json_clamp(stacks[i].value));
		json_row_end(&row, &c->json);
	}
}

static int take_sample(void *arg, const struct profile_sample *s)
{
	struct chrome *c = arg;
	struct chrome_line *line = &c->lines[c->threads[s->thread].line];
	const uint32_t stack = shown_stack(&c->shown, s->stack);
	struct stack_sample sample = { .ts = s->ts, .value = s->value, .stack = stack };
	struct timed_stack stacks[STACK_TIMES_MAX];
	const bool is_shown = shown_sample(&c->shown, s);

	if (!is_shown || s->thread != line->thread)
		stack_times_hide(&line->times);
	if (!is_shown)
		return 0;
	sample.waits = state_waits(state_of(c->states, s->stack, s->flags) & STATE_MASK);
	if (sample.waits)
		sample.after_wait = shown_without_wait(&c->shown, stack);
	line->thread = s->thread;
	line->cpu = s->cpu;
	add_samples(c, line, stacks, stack_times_add(&line->times, c->kind, &sample, stacks));
	return buf_failed(c->json.out) ? err_oom(c->err) : 0;
}

static int add_stacks(struct chrome *c, const struct replay *from)
{
	const struct profile *p = c->profile;
	struct timed_stack stacks[STACK_TIMES_MAX];
	int r;

	json_object_begin(&c->json, "stackFrames");
	for (uint32_t i = 1; i < p->n_stacks; i++)
		if (c->shown.nearest[i] == i)
			add_stack(c, i);
	json_object_end(&c->json);
	json_array_begin(&c->json, "samples");
	r = profile_each_sample(p, from, take_sample, c, c->err);
	for (uint32_t i = 0; i < p->n_threads; i++)
		add_samples(c, &c->lines[i], stacks,
			    stack_times_end(&c->lines[i].times, c->kind, stacks));
	json_array_end(&c->json);
	return r;
}

/* ---- the whole ---- */

static int compare_ids(const struct profile *p, uint32_t a, uint32_t b)
{
	const struct profile_thread *x = &p->threads[a], *y = &p->threads[b];
	const uint32_t pid = p->processes[x->process].pid, other = p->processes[y->process].pid;

	if (pid != other)
		return pid < other ? -1 : 1;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int compare_threads(const void *a, const void *b, void *arg)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const int r = compare_ids(arg, x, y);

	return r ? r : (x > y) - (x < y);
}

static int find_lines(struct chrome *c)
{
	const struct profile *p = c->profile;
	_cleanup_free_ uint32_t *order = calloc(p->n_threads + 1, sizeof(*order));
	uint32_t line = 0;

	c->lines = calloc(p->n_threads + 1, sizeof(*c->lines));
	if (!order || !c->lines)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_threads; i++)
		order[i] = i;
	if (p->n_threads)
		qsort_r(order, p->n_threads, sizeof(*order), compare_threads, (void *)p);
	for (size_t i = 0; i < p->n_threads; i++) {
		if (!i || compare_ids(p, order[i - 1], order[i]))
			line = order[i];
		c->threads[order[i]].line = line;
	}
	return 0;
}

static int find_threads(struct chrome *c)
{
	const struct profile *p = c->profile;
	_cleanup_free_ bool *selected = calloc(p->n_threads + 1, sizeof(*selected));

	c->threads = calloc(p->n_threads + 1, sizeof(*c->threads));
	if (!selected || !c->threads || find_lines(c) || state_of_stacks(p, &c->states))
		return -ENOMEM;
	view_selected_threads(c->shown.selection, selected);
	for (size_t i = 0; i < p->n_threads; i++)
		c->threads[i].selected = selected[i];
	return 0;
}

static int name_event(struct chrome *c)
{
	struct json j = JSON_INIT(&c->event);

	json_str(&j, NULL, profile_event(c->profile)->name);
	return buf_failed(&c->event) ? -ENOMEM : 0;
}

int export_chrome(const struct profile *p, const struct export_options *opts, struct buf *out,
		  struct err *err)
{
	struct chrome c = {
		.profile = p,
		.json = JSON_INIT(out),
		.kind = stack_times_kind(p, opts->filter),
		.err = err,
	};
	int r = shown_init(p, opts->filter, &c.shown);

	if (!r)
		r = find_threads(&c);
	if (!r)
		r = name_event(&c);
	if (!r) {
		json_object_begin(&c.json, NULL);
		json_str(&c.json, "displayTimeUnit", "ms");
		json_object_begin(&c.json, "otherData");
		json_str(&c.json, "exporter", "rbpf " RBPF_VERSION);
		json_str(&c.json, "command", p->meta.command ? p->meta.command : "");
		origin_add_json(p, &c.json, "recording");
		json_object_end(&c.json);
		r = add_events(&c, &opts->replay);
		if (!r)
			r = add_stacks(&c, &opts->replay);
		json_object_end(&c.json);
		buf_addch(out, '\n');
	}
	chrome_deinit(&c);
	if (!r && buf_failed(out))
		r = -ENOMEM;
	return export_error(r, err);
}
