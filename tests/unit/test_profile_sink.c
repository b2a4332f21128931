/* SPDX-License-Identifier: GPL-2.0-only */
/* Whatever goes into a recording and is read back is what a profile in memory has at once. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "profile/profile_sink.h"
#include "profile/reader.h"
#include "profile/reason.h"
#include "profile/recorder.h"
#include "rbpf_file.h"
#include "support/profile_check.h"

static const struct profile_meta meta = {
	.mode = (char *)"cpu",
	.frequency = 99,
	.start_realtime_ns = 1700000000000000000,
	.start_monotonic_ns = 1000000000,
	.events = { { .name = "cpu", .unit = UNIT_NS, .period = 10101010 },
		    { .name = "alloc", .unit = UNIT_BYTES, .period = 1 } },
	.n_events = 2,
};

static uint32_t seed;

static uint32_t below(uint32_t n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 8) % n;
}

static uint32_t str(struct sink *s, const char *text)
{
	uint32_t id = 0;

	cr_assert_eq(sink_string(s, text, strlen(text), &id), 0);
	return id;
}

static struct profile_process process_of(struct sink *s, uint32_t pid)
{
	return (struct profile_process) {
		.pid = pid,
		.ns_pid = pid,
		.parent = PROFILE_NONE,
		.uid = 1000,
		.start_ticks = pid * 100ull,
		.exe = str(s, "/usr/bin/ruby"),
		.cmdline = str(s, "ruby \x1b[31mapp.rb"),
		.attributes = str(s, "service.name=shop"),
		.ruby_version = str(s, "3.3.6"),
		.exit_status = -1,
	};
}

static uint32_t frame_of(struct sink *s, uint32_t i)
{
	static const char *const names[] = { "Foo#bar", "Foo#baz", "_app_foo_rb__1_2" };
	struct profile_frame frame;
	uint32_t id = 0;

	memset(&frame, 0, sizeof(frame));
	frame.kind = FRAME_RUBY;
	frame.name = str(s, names[i % 3]);
	frame.file = str(s, "/srv/app/foo.rb");
	frame.line = i;
	frame.func_line = 1;
	frame.module = PROFILE_NONE;
	cr_assert_eq(sink_frame(s, &frame, &id), 0);
	return id;
}

#define N_THREADS 3
#define N_SAMPLES 2000

/* The same for every sink: ids are dense, so both must give the same ones. */
static void play(struct sink *s)
{
	const struct profile_lost lost = { .ts = 5000, .count = 7, .reason = 1 };
	uint32_t process[2], thread[N_THREADS], stacks[50] = { 0 };
	struct profile_process changed;

	seed = 7;
	for (uint32_t i = 0; i < 2; i++) {
		const struct profile_process def = process_of(s, 42 + i);

		cr_assert_eq(sink_process(s, &def, &process[i]), 0);
	}
	for (uint32_t i = 0; i < N_THREADS; i++)
		cr_assert_eq(sink_thread(s, process[i & 1], 42 + i, str(s, "ruby"), &thread[i]), 0);
	for (uint32_t i = 1; i < 50; i++)
		cr_assert_eq(sink_stack(s, stacks[below(i)], frame_of(s, below(9)), &stacks[i]), 0);
	for (uint32_t i = 0; i < N_SAMPLES; i++) {
		const struct profile_sample sample = {
			.ts = meta.start_monotonic_ns + i * 1000,
			.value = 1 + below(1000),
			.thread = thread[below(N_THREADS)],
			.stack = stacks[below(50)],
			.event = (uint16_t)(below(4) == 0),
			.flags = below(8) ? 0 : SAMPLE_KERNEL,
		};

		cr_assert_eq(sink_sample(s, &sample), 0);
	}
	cr_assert_eq(sink_thread_name(s, thread[1], str(s, "puma 1")), 0);
	cr_assert_eq(sink_thread_cpu(s, thread[2], 123456789), 0);
	cr_assert_eq(sink_lost(s, &lost), 0);
	cr_assert_eq(sink_process_exit(s, process[1], meta.start_monotonic_ns + 77, 256), 0);
	changed = process_of(s, 43);
	changed.exe = str(s, "/usr/bin/other");
	cr_assert_eq(sink_process_update(s, process[1], &changed), 0);
	cr_assert_eq(sink_flush(s), 0);
	cr_assert_eq(sink_error(s, NULL), 0);
}

static void must_read(const char *path, const struct read_options *opts, struct profile *ret)
{
	struct read_report report;
	struct err err = { 0 };

	cr_assert_eq(profile_read(path, opts, ret, &report, &err), 0, "%s", err.msg);
	cr_assert(report.complete);
}

static void record_to(const char *path)
{
	const struct recorder_options opts = { .path = path };
	const struct profile_totals totals = { .samples = N_SAMPLES };
	struct recorder *rec = NULL;
	struct err err = { 0 };

	cr_assert_eq(recorder_open(&opts, &meta, &rec, &err), 0, "%s", err.msg);
	play(recorder_sink(rec));
	cr_assert_eq(recorder_close(rec, &totals, &err), 0, "%s", err.msg);
}

static void set_events(struct profile *p)
{
	memcpy(p->meta.events, meta.events, sizeof(meta.events));
	p->meta.n_events = meta.n_events;
}

static void make(struct profile_sink *out, bool by_thread, uint32_t event)
{
	const struct profile_sink_options opts = {
		.by_thread = by_thread,
		.keep_samples = true,
		.event = event,
	};

	cr_assert_eq(profile_sink_init(out, &opts), 0);
	set_events(&out->profile);
	play(&out->sink);
	cr_expect_null(check_profile(&out->profile));
}

static const char *text(const struct profile *p, uint32_t id)
{
	return intern_get(&p->strings, id, NULL);
}

static void expect_same_definitions(const struct profile *a, const struct profile *b)
{
	cr_assert_eq(a->n_processes, b->n_processes);
	for (size_t i = 0; i < a->n_processes; i++) {
		const struct profile_process *p = &a->processes[i], *q = &b->processes[i];

		cr_expect_eq(p->pid, q->pid);
		cr_expect_str_eq(text(a, p->exe), text(b, q->exe));
		cr_expect_str_eq(text(a, p->cmdline), text(b, q->cmdline));
		cr_expect_str_eq(text(a, p->attributes), text(b, q->attributes));
		cr_expect_eq(p->exited, q->exited);
		cr_expect_eq(p->exit_status, q->exit_status);
		cr_expect_eq(p->exit_ts, q->exit_ts);
	}
	cr_assert_eq(a->n_threads, b->n_threads);
	for (size_t i = 0; i < a->n_threads; i++) {
		const struct profile_thread *t = &a->threads[i], *u = &b->threads[i];

		cr_expect_eq(t->process, u->process);
		cr_expect_eq(t->tid, u->tid);
		cr_expect_str_eq(text(a, t->name), text(b, u->name));
		cr_expect_eq(t->cpu_known, u->cpu_known);
		cr_expect_eq(t->cpu_ns, u->cpu_ns);
	}
	cr_assert_eq(a->n_frames, b->n_frames);
	for (size_t i = 0; i < a->n_frames; i++) {
		cr_expect_str_eq(text(a, a->frames[i].name), text(b, b->frames[i].name));
		cr_expect_str_eq(text(a, a->frames[i].raw_name), text(b, b->frames[i].raw_name));
		cr_expect_eq(a->frames[i].raw_name != 0, a->frames[i].line % 3 == 2);
		cr_expect_eq(a->frames[i].line, b->frames[i].line);
	}
	cr_assert_eq(a->n_stacks, b->n_stacks);
	for (size_t i = 0; i < a->n_stacks; i++) {
		cr_expect_eq(a->stacks[i].parent, b->stacks[i].parent);
		cr_expect_eq(a->stacks[i].frame, b->stacks[i].frame);
	}
}

static void expect_same_samples(const struct profile *a, const struct profile *b)
{
	cr_assert_eq(a->n_samples, b->n_samples);
	cr_expect_eq(a->value, b->value);
	cr_assert_eq(a->n_kept, b->n_kept);
	cr_assert_gt(a->n_kept, 0);
	for (size_t i = 0; i < a->n_kept; i++) {
		const struct profile_sample *s = &a->samples[i], *t = &b->samples[i];

		cr_expect(s->ts == t->ts && s->value == t->value && s->thread == t->thread &&
			  s->stack == t->stack && s->event == t->event && s->flags == t->flags);
	}
	cr_assert_eq(a->n_aggregates, b->n_aggregates);
	for (size_t i = 0; i < a->n_aggregates; i++) {
		cr_expect_eq(a->aggregates[i].stack, b->aggregates[i].stack);
		cr_expect_eq(a->aggregates[i].value, b->aggregates[i].value);
		cr_expect_eq(a->aggregates[i].samples, b->aggregates[i].samples);
	}
	cr_expect_eq(a->first_ts, b->first_ts);
	cr_expect_eq(a->last_ts, b->last_ts);
	cr_assert_eq(a->n_lost, b->n_lost);
	cr_expect_eq(a->lost[0].count, b->lost[0].count);
	cr_expect_eq(a->lost[0].reason, b->lost[0].reason);
}

Test(profile_sink, is_what_a_recording_is)
{
	char path[] = "/tmp/rbpf-profile-sink-XXXXXX";

	close(mkstemp(path));
	unlink(path);
	record_to(path);
	for (unsigned int i = 0; i < 4; i++) {
		const struct read_options opts = {
			.event = meta.events[i & 1].name,
			.by_thread = i >= 2,
			.keep_samples = true,
		};
		struct profile_sink out;
		struct profile read;

		must_read(path, &opts, &read);
		make(&out, i >= 2, i & 1);
		expect_same_definitions(&read, &out.profile);
		expect_same_samples(&read, &out.profile);
		profile_sink_deinit(&out);
		profile_deinit(&read);
	}
	unlink(path);
}

/* Both refuse what refers to nothing, and take no more of it than what was there before. */
static void expect_refusals(struct sink *s)
{
	struct profile_process process = process_of(s, 1);
	const struct profile_module module = { .path = 999 };
	struct profile_sample sample = { .ts = 1, .value = 1 };
	struct profile_frame frame;
	uint32_t id = 12345, p, t;

	process.exe = 999;
	cr_expect_eq(sink_process(s, &process, &id), -EINVAL);
	process = process_of(s, 1);
	process.parent = 0; /* itself */
	cr_expect_eq(sink_process(s, &process, &id), -EINVAL);
	cr_expect_eq(sink_thread(s, 0, 1, 0, &id), -EINVAL);
	cr_expect_eq(sink_module(s, &module, &id), -EINVAL);
	memset(&frame, 0, sizeof(frame));
	frame.kind = FRAME_RUBY;
	frame.module = 0;
	cr_expect_eq(sink_frame(s, &frame, &id), -EINVAL);
	frame.module = PROFILE_NONE;
	frame.reason = REASON_NATIVE_THREAD; /* of a native frame */
	cr_expect_eq(sink_frame(s, &frame, &id), -EINVAL);
	cr_expect_eq(sink_stack(s, 0, 0, &id), -EINVAL);
	cr_expect_eq(sink_process_update(s, 0, &process), -EINVAL);
	cr_expect_eq(sink_process_exit(s, 0, 1, 0), -EINVAL);
	cr_expect_eq(sink_thread_name(s, 0, 0), -EINVAL);
	cr_expect_eq(sink_thread_cpu(s, 0, 1), -EINVAL);
	cr_expect_eq(sink_sample(s, &sample), -EINVAL);
	cr_expect_eq(id, 12345);

	process.parent = PROFILE_NONE;
	cr_assert_eq(sink_process(s, &process, &p), 0);
	cr_assert_eq(sink_thread(s, p, 1, 0, &t), 0);
	cr_expect_eq(p, 0);
	cr_expect_eq(t, 0);
	sample.event = 2; /* there are two */
	cr_expect_eq(sink_sample(s, &sample), -EINVAL);
	sample.event = 0;
	sample.stack = 1;
	cr_expect_eq(sink_sample(s, &sample), -EINVAL);
	sample.stack = 0;
	cr_expect_eq(sink_sample(s, &sample), 0);
}

Test(profile_sink, refuses_what_a_recorder_refuses)
{
	const struct profile_totals totals = { .samples = 1 };
	const struct recorder_options opts = { .path = "/dev/null" };
	struct recorder *rec = NULL;
	struct profile_sink out;
	struct err err = { 0 };

	cr_assert_eq(recorder_open(&opts, &meta, &rec, &err), 0, "%s", err.msg);
	expect_refusals(recorder_sink(rec));
	cr_assert_eq(recorder_close(rec, &totals, &err), 0, "%s", err.msg);
	cr_assert_eq(profile_sink_init(&out, &(struct profile_sink_options) { 0 }), 0);
	set_events(&out.profile);
	expect_refusals(&out.sink);
	cr_expect_eq(out.profile.n_samples, 1);
	profile_sink_deinit(&out);
}

Test(profile_sink, depth_is_limited)
{
	struct profile_sink out;
	uint32_t stack = 0, frame;

	cr_assert_eq(profile_sink_init(&out, &(struct profile_sink_options) { 0 }), 0);
	frame = frame_of(&out.sink, 1);
	for (uint32_t i = 0; i < RBPF_FILE_MAX_DEPTH; i++)
		cr_assert_eq(sink_stack(&out.sink, stack, frame, &stack), 0);
	cr_expect_eq(sink_stack(&out.sink, stack, frame, &stack), -E2BIG);
	profile_sink_deinit(&out);
}
