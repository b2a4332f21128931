/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/window_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "profile/reason.h"
#include "profile/sample_parts.h"
#include "profile/sink.h"
#include "profile/wait_cause.h"

/* One part in so many of the limit is not worth a collection. */
#define SMALL_PART 256

static struct window *of(struct sink *sink)
{
	return (struct window *)sink;
}

static struct sink *defs(struct sink *sink)
{
	return &of(sink)->defs.sink;
}

/* ---- definitions ---- */

static int add_string(struct sink *s, const char *text, size_t len, uint32_t *ret)
{
	return sink_string(defs(s), text, len, ret);
}

static int add_process(struct sink *s, const struct profile_process *def, uint32_t *ret)
{
	return sink_process(defs(s), def, ret);
}

static int add_thread(struct sink *s, uint32_t process, uint32_t tid, uint32_t name, uint32_t *ret)
{
	return sink_thread(defs(s), process, tid, name, ret);
}

static int add_module(struct sink *s, const struct profile_module *def, uint32_t *ret)
{
	return sink_module(defs(s), def, ret);
}

static int add_frame(struct sink *s, const struct profile_frame *def, uint32_t *ret)
{
	return sink_frame(defs(s), def, ret);
}

static int add_stack(struct sink *s, uint32_t parent, uint32_t frame, uint32_t *ret)
{
	return sink_stack(defs(s), parent, frame, ret);
}

/*
 * One request for each kind, so that their ids are equal: a machine serves more than there is room
 * for.
 */
static int add_request(struct sink *s, uint32_t thread, const struct profile_request_kind *kind,
		       uint32_t *ret)
{
	const struct profile *p = &of(s)->defs.profile;
	uint32_t id;

	if (thread >= p->n_threads)
		return -EINVAL;
	if (intern_find(&p->request_kinds, kind, sizeof(*kind), &id))
		return sink_request(defs(s), thread, kind, ret);
	*ret = id + 1;
	return 0;
}

static int update_process(struct sink *s, uint32_t process, const struct profile_process *def)
{
	return sink_process_update(defs(s), process, def);
}

static int end_process(struct sink *s, uint32_t process, uint64_t ts, int status)
{
	return sink_process_exit(defs(s), process, ts, status);
}

static int name_thread(struct sink *s, uint32_t thread, uint32_t name)
{
	return sink_thread_name(defs(s), thread, name);
}

static int set_thread_cpu(struct sink *s, uint32_t thread, uint64_t cpu_ns)
{
	return sink_thread_cpu(defs(s), thread, cpu_ns);
}

static void forget(struct sink *s)
{
	of(s)->asked = true;
}

size_t window_definition_bytes(const struct window *w)
{
	const struct profile *p = &w->defs.profile;

	return intern_bytes(&p->strings) + intern_bytes(&w->defs.modules) +
	       intern_bytes(&w->defs.frames) + intern_bytes(&w->defs.stacks) +
	       intern_bytes(&p->request_kinds) + p->cap_processes * sizeof(*p->processes) +
	       p->cap_threads * sizeof(*p->threads) + p->cap_modules * sizeof(*p->modules) +
	       p->cap_frames * sizeof(*p->frames) + p->cap_stacks * sizeof(*p->stacks) +
	       p->cap_requests * sizeof(*p->requests) +
	       w->defs.cap_depths * sizeof(*w->defs.depths);
}

size_t window_bytes(const struct window *w)
{
	return w->entries + window_definition_bytes(w);
}

/* ---- seconds ---- */

static void clear_second(struct window *w, struct window_second *s)
{
	w->entries -= s->cap * sizeof(*s->v);
	free(s->v);
	*s = (struct window_second) { 0 };
}

void window_drop_oldest(struct window *w)
{
	clear_second(w, window_second(w, w->first++));
}

/* The newest second is the newest no more: it keeps no room for others. */
static void close_newest(struct window *w)
{
	struct window_second *s = window_second(w, w->end - 1);
	struct window_entry *v;

	intern_deinit(&w->newest);
	if (!s->n || s->n == s->cap)
		return;
	v = realloc(s->v, s->n * sizeof(*v));
	if (!v)
		return;
	w->entries -= (s->cap - s->n) * sizeof(*v);
	s->v = v;
	s->cap = s->n;
}

/* Let second @number be the newest, if it is newer. */
static void begin(struct window *w, uint64_t number)
{
	if (number < w->end)
		return;
	close_newest(w);
	/* All go if it is that far away. */
	for (; w->end <= number; w->end++) {
		if (number - w->end >= w->n_seconds) {
			while (w->first < w->end)
				window_drop_oldest(w);
			w->first = w->end = number;
		}
		if (w->end - w->first == w->n_seconds)
			window_drop_oldest(w);
	}
	while (w->first + 1 < w->end && w->entries > w->max_bytes / 2)
		window_drop_oldest(w);
}

void window_set_start(struct window *w, uint64_t start_ns)
{
	w->start_ns = w->defs.profile.meta.start_monotonic_ns = start_ns;
}

static uint64_t number_of(const struct window *w, uint64_t ts)
{
	return ts > w->start_ns ? (ts - w->start_ns) / NSEC_PER_SEC : 0;
}

void window_advance(struct window *w, uint64_t now)
{
	begin(w, number_of(w, now));
}

struct window_range window_seconds(const struct window *w)
{
	return (struct window_range) { .from = w->first, .to = w->end - 1 };
}

/* ---- samples ---- */

struct entry_key window_key(const struct window_entry *e)
{
	return (struct entry_key) { .thread = e->thread,
				    .stack = e->stack,
				    .request = e->request,
				    .event = e->event,
				    .flags = e->flags };
}

static int append(struct window *w, struct window_second *s, const struct window_entry *e)
{
	const size_t before = s->cap;
	int r = array_reserve(s->v, s->cap, s->n + 1);

	if (r)
		return r;
	w->entries += (s->cap - before) * sizeof(*s->v);
	s->v[s->n++] = *e;
	return 0;
}

/*
 * Samples that come late are few: in seconds that are not the newest each has an entry of its own.
 */
static int add_entry(struct window *w, uint64_t number, const struct window_entry *e)
{
	struct window_second *s = window_second(w, number);
	const struct entry_key key = window_key(e);
	bool is_new = true;
	uint32_t i;
	int r = 0;

	if (number == w->end - 1) {
		/* First, for it must not fail once the key is known. */
		const size_t before = s->cap;

		r = array_reserve(s->v, s->cap, s->n + 1);
		w->entries += (s->cap - before) * sizeof(*s->v);
		if (!r)
			r = intern_add(&w->newest, &key, sizeof(key), &i, &is_new);
	}
	if (r)
		return r;
	if (is_new)
		return append(w, s, e);
	s->v[i].samples++;
	profile_add(&s->v[i].value, e->value);
	return 0;
}

/* @part is of one second, which the ring has. */
static int add_part(void *arg, const struct profile_sample *part)
{
	struct window *w = arg;
	const struct window_entry e = { .value = part->value,
					.thread = part->thread,
					.stack = part->stack,
					.request = part->request,
					.samples = 1,
					.event = part->event,
					.flags = part->flags & SAMPLE_FLAGS };

	return add_entry(w, number_of(w, part->ts), &e);
}

static int add_sample(struct sink *sink, const struct profile_sample *sample)
{
	struct window *w = of(sink);
	const struct profile *p = &w->defs.profile;
	const uint32_t n_events = p->meta.n_events ? p->meta.n_events : 1;
	const uint64_t number = number_of(w, sample->ts);
	struct profile_sample s = *sample;

	if (sample->thread >= p->n_threads || sample->stack >= p->n_stacks ||
	    sample->event >= n_events || (sample->request && sample->request >= p->n_requests))
		return -EINVAL;
	begin(w, number);
	if (number < w->first) {
		window_second(w, w->end - 1)->lost++;
		return 0;
	}
	/* What a wait has of seconds that are gone is gone with them. */
	if (w->first &&
	    !sample_part_within(p, &s, w->start_ns + w->first * NSEC_PER_SEC, UINT64_MAX))
		return 0;
	return sample_parts_by_second(p, s, UINT32_MAX, add_part, w);
}

static int add_lost(struct sink *sink, const struct profile_lost *lost)
{
	struct window *w = of(sink);
	uint64_t number = number_of(w, lost->ts);

	if (lost->reason >= LOST_REASON_COUNT)
		return -EINVAL;
	begin(w, number);
	if (number < w->first)
		number = w->first;
	profile_add(&window_second(w, number)->lost, lost->count);
	return 0;
}

static const struct sink_ops window_ops = {
	.string = add_string,
	.process = add_process,
	.thread = add_thread,
	.module = add_module,
	.frame = add_frame,
	.stack = add_stack,
	.request = add_request,
	.process_update = update_process,
	.process_exit = end_process,
	.thread_name = name_thread,
	.thread_cpu = set_thread_cpu,
	.sample = add_sample,
	.lost = add_lost,
	.forget = forget,
};

struct sink *window_sink(struct window *w)
{
	return &w->sink;
}

/* ---- profiles ---- */

static struct window_range clip(const struct window *w, struct window_range range)
{
	if (range.from < w->first)
		range.from = w->first;
	if (range.to > w->end)
		range.to = w->end;
	if (range.to < range.from)
		range.to = range.from;
	return range;
}

static bool is_selected(const struct profile *p, uint16_t event, uint32_t wanted)
{
	if (wanted != PROFILE_NONE || !p->meta.n_events)
		return event == (wanted == PROFILE_NONE ? 0 : wanted);
	return event_is_cpu(&p->meta.events[event]) ||
	       strcmp(p->meta.events[event].name, EVENT_WAIT) == 0;
}

static void clear_profile(struct window *w)
{
	struct profile *p = &w->defs.profile;

	aggregate_index_deinit(&w->defs.aggregates);
	free(p->aggregates);
	p->aggregates = NULL;
	p->n_aggregates = p->cap_aggregates = 0;
	p->n_samples = p->value = p->first_ts = p->last_ts = 0;
	p->totals = (struct profile_totals) { 0 };
	for (size_t i = 0; i < p->n_threads; i++)
		p->threads[i].samples = p->threads[i].first_ns = p->threads[i].last_ns = 0;
}

/* What waits are for, by stack: entries have what was seen, as recordings do. */
struct wait_reasons {
	uint8_t *reasons; /* wait_causes_find(); NULL: there are no waits; owned */
	size_t n;
};

/* The stack that has the right FRAME_WAIT in place of what was seen. */
static int right_stack(struct window *w, const struct wait_reasons *waits, uint32_t *stack)
{
	const struct profile *p = &w->defs.profile;
	const struct profile_stack seen = p->stacks[*stack];
	struct profile_frame frame;
	enum frame_reason reason;
	const char *label;
	uint32_t name, id;
	int r;

	reason = *stack < waits->n ? waits->reasons[*stack] : 0;
	if (!reason || reason == p->frames[seen.frame].reason)
		return 0;
	label = frame_reason_label(reason);
	r = sink_string(&w->defs.sink, label, strlen(label), &name);
	if (r)
		return r;
	frame = wait_cause_frame(name, reason);
	r = sink_frame(&w->defs.sink, &frame, &id);
	return r ? r : sink_stack(&w->defs.sink, seen.parent, id, stack);
}

static int add_to_profile(struct window *w, uint64_t number, const struct window_entry *e,
			  const struct wait_reasons *waits, bool selected)
{
	struct profile *p = &w->defs.profile;
	struct profile_sample sample = { .ts = w->start_ns + number * NSEC_PER_SEC,
					 .value = e->value,
					 .thread = e->thread,
					 .stack = e->stack,
					 .event = (uint16_t)p->event,
					 .flags = e->flags,
					 .request = e->request };
	int r;

	profile_count_samples(&p->totals, &sample, e->samples,
			      !p->meta.n_events || event_is_cpu(&p->meta.events[e->event]));
	if (!selected)
		return 0;
	p->n_samples += e->samples;
	profile_add(&p->value, e->value);
	r = right_stack(w, waits, &sample.stack);
	return r ? r : aggregate_add_sum(&w->defs.aggregates, p, &sample, e->samples);
}

int window_profile(struct window *w, struct window_range range, uint32_t event,
		   const struct profile **ret)
{
	struct profile *p = &w->defs.profile;
	struct wait_reasons waits = { .n = p->n_stacks };
	uint64_t number;
	size_t i;
	int r = 0;

	range = clip(w, range);
	clear_profile(w);
	p->event = event == PROFILE_NONE ? 0 : event;
	if (profile_has_waits(p))
		r = wait_causes_find(p, w->idle, &waits.reasons);
	else
		waits.n = 0;
	for (number = range.from; number < range.to && !r; number++) {
		const struct window_second *s = window_second(w, number);

		profile_add(&p->totals.lost, s->lost);
		for (i = 0; i < s->n && !r; i++)
			r = add_to_profile(w, number, &s->v[i], &waits,
					   is_selected(p, s->v[i].event, event));
	}
	free(waits.reasons);
	p->first_ts = w->start_ns + range.from * NSEC_PER_SEC;
	p->last_ts = p->totals.end_monotonic_ns = w->start_ns + range.to * NSEC_PER_SEC;
	if (!r)
		*ret = p;
	return r;
}

/* ---- life ---- */

int window_new(const struct window_options *opts, struct window **ret)
{
	const struct profile_sink_options sink = { .by_thread = true, .by_request = true };
	struct window *w = calloc(1, sizeof(*w));
	struct profile_meta *meta;

	if (!w)
		return -ENOMEM;
	w->sink.ops = &window_ops;
	w->seconds = calloc(opts->seconds, sizeof(*w->seconds));
	if (!w->seconds || profile_sink_init(&w->defs, &sink)) {
		window_free(w);
		return -ENOMEM;
	}
	w->n_seconds = opts->seconds;
	w->max_bytes = opts->max_bytes;
	w->idle = opts->idle;
	w->start_ns = opts->meta->start_monotonic_ns;
	w->end = 1;
	meta = &w->defs.profile.meta;
	*meta = *opts->meta;
	meta->rbpf_version = meta->command = meta->hostname = meta->kernel = NULL;
	meta->arch = meta->mode = NULL;
	w->collected = window_definition_bytes(w);
	*ret = w;
	return 0;
}

void window_free(struct window *w)
{
	if (!w)
		return;
	for (uint32_t i = 0; w->seconds && i < w->n_seconds; i++)
		free(w->seconds[i].v);
	free(w->seconds);
	intern_deinit(&w->newest);
	profile_sink_deinit(&w->defs);
	free(w);
}

bool window_collection_due(const struct window *w)
{
	const size_t now = window_definition_bytes(w);

	return w->asked || now > 2 * w->collected + w->max_bytes / SMALL_PART;
}
