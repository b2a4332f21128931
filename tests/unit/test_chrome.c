/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "export/export.h"
#include "support/awkward.h"
#include "support/all_time.h"
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

TestSuite(chrome, .init = setup, .fini = teardown);

static json_t *export_profile(const struct profile *p, const struct view_filter *f)
{
	const struct export_options opts = { .filter = f };
	struct buf out = BUF_INIT;
	struct err err = { 0 };
	json_error_t why;
	json_t *root;

	cr_assert_eq(exporter_find("chrome")->run(p, &opts, &out, &err), 0, "%s", err.msg);
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

	opts = exporter_needs(exporter_find("chrome"), f ? f : &all);
	opts.slow_ns = f ? f->slower_than_ns : 0;
	all_time_read(&b, opts, &p);
	root = export_profile(&p, f);
	profile_deinit(&p);
	return root;
}

/* Value @i of the array @name as text. */
static void expect(json_t *root, const char *name, size_t i, const char *expected)
{
	char *got = json_dumps(json_array_get(json_object_get(root, name), i),
			       JSON_COMPACT | JSON_REAL_PRECISION(9));

	cr_expect_str_eq(got ? got : "nothing", expected, "%s", got);
	free(got);
}

Test(chrome, stacks_are_samples)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "puma"), 43, "worker 1");
	uint32_t stack = builder_path(&b, "a|b");
	json_t *root, *frames;

	builder_sample(&b, thread, stack, 1234567, 0);
	builder_sample(&b, thread, 0, 10000000, 0);
	root = export(NULL);
	expect(root, "traceEvents", 0,
	       "{\"ph\":\"M\",\"name\":\"process_name\",\"ts\":0,\"pid\":42,\"tid\":43,"
	       "\"args\":{\"name\":\"puma\"}}");
	expect(root, "traceEvents", 1,
	       "{\"ph\":\"M\",\"name\":\"thread_name\",\"ts\":0,\"pid\":42,\"tid\":43,"
	       "\"args\":{\"name\":\"worker 1\"}}");
	expect(root, "traceEvents", 2, "nothing");
	expect(root, "samples", 0,
	       "{\"pid\":42,\"tid\":43,\"cpu\":0,\"ts\":0.0,\"name\":\"cpu\",\"sf\":2,"
	       "\"weight\":1234567}");
	expect(root, "samples", 1,
	       "{\"pid\":42,\"tid\":43,\"cpu\":0,\"ts\":0.0,\"name\":\"cpu\","
	       "\"weight\":10000000}");
	expect(root, "samples", 2,
	       "{\"pid\":42,\"tid\":43,\"cpu\":0,\"ts\":10000.0,\"name\":\"cpu\",\"weight\":0}");
	expect(root, "samples", 3, "nothing");
	frames = json_object_get(root, "stackFrames");
	cr_expect_eq(json_object_size(frames), 2);
	cr_expect_eq(json_integer_value(json_object_get(json_object_get(frames, "2"), "parent")),
		     1);
	cr_expect_null(json_object_get(json_object_get(frames, "1"), "parent"));
	json_decref(root);
}

/* Samples of any event and filter: time, stack, value. */
static void expect_samples(json_t *root, const char *expected)
{
	char text[400] = "";
	json_t *sample;
	size_t i;

	json_array_foreach(json_object_get(root, "samples"), i, sample)
	{
		const size_t len = strlen(text);

		snprintf(text + len, sizeof(text) - len, "%g %lld %lld; ",
			 json_number_value(json_object_get(sample, "ts")),
			 json_integer_value(json_object_get(sample, "sf")),
			 json_integer_value(json_object_get(sample, "weight")));
	}
	cr_expect_str_eq(text, expected, "%s", text);
}

/* Stacks 1 and 2 are of code, 4 is a wait of the first with the GVL held. */
Test(chrome, a_stack_lasts_until_the_next_sample)
{
	const struct view_filter waits = { .states = state_set_of(STATE_NETWORK) };
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "puma"), 43, "worker 1");
	uint32_t code = builder_path(&b, "a"), other = builder_path(&b, "b");
	uint32_t wait = builder_reason(&b, builder_reason(&b, code, REASON_GVL_HELD),
				       REASON_WAIT_NETWORK);
	json_t *root;

	builder_states(&b);
	builder_state(&b, thread, code, BUILDER_CPU, 9000, 0);
	b.now += 1000;
	builder_state(&b, thread, wait, BUILDER_WAIT, 5000, 0);
	b.now += 2000;
	builder_state(&b, thread, wait, BUILDER_WAIT, 5000, 0);
	builder_state(&b, thread, other, BUILDER_CPU, 3000, 0);
	root = export_all_time(NULL);
	expect_samples(root, "0 1 9000; 10 4 5000; 15 1 0; 17 4 5000; 22 2 3000; 25 0 0; ");
	json_decref(root);
	root = export_all_time(&waits);
	expect_samples(root, "10 4 5000; 15 0 0; 17 4 5000; 22 0 0; ");
	json_decref(root);
}

/* As that of a shell and of the Ruby that it executes. */
Test(chrome, threads_with_the_same_ids)
{
	uint32_t first = builder_thread(&b, builder_process(&b, 42, "sh"), 42, "sh");
	uint32_t second = builder_thread(&b, builder_process(&b, 42, "ruby"), 42, "ruby");
	uint32_t code = builder_path(&b, "a"), other = builder_path(&b, "b");
	json_t *root;

	builder_states(&b);
	builder_state(&b, first, code, BUILDER_CPU, 9000, 0);
	b.now += 1000;
	builder_state(&b, second, other, BUILDER_CPU, 9000, 0);
	root = export_all_time(NULL);
	expect_samples(root, "0 1 9000; 9 0 0; 10 2 9000; 19 0 0; ");
	json_decref(root);
}

/* As speedscope demands. A wait may be in the recording behind a tick that came later. */
Test(chrome, times_of_a_thread_do_not_go_back)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "puma"), 43, "worker 1");
	uint32_t stack = builder_path(&b, "a");
	uint32_t wait = builder_reason(&b, stack, REASON_WAIT_CPU);
	json_t *root, *sample;
	double last = 0;
	size_t i;

	builder_states(&b);
	builder_state(&b, thread, stack, BUILDER_CPU, 9000000, 0);
	b.now -= 5000000;
	builder_state(&b, thread, wait, BUILDER_WAIT, 1000000, 0);
	builder_state(&b, thread, stack, BUILDER_CPU, 9000000, 0);
	root = export_all_time(NULL);
	cr_assert_geq(json_array_size(json_object_get(root, "samples")), 3);
	json_array_foreach(json_object_get(root, "samples"), i, sample)
	{
		const double ts = json_number_value(json_object_get(sample, "ts"));

		cr_expect_geq(ts, last, "sample %zu at %f, after %f", i, ts, last);
		last = ts;
	}
	json_decref(root);
}

/* That of a thread of which the kernel tells late that it was on a CPU again: as if it had told at
 * once. */
Test(chrome, waits_behind_later_ticks)
{
	static const struct {
		uint32_t end, length; /* ms */
	} order[] = { { 20, 0 }, { 30, 0 }, { 40, 0 }, { 24, 2 }, { 33, 1 }, { 50, 0 } };
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "puma"), 43, "worker 1");
	uint32_t other = builder_thread(&b, builder_process(&b, 44, "puma"), 44, "worker 2");
	uint32_t stack = builder_path(&b, "a");
	uint32_t wait = builder_reason(&b, stack, REASON_WAIT_NETWORK);
	json_t *root;

	builder_states(&b);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		const uint64_t ns = (order[i].length ? order[i].length : 10) * 1000000ull;

		b.now = BUILDER_START + order[i].end * 1000000ull - ns;
		builder_state(&b, thread, order[i].length ? wait : stack,
			      order[i].length ? BUILDER_WAIT : BUILDER_CPU, ns, 0);
	}
	/* It is no later than what another thread has. */
	b.now = BUILDER_START + 2000000;
	builder_state(&b, other, wait, BUILDER_WAIT, 3000000, 0);
	root = export_all_time(NULL);
	expect(root, "traceEvents", 4,
	       "{\"ph\":\"X\",\"cat\":\"wait\",\"name\":\"waits for the network\",\"pid\":42,"
	       "\"tid\":43,\"ts\":22000.0,\"dur\":2000.0,\"args\":{\"state\":\"network\"}}");
	expect(root, "traceEvents", 5,
	       "{\"ph\":\"X\",\"cat\":\"wait\",\"name\":\"waits for the network\",\"pid\":42,"
	       "\"tid\":43,\"ts\":32000.0,\"dur\":1000.0,\"args\":{\"state\":\"network\"}}");
	expect(root, "traceEvents", 6,
	       "{\"ph\":\"X\",\"cat\":\"wait\",\"name\":\"waits for the network\",\"pid\":44,"
	       "\"tid\":44,\"ts\":2000.0,\"dur\":3000.0,\"args\":{\"state\":\"network\"}}");
	expect(root, "traceEvents", 7, "nothing");
	expect_samples(root, "10000 1 10000000; 22000 2 2000000; 24000 1 10000000; "
			     "32000 2 1000000; 33000 1 10000000; 40000 1 10000000; "
			     "2000 2 3000000; 50000 0 0; 5000 0 0; ");
	json_decref(root);
}

/*
 * Two requests, of which one has a wait. A wait that is said to be longer than the time since the
 * thread's sample before begins there, since spans must nest.
 */
Test(chrome, waits_requests_and_collections_are_spans)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "puma"), 42, "main");
	uint32_t stack = builder_path(&b, "a"), wait = builder_reason(&b, stack, REASON_WAIT_GVL);
	uint32_t first, second;
	json_t *root;

	builder_states(&b);
	first = builder_request(&b, thread, "rails", "A#b");
	second = builder_request(&b, thread, "", "");
	builder_state(&b, thread, stack, BUILDER_CPU, 1000000, first);
	builder_state(&b, thread, wait, BUILDER_WAIT, 2000001, first);
	builder_state(&b, thread, stack, BUILDER_CPU, 1000000, second);
	b.now -= 400;
	builder_state(&b, thread, wait, BUILDER_WAIT, 1000, 0);
	builder_sample(&b, thread, builder_gc(&b, stack, NULL), 1, SAMPLE_GC);
	root = export_all_time(NULL);
	expect(root, "traceEvents", 2,
	       "{\"ph\":\"X\",\"cat\":\"request\",\"name\":\"A#b\",\"pid\":42,\"tid\":42,"
	       "\"ts\":0.0,\"dur\":3000.001,\"args\":{\"framework\":\"rails\"}}");
	expect(root, "traceEvents", 3,
	       "{\"ph\":\"X\",\"cat\":\"request\",\"name\":\"[unknown request]\",\"pid\":42,"
	       "\"tid\":42,\"ts\":3000.001,\"dur\":1000.0,\"args\":{\"framework\":\"\"}}");
	expect(root, "traceEvents", 4,
	       "{\"ph\":\"X\",\"cat\":\"wait\",\"name\":\"waits for the GVL\",\"pid\":42,"
	       "\"tid\":42,\"ts\":1000.0,\"dur\":2000.001,\"args\":{\"state\":\"gvl\"}}");
	expect(root, "traceEvents", 5,
	       "{\"ph\":\"X\",\"cat\":\"wait\",\"name\":\"waits for the GVL\",\"pid\":42,"
	       "\"tid\":42,\"ts\":4000.001,\"dur\":0.6,\"args\":{\"state\":\"gvl\"}}");
	expect(root, "traceEvents", 6,
	       "{\"ph\":\"X\",\"cat\":\"gc\",\"name\":\"GC (sampled)\",\"pid\":42,\"tid\":42,"
	       "\"ts\":4000.601,\"dur\":0.0}");
	expect(root, "traceEvents", 7, "nothing");
	json_decref(root);
}

/* The requests that @f shows. */
static void expect_requests(const struct view_filter *f, const char *expected)
{
	json_t *root = export_all_time(f), *event;
	char text[200] = "";
	size_t i;

	json_array_foreach(json_object_get(root, "traceEvents"), i, event)
	{
		const char *category = json_string_value(json_object_get(event, "cat"));
		const size_t len = strlen(text);

		if (category && !strcmp(category, "request"))
			snprintf(text + len, sizeof(text) - len, "%s ",
				 json_string_value(json_object_get(event, "name")));
	}
	cr_expect_str_eq(text, expected, "%s", text);
	json_decref(root);
}

Test(chrome, requests_of_a_length)
{
	struct view_filter f = { .slower_than_ns = 50000000 };

	builder_fast_and_slow(&b);
	expect_requests(NULL, "A#fast A#slow ");
	expect_requests(&f, "A#slow ");
	f.not_slower = true;
	expect_requests(&f, "A#fast ");
}

/* On a busy machine the next sample of a thread may be much later. */
Test(chrome, collections_are_of_one_request)
{
	uint32_t thread = builder_thread(&b, builder_process(&b, 42, "puma"), 42, "main");
	uint32_t stack = builder_path(&b, "a"), gc = builder_gc(&b, stack, NULL);
	struct profile_sample sample = { .thread = thread, .stack = gc, .flags = SAMPLE_GC };
	uint32_t requests[2];
	json_t *root;

	requests[0] = builder_request(&b, thread, "rails", "A#b");
	requests[1] = builder_request(&b, thread, "rails", "A#c");
	for (uint32_t i = 0; i < 5; i++) {
		sample.ts = b.now += 1000;
		sample.request = i == 4 ? 0 : requests[i / 2];
		builder_must(sink_sample(&b.out.sink, &sample));
	}
	root = export(NULL);
	expect(root, "traceEvents", 4,
	       "{\"ph\":\"X\",\"cat\":\"gc\",\"name\":\"GC (sampled)\",\"pid\":42,\"tid\":42,"
	       "\"ts\":1.0,\"dur\":1.0}");
	expect(root, "traceEvents", 5,
	       "{\"ph\":\"X\",\"cat\":\"gc\",\"name\":\"GC (sampled)\",\"pid\":42,\"tid\":42,"
	       "\"ts\":3.0,\"dur\":1.0}");
	expect(root, "traceEvents", 6,
	       "{\"ph\":\"X\",\"cat\":\"gc\",\"name\":\"GC (sampled)\",\"pid\":42,\"tid\":42,"
	       "\"ts\":5.0,\"dur\":0.0}");
	expect(root, "traceEvents", 7, "nothing");
	json_decref(root);
}

Test(chrome, any_names_and_only_what_is_selected)
{
	static pid_t tids[] = { 11 };
	const struct view_filter one = { .tids = tids, .n_tids = 1, .stack = STACK_RUBY };
	json_t *root, *sample;
	size_t i;

	awkward_build(&b);
	builder_add_random(&b, 5, 500);
	json_decref(export(NULL));
	root = export(&one);
	cr_expect_eq(json_array_size(json_object_get(root, "traceEvents")), 2);
	cr_expect_gt(json_array_size(json_object_get(root, "samples")), 10);
	json_array_foreach(json_object_get(root, "samples"), i, sample)
		cr_expect_eq(json_integer_value(json_object_get(sample, "tid")), 11);
	json_decref(root);
}
