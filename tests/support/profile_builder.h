/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Small profiles made in memory, for tests of what stands after the recording. Equal frames and
 * stacks get equal ids, as in a recording. Running out of memory aborts the test.
 *
 *	struct profile_builder b;
 *
 *	builder_init(&b);
 *	thread = builder_thread(&b, builder_process(&b, 42, "ruby app.rb"), 42, "ruby");
 *	builder_add(&b, thread, builder_path(&b, "<main>|Foo#bar"), 3);
 *	p = builder_finish(&b);
 */
#ifndef RBPF_TESTS_PROFILE_BUILDER_H
#define RBPF_TESTS_PROFILE_BUILDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "profile/profile_sink.h"
#include "profile/reason.h"

#define BUILDER_PERIOD 10000000ull   /* ns */
#define BUILDER_START  5000000000ull /* ns, CLOCK_MONOTONIC */

struct profile_builder {
	struct profile_sink out;
	uint64_t now; /* ns, CLOCK_MONOTONIC, of the next sample */
};

static inline void builder_must(int r)
{
	if (r)
		abort();
}

static inline uint32_t builder_str(struct profile_builder *b, const char *s)
{
	uint32_t id = 0;

	builder_must(sink_string(&b->out.sink, s, strlen(s), &id));
	return id;
}

static inline void builder_init(struct profile_builder *b)
{
	static const struct profile_sink_options opts = { .by_thread = true, .keep_samples = true };

	b->now = BUILDER_START;
	builder_must(profile_sink_init(&b->out, &opts));
	b->out.profile.meta.frequency = 100;
	b->out.profile.meta.start_monotonic_ns = BUILDER_START;
	b->out.profile.complete = true;
}

static inline void builder_deinit(struct profile_builder *b)
{
	profile_sink_deinit(&b->out);
}

static inline uint32_t builder_process(struct profile_builder *b, uint32_t pid, const char *cmdline)
{
	const struct profile_process def = {
		.pid = pid,
		.parent = PROFILE_NONE,
		.cmdline = builder_str(b, cmdline),
		.ruby_version = builder_str(b, "3.3.6"),
		.uid = PROFILE_NONE,
		.exit_status = -1,
	};
	uint32_t id = 0;

	builder_must(sink_process(&b->out.sink, &def, &id));
	return id;
}

/* Put @process into a container (or, with "", a pid namespace alone); its pid there is @ns_pid. */
static inline void builder_contain(struct profile_builder *b, uint32_t process,
				   const char *container, uint32_t ns_pid)
{
	struct profile_process *p = &b->out.profile.processes[process];
	struct buf cgroup = BUF_INIT;

	buf_addf(&cgroup, *container ? "/docker/%s" : "/init.scope", container);
	p->container = builder_str(b, container);
	p->cgroup = builder_str(b, buf_str(&cgroup));
	p->ns_pid = ns_pid;
	buf_deinit(&cgroup);
}

static inline uint32_t builder_thread(struct profile_builder *b, uint32_t process, uint32_t tid,
				      const char *name)
{
	uint32_t id = 0;

	builder_must(sink_thread(&b->out.sink, process, tid, builder_str(b, name), &id));
	return id;
}

static inline uint32_t builder_module(struct profile_builder *b, const char *path)
{
	const struct profile_module def = { .path = builder_str(b, path) };
	uint32_t id = 0;

	builder_must(sink_module(&b->out.sink, &def, &id));
	return id;
}

static inline uint32_t builder_add_frame(struct profile_builder *b, const struct profile_frame *f)
{
	uint32_t id = 0;

	builder_must(sink_frame(&b->out.sink, f, &id));
	return id;
}

/*
 * @file is the source file, or the path of the module for native frames. A frame in no file whose
 * name is that of a reason has the reason.
 */
static inline uint32_t builder_frame(struct profile_builder *b, enum frame_kind kind,
				     const char *name, const char *file, uint32_t line,
				     uint32_t func_line)
{
	struct profile_frame frame;

	memset(&frame, 0, sizeof(frame)); /* also the padding, which is interned */
	frame.kind = kind;
	frame.name = builder_str(b, name);
	frame.line = line;
	frame.func_line = func_line;
	frame.module = PROFILE_NONE;
	if (!*file)
		frame.reason = frame_reason_of_label(kind, name);
	if (kind == FRAME_NATIVE && *file)
		frame.module = builder_module(b, file);
	else
		frame.file = builder_str(b, file);
	return builder_add_frame(b, &frame);
}

/* The same frame as @frame, but that its line is approximate. */
static inline uint32_t builder_approximate(struct profile_builder *b, uint32_t frame)
{
	struct profile_frame copy = b->out.profile.frames[frame];

	copy.flags |= FRAME_LINE_APPROXIMATE;
	return builder_add_frame(b, &copy);
}

static inline uint32_t builder_stack(struct profile_builder *b, uint32_t parent, uint32_t frame)
{
	uint32_t id = 0;

	builder_must(sink_stack(&b->out.sink, parent, frame, &id));
	return id;
}

/* A stack of Ruby frames of /app/x.rb from their names, root first, separated by '|'. */
static inline uint32_t builder_path(struct profile_builder *b, const char *names)
{
	char *copy = strdup(names), *rest = copy, *name;
	uint32_t stack = 0;

	if (!copy)
		abort();
	while ((name = strsep(&rest, "|")))
		stack = builder_stack(b, stack,
				      builder_frame(b, FRAME_RUBY, name, "/app/x.rb", 7, 1));
	free(copy);
	return stack;
}

/* @stack with a garbage collection upon it; @phase is "(marking)" or the like, NULL if unknown. */
static inline uint32_t builder_gc(struct profile_builder *b, uint32_t stack, const char *phase)
{
	stack = builder_stack(b, stack,
			      builder_frame(b, FRAME_GC, "(garbage collection)", "", 0, 0));
	if (phase)
		stack = builder_stack(b, stack, builder_frame(b, FRAME_GC, phase, "", 0, 0));
	return stack;
}

/* @stack with a frame upon it that says why its thread did not run, or what it held. */
static inline uint32_t builder_reason(struct profile_builder *b, uint32_t stack,
				      enum frame_reason reason)
{
	const struct profile_frame frame = { .kind = frame_reason_kind(reason),
					     .module = PROFILE_NONE,
					     .name = builder_str(b, frame_reason_label(reason)),
					     .reason = reason };

	return builder_stack(b, stack, builder_add_frame(b, &frame));
}

/* The same of a wait of which it is known for whom or which file it is: @on. */
static inline uint32_t builder_wait_for(struct profile_builder *b, uint32_t stack,
					enum frame_reason reason, const char *on)
{
	struct profile_frame def = { .kind = FRAME_WAIT, .module = PROFILE_NONE, .reason = reason };
	_cleanup_buf_ struct buf label = BUF_INIT;

	wait_label_add(reason, on, &label);
	def.name = builder_str(b, buf_str(&label));
	return builder_stack(b, stack, builder_add_frame(b, &def));
}

static inline void builder_sample(struct profile_builder *b, uint32_t thread, uint32_t stack,
				  uint64_t value, uint16_t flags)
{
	const struct profile_sample sample = {
		.ts = b->now,
		.value = value,
		.thread = thread,
		.stack = stack,
		.flags = flags,
	};

	builder_must(sink_sample(&b->out.sink, &sample));
	b->now += BUILDER_PERIOD;
}

/* All samples are of this event, whose values are ns. */
static inline void builder_event(struct profile_builder *b, const char *name, uint64_t period)
{
	struct profile_event *event = &b->out.profile.meta.events[0];

	*event = (struct profile_event) { .unit = UNIT_NS, .period = period };
	snprintf(event->name, sizeof(event->name), "%s", name);
	b->out.profile.meta.n_events = 1;
}

/*
 * The events of a recording made with --mode states, by their places. Call it before the first
 * sample.
 */
enum builder_event {
	BUILDER_CPU,
	BUILDER_WAIT,
	BUILDER_GVL,
	BUILDER_EVENTS,
	BUILDER_WAKEUP = BUILDER_EVENTS, /* builder_wakeups() adds it */
};

static inline void builder_states(struct profile_builder *b)
{
	static const struct profile_event events[BUILDER_EVENTS] = {
		[BUILDER_CPU] = { .name = EVENT_CPU, .unit = UNIT_NS, .period = BUILDER_PERIOD },
		[BUILDER_WAIT] = { .name = EVENT_WAIT, .unit = UNIT_NS },
		[BUILDER_GVL] = { .name = EVENT_GVL, .unit = UNIT_NS },
	};
	struct profile *p = &b->out.profile;

	p->by_event = true;
	memcpy(p->meta.events, events, sizeof(events));
	p->meta.n_events = BUILDER_EVENTS;
}

/* The same of one made with --waker, too, whose wakeups are shown. */
static inline void builder_wakeups(struct profile_builder *b)
{
	struct profile *p = &b->out.profile;

	builder_states(b);
	p->event = BUILDER_WAKEUP;
	p->meta.n_events = BUILDER_WAKEUP + 1;
	p->meta.events[BUILDER_WAKEUP] = (struct profile_event) { .name = EVENT_WAKEUP,
								  .unit = UNIT_NS };
}

/* A request of @thread; "" if its name is unknown. */
static inline uint32_t builder_request(struct profile_builder *b, uint32_t thread,
				       const char *framework, const char *name)
{
	const struct profile_request_kind kind = { .framework = builder_str(b, framework),
						   .name = builder_str(b, name) };
	uint32_t id = 0;

	b->out.profile.by_request = true;
	builder_must(sink_request(&b->out.sink, thread, &kind, &id));
	return id;
}

/* A sample that ends now and lasted @value, of a request or none (0). */
static inline void builder_state(struct profile_builder *b, uint32_t thread, uint32_t stack,
				 enum builder_event event, uint64_t value, uint32_t request)
{
	const struct profile_sample sample = {
		.ts = b->now += value,
		.value = value,
		.thread = thread,
		.stack = stack,
		.flags = event != BUILDER_CPU || !(stack % 2) ? 0
			 : stack % 4 == 1		      ? SAMPLE_KERNEL
							      : SAMPLE_KERNEL | SAMPLE_PAGE_FAULT,
		.event = (uint16_t)event,
		.request = request,
	};

	builder_must(sink_sample(&b->out.sink, &sample));
}

/*
 * A thread with two requests of a recording with waits. The first one takes 25 ms, the second one
 * 65: half a period is before the first tick.
 */
static inline void builder_fast_and_slow(struct profile_builder *b)
{
	uint32_t thread = builder_thread(b, builder_process(b, 42, "puma"), 42, "main");
	uint32_t stack = builder_path(b, "a"), fast, slow;
	uint32_t wait = builder_reason(b, stack, REASON_WAIT_NETWORK);

	builder_states(b);
	fast = builder_request(b, thread, "rails", "A#fast");
	slow = builder_request(b, thread, "rails", "A#slow");
	builder_state(b, thread, stack, BUILDER_CPU, 9000000, fast);
	builder_state(b, thread, wait, BUILDER_WAIT, 20000000, fast);
	builder_state(b, thread, stack, BUILDER_CPU, 9000000, slow);
	builder_state(b, thread, wait, BUILDER_WAIT, 60000000, slow);
}

/* Add up the samples again, and drop those outside of a time, as the reader does (reader.h). */
static inline void builder_select(struct profile_builder *b, uint64_t from_ns, uint64_t to_ns)
{
	struct profile *p = &b->out.profile;
	size_t n = 0;

	p->n_aggregates = 0;
	p->totals = (struct profile_totals) { .lost = p->totals.lost };
	for (size_t i = 0; i < p->n_threads; i++)
		p->threads[i].samples = 0;
	aggregate_index_deinit(&b->out.aggregates);
	for (size_t i = 0; i < p->n_kept; i++) {
		uint64_t at = p->samples[i].ts - BUILDER_START;

		profile_count_sample(&p->totals, &p->samples[i], true);
		if (at < from_ns || (to_ns && at >= to_ns))
			continue;
		p->samples[n++] = p->samples[i];
		if (aggregate_add(&b->out.aggregates, p, &p->samples[n - 1]))
			abort();
	}
	p->n_kept = n;
}

/* @n samples of BUILDER_PERIOD each. */
static inline void builder_add(struct profile_builder *b, uint32_t thread, uint32_t stack, size_t n)
{
	while (n--)
		builder_sample(b, thread, stack, BUILDER_PERIOD, 0);
}

static inline uint32_t builder_random(uint64_t *state, uint32_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state % below);
}

/*
 * @n samples of stacks with much in common and much recursion, of all kinds of frames, in three
 * threads of two processes, some of value 0, some without frames. @seed (not 0) makes the
 * difference.
 */
static inline void builder_add_random(struct profile_builder *b, uint64_t seed, size_t n)
{
	static const char *const names[] = { "Foo", "Foo#bar", "Foo.bar", "a", "b", "", "x 1" };
	static const char *const files[] = { "", "/app/a.rb", "/gems/z-1/b.rb",
					     "<internal:kernel>" };
	uint32_t first = builder_process(b, 10, "ruby a.rb");
	uint32_t second = builder_process(b, 9, "ruby b.rb");
	const uint32_t threads[] = {
		builder_thread(b, first, 10, "main"),
		builder_thread(b, first, 11, "worker 1"),
		builder_thread(b, second, 9, "main"),
	};

	while (n--) {
		uint32_t depth = builder_random(&seed, 12), stack = 0;

		while (depth--) {
			enum frame_kind kind = builder_random(&seed, FRAME_NOT_RECORDED);
			uint32_t name = builder_random(&seed, ARRAY_SIZE(names));
			uint32_t file = builder_random(&seed, ARRAY_SIZE(files));

			stack = builder_stack(b, stack,
					      builder_frame(b, kind, names[name], files[file],
							    builder_random(&seed, 3), file));
		}
		builder_sample(b, threads[builder_random(&seed, ARRAY_SIZE(threads))], stack,
			       builder_random(&seed, 4) * 1234567, 0);
	}
}

/* The profile, which belongs to the builder; its end is where the next sample would be. */
static inline struct profile *builder_finish(struct profile_builder *b)
{
	b->out.profile.totals.end_monotonic_ns = b->now;
	return &b->out.profile;
}

#endif
