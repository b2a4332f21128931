/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "profile/reason.h"
#include "profile/reserve.h"

const char *frame_kind_name(enum frame_kind kind)
{
	static const char *const names[FRAME_KIND_COUNT] = {
		[FRAME_RUBY] = "ruby",
		[FRAME_CFUNC] = "cfunc",
		[FRAME_NATIVE] = "native",
		[FRAME_KERNEL] = "kernel",
		[FRAME_GC] = "gc",
		[FRAME_TRUNCATED] = "truncated",
		[FRAME_UNKNOWN] = "unknown",
		[FRAME_FIBER] = "fiber",
		[FRAME_GAP] = "gap",
		[FRAME_WAIT] = "wait",
		[FRAME_NOT_RECORDED] = "not-recorded",
	};

	return (unsigned int)kind < ARRAY_SIZE(names) ? names[kind] : "unknown";
}

const char *lost_reason_name(enum lost_reason reason)
{
	static const char *const names[LOST_REASON_COUNT] = {
		[LOST_RING_FULL] = "ring-full",
		[LOST_UNDEFINED] = "undefined",
		[LOST_MEMORY] = "memory",
		[LOST_OTHER] = "other",
	};

	return (unsigned int)reason < ARRAY_SIZE(names) ? names[reason] : "other";
}

const char *value_unit_name(enum value_unit unit)
{
	static const char *const names[VALUE_UNITS] = {
		[UNIT_NS] = "ns",
		[UNIT_BYTES] = "bytes",
		[UNIT_OBJECTS] = "objects",
		[UNIT_COUNT] = "count",
	};

	return (unsigned int)unit < ARRAY_SIZE(names) ? names[unit] : "count";
}

bool event_is_cpu(const struct profile_event *event)
{
	return !strcmp(event->name, EVENT_CPU) && event->unit == UNIT_NS;
}

bool event_is_same(const struct profile_event *a, const struct profile_event *b)
{
	return !strcmp(a->name, b->name) && a->unit == b->unit;
}

bool event_is_charged(const char *name)
{
	static const char *const charged[] = { EVENT_GVL, EVENT_LOCK, EVENT_CAUSED };

	for (size_t i = 0; i < ARRAY_SIZE(charged); i++)
		if (!strcmp(name, charged[i]))
			return true;
	return false;
}

bool event_is_of_own_time(const char *name)
{
	return !event_is_charged(name) && strcmp(name, EVENT_WAKEUP) != 0;
}

/* Recordings of CPU time may come without a period. */
bool event_is_exact(const struct profile_event *event)
{
	return !event->period && !event_is_cpu(event);
}

bool event_has_durations(const struct profile_event *event)
{
	return event->unit == UNIT_NS &&
	       (event_is_exact(event) || !strcmp(event->name, EVENT_WALL));
}

uint32_t profile_event_named(const struct profile *p, const char *name)
{
	for (uint32_t i = 0; i < p->meta.n_events; i++)
		if (!strcmp(p->meta.events[i].name, name))
			return i;
	return PROFILE_NONE;
}

bool profile_has_waits(const struct profile *p)
{
	return profile_event_named(p, EVENT_WAIT) != PROFILE_NONE;
}

const struct profile_event *profile_event(const struct profile *p)
{
	static const struct profile_event cpu = { .name = EVENT_CPU, .unit = UNIT_NS };

	return p->meta.n_events ? &p->meta.events[p->event] : &cpu;
}

void profile_count_samples(struct profile_totals *t, const struct profile_sample *s, uint64_t n,
			   bool is_cpu)
{
	uint64_t cpu_ns = is_cpu ? s->value : 0;

	t->samples += n;
	profile_add(&t->cpu_sampled_ns, cpu_ns);
	if (!s->flags)
		return;
	t->truncated += s->flags & SAMPLE_TRUNCATED ? n : 0;
	t->unresolved += s->flags & SAMPLE_UNRESOLVED ? n : 0;
	t->failed += s->flags & SAMPLE_FAILED ? n : 0;
	t->no_ruby += s->flags & SAMPLE_NO_RUBY ? n : 0;
	t->native_samples += s->flags & SAMPLE_NATIVE ? n : 0;
	t->native_gaps += s->flags & SAMPLE_GAP ? n : 0;
	if (s->flags & SAMPLE_GC)
		profile_add(&t->gc_ns, cpu_ns);
	if (s->flags & SAMPLE_GC_UNKNOWN)
		profile_add(&t->gc_unknown_ns, cpu_ns);
}

uint16_t profile_span_marks(const struct profile *p, const struct profile_span *span)
{
	uint16_t marks = 0;

	for (size_t i = 0; i < p->n_span_marks; i++) {
		const struct span_mark *mark = &p->span_marks[i];
		const bool has = mark->trace
					 ? !memcmp(span->trace_id, mark->id, sizeof(span->trace_id))
					 : !memcmp(span->span_id, mark->id, sizeof(span->span_id));

		marks |= (uint16_t)(has << (p->n_cuts + i));
	}
	return marks;
}

int profile_mark_span(struct profile *p, uint32_t span, uint16_t marks)
{
	if (!p->n_span_marks)
		return 0;
	if (array_reserve(p->marks_of_spans, p->cap_marks_of_spans, (size_t)span + 1))
		return -ENOMEM;
	p->marks_of_spans[span] = marks;
	return 0;
}

int profile_add_request(struct profile *p, uint32_t thread, const struct profile_request_kind *kind,
			uint32_t *ret)
{
	struct profile_request request = { .thread = thread };
	size_t n = p->n_requests ? p->n_requests : 1;
	int r = RESERVE_ONE(p->requests, n, p->cap_requests);

	if (!r)
		r = intern_add(&p->request_kinds, kind, sizeof(*kind), &request.kind, NULL);
	if (r)
		return r;
	request.kind++;
	p->requests[0] = (struct profile_request) { 0 };
	p->requests[n] = request;
	p->n_requests = n + 1;
	*ret = (uint32_t)n;
	return 0;
}

/* Thread @t is in no request since @begin, or in another one, or that is not asked for any more. */
static void note_end(struct profile *p, const struct profile_thread *t, uint64_t begin)
{
	struct profile_request *r;

	if (!t->noted_request)
		return;
	r = &p->requests[t->noted_request];
	if (r->last_ts && !r->until_ts)
		r->until_ts = begin;
}

/* @s, which began at @begin, is of thread @t in its request. */
static void note_sight(struct profile_request *r, const struct profile_thread *t,
		       const struct profile_sample *s, uint64_t begin, bool waits)
{
	if (!r->last_ts)
		r->after_ts = t->noted_ts;
	r->until_ts = 0;
	if (!r->last_ts || begin < r->first_ts) {
		r->first_ts = begin;
		r->first_waits = waits;
	}
	if (s->ts >= r->last_ts) {
		r->last_ts = s->ts;
		r->last_waits = waits;
	}
}

void profile_note_request(struct profile *p, const struct profile_sample *s, bool counted,
			  bool in_time)
{
	const struct profile_event *event = &p->meta.events[s->event];
	struct profile_thread *t = &p->threads[s->thread];
	struct profile_request *r;
	uint64_t begin;
	bool waits;

	waits = p->meta.n_events && !strcmp(event->name, EVENT_WAIT);
	if (!counted && !waits && !event_is_cpu(event))
		return;
	begin = waits && s->ts > s->value ? s->ts - s->value : s->ts;
	if (t->noted_request != s->request || !in_time)
		note_end(p, t, begin);
	if (s->request && in_time) {
		r = &p->requests[s->request];
		note_sight(r, t, s, begin, waits);
		if (counted) {
			r->samples++;
			profile_add(&r->value, s->value);
		}
	}
	if (s->ts > t->noted_ts)
		t->noted_ts = s->ts;
	t->noted_request = s->request;
}

/* By how much the mean of samples is off the period at most, percent, if they do not differ. */
#define MEAN_PERCENT_OFF 20

bool profile_samples_differ(const struct profile *p)
{
	const struct profile_event *event = profile_event(p);
	const uint64_t period = event->period;

	if (!strcmp(event->name, EVENT_WALL))
		return p->totals.lowest_hz;
	if (!event_is_cpu(event) || !period || !p->n_samples)
		return false;
	/* The totals of a recording that was not closed are unknown. */
	return p->totals.lowest_hz ||
	       p->value / p->n_samples > period + period / 100 * MEAN_PERCENT_OFF;
}

/* The longest that a sample of CPU time stands for, as far as that is known; 0: there are none. */
static uint64_t longest_period(const struct profile *p)
{
	const uint32_t frequency = p->meta.frequency, lowest = p->totals.lowest_hz;
	uint64_t period = 0;

	for (uint32_t i = 0; i < p->meta.n_events && !period; i++)
		if (event_is_cpu(&p->meta.events[i]))
			period = p->meta.events[i].period;
	return lowest && lowest < frequency ? period * frequency / lowest : period;
}

uint64_t profile_period_of(const struct profile *p, uint64_t samples, uint64_t value)
{
	if (samples && event_is_cpu(profile_event(p)) && profile_samples_differ(p))
		return value / samples;
	return longest_period(p);
}

uint64_t profile_request_period(const struct profile *p, const struct profile_request *r)
{
	return profile_period_of(p, r->samples, r->value);
}

uint64_t profile_request_least_ns(const struct profile_request *r)
{
	return r->last_ts - r->first_ts;
}

/*
 * Samples of a thread may overlap a little where two CPUs wrote them, so that no neighbour is taken
 * for one that is within the request.
 */
uint64_t profile_request_most_ns(const struct profile *p, const struct profile_request *r)
{
	uint64_t after = r->after_ts ? r->after_ts : p->meta.start_monotonic_ns;
	uint64_t until = r->until_ts ? r->until_ts : p->totals.end_monotonic_ns;

	if (!r->last_ts)
		return 0;
	if (after > r->first_ts)
		after = r->first_ts;
	if (until < r->last_ts)
		until = r->last_ts;
	return until - after;
}

uint64_t profile_request_ns(const struct profile *p, const struct profile_request *r)
{
	const uint64_t period = r->last_ts ? profile_request_period(p, r) : 0;
	const uint64_t most = profile_request_most_ns(p, r);
	uint64_t ns = profile_request_least_ns(r);

	if (!r->first_waits)
		profile_add(&ns, period - period / 2);
	if (!r->last_waits)
		profile_add(&ns, period / 2);
	return ns < most ? ns : most;
}

bool profile_is_wait(const struct profile *p, const struct profile_sample *s)
{
	return profile_stack_waits(p, s->stack) &&
	       (!p->meta.n_events || event_is_of_own_time(p->meta.events[s->event].name));
}

int profile_note_late(struct profile *p, const struct profile_sample *s, uint64_t last_ts)
{
	int r;

	if (s->ts >= last_ts || !profile_stack_waits(p, s->stack) || p->n_late == PROFILE_MAX_LATE)
		return 0;
	r = array_reserve(p->late, p->cap_late, p->n_late + 1);
	if (!r)
		p->late[p->n_late++] = *s;
	return r;
}

int profile_keep_sample(struct profile *p, const struct profile_sample *s)
{
	int r = array_reserve(p->samples, p->cap_kept, p->n_kept + 1);

	if (!r)
		p->samples[p->n_kept++] = *s;
	return r;
}

int profile_keep_wait(struct profile *p, const struct profile_sample *wait)
{
	int r = array_reserve(p->waits, p->cap_waits, p->n_waits + 1);

	if (!r)
		p->waits[p->n_waits++] = *wait;
	return r;
}

static void meta_deinit(struct profile_meta *meta)
{
	free(meta->rbpf_version);
	free(meta->command);
	free(meta->hostname);
	free(meta->kernel);
	free(meta->arch);
	free(meta->mode);
}

void profile_deinit(struct profile *p)
{
	if (!p)
		return;
	intern_deinit(&p->strings);
	free(p->processes);
	free(p->threads);
	free(p->series);
	free(p->modules);
	free(p->frames);
	free(p->stacks);
	free(p->aggregates);
	free(p->aggregate_spans);
	free(p->aggregate_waits);
	free(p->marks_of_spans);
	free(p->requests);
	intern_deinit(&p->request_kinds);
	intern_deinit(&p->spans);
	free(p->samples);
	free(p->waits);
	free(p->late);
	free(p->lost);
	kept_sources_deinit(&p->sources);
	meta_deinit(&p->meta);
	*p = (struct profile)PROFILE_INIT;
}

/* A range of times; empty while first > last. */
struct time_range {
	uint64_t first, last;
};

static void range_add(struct time_range *r, uint64_t ts)
{
	if (ts < r->first)
		r->first = ts;
	if (ts > r->last)
		r->last = ts;
}

size_t profile_output_max(const struct profile *p)
{
	return PROFILE_FREE_OUTPUT + PROFILE_MAX_RATIO * p->file_bytes;
}

int profile_rubies(const struct profile *p, uint32_t **ret, size_t *ret_n)
{
	_cleanup_free_ bool *seen = calloc(p->strings.count + 1, sizeof(*seen));
	uint32_t *versions = calloc(p->n_processes + 1, sizeof(*versions));
	size_t n = 0;

	if (!seen || !versions) {
		free(versions);
		return -ENOMEM;
	}
	for (size_t i = 0; i < p->n_processes; i++) {
		const uint32_t version = p->processes[i].ruby_version;

		if (version && !seen[version])
			versions[n++] = version;
		seen[version] = true;
	}
	*ret = versions;
	*ret_n = n;
	return 0;
}

void profile_time_range(const struct profile *p, uint64_t *first, uint64_t *last)
{
	struct time_range r = { .first = UINT64_MAX, .last = 0 };

	/*
	 * The buffers between the kernel and the recorder may hold samples of just before the
	 * start.
	 */
	if (p->n_samples) {
		range_add(&r, p->first_ts);
		range_add(&r, p->last_ts);
	}
	for (size_t i = 0; i < p->n_lost; i++)
		range_add(&r, p->lost[i].ts);
	if (p->meta.start_monotonic_ns)
		range_add(&r, p->meta.start_monotonic_ns);
	if (p->totals.end_monotonic_ns)
		range_add(&r, p->totals.end_monotonic_ns);
	if (r.first > r.last)
		r = (struct time_range) { 0 };
	*first = r.first;
	*last = r.last;
}

bool profile_stack_held_gvl(const struct profile *p, uint32_t stack)
{
	const uint32_t parent = stack ? p->stacks[stack].parent : 0;

	return parent && profile_stack_waits(p, stack) &&
	       p->frames[p->stacks[parent].frame].reason == REASON_GVL_HELD;
}

size_t profile_stack_depth(const struct profile *p, uint32_t stack)
{
	size_t depth = 0;

	/* A parent's id is below its child's, so this ends. */
	for (; stack; stack = p->stacks[stack].parent)
		depth++;
	return depth;
}
