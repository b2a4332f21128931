/* SPDX-License-Identifier: GPL-2.0-only */
/* What rbpf report says of waits, whose values are exact, next to samples of CPU time. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "report/annotate.h"
#include "report/report.h"
#include "support/profile_builder.h"
#include "view/filter.h"
#include "view/state.h"

static struct profile_builder b;
static struct recording rec;
static struct view_filter filter;
static struct report report;
static struct buf out;
static uint32_t thread;

/* All is of one event, as a reader makes it of CPU time and waits. */
static void setup(void)
{
	static const struct profile_event wall = { .name = EVENT_WALL,
						   .unit = UNIT_NS,
						   .period = BUILDER_PERIOD };

	builder_init(&b);
	b.out.profile.meta.events[0] = wall;
	b.out.profile.meta.n_events = 1;
	thread = builder_thread(&b, builder_process(&b, 42, "ruby shop.rb"), 42, "ruby");
	rec = (struct recording) { .path = "x.data" };
	filter = (struct view_filter) { 0 };
	report = (struct report) { .limit = REPORT_NO_LIMIT, .rec = &rec, .filter = &filter };
}

static void teardown(void)
{
	builder_deinit(&b);
	view_filter_deinit(&filter);
	buf_deinit(&out);
}

TestSuite(report_exact, .init = setup, .fini = teardown);

/* A wait of @path for @reason. */
static void add_wait(const char *path, enum frame_reason reason, uint64_t ns)
{
	builder_sample(&b, thread, builder_reason(&b, builder_path(&b, path), reason), ns, 0);
}

static void add_cpu(const char *path, size_t samples)
{
	builder_add(&b, thread, builder_path(&b, path), samples);
}

typedef int (*renderer)(const struct report *r, struct buf *out, struct err *err);

static const char *render(renderer fn)
{
	struct err err = { 0 };

	rec.profile = *builder_finish(&b);
	buf_reset(&out);
	cr_assert_eq(fn(&report, &out, &err), 0, "%s", err.msg);
	return buf_str(&out);
}

static void expect_part(const char *text, const char *want)
{
	cr_expect_not_null(strstr(text, want), "%s\nis not in\n%s", want, text);
}

/* Of 100 samples 99 are of CPU time, but 99 % of the time is one wait. */
Test(report_exact, what_is_filtered_is_a_share_of_the_time)
{
	struct err err = { 0 };

	add_cpu("<main>|A#x", 99);
	add_wait("<main>|A#read", REASON_WAIT_GVL, 98010000000);
	cr_assert_eq(state_set_parse("gvl", &filter.states, &err), 0);
	expect_part(render(report_text), "\nfiltered: 98.0 s of 99.0 s (99.0%), 1 sample\n");
	cr_assert_eq(state_set_parse("user", &filter.states, &err), 0);
	expect_part(render(report_text), "\nfiltered: 990 ms of 99.0 s (1.0%), 99 samples\n");
}

/* 100 ms of CPU time and a wait of 1 s in A#read, 900 ms of CPU time elsewhere. */
static void add_both(void)
{
	add_cpu("<main>|A#read", 10);
	add_cpu("<main>|A#x", 90);
	b.now = BUILDER_START + 2 * NSEC_PER_SEC; /* it is the second second */
	add_wait("<main>|A#read", REASON_WAIT_NETWORK, NSEC_PER_SEC);
}

/* 10 of 100 samples, +/- 5.98 of them; no wait. */
#define ERROR_OF_TEN 59800000

static void expect_error(json_t *of, const char *key, uint64_t want)
{
	json_int_t error = json_integer_value(json_object_get(of, key));

	cr_expect_float_eq((double)error, (double)want, (double)want / 50, "%s: %lld, not %lld",
			   key, (long long)error, (long long)want);
}

static json_t *row_of(json_t *rows, const char *label)
{
	json_t *row;
	size_t i;

	json_array_foreach(rows, i,
			   row) if (!strcmp(json_string_value(json_object_get(row, "label")),
					    label)) return row;
	return NULL; /* which has no members */
}

Test(report_exact, errors_of_methods)
{
	json_t *root, *rows;

	add_both();
	root = json_loads(render(report_json), 0, NULL);
	rows = json_object_get(root, "rows");
	expect_error(row_of(rows, "A#read"), "total_error_ns", ERROR_OF_TEN);
	expect_error(row_of(rows, "A#read"), "self_error_ns", ERROR_OF_TEN);
	expect_error(row_of(rows, "(waits for the network)"), "total_error_ns", 0);
	expect_error(row_of(rows, "(waits for the network)"), "self_error_ns", 0);
	json_decref(root);
}

/* What others waited is known to the ns; to which method of who computes it is charged, by ticks.
 */
Test(report_exact, errors_of_what_others_waited)
{
	json_t *root, *rows;

	add_both();
	memcpy(b.out.profile.meta.events[0].name, EVENT_LOCK, sizeof(EVENT_LOCK));
	b.out.profile.meta.events[0].period = 0;
	root = json_loads(render(report_json), 0, NULL);
	rows = json_object_get(root, "rows");
	expect_error(row_of(rows, "A#read"), "self_error_ns", ERROR_OF_TEN);
	expect_error(row_of(rows, "(waits for the network)"), "self_error_ns", 0);
	json_decref(root);
}

Test(report_exact, errors_of_callers_and_callees)
{
	json_t *root, *method;
	regex_t re;

	add_both();
	cr_assert_eq(regcomp(&re, "^A#read", REG_EXTENDED | REG_NOSUB), 0);
	report.method = &re;
	report.callers = report.callees = true;
	root = json_loads(render(report_neighbours_json), 0, NULL);
	method = json_array_get(json_object_get(root, "methods"), 0);
	expect_error(method, "total_error_ns", ERROR_OF_TEN);
	expect_error(row_of(json_object_get(method, "callers"), "<main>"), "total_error_ns",
		     ERROR_OF_TEN);
	expect_error(row_of(json_object_get(method, "callees"), "(waits for the network)"),
		     "total_error_ns", 0);
	json_decref(root);
	regfree(&re);
}

Test(report_exact, errors_of_lines)
{
	struct err err = { 0 };
	struct annotate a;
	json_t *root, *line;
	regex_t re;

	add_both();
	cr_assert_eq(regcomp(&re, "^A#read", REG_EXTENDED | REG_NOSUB), 0);
	rec.profile = *builder_finish(&b);
	a = (struct annotate) { .report = report, .choice.method = &re, .target = "A#read" };
	cr_assert_eq(annotate_json(&a, &out, &err), 0, "%s", err.msg);
	root = json_loads(buf_str(&out), 0, NULL);
	line = json_array_get(json_object_get(root, "files"), 0);
	line = json_array_get(json_object_get(line, "lines"), 0);
	expect_error(line, "total_error_ns", ERROR_OF_TEN);
	json_decref(root);
	/* Of waits alone nothing is off, not even that it did not run. */
	cr_assert_eq(state_set_parse("network", &filter.states, &err), 0);
	buf_reset(&out);
	cr_assert_eq(annotate_json(&a, &out, &err), 0, "%s", err.msg);
	root = json_loads(buf_str(&out), 0, NULL);
	line = json_array_get(json_object_get(root, "files"), 0);
	line = json_array_get(json_object_get(line, "lines"), 0);
	expect_error(line, "total_error_ns", 0);
	expect_error(line, "self_error_ns", 0);
	json_decref(root);
	regfree(&re);
}

Test(report_exact, errors_of_seconds)
{
	json_t *root, *row;

	report.by = FLAT_BY_TIME;
	report.sort = FLAT_SORT_TIME;
	add_both();
	root = json_loads(render(report_json), 0, NULL);
	row = json_array_get(json_object_get(root, "rows"), 0);
	cr_expect_eq(json_integer_value(json_object_get(row, "self_ns")), NSEC_PER_SEC);
	/* all 100 samples are in this second */
	expect_error(row, "self_error_ns", 18490000);
	expect_error(row, "total_error_ns", 18490000);
	row = json_array_get(json_object_get(root, "rows"), 1);
	cr_expect_eq(json_integer_value(json_object_get(row, "total_ns")), NSEC_PER_SEC);
	expect_error(row, "self_error_ns", 0);
	expect_error(row, "total_error_ns", 0);
	json_decref(root);
}

/* A higher frequency would change what is sampled, not how long a wait was. */
Test(report_exact, few_samples_are_those_of_chance)
{
	add_cpu("<main>|A#x", 50);
	add_wait("<main>|B#read", REASON_WAIT_NETWORK, 400 * NSEC_PER_MSEC);
	expect_part(render(report_text), "  few samples: 50 in all; record longer");
	add_wait("<main>|C#read", REASON_WAIT_NETWORK, 400 * NSEC_PER_MSEC);
	expect_part(render(report_text), "  few samples: the first row has 50; record longer");
	add_wait("<main>|D#read", REASON_WAIT_NETWORK, NSEC_PER_SEC);
	cr_expect_null(strstr(render(report_text), "few samples"), "%s", buf_str(&out));
}

/* A row of one wait is as sure as one of many samples. */
Test(report_exact, waits_are_not_dim)
{
	add_cpu("<main>|A#x", 10);
	add_wait("<main>|B#read", REASON_WAIT_NETWORK, NSEC_PER_SEC);
	report.color = true;
	render(report_text);
	cr_expect_not_null(strstr(buf_str(&out), "\033[2m0.10s"), "%s", buf_str(&out));
	cr_expect_null(strstr(buf_str(&out), "\033[2m1.00s"), "%s", buf_str(&out));
}

/* A share of wall time is not one of CPU time. */
Test(report_exact, garbage_collection_is_a_share_of_the_event)
{
	uint32_t other = builder_thread(&b, 0, 43, "other");
	uint32_t collects = builder_gc(&b, builder_path(&b, "<main>|A#x"), "(marking)");

	builder_add(&b, thread, collects, 50);
	builder_add(&b, other, collects, 50);
	add_wait("<main>|B#read", REASON_WAIT_NETWORK, 3 * NSEC_PER_SEC);
	expect_part(render(report_gc),
		    "\n TIME     GC%  WALL%  PHASE\n1.00s  100.0%  25.0%  marking\n");
	expect_part(buf_str(&out), "\n TIME    GC%   WALL%  THREAD ");
	cr_expect_null(strstr(buf_str(&out), "CPU%"), "%s", buf_str(&out));
}

Test(report_exact, states_as_markdown)
{
	add_both();
	report.markdown = true;
	render(report_states);
	report_to_markdown(&out);
	expect_part(buf_str(&out), "| ELAPSED | SUM | user | network | gvl-held | THREAD |\n| ---");
}
