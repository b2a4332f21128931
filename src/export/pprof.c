/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The profile.proto of pprof, compressed: https://github.com/google/pprof/tree/main/proto
 *
 * A function is what it is in reports; a location is a line of it, or an address. Ruby functions
 * have no mapping. Functions have no system_name: pprof takes the name of one that has one for C++
 * and demangles it, which leaves "Integer#" of "Integer#<=>".
 *
 * Samples of one thread with the same stack, request, span and state are one, which has a value for
 * each event. pprof leaves out what has no location, so a sample without frames gets one of a
 * function that says so.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/attributes.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/hex.h"
#include "base/intern.h"
#include "base/json.h"
#include "export/export.h"
#include "export/exporters.h"
#include "export/function.h"
#include "export/gzip.h"
#include "export/origin.h"
#include "export/profile_proto.h"
#include "export/protobuf.h"
#include "export/shown.h"
#include "export/stack_text.h"
#include "view/filter.h"
#include "view/group.h"
#include "view/label.h"
#include "view/owner.h"
#include "view/request.h"
#include "view/state.h"

/* The first mapping is the program, by which pprof calls the profile. */
#define MAPPING_PROGRAM 1u

/*
 * Some of the samples of the stack that is written. Those that are equal in the first four are one.
 */
struct pprof_sample {
	uint32_t thread;
	uint32_t request; /* kind of it */
	uint32_t span;	  /* 0: none */
	uint32_t state;	  /* enum thread_state; STATES if it is not known */
	uint32_t aggregate;
};

/* The labels that all samples of a thread have, in pprof.labels. */
struct thread_labels {
	size_t at, len; /* len 0: the thread was not met yet */
};

struct pprof {
	const struct profile *profile;
	const struct view_filter *filter; /* NULL: all */
	struct shown shown;
	struct groups functions;
	struct intern strings; /* id 0 is "" */
	bool *used;	       /* by frame: it is a location; the one after the last: no frame */
	bool failed;	       /* a string could not be added */
	uint32_t *
		order; /* selected aggregates by shown stack: those of stack i are at starts[i] … */
	uint32_t *starts;	      /* … up to starts[i + 1]; owned, as @order */
	struct pprof_sample *samples; /* of one stack; owned */
	size_t n_samples, cap_samples;
	struct stack_texts locations;  /* the ids of a stack's locations */
	struct thread_labels *threads; /* by thread; owned */
	struct buf labels;	       /* of all threads that were met, one after the other */
	uint8_t *states; /* by stack (state.h); NULL if the recording has no waits; owned */
	uint32_t n_events, events[PROFILE_MAX_EVENTS]; /* that have a value in each sample; the
							* first one's samples are counted */
	struct buf message, part;		       /* scratch: a message, and one within it */
	struct buf *out;
};

static void pprof_deinit(struct pprof *w)
{
	shown_deinit(&w->shown);
	groups_deinit(&w->functions);
	intern_deinit(&w->strings);
	free(w->used);
	free(w->order);
	free(w->starts);
	free(w->samples);
	free(w->threads);
	free(w->states);
	stack_texts_deinit(&w->locations);
	buf_deinit(&w->labels);
	buf_deinit(&w->message);
	buf_deinit(&w->part);
}

static uint32_t string(struct pprof *w, const char *s)
{
	uint32_t id = 0;

	if (intern_str(&w->strings, s, &id))
		w->failed = true;
	return id;
}

static void end_message(struct pprof *w, enum profile_field field)
{
	protobuf_bytes(w->out, field, buf_str(&w->message), w->message.len);
	w->failed |= buf_failed(&w->message);
	buf_reset(&w->message);
}

/* ---- samples ---- */

static int compare_samples(const void *a, const void *b)
{
	const struct pprof_sample *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->request != y->request)
		return x->request < y->request ? -1 : 1;
	if (x->span != y->span)
		return x->span < y->span ? -1 : 1;
	return (x->state > y->state) - (x->state < y->state);
}

static uint32_t stack_of(const struct pprof *w, size_t aggregate)
{
	return shown_stack(&w->shown, w->profile->aggregates[aggregate].stack);
}

/*
 * Put the selected aggregates in order by stack. Samples that follow each other have the same
 * locations then, if several threads have the stack, and gzip writes them once.
 */
static int sort_by_stack(struct pprof *w)
{
	const struct profile *p = w->profile;
	uint32_t *starts;

	w->order = calloc(p->n_aggregates + 1, sizeof(*w->order));
	/* starts[stack + 1] is first a count, then where the stack's end so far. */
	w->starts = starts = calloc(p->n_stacks + 2, sizeof(*starts));
	if (!w->order || !starts)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_aggregates; i++)
		if (view_selected(w->shown.selection, &p->aggregates[i]))
			starts[stack_of(w, i) + 2]++;
	for (size_t i = 2; i < p->n_stacks + 2; i++)
		starts[i] += starts[i - 1];
	for (size_t i = 0; i < p->n_aggregates; i++)
		if (view_selected(w->shown.selection, &p->aggregates[i]))
			w->order[starts[stack_of(w, i) + 1]++] = (uint32_t)i;
	return 0;
}

/*
 * What the thread did. Of what others waited meanwhile, that it ran in the kernel does not tell:
 * the charge falls due in the system call that gives the lock away.
 */
static uint32_t state_of_samples(const struct pprof *w, const struct profile_aggregate *a)
{
	const struct profile *p = w->profile;

	if (!w->states || !event_is_of_own_time(p->meta.events[a->event].name))
		return STATES;
	return state_of(w->states, a->stack, a->flags) & STATE_MASK;
}

/* The samples of one stack. */
static int find_samples(struct pprof *w, size_t stack)
{
	const size_t first = w->starts[stack], end = w->starts[stack + 1];

	w->n_samples = 0;
	if (array_reserve(w->samples, w->cap_samples, end - first))
		return -ENOMEM;
	for (size_t i = first; i < end; i++) {
		const struct profile_aggregate *a = &w->profile->aggregates[w->order[i]];

		w->samples[w->n_samples++] = (struct pprof_sample) {
			.thread = owner_of_aggregate(w->profile, OWNER_THREAD, a),
			.request = a->request,
			.span = w->profile->by_span ? w->profile->aggregate_spans[w->order[i]] : 0,
			.state = state_of_samples(w, a),
			.aggregate = w->order[i],
		};
	}
	if (w->n_samples)
		qsort(w->samples, w->n_samples, sizeof(*w->samples), compare_samples);
	return 0;
}

static void add_label(struct pprof *w, const char *key, const char *str, uint64_t num,
		      struct buf *to)
{
	buf_reset(&w->part);
	protobuf_u64(&w->part, LABEL_KEY, string(w, key));
	protobuf_u64(&w->part, LABEL_STR, str ? string(w, str) : 0);
	protobuf_u64(&w->part, LABEL_NUM, num);
	protobuf_bytes(to, SAMPLE_LABEL, buf_str(&w->part), w->part.len);
}

/*
 * Those attributes of a process by which services are told apart. Others would make each sample
 * longer and could have the name of another label.
 */
static void add_attributes(struct pprof *w, const char *attributes)
{
	static const char *const keys[] = { "service.name", "service.namespace", "service.version",
					    "service.instance.id", "deployment.environment.name" };
	_cleanup_buf_ struct buf value = BUF_INIT;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(keys) && *attributes; i++)
		if (attributes_get(attributes, keys[i], &value))
			add_label(w, keys[i], buf_str(&value), 0, &w->labels);
	w->failed |= buf_failed(&value);
}

static void add_process_labels(struct pprof *w, uint32_t thread)
{
	const struct profile *p = w->profile;
	uint32_t process = p->threads[thread].process;
	_cleanup_buf_ struct buf name = BUF_INIT;

	label_process(p, process, &name);
	add_label(w, "comm", buf_str(&name), 0, &w->labels);
	add_label(w, "pid", NULL, p->processes[process].pid, &w->labels);
	add_label(w, "tid", NULL, p->threads[thread].tid, &w->labels);
	add_attributes(w, profile_str(p, p->processes[process].attributes));
	w->failed |= buf_failed(&name);
}

/* @thread: by index; behind all threads, who is not recorded. */
static void make_labels(struct pprof *w, uint32_t thread)
{
	struct thread_labels *labels = &w->threads[thread];
	_cleanup_buf_ struct buf name = BUF_INIT;

	labels->at = w->labels.len;
	label_thread(w->profile, thread, &name);
	add_label(w, "thread", buf_str(&name), 0, &w->labels);
	if (thread < w->profile->n_threads)
		add_process_labels(w, thread);
	labels->len = w->labels.len - labels->at;
	w->failed |= buf_failed(&name) || buf_failed(&w->labels);
}

static void add_span(struct pprof *w, const struct profile_span *span)
{
	char hex[2 * sizeof(span->trace_id) + 1];

	hex_of_bytes(span->trace_id, sizeof(span->trace_id), hex);
	add_label(w, "trace_id", hex, 0, &w->message);
	hex_of_bytes(span->span_id, sizeof(span->span_id), hex);
	add_label(w, "span_id", hex, 0, &w->message);
}

static void add_labels(struct pprof *w, const struct pprof_sample *s)
{
	const struct thread_labels *labels = &w->threads[s->thread];

	if (!labels->len)
		make_labels(w, s->thread);
	buf_add(&w->message, buf_str(&w->labels) + labels->at, labels->len);
	if (s->state < STATES)
		add_label(w, "state", state_word(s->state), 0, &w->message);
	if (s->request)
		add_label(w, "request", request_label(w->profile, s->request), 0, &w->message);
	if (s->span)
		add_span(w, profile_span(w->profile, s->span));
}

/* Lines of a method in C are its callers'. */
static uint32_t location_of(const struct pprof *w, uint32_t frame)
{
	return w->profile->frames[frame].kind == FRAME_CFUNC
		       ? w->functions.frame[w->functions.of_frame[frame]]
		       : frame;
}

static void use_location(struct pprof *w, uint32_t location, struct buf *out)
{
	w->used[location] = true;
	buf_add_varint(out, (uint64_t)location + 1);
}

static int make_locations(void *arg, const uint32_t *frames, size_t n, struct buf *out)
{
	struct pprof *w = arg;

	for (size_t i = 0; i < n; i++)
		use_location(w, location_of(w, frames[i]), out);
	if (!n)
		use_location(w, (uint32_t)w->profile->n_frames, out);
	return 0;
}

/* How many samples there are of the first event, and the value of each event. */
static void add_values(struct pprof *w, const struct pprof_sample *s, size_t n)
{
	const struct profile *p = w->profile;
	uint64_t samples = 0, values[PROFILE_MAX_EVENTS] = { 0 };

	for (size_t i = 0; i < n; i++) {
		const struct profile_aggregate *a = &p->aggregates[s[i].aggregate];

		if (a->event == w->events[0])
			samples += a->samples;
		profile_add(&values[a->event], a->value);
	}
	buf_reset(&w->part);
	buf_add_varint(&w->part, json_clamp(samples));
	for (uint32_t i = 0; i < w->n_events; i++)
		buf_add_varint(&w->part, json_clamp(values[w->events[i]]));
	protobuf_bytes(&w->message, SAMPLE_VALUE, buf_str(&w->part), w->part.len);
}

/* Write @n samples that are one. */
static int add_sample(struct pprof *w, uint32_t stack, const struct pprof_sample *s, size_t n)
{
	const char *locations;
	size_t len;
	int r = stack_text(&w->locations, stack, &locations, &len);

	if (r)
		return r;
	protobuf_bytes(&w->message, SAMPLE_LOCATION_ID, locations, len);
	add_values(w, s, n);
	add_labels(w, s);
	end_message(w, PROFILE_SAMPLE);
	return w->failed || buf_failed(w->out) ? -ENOMEM : 0;
}

static int add_stack(struct pprof *w, uint32_t stack)
{
	int r = find_samples(w, stack);

	for (size_t i = 0, n; !r && i < w->n_samples; i += n) {
		for (n = 1; i + n < w->n_samples; n++)
			if (compare_samples(&w->samples[i], &w->samples[i + n]))
				break;
		r = add_sample(w, stack, &w->samples[i], n);
	}
	return r;
}

static int add_samples(struct pprof *w)
{
	int r = sort_by_stack(w);

	w->threads = calloc(w->profile->n_threads + 1, sizeof(*w->threads));
	if (!w->threads)
		return -ENOMEM;
	if (!r)
		r = stack_texts_init(&w->shown, STACK_TEXTS_MAX, make_locations, w, &w->locations);
	for (uint32_t i = 0; !r && i < w->profile->n_stacks; i++)
		r = add_stack(w, i);
	return r;
}

/* ---- definitions ---- */

/* The program of the first process that has samples. */
static int find_program(const struct pprof *w, const char **ret)
{
	const struct profile *p = w->profile;
	_cleanup_free_ bool *threads = calloc(p->n_threads + 1, sizeof(*threads));
	uint32_t process;
	bool several;

	if (!threads)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_threads; i++)
		threads[i] = w->threads[i].len;
	process = function_process(p, threads, &several);
	*ret = "ruby";
	if (process != PROFILE_NONE && p->processes[process].exe)
		*ret = profile_str(p, p->processes[process].exe);
	return 0;
}

static void add_mapping(struct pprof *w, uint64_t id, const char *path, const char *build_id)
{
	protobuf_u64(&w->message, MAPPING_ID, id);
	protobuf_u64(&w->message, MAPPING_FILENAME, string(w, path));
	protobuf_u64(&w->message, MAPPING_BUILD_ID, string(w, build_id));
	/* All is named that could be: pprof need not look for the files. */
	for (uint32_t field = MAPPING_HAS_FUNCTIONS; field <= MAPPING_HAS_INLINE_FRAMES; field++)
		protobuf_u64(&w->message, field, true);
	end_message(w, PROFILE_MAPPING);
}

static int add_mappings(struct pprof *w)
{
	const struct profile *p = w->profile;
	const char *program;

	if (find_program(w, &program))
		return -ENOMEM;
	add_mapping(w, MAPPING_PROGRAM, program, "");
	for (size_t i = 0; i < p->n_modules; i++)
		add_mapping(w, MAPPING_PROGRAM + 1 + i, profile_str(p, p->modules[i].path),
			    profile_str(p, p->modules[i].build_id));
	return 0;
}

static void add_location(struct pprof *w, uint32_t frame)
{
	const struct profile_frame *f = &w->profile->frames[frame];

	buf_reset(&w->part);
	protobuf_u64(&w->part, LINE_FUNCTION_ID, (uint64_t)w->functions.of_frame[frame] + 1);
	if (f->kind != FRAME_CFUNC)
		protobuf_u64(&w->part, LINE_LINE, f->line);
	protobuf_u64(&w->message, LOCATION_ID, (uint64_t)frame + 1);
	if (f->module != PROFILE_NONE) {
		protobuf_u64(&w->message, LOCATION_MAPPING_ID,
			     MAPPING_PROGRAM + 1 + (uint64_t)f->module);
		protobuf_u64(&w->message, LOCATION_ADDRESS, f->address);
	}
	protobuf_bytes(&w->message, LOCATION_LINE, buf_str(&w->part), w->part.len);
	end_message(w, PROFILE_LOCATION);
}

static void add_function(struct pprof *w, uint32_t group, const struct function *f)
{
	protobuf_u64(&w->message, FUNCTION_ID, (uint64_t)group + 1);
	protobuf_u64(&w->message, FUNCTION_NAME, string(w, f->name));
	protobuf_u64(&w->message, FUNCTION_FILENAME, string(w, f->file));
	protobuf_u64(&w->message, FUNCTION_START_LINE, f->line);
	end_message(w, PROFILE_FUNCTION);
}

/* For samples without frames. */
static void add_no_stack(struct pprof *w)
{
	const struct function f = FUNCTION_INIT(FUNCTION_NONE);
	uint32_t group = (uint32_t)w->functions.n;

	buf_reset(&w->part);
	protobuf_u64(&w->part, LINE_FUNCTION_ID, (uint64_t)group + 1);
	protobuf_u64(&w->message, LOCATION_ID, (uint64_t)w->profile->n_frames + 1);
	protobuf_bytes(&w->message, LOCATION_LINE, buf_str(&w->part), w->part.len);
	end_message(w, PROFILE_LOCATION);
	add_function(w, group, &f);
}

/* Of what samples refer to. */
static int add_definitions(struct pprof *w)
{
	const struct profile *p = w->profile;
	_cleanup_free_ bool *functions = calloc(w->functions.n + 1, sizeof(*functions));

	if (!functions || add_mappings(w))
		return -ENOMEM;
	for (size_t i = 0; i < p->n_frames; i++) {
		if (!w->used[i])
			continue;
		add_location(w, (uint32_t)i);
		functions[w->functions.of_frame[i]] = true;
	}
	for (size_t i = 0; i < w->functions.n; i++) {
		struct function f;

		if (!functions[i])
			continue;
		function_of_frame(p, w->functions.frame[i], &f);
		add_function(w, (uint32_t)i, &f);
	}
	if (w->used[p->n_frames])
		add_no_stack(w);
	return 0;
}

/* ---- what the samples are ---- */

static void add_value_type(struct pprof *w, enum profile_field field, const char *type,
			   const char *unit)
{
	protobuf_u64(&w->message, VALUE_TYPE_TYPE, string(w, type));
	protobuf_u64(&w->message, VALUE_TYPE_UNIT, string(w, unit));
	end_message(w, field);
}

static void add_event_type(struct pprof *w, enum profile_field field,
			   const struct profile_event *event)
{
	static const char *const units[VALUE_UNITS] = {
		[UNIT_NS] = "nanoseconds",
		[UNIT_BYTES] = "bytes",
		[UNIT_OBJECTS] = "count",
		[UNIT_COUNT] = "count",
	};

	add_value_type(w, field, event->name, units[event->unit]);
}

static void add_comments(struct pprof *w)
{
	const struct profile *p = w->profile;
	_cleanup_buf_ struct buf origin = BUF_INIT;

	if (p->meta.command)
		protobuf_u64(w->out, PROFILE_COMMENT, string(w, p->meta.command));
	origin_add(p, &origin);
	w->failed |= buf_failed(&origin);
	protobuf_u64(w->out, PROFILE_COMMENT, string(w, buf_str(&origin)));
}

static void add_types(struct pprof *w)
{
	const struct profile *p = w->profile;
	const uint64_t start = p->meta.start_realtime_ns;
	const struct profile_event *event = w->n_events > 1 ? &p->meta.events[w->events[0]]
							    : profile_event(p);
	uint64_t from, to;

	shown_time(p, w->filter, &from, &to);
	add_value_type(w, PROFILE_SAMPLE_TYPE, "samples", "count");
	for (uint32_t i = 0; i < w->n_events; i++)
		add_event_type(w, PROFILE_SAMPLE_TYPE,
			       w->n_events > 1 ? &p->meta.events[w->events[i]] : event);
	protobuf_u64(w->out, PROFILE_DEFAULT_SAMPLE_TYPE, string(w, event->name));
	if (event->period) {
		add_event_type(w, PROFILE_PERIOD_TYPE, event);
		protobuf_u64(w->out, PROFILE_PERIOD, json_clamp(event->period));
	}
	protobuf_u64(w->out, PROFILE_TIME_NANOS, start ? json_clamp(start + from) : 0);
	protobuf_u64(w->out, PROFILE_DURATION_NANOS, json_clamp(to - from));
	add_comments(w);
}

static void add_strings(struct pprof *w)
{
	for (uint32_t i = 0; i < w->strings.count; i++) {
		size_t len;
		const char *s = intern_get(&w->strings, i, &len);

		protobuf_bytes(w->out, PROFILE_STRING, s, len);
	}
}

/* The one that is selected first, which readers show; if it has no samples, one that has. */
static void find_events(struct pprof *w)
{
	const struct profile *p = w->profile;
	const uint32_t first = p->n_samples || !p->n_aggregates ? p->event : p->aggregates[0].event;

	w->events[w->n_events++] = first;
	for (uint32_t i = 0; p->by_event && i < p->meta.n_events; i++)
		if (i != first)
			w->events[w->n_events++] = i;
}

static int write_profile(struct pprof *w)
{
	int r;

	w->used = calloc(w->profile->n_frames + 1, sizeof(*w->used));
	if (!w->used)
		return -ENOMEM;
	find_events(w);
	if (profile_has_waits(w->profile) && state_of_stacks(w->profile, &w->states))
		return -ENOMEM;
	string(w, ""); /* is the first */
	add_types(w);
	r = add_samples(w);
	if (!r)
		r = add_definitions(w);
	if (!r)
		add_strings(w);
	return r ? r : w->failed ? -ENOMEM : 0;
}

int export_pprof(const struct profile *p, const struct export_options *opts, struct buf *out,
		 struct err *err)
{
	struct pprof w = { .profile = p, .filter = opts->filter };
	struct gzip gzip;
	int r, finished;

	r = shown_init(p, opts->filter, &w.shown);
	if (!r)
		r = groups_init(p, GROUP_BY_FUNCTION, &w.functions);
	if (!r)
		r = gzip_init(&gzip, out);
	if (!r) {
		w.out = &gzip.in;
		r = write_profile(&w);
		finished = gzip_finish(&gzip);
		r = r ? r : finished;
	}
	pprof_deinit(&w);
	return export_error(r, err);
}
