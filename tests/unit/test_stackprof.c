/* SPDX-License-Identifier: GPL-2.0-only */
/* The formats that count samples of functions, lines and calls: stackprof and sampling_prof. */
#include <criterion/criterion.h>
#include <errno.h>
#include <jansson.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/export.h"
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

TestSuite(stackprof, .init = setup, .fini = teardown);
TestSuite(sampling_prof, .init = setup, .fini = teardown);

static void export(const char *format, const struct view_filter *f, struct buf *out)
{
	const struct export_options opts = { .filter = f };
	struct err err = { 0 };

	builder_finish(&b);
	cr_assert_eq(exporter_find(format)->run(&b.out.profile, &opts, out, &err), 0, "%s",
		     err.msg);
}

/* Samples of a stack with recursion, of a method in C, of no frame, of garbage collection. */
static void build(void)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "ruby"), 42, "main");
	uint32_t recursive = builder_path(&b, "a|b,c|a|b,c|a");
	uint32_t each = builder_frame(&b, FRAME_CFUNC, "each", "/app/x.rb", 7, 0);

	builder_add(&b, thread, recursive, 3);
	builder_add(&b, thread, builder_stack(&b, builder_path(&b, "a"), each), 2);
	builder_add(&b, thread, 0, 4);
	builder_sample(&b, thread, builder_gc(&b, builder_path(&b, "a"), NULL), 5, SAMPLE_GC);
}

static void expect(json_t *root, const char *key, const char *expected)
{
	char *got = json_dumps(json_object_get(root, key), JSON_COMPACT | JSON_ENCODE_ANY);

	cr_assert_not_null(got, "%s", key);
	cr_expect_str_eq(got, expected, "%s: %s", key, got);
	free(got);
}

Test(stackprof, counts_once_a_sample)
{
	struct buf out = BUF_INIT;
	json_t *root, *frames;

	build();
	builder_states(&b);
	export("stackprof", NULL, &out);
	root = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, NULL);
	cr_assert_not_null(root);
	expect(root, "mode", "\"cpu\"");
	expect(root, "interval", "10000");
	expect(root, "samples", "10");
	expect(root, "gc_samples", "1");
	frames = json_object_get(root, "frames");
	expect(frames, "1",
	       "{\"name\":\"a\",\"file\":\"/app/x.rb\",\"line\":1,\"total_samples\":6,"
	       "\"samples\":3,\"edges\":{\"2\":3,\"3\":2,\"4\":1},\"lines\":{\"7\":[6,3]}}");
	expect(frames, "2",
	       "{\"name\":\"b,c\",\"file\":\"/app/x.rb\",\"line\":1,\"total_samples\":3,"
	       "\"samples\":0,\"edges\":{\"1\":3},\"lines\":{\"7\":[3,0]}}");
	expect(frames, "3",
	       "{\"name\":\"each\",\"file\":\"\",\"line\":null,\"total_samples\":2,\"samples\":2}");
	expect(frames, "5",
	       "{\"name\":\"[no stack]\",\"file\":\"\",\"line\":null,\"total_samples\":4,"
	       "\"samples\":4}");
	expect(root, "raw", "[1,5,4,5,1,2,1,2,1,3,2,1,3,2,2,1,4,1]");
	expect(root, "raw_timestamp_deltas", "[]");
	json_decref(root);
	buf_deinit(&out);
}

/* One that stands for three, as the frequency was lowered, counts as three. */
Test(stackprof, samples_are_those_that_were_asked_for)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "ruby"), 42, "main");
	struct buf out = BUF_INIT;
	json_t *root;

	builder_event(&b, EVENT_CPU, BUILDER_PERIOD);
	builder_add(&b, thread, builder_path(&b, "a"), 3);
	for (int i = 0; i < 2; i++)
		builder_sample(&b, thread, builder_path(&b, "a|b"), 3 * BUILDER_PERIOD, 0);
	export("stackprof", NULL, &out);
	root = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, NULL);
	cr_assert_not_null(root);
	expect(root, "interval", "10000");
	expect(root, "samples", "9");
	expect(root, "raw", "[1,1,3,2,1,2,6]");
	json_decref(root);
	buf_deinit(&out);
}

/* A wait counts once for each ms, if all are no less than a second; what is shorter is added to the
 * next stack. */
Test(stackprof, waits_are_counted_by_their_time)
{
	static const struct {
		const char *name;
		uint64_t period;
	} events[] = { { EVENT_WAIT, 0 }, { EVENT_WALL, BUILDER_PERIOD } };
	static const json_int_t us[] = { 1100, 1100, 1100, 1101, 750, 750, 1000 };
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "ruby"), 42, "main");
	struct buf out = BUF_INIT;
	json_t *root, *deltas;

	builder_sample(&b, thread, builder_path(&b, "a"), 400001, 0);
	builder_sample(&b, thread, builder_path(&b, "b"), 7000, 0);
	builder_sample(&b, thread, builder_path(&b, "b"), 3993999, 0);
	builder_sample(&b, thread, builder_gc(&b, builder_path(&b, "c"), NULL), 1500000, SAMPLE_GC);
	builder_sample(&b, thread, builder_path(&b, "d"), 2000000000, 0);
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		builder_event(&b, events[i].name, events[i].period);
		buf_reset(&out);
		export("stackprof", NULL, &out);
		root = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, NULL);
		cr_assert_not_null(root);
		expect(root, "mode", "\"wall\"");
		expect(root, "interval", "1000");
		cr_expect_str_eq(json_string_value(json_object_get(
					 json_object_get(root, "metadata"), "event")),
				 events[i].name);
		expect(root, "samples", "2006");
		expect(root, "gc_samples", "2");
		expect(root, "raw", "[1,2,4,2,3,4,2,1,5,2000]");
		deltas = json_object_get(root, "raw_timestamp_deltas");
		cr_expect_eq(json_array_size(deltas), 2006);
		for (size_t k = 0; k < ARRAY_SIZE(us); k++)
			cr_expect_eq(json_integer_value(json_array_get(deltas, k)), us[k]);
		json_decref(root);
	}
	buf_deinit(&out);
}

Test(stackprof, any_names_and_any_frames)
{
	static const struct view_filter ruby = { .stack = STACK_RUBY };
	struct buf out = BUF_INIT;
	json_t *root;

	awkward_build(&b);
	builder_add_random(&b, 5, 500);
	for (int i = 0; i < 2; i++) {
		buf_reset(&out);
		export("stackprof", i ? &ruby : NULL, &out);
		root = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, NULL);
		cr_assert_not_null(root);
		json_decref(root);
	}
	buf_deinit(&out);
}

Test(sampling_prof, four_parts)
{
	struct buf out = BUF_INIT;

	build();
	export("sampling-prof", NULL, &out);
	cr_expect_str_eq(buf_str(&out), "90\n\n"
					"/app/x.rb:7:a,0\n/app/x.rb:7:b;c,1\n:0:each,2\n"
					":0:(garbage collection),3\n:0:[no stack],4\n\n"
					"0,3,6\n1,0,3\n2,2,2\n3,1,1\n4,4,4\n\n"
					"0,1,3\n0,2,2\n0,3,1\n1,0,3\n-1,0,6\n-1,4,4\n");
	buf_deinit(&out);
}

/* Once for each µs, if all are less than a second. */
Test(sampling_prof, waits_are_counted_by_their_time)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "ruby"), 42, "main");
	struct buf out = BUF_INIT;

	builder_sample(&b, thread, builder_path(&b, "a"), 7000000, 0);
	builder_sample(&b, thread, builder_path(&b, "a|b"), 1000, 0);
	builder_sample(&b, thread, builder_path(&b, "a|b"), 2000000, 0);
	builder_event(&b, EVENT_WAIT, 0);
	export("sampling-prof", NULL, &out);
	cr_expect_str_eq(buf_str(&out), "9\n\n/app/x.rb:7:a,0\n/app/x.rb:7:b,1\n\n"
					"0,7000,9001\n1,2001,2001\n\n0,1,2001\n-1,0,9001\n");
	buf_deinit(&out);
}

Test(sampling_prof, is_of_time)
{
	const struct profile_event alloc = { .name = "alloc", .unit = UNIT_BYTES };
	const struct export_options opts = { 0 };
	struct buf out = BUF_INIT;
	struct err err = { 0 };

	build();
	b.out.profile.meta.events[0] = alloc;
	b.out.profile.meta.n_events = 1;
	cr_expect_eq(exporter_find("sampling-prof")->run(&b.out.profile, &opts, &out, &err),
		     -EINVAL);
	cr_expect_eq(err.kind, ERR_USAGE);
	cr_expect_str_eq(err.msg,
			 "-f sampling-prof is for time, but the event 'alloc' is in bytes");
	buf_deinit(&out);
}
