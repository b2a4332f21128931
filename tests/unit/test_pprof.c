/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "export/export.h"
#include "export/protobuf.h"
#include "support/awkward.h"
#include "support/profile_builder.h"
#include "view/filter.h"

static struct profile_builder b;

static void setup(void)
{
	builder_init(&b);
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(pprof, .init = setup, .fini = teardown);

static int export(const struct view_filter *f, struct buf *out)
{
	const struct export_options opts = { .filter = f };
	struct err err = { 0 };

	builder_finish(&b);
	return exporter_find("pprof")->run(&b.out.profile, &opts, out, &err);
}

/* What is in the gzip file @file. */
static void unzip(const struct buf *file, struct buf *out)
{
	unsigned char bytes[4096];
	z_stream z = { .next_in = (unsigned char *)file->data,
		       .avail_in = (unsigned int)file->len };
	int r;

	cr_assert_eq(inflateInit2(&z, 15 + 16), Z_OK);
	do {
		z.next_out = bytes;
		z.avail_out = sizeof(bytes);
		r = inflate(&z, Z_NO_FLUSH);
		buf_add(out, bytes, sizeof(bytes) - z.avail_out);
	} while (r == Z_OK);
	cr_assert_eq(r, Z_STREAM_END);
	cr_expect_eq(z.avail_in, 0);
	inflateEnd(&z);
}

static bool has(const struct buf *buf, const void *what, size_t len)
{
	return memmem(buf->data, buf->len, what, len);
}

#define HAS(buf, literal) has(buf, literal, sizeof(literal) - 1)

Test(pprof, fields)
{
	struct buf out = BUF_INIT;

	protobuf_u64(&out, 1, 150);
	protobuf_u64(&out, 2, 0);
	protobuf_bytes(&out, 16, "ab", 2);
	protobuf_bytes(&out, 1, "", 0);
	cr_assert_eq(out.len, 3 + 5 + 2);
	cr_expect_eq(memcmp(out.data, "\x08\x96\x01\x82\x01\x02\x61\x62\x0a\x00", out.len), 0);
	buf_deinit(&out);
}

/* What services are told apart by; an attribute with the name of one of rbpf's labels is none. */
Test(pprof, attributes_of_a_process_are_labels)
{
	uint32_t process = builder_process(&b, 42, "ruby");
	struct buf out = BUF_INIT, plain = BUF_INIT;

	b.out.profile.processes[process].attributes =
		builder_str(&b, "service.name=shop,tid=77xx,host.name=yy,service.version=2.1");
	builder_sample(&b, builder_thread(&b, process, 42, "one"), builder_path(&b, "a"), 5, 0);
	cr_assert_eq(export(NULL, &out), 0);
	unzip(&out, &plain);
	cr_expect(HAS(&plain, "\x32\x0cservice.name\x32\x04shop"));
	cr_expect(HAS(&plain, "\x32\x0fservice.version\x32\x03"
			      "2.1"));
	cr_expect(!HAS(&plain, "77xx") && !HAS(&plain, "host.name"));
	buf_deinit(&out);
	buf_deinit(&plain);
}

Test(pprof, samples_of_a_thread_and_stack_are_one)
{
	uint32_t process = builder_process(&b, 42, "ruby");
	uint32_t one = builder_thread(&b, process, 42, "one");
	uint32_t stack = builder_path(&b, "a|b");
	struct buf out = BUF_INIT, plain = BUF_INIT;

	builder_sample(&b, one, stack, 5, 0);
	builder_sample(&b, one, stack, 6, SAMPLE_KERNEL);
	builder_sample(&b, builder_thread(&b, process, 43, "two"), stack, 1, 0);
	cr_assert_eq(export(NULL, &out), 0);
	unzip(&out, &plain);
	/* Locations 2 and 1, 2 samples of 11; and 1 of 1. */
	cr_expect(HAS(&plain, "\x0a\x02\x02\x01\x12\x02\x02\x0b"));
	cr_expect(HAS(&plain, "\x0a\x02\x02\x01\x12\x02\x01\x01"));
	cr_expect_not(HAS(&plain, "[no stack]"));
	cr_expect_eq(memcmp(out.data + 4, "\0\0\0\0", 4), 0, "no time: the same bytes each time");
	buf_deinit(&out);
	buf_deinit(&plain);
}

/* Of CPU time, of a wait of 5 ns, and of 3 ns of others' waits: one value each, and a state. */
Test(pprof, samples_have_a_value_for_each_event)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "ruby"), 42, "one");
	uint32_t stack = builder_path(&b, "a|b"), request;
	struct buf out = BUF_INIT, plain = BUF_INIT;

	builder_states(&b);
	request = builder_request(&b, thread, "rails", "OrdersController#index");
	builder_state(&b, thread, stack, BUILDER_CPU, 7, request);
	builder_state(&b, thread, stack, BUILDER_GVL, 3, request);
	builder_state(&b, thread, builder_reason(&b, stack, REASON_WAIT_GVL), BUILDER_WAIT, 5, 0);
	cr_assert_eq(export(NULL, &out), 0);
	unzip(&out, &plain);
	/* Samples, CPU time, waits, others' waits. */
	cr_expect(HAS(&plain, "\x0a\x02\x02\x01\x12\x04\x01\x07\x00\x00"));
	cr_expect(HAS(&plain, "\x0a\x02\x02\x01\x12\x04\x00\x00\x00\x03"));
	cr_expect(HAS(&plain, "\x0a\x03\x03\x02\x01\x12\x04\x00\x00\x05\x00"));
	cr_expect(HAS(&plain, "gvl-caused"));
	cr_expect(HAS(&plain, "OrdersController#index"));
	cr_expect(HAS(&plain, "\x05state"));
	cr_expect_not(HAS(&plain, "[no request]"), "has no label");
	buf_deinit(&out);
	buf_deinit(&plain);
}

/* Of waits alone, as of an idle program: they are what readers show first. */
Test(pprof, the_first_event_has_samples)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "ruby"), 42, "one");
	struct buf out = BUF_INIT, plain = BUF_INIT;

	builder_states(&b);
	builder_state(&b, thread, builder_path(&b, "a|b"), BUILDER_WAIT, 5, 0);
	cr_assert_eq(export(NULL, &out), 0);
	unzip(&out, &plain);
	/* A sample, a wait, CPU time, others' waits. */
	cr_expect(HAS(&plain, "\x0a\x02\x02\x01\x12\x04\x01\x05\x00\x00"));
	buf_deinit(&out);
	buf_deinit(&plain);
}

/* The first mapping, by which pprof calls the profile. */
Test(pprof, the_program_is_of_a_process_that_is_in_it)
{
	pid_t pid = 43;
	const struct view_filter one = { .pids = &pid, .n_pids = 1 };
	struct buf out = BUF_INIT, plain = BUF_INIT;

	for (uint32_t i = 0; i < 2; i++) {
		uint32_t process = builder_process(&b, 42 + i, "ruby");

		b.out.profile.processes[process].exe = builder_str(&b, i ? "/bin/b" : "/bin/a");
		builder_add(&b, builder_thread(&b, process, 42 + i, "x"), builder_path(&b, "a"), 1);
	}
	cr_assert_eq(export(&one, &out), 0);
	unzip(&out, &plain);
	cr_expect(HAS(&plain, "/bin/b") && !HAS(&plain, "/bin/a"));
	buf_deinit(&out);
	buf_deinit(&plain);
}

/* From 1 s to 3 s of 10 s. */
Test(pprof, the_time_is_what_is_shown)
{
	const struct view_filter f = { .from_ns = NSEC_PER_SEC, .to_ns = 3 * NSEC_PER_SEC };
	struct buf out = BUF_INIT, plain = BUF_INIT, want = BUF_INIT;
	uint64_t clock = 1700000000 * NSEC_PER_SEC;

	builder_add(&b, builder_thread(&b, builder_process(&b, 1, "ruby"), 1, "x"), 0, 1);
	b.now = BUILDER_START + 10 * NSEC_PER_SEC;
	b.out.profile.meta.start_realtime_ns = clock;
	for (int i = 0; i < 2; i++) {
		buf_reset(&out);
		buf_reset(&plain);
		buf_reset(&want);
		protobuf_u64(&want, 9, i ? clock + NSEC_PER_SEC : clock);
		protobuf_u64(&want, 10, (i ? 2 : 10) * NSEC_PER_SEC);
		cr_assert_eq(export(i ? &f : NULL, &out), 0);
		unzip(&out, &plain);
		cr_expect(has(&plain, want.data, want.len), "%d", i);
	}
	buf_deinit(&want);
	buf_deinit(&out);
	buf_deinit(&plain);
}

/* One sample for each span, with its ids. */
Test(pprof, spans_are_labels)
{
	const struct profile_span span = { .trace_id = { 0x0a, [15] = 0xf1 }, .span_id = { 0xb0 } };
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "ruby"), 42, "one");
	struct profile_sample sample = { .ts = BUILDER_START, .value = 5, .thread = thread };
	struct buf out = BUF_INIT, plain = BUF_INIT;

	b.out.profile.by_span = true;
	sample.stack = builder_path(&b, "a|b");
	builder_must(sink_sample(&b.out.sink, &sample));
	builder_must(sink_span(&b.out.sink, &span, &sample.span));
	sample.value = 6;
	builder_must(sink_sample(&b.out.sink, &sample));
	builder_must(sink_sample(&b.out.sink, &sample));
	cr_assert_eq(export(NULL, &out), 0);
	unzip(&out, &plain);
	cr_expect(HAS(&plain, "\x0a\x02\x02\x01\x12\x02\x01\x05"), "of none");
	cr_expect(HAS(&plain, "\x0a\x02\x02\x01\x12\x02\x02\x0c"), "of the span");
	cr_expect(HAS(&plain, "\x32\x08trace_id\x32\x20"
			      "0a0000000000000000000000000000f1"));
	cr_expect(HAS(&plain, "\x32\x07span_id\x32\x10"
			      "b000000000000000"));
	buf_deinit(&out);
	buf_deinit(&plain);
}

Test(pprof, a_sample_without_frames_has_a_function)
{
	struct buf out = BUF_INIT, plain = BUF_INIT;

	builder_add(&b, builder_thread(&b, builder_process(&b, 1, "ruby"), 1, "x"), 0, 1);
	cr_assert_eq(export(NULL, &out), 0);
	unzip(&out, &plain);
	cr_expect(HAS(&plain, "[no stack]"));
	buf_deinit(&out);
	buf_deinit(&plain);
}

Test(pprof, more_than_the_output_may_take_is_said)
{
	struct buf out = { .max = 40000 };

	awkward_build(&b);
	cr_expect_lt(export(NULL, &out), 0, "a name alone has 64 KiB");
	cr_expect(out.exceeded);
	buf_deinit(&out);
}
