/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "export/export.h"
#include "support/all_time.h"
#include "support/awkward.h"
#include "support/merged.h"
#include "support/profile_builder.h"
#include "view/filter.h"
#include "view/state.h"

static struct profile_builder b;

static void setup(void)
{
	builder_init(&b);
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(firefox, .init = setup, .fini = teardown);

static json_t *export_profile(const struct profile *p, const struct view_filter *f)
{
	const struct export_options opts = { .filter = f };
	struct buf out = BUF_INIT;
	struct err err = { 0 };
	json_error_t why;
	json_t *root;

	cr_assert_eq(exporter_find("firefox")->run(p, &opts, &out, &err), 0, "%s", err.msg);
	root = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, &why);
	cr_assert_not_null(root, "%s", why.text);
	buf_deinit(&out);
	return root;
}

static json_t *export(const struct view_filter *f)
{
	builder_finish(&b);
	return export_profile(&b.out.profile, f);
}

/* With waits, as the command reads a recording that has them. */
static json_t *export_all_time(const struct view_filter *f)
{
	static const struct view_filter all = VIEW_FILTER_INIT;
	struct profile p = PROFILE_INIT;
	struct read_options opts;
	json_t *root;

	opts = exporter_needs(exporter_find("firefox"), f ? f : &all);
	opts.slow_ns = f ? f->slower_than_ns : 0;
	all_time_read(&b, opts, &p);
	root = export_profile(&p, f);
	profile_deinit(&p);
	return root;
}

/* The member of @object named @key as text. */
static void expect(json_t *object, const char *key, const char *expected)
{
	char *got = json_dumps(json_object_get(object, key), JSON_COMPACT | JSON_ENCODE_ANY);

	cr_assert_not_null(got, "%s", key);
	cr_expect_str_eq(got, expected, "%s: %s", key, got);
	free(got);
}

/* Every column of @table has the length that it says, also of tables within it. */
static void check_lengths(json_t *table)
{
	json_t *length = json_object_get(table, "length"), *value;
	const char *key;

	json_object_foreach(table, key, value)
	{
		if (json_is_object(value))
			check_lengths(value);
		if (length && json_is_array(value))
			cr_expect_eq((json_int_t)json_array_size(value), json_integer_value(length),
				     "%s", key);
	}
}

static void check_all_lengths(json_t *root)
{
	json_t *thread;
	size_t i;

	check_lengths(json_object_get(root, "shared"));
	json_array_foreach(json_object_get(root, "threads"), i, thread) check_lengths(thread);
}

Test(firefox, a_thread_and_its_collections)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "puma"), 42, "main");
	uint32_t stack = builder_path(&b, "a|b");
	json_t *root, *t;

	builder_sample(&b, thread, builder_gc(&b, stack, NULL), 1500000, SAMPLE_GC);
	builder_sample(&b, thread, builder_gc(&b, stack, NULL), 2000000, SAMPLE_GC);
	builder_sample(&b, thread, stack, 3000000, 0);
	builder_sample(&b, thread, 0, 0, 0);
	builder_sample(&b, thread, builder_gc(&b, stack, NULL), 1, SAMPLE_GC);
	b.out.profile.processes[0].attributes = builder_str(&b, "service.name=shop");
	root = export(NULL);
	t = json_array_get(json_object_get(root, "threads"), 0);
	expect(t, "pid", "\"42\"");
	expect(t, "tid", "42");
	expect(t, "isMainThread", "true");
	expect(t, "processName", "\"puma (shop)\"");
	expect(json_object_get(t, "samples"), "stack", "[2,2,1,null,2]");
	expect(json_object_get(t, "samples"), "timeDeltas", "[0.0,10.0,10.0,10.0,10.0]");
	expect(json_object_get(t, "samples"), "weight", "[1.5,2.0,3.0,0.0,9.9999999999999995e-7]");
	expect(json_object_get(t, "samples"), "threadCPUDelta", "[1500000,2000000,3000000,0,1]");
	expect(json_object_get(t, "markers"), "startTime", "[0.0,40.0]");
	expect(json_object_get(t, "markers"), "endTime", "[10.0,40.0]");
	expect(json_object_get(json_object_get(root, "shared"), "stackTable"), "prefixOffset",
	       "[0,1,1]");
	check_all_lengths(root);
	json_decref(root);
}

Test(firefox, collections_are_of_one_request)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "puma"), 42, "main");
	uint32_t gc = builder_gc(&b, builder_path(&b, "a"), NULL);
	struct profile_sample sample = { .thread = thread, .stack = gc, .flags = SAMPLE_GC };
	uint32_t requests[2];
	json_t *root, *markers;

	requests[0] = builder_request(&b, thread, "rails", "A#b");
	requests[1] = builder_request(&b, thread, "rails", "A#c");
	for (uint32_t i = 0; i < 6; i++) {
		sample.ts = b.now += 1000000;
		sample.request = i == 0 || i == 5 ? 0 : requests[(i - 1) / 2];
		builder_must(sink_sample(&b.out.sink, &sample));
	}
	root = export(NULL);
	markers = json_object_get(json_array_get(json_object_get(root, "threads"), 0), "markers");
	expect(markers, "startTime", "[1.0,2.0,2.0,4.0,4.0,6.0]");
	expect(markers, "endTime", "[1.0,3.0,3.0,5.0,5.0,6.0]");
	json_decref(root);
}

static json_int_t value_at(json_t *table, const char *column, size_t i)
{
	return (json_int_t)(json_number_value(json_array_get(json_object_get(table, column), i)) *
				    1e6 +
			    0.5);
}

/*
 * Half of the columns of the first thread are written by a thread of their own, those of the second
 * one are not.
 */
Test(firefox, threads_with_many_samples)
{
	const uint32_t process = builder_process(&b, 42, "ruby"), stack = builder_path(&b, "a|b");
	const uint32_t many = builder_thread(&b, process, 42, "a"),
		       few = builder_thread(&b, process, 43, "b");
	json_t *root, *thread;
	size_t k;

	for (uint32_t i = 0; i < 12000; i++) {
		builder_sample(&b, many, stack, 1000 + i, 0);
		if (i % 2)
			builder_sample(&b, few, stack, 5000 + i, 0);
	}
	root = export(NULL);
	check_all_lengths(root);
	cr_assert_eq(json_array_size(json_object_get(root, "threads")), 2);
	json_array_foreach(json_object_get(root, "threads"), k, thread)
	{
		json_t *table = json_object_get(thread, "samples");
		const size_t n = k ? 6000 : 12000;

		cr_assert_eq(json_integer_value(json_object_get(table, "length")), (json_int_t)n);
		for (size_t i = 0; i < n; i++) {
			const json_int_t value = (json_int_t)(k ? 5001 + 2 * i : 1000 + i);

			cr_assert_eq(value_at(table, "weight", i), value, "%zu of thread %zu", i,
				     k);
			cr_assert_eq(value_at(table, "threadCPUDelta", i), value * 1000000);
		}
	}
	json_decref(root);
}

/* 2 ms of CPU in a request, a wait of 3 ms in it, and idleness. */
Test(firefox, waits_and_requests_are_markers)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "puma"), 42, "main");
	uint32_t stack = builder_path(&b, "a"), request;
	json_t *root, *t, *markers;

	builder_states(&b);
	request = builder_request(&b, thread, "rails", "OrdersController#index");
	builder_state(&b, thread, stack, BUILDER_CPU, 2000000, request);
	builder_state(&b, thread, builder_reason(&b, stack, REASON_WAIT_GVL), BUILDER_WAIT, 3000000,
		      request);
	builder_state(&b, thread, builder_reason(&b, stack, REASON_WAIT_IDLE), BUILDER_WAIT,
		      1000000, 0);
	root = export_all_time(NULL);
	t = json_array_get(json_object_get(root, "threads"), 0);
	expect(json_object_get(t, "samples"), "timeDeltas", "[0.0,2.0,3.0,1.0]");
	expect(json_object_get(t, "samples"), "weight", "[2.0,3.0,1.0,0.0]");
	expect(json_object_get(t, "samples"), "threadCPUDelta", "[0,2000000,0,0]");
	markers = json_object_get(t, "markers");
	expect(markers, "startTime", "[2.0,0.0,5.0]");
	expect(markers, "endTime", "[5.0,5.0,6.0]");
	expect(markers, "phase", "[1,1,1]");
	expect(markers, "category", "[7,1,8]");
	expect(json_array_get(json_object_get(markers, "data"), 0), "state", "\"gvl\"");
	expect(json_array_get(json_object_get(markers, "data"), 1), "request",
	       "\"OrdersController#index\"");
	expect(json_array_get(json_object_get(markers, "data"), 1), "framework", "\"rails\"");
	expect(json_array_get(json_object_get(markers, "data"), 2), "state", "\"idle\"");
	expect(json_object_get(json_object_get(root, "shared"), "frameTable"), "category",
	       "[1,7,8]");
	check_all_lengths(root);
	json_decref(root);
}

/*
 * The profiler takes a sample for the start of its stack, and its CPU time for that since the
 * sample before. A sample that was taken 0.25 ms after another one can tell of no more.
 */
Test(firefox, cpu_time_is_all_but_waits)
{
	const struct view_filter waits = { .states = 1u << STATE_NETWORK };
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "puma"), 42, "main");
	uint32_t stack = builder_path(&b, "a");
	uint32_t wait = builder_reason(&b, stack, REASON_WAIT_NETWORK);
	json_t *root, *samples;

	builder_states(&b);
	b.now += 1000000;
	builder_state(&b, thread, wait, BUILDER_WAIT, 8000000, 0);
	b.now += 750000;
	builder_state(&b, thread, wait, BUILDER_WAIT, 3000000, 0);
	builder_state(&b, thread, stack, BUILDER_CPU, 250000, 0);
	b.out.profile.samples[2].value = 10000000;
	b.now += 500000;
	builder_state(&b, thread, wait, BUILDER_WAIT, 1000000, 0);
	root = export_all_time(NULL);
	samples = json_object_get(json_array_get(json_object_get(root, "threads"), 0), "samples");
	expect(samples, "stack", "[1,0,1,0,1,null]");
	expect(samples, "timeDeltas", "[1.0,8.0,0.75,3.0,0.75,1.0]");
	expect(samples, "weight", "[8.0,0.0,3.0,10.0,1.0,0.0]");
	expect(samples, "threadCPUDelta", "[0,0,750000,0,750000,0]");
	check_all_lengths(root);
	json_decref(root);
	root = export_all_time(&waits);
	samples = json_object_get(json_array_get(json_object_get(root, "threads"), 0), "samples");
	expect(samples, "threadCPUDelta", "[0,0,0,0,0,0]");
	json_decref(root);
}

/* The requests that @f shows. */
static void expect_requests(const struct view_filter *f, const char *expected)
{
	json_t *root = export_all_time(f), *data, *marker;
	char text[200] = "";
	size_t i;

	data = json_object_get(json_array_get(json_object_get(root, "threads"), 0), "markers");
	check_lengths(data);
	json_array_foreach(json_object_get(data, "data"), i, marker)
	{
		json_t *name = json_object_get(marker, "request");
		const size_t len = strlen(text);

		if (name)
			snprintf(text + len, sizeof(text) - len, "%s ", json_string_value(name));
	}
	cr_expect_str_eq(text, expected, "%s", text);
	json_decref(root);
}

Test(firefox, requests_of_a_length)
{
	struct view_filter f = { .slower_than_ns = 50000000 };

	builder_fast_and_slow(&b);
	expect_requests(NULL, "A#fast A#slow ");
	expect_requests(&f, "A#slow ");
	f.not_slower = true;
	expect_requests(&f, "A#fast ");
}

Test(firefox, frames_of_all_kinds)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 1, "ruby"), 2, "x");
	uint32_t stack = merged_ruby(&b, 0, "a", 3, FRAME_YJIT);
	json_t *root, *shared;

	stack = builder_stack(&b, stack, builder_frame(&b, FRAME_CFUNC, "each", "/x.rb", 7, 0));
	stack = merged_native(&b, stack, "f", "/lib/f.so", 0x1234, 0);
	stack = builder_stack(&b, stack, builder_frame(&b, FRAME_KERNEL, "read", "", 0, 0));
	builder_add(&b, thread, stack, 1);
	root = export(NULL);
	shared = json_object_get(root, "shared");
	expect(json_object_get(shared, "frameTable"), "address", "[-1,-1,4660,-1]");
	expect(json_object_get(shared, "frameTable"), "category", "[3,2,5,6]");
	expect(json_object_get(shared, "frameTable"), "line", "[3,null,null,null]");
	expect(json_object_get(shared, "funcTable"), "isJS", "[true,false,false,false]");
	expect(json_object_get(shared, "funcTable"), "relevantForJS", "[true,true,false,false]");
	expect(json_object_get(shared, "funcTable"), "resource", "[-1,-1,0,-1]");
	expect(json_object_get(shared, "funcTable"), "source", "[0,null,null,null]");
	check_all_lengths(root);
	json_decref(root);
}

Test(firefox, any_names_and_any_frames)
{
	static const struct view_filter ruby = { .stack = STACK_RUBY };
	json_t *root;

	awkward_build(&b);
	builder_add_random(&b, 5, 500);
	root = export(NULL);
	check_all_lengths(root);
	json_decref(root);
	root = export(&ruby);
	check_all_lengths(root);
	json_decref(root);
}
