/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A recording for the pages: threads that run, wait and serve requests, with names that are markup.
 *
 * usage: pages_sample FILE SECONDS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "profile/reason.h"
#include "profile/recorder.h"
#include "support/profile_builder.h"

#define START	   5000000000ull /* ns, CLOCK_MONOTONIC */
#define N_THREADS  7
#define UNKNOWN_GC 3 /* a request of a process whose collector is not known */
#define MS	   1000000ull

static const char *const thread_names[N_THREADS] = {
	"main",
	"<script>alert(1)</script>",
	"worker \"2\" & co",
	"</script><img src=x onerror=alert(1)>",
	"Größe 日本語",
	"{{x}} ${y}",
	"idle",
};

/* Methods from the outermost on; each thread runs some of them. */
static const char *const method_names[] = {
	"<main>",
	"block in Pool#run",
	"Cart<Item>#total",
	"</script><b>Foo#bar",
	"<!--<script>Hash#[]=",
	"Array#each",
	"Order#save & \"quote\"",
	"'; DROP TABLE frames; --#x",
};

static const enum frame_reason waits[] = {
	REASON_WAIT_GVL,   REASON_WAIT_LOCK, REASON_WAIT_DISK,	    REASON_WAIT_NETWORK,
	REASON_WAIT_TIMER, REASON_WAIT_CPU,  REASON_WAIT_THROTTLED,
};

struct sample_writer {
	struct recorder *rec;
	uint32_t threads[N_THREADS], paths[32], kinds_name[UNKNOWN_GC + 1], framework;
	uint32_t gc, reasons[ARRAY_SIZE(waits)], idle;
	uint64_t random;
};

static uint32_t str(struct sample_writer *w, const char *s)
{
	uint32_t id;

	builder_must(sink_string(recorder_sink(w->rec), s, strlen(s), &id));
	return id;
}

static uint32_t frame(struct sample_writer *w, enum frame_kind kind, const char *name,
		      const char *file, enum frame_reason reason)
{
	struct profile_frame def;
	uint32_t id;

	memset(&def, 0, sizeof(def));
	def.kind = kind;
	def.name = str(w, name);
	def.file = str(w, file);
	def.line = def.func_line = *file ? 7 : 0;
	def.module = PROFILE_NONE;
	def.reason = reason;
	builder_must(sink_frame(recorder_sink(w->rec), &def, &id));
	return id;
}

/* Of some it is known what they are for. */
static uint32_t wait_frame(struct sample_writer *w, enum frame_reason reason)
{
	const char *on = reason == REASON_WAIT_NETWORK ? "<b>db</b>:5432"
			 : reason == REASON_WAIT_DISK  ? "\"a\" & </script>.log"
						       : NULL;
	_cleanup_buf_ struct buf label = BUF_INIT;

	if (!on)
		return frame(w, FRAME_WAIT, frame_reason_label(reason), "", reason);
	wait_label_add(reason, on, &label);
	return frame(w, FRAME_WAIT, buf_str(&label), "", reason);
}

static uint32_t stack(struct sample_writer *w, uint32_t parent, uint32_t frame)
{
	uint32_t id;

	builder_must(sink_stack(recorder_sink(w->rec), parent, frame, &id));
	return id;
}

static void define(struct sample_writer *w)
{
	struct profile_process process = { .parent = PROFILE_NONE, .uid = PROFILE_NONE };
	uint32_t frames[ARRAY_SIZE(method_names)], id = 0;

	for (uint32_t i = 0; i < N_THREADS; i++) {
		process.pid = 40 + i / 4;
		process.cmdline = str(w, i < 4 ? "puma <5.0>: cluster & \"worker\"" : "sidekiq");
		process.ruby_version = str(w, "3.3.6");
		if (i % 4 == 0)
			builder_must(sink_process(recorder_sink(w->rec), &process, &id));
		builder_must(sink_thread(recorder_sink(w->rec), id, 100 + i,
					 str(w, thread_names[i]), &w->threads[i]));
	}
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		frames[i] = frame(w, FRAME_RUBY, method_names[i], "/app/<x> & y.rb", 0);
	for (size_t i = 0; i < ARRAY_SIZE(w->paths); i++) {
		uint32_t depth = 2 + builder_random(&w->random, 6);

		w->paths[i] = stack(w, 0, frames[0]);
		while (depth--)
			w->paths[i] = stack(w, w->paths[i],
					    frames[builder_random(&w->random, ARRAY_SIZE(frames))]);
	}
	w->gc = frame(w, FRAME_GC, "(garbage collection)", "", REASON_GC);
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++)
		w->reasons[i] = wait_frame(w, waits[i]);
	w->idle = wait_frame(w, REASON_WAIT_IDLE);
	w->framework = str(w, "rails");
	w->kinds_name[0] = str(w, "OrdersController#index");
	w->kinds_name[1] = str(w, "<i>Carts</i>#show");
	w->kinds_name[2] = str(w, "UsersController#create");
	w->kinds_name[UNKNOWN_GC] = str(w, "ImportsController#create");
}

/*
 * One tick or wait of @thread that ends at *@now. @unknown_gc: whether it collects is not known, as
 * in a process whose collector is not.
 */
static void add_sample(struct sample_writer *w, uint32_t thread, uint64_t *now, uint32_t request,
		       bool unknown_gc)
{
	struct profile_sample s = { .thread = w->threads[thread], .request = request };
	uint32_t path = w->paths[builder_random(&w->random, ARRAY_SIZE(w->paths))];

	if (thread == N_THREADS - 1) {
		s.event = 1;
		s.value = 900 * MS;
		s.stack = stack(w, w->paths[0], w->idle);
	} else if (builder_random(&w->random, 10) < 4) {
		s.value = 10 * MS;
		s.stack = path;
		s.flags = builder_random(&w->random, 5) ? 0 : SAMPLE_KERNEL;
		if (s.flags && builder_random(&w->random, 2))
			s.flags |= SAMPLE_PAGE_FAULT;
		if (unknown_gc) {
			s.flags |= SAMPLE_GC_UNKNOWN;
		} else if (!builder_random(&w->random, 6)) {
			s.stack = stack(w, path, w->gc);
			s.flags = SAMPLE_GC;
		}
	} else {
		s.event = 1;
		s.value = 100000 + builder_random(&w->random, 40 * MS);
		s.stack = stack(w, path, w->reasons[builder_random(&w->random, ARRAY_SIZE(waits))]);
	}
	/* Sometimes more CPU time than has passed, as it is on a machine that is measured. */
	*now += s.value - (!s.event && !builder_random(&w->random, 8) ? 3 * MS : 0);
	s.ts = *now;
	builder_must(sink_sample(recorder_sink(w->rec), &s));
}

static void write_samples(struct sample_writer *w, uint64_t end)
{
	uint64_t now[N_THREADS], first;
	uint32_t request[N_THREADS] = { 0 }, kind_of[N_THREADS] = { 0 }, thread;

	for (size_t i = 0; i < N_THREADS; i++)
		now[i] = START + i * 31 * MS;
	for (;;) {
		thread = 0;
		for (uint32_t i = 1; i < N_THREADS; i++)
			if (now[i] < now[thread])
				thread = i;
		first = now[thread];
		if (first >= end)
			return;
		if (thread == 1 || thread == 2) {
			const uint32_t n = builder_random(&w->random, thread == 2 ? 4 : 3);
			const struct profile_request_kind kind = {
				.framework = w->framework,
				.name = w->kinds_name[n],
			};

			if (!builder_random(&w->random, 12)) {
				kind_of[thread] = n;
				builder_must(sink_request(recorder_sink(w->rec), w->threads[thread],
							  &kind, &request[thread]));
			}
		}
		add_sample(w, thread, &now[thread], request[thread], kind_of[thread] == UNKNOWN_GC);
	}
}

int main(int argc, char **argv)
{
	struct profile_meta meta = {
		.command = (char *)"pages_sample",
		.frequency = 100,
		.start_monotonic_ns = START,
		.events = { { .name = EVENT_CPU, .unit = UNIT_NS, .period = 10 * MS },
			    { .name = EVENT_WAIT, .unit = UNIT_NS } },
		.n_events = 2,
	};
	const struct recorder_options opts = { .path = argc > 1 ? argv[1] : NULL, .force = true };
	struct sample_writer w = { .random = 88172645463325252ull };
	struct profile_totals totals = { 0 };
	uint64_t end = START;
	struct err err = { 0 };

	if (argc != 3)
		return 2;
	end += strtoull(argv[2], NULL, 10) * 1000 * MS;
	builder_must(recorder_open(&opts, &meta, &w.rec, &err));
	define(&w);
	write_samples(&w, end);
	totals.end_monotonic_ns = end + 1000 * MS;
	builder_must(recorder_close(w.rec, &totals, &err));
	return 0;
}
