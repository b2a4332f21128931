/* SPDX-License-Identifier: GPL-2.0-only */
/* Who ended waits: what is shown of those that are no threads of the recording. */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/export.h"
#include "profile/reader.h"
#include "profile/recorder.h"
#include "report/fields.h"
#include "report/report.h"
#include "support/profile_builder.h"
#include "ui/summary.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/label.h"
#include "view/owner.h"
#include "view/request.h"
#include "view/state.h"
#include "view/tree.h"

static struct profile_builder b;
static struct recording rec;
static uint32_t waiter;

/*
 * The waiter's waits were ended by an interrupt (100), by another process (20) and by the worker
 * (3), in a request. It ended one of the worker's (1).
 */
static void setup(void)
{
	uint32_t process, worker, request;

	builder_init(&b);
	process = builder_process(&b, 42, "ruby app.rb");
	waiter = builder_thread(&b, process, 42, "waiter");
	worker = builder_thread(&b, process, 43, "worker");
	builder_wakeups(&b);
	request = builder_request(&b, worker, "rails", "Shop#show");
	builder_state(&b, waiter, builder_reason(&b, 0, REASON_INTERRUPT), BUILDER_WAKEUP, 100, 0);
	builder_state(&b, waiter,
		      builder_stack(&b, 0,
				    builder_add_frame(&b,
						      &(struct profile_frame) {
							      .kind = FRAME_NOT_RECORDED,
							      .module = PROFILE_NONE,
							      .name = builder_str(&b, "[curl 7]"),
							      .reason = REASON_OTHER_PROCESS })),
		      BUILDER_WAKEUP, 20, 0);
	builder_state(&b, worker, builder_path(&b, "give"), BUILDER_WAKEUP, 3, request);
	builder_state(&b, waiter, builder_path(&b, "take"), BUILDER_WAKEUP, 1, 0);
	rec.path = "wakers.data";
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(wakers, .init = setup, .fini = teardown);

static struct report report_by(enum flat_by by)
{
	rec.profile = *builder_finish(&b);
	return (struct report) { .rec = &rec, .by = by, .sort = FLAT_SORT_SELF, .limit = 30 };
}

/* What a row is, where, and its time; and what programs read. */
static void expect_rows(enum flat_by by, const char *want)
{
	struct report r = report_by(by);
	_cleanup_buf_ struct buf got = BUF_INIT, csv = BUF_INIT;
	_cleanup_flat_ struct flat flat = FLAT_INIT;
	struct err err = { 0 };

	cr_assert_eq(flat_build(&rec.profile, NULL, by, FLAT_SORT_SELF, &flat), 0);
	for (size_t i = 0; i < flat.n_rows; i++) {
		report_row_name(&r, by, &flat.rows[i], &got);
		buf_addstr(&got, " | ");
		report_row_place(&r, by, &flat.rows[i], &got);
		buf_addf(&got, " | %d\n", (int)flat.rows[i].self_value);
	}
	cr_expect_str_eq(buf_str(&got), want, "%s", buf_str(&got));
	cr_expect_eq(report_csv(&r, &csv, &err), 0, "%s", err.msg);
}

Test(wakers, are_no_threads_of_the_recording)
{
	expect_rows(FLAT_BY_THREAD, "[not a recorded thread] |  | 120\n"
				    "worker (tid 43) | ruby (pid 42) | 3\n"
				    "waiter (tid 42) | ruby (pid 42) | 1\n");
	expect_rows(FLAT_BY_PROCESS, "[not a recorded process] |  | 120\n"
				     "ruby (pid 42) | ruby app.rb | 4\n");
	expect_rows(FLAT_BY_REQUEST, "[not a recorded thread] |  | 120\n"
				     "Shop#show | rails | 3\n"
				     "[no request] |  | 1\n");
	expect_rows(FLAT_BY_RUBY, "[no Ruby] |  | 120\n"
				  "3.3.6 | ruby (pid 42) | 4\n");
	expect_rows(FLAT_BY_CONTAINER, "[no container] | ruby (pid 42) | 124\n");
}

Test(wakers, are_a_kind_of_their_own)
{
	expect_rows(FLAT_BY_KIND, "not-recorded |  | 120\nruby |  | 4\n");
	expect_rows(FLAT_BY_FILE, "[not-recorded] |  | 120\n/app/x.rb |  | 4\n");
	expect_rows(FLAT_BY_MODULE, "not recorded |  | 120\napp |  | 4\n");
	expect_rows(FLAT_BY_GEM, "[not recorded] | not-recorded | 120\n[application] | app | 4\n");
	expect_rows(FLAT_BY_FUNCTION, "[interrupt] |  | 100\n[curl 7] |  | 20\n"
				      "give | /app/x.rb:1 | 3\ntake | /app/x.rb:1 | 1\n");
}

/* Numbers are 0, and words say so. */
Test(wakers, for_programs)
{
	static const struct {
		enum flat_by by;
		const char *row;
	} rows[] = {
		{ FLAT_BY_THREAD, "0,0,[not a recorded thread],2,2,120,120,0,0,0\r\n" },
		{ FLAT_BY_PROCESS, "0,[not a recorded process],2,2,120,120,0,0,,,,0,,\r\n" },
		{ FLAT_BY_REQUEST, "[not a recorded thread],,2,2,120,120,0,0\r\n" },
		{ FLAT_BY_KIND, "not-recorded,2,2,120,120,0,0\r\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct report r = report_by(rows[i].by);
		_cleanup_buf_ struct buf got = BUF_INIT;
		struct err err = { 0 };

		cr_assert_eq(report_csv(&r, &got, &err), 0, "%s", err.msg);
		cr_expect_not_null(strstr(buf_str(&got), rows[i].row), "%s", buf_str(&got));
	}
}

/* They can be asked for as they are shown. */
Test(wakers, filtered_by_request)
{
	struct view_filter f = VIEW_FILTER_INIT;
	_cleanup_flat_ struct flat flat = FLAT_INIT;

	cr_assert_eq(
		view_filter_regex(&f.request, &f.has_request, "not a recorded", "--request", NULL),
		0);
	cr_assert_eq(flat_build(builder_finish(&b), &f, FLAT_BY_REQUEST, FLAT_SORT_SELF, &flat), 0);
	cr_expect_eq(flat.n_rows, 1);
	cr_expect_eq(flat.value, 120);
	view_filter_deinit(&f);
}

static void expect_parts(enum tree_split split, const char *want)
{
	const struct tree_options opts = { .split = split };
	_cleanup_buf_ struct buf got = BUF_INIT;
	struct tree t;

	cr_assert_eq(tree_build(builder_finish(&b), NULL, &opts, &t), 0);
	for (uint32_t i = t.nodes[0].first_child; i; i = t.nodes[i].next_sibling) {
		tree_node_label(&t, i, &got);
		buf_addf(&got, " %d\n", (int)t.nodes[i].total_value);
	}
	cr_expect_str_eq(buf_str(&got), want, "%s", buf_str(&got));
	tree_deinit(&t);
}

Test(wakers, parts_of_a_tree)
{
	expect_parts(TREE_SPLIT_THREAD,
		     "waiter (tid 42) 1\nworker (tid 43) 3\n[not a recorded thread] 120\n");
	expect_parts(TREE_SPLIT_PROCESS, "ruby (pid 42) 4\n[not a recorded process] 120\n");
	expect_parts(TREE_SPLIT_REQUEST,
		     "Shop#show 3\n[no request] 1\n[not a recorded thread] 120\n");
}

static void expect_export(const char *format, const char *want)
{
	const struct export_options opts = { .threads = true, .weight = WEIGHT_SAMPLES };
	_cleanup_buf_ struct buf got = BUF_INIT;
	struct err err = { 0 };

	cr_assert_eq(exporter_find(format)->run(builder_finish(&b), &opts, &got, &err), 0, "%s",
		     err.msg);
	cr_expect_not_null(memmem(got.data, got.len, want, strlen(want)), "%s", buf_str(&got));
}

Test(wakers, exports)
{
	expect_export("folded", "[not a recorded process];[not a recorded thread];[interrupt] 1\n");
	expect_export("perf-script", "[not_a_recorded_thread] 0/0 ");
	expect_export("callgrind", "[not a recorded thread]\n");
}

/* They are no threads without Ruby; and which part of the waits has no waker is said. */
Test(wakers, what_is_told_of_them)
{
	const struct profile_totals totals = { .samples = 100, .no_ruby = 30, .not_recorded = 20 };
	_cleanup_buf_ struct buf got = BUF_INIT;
	struct err err = { 0 };
	struct report r;

	summary_totals(&totals, &(struct summary_recording) { 0 }, &got);
	cr_expect_not_null(strstr(buf_str(&got), "Ruby 70.0%   no Ruby 10.0%   walk failed 0.0%   "
						 "wakers not recorded 20.0%\n"),
			   "%s", buf_str(&got));
	buf_reset(&got);
	b.out.profile.ended_ns = 60000000000;
	b.out.profile.waited_ns = 240000000000;
	r = report_by(FLAT_BY_THREAD);
	cr_assert_eq(report_text(&r, &got, &err), 0, "%s", err.msg);
	cr_expect_not_null(
		strstr(buf_str(&got),
		       "  who ended them is known of 60.0 s of 240.0 s of waits (25.0%); "),
		"%s", buf_str(&got));
}

/* ---- recordings ---- */

enum { CPU, WAIT, WAKEUP, WAIT_HELD /* with the GVL: an event here alone */ };

/* A sample of @thread from @since to @ts, with a frame for @reason; REASON_NONE: a method. */
struct given {
	uint16_t event;
	uint32_t thread;
	uint64_t since, ts;
	enum frame_reason reason;
};

static const struct wait_set none;

static uint32_t given_stack(struct recorder *to, uint32_t parent, enum frame_reason reason)
{
	const struct profile_frame frame = { .kind = reason == REASON_NONE
							     ? FRAME_RUBY
							     : frame_reason_kind(reason),
					     .module = PROFILE_NONE,
					     .reason = reason };
	uint32_t id = 0;

	cr_assert_eq(sink_frame(recorder_sink(to), &frame, &id), 0);
	cr_assert_eq(sink_stack(recorder_sink(to), parent, id, &id), 0);
	return id;
}

static void write_given(const char *path, const struct given *given, size_t n)
{
	static const struct profile_event events[] = {
		[CPU] = { .name = EVENT_CPU, .unit = UNIT_NS },
		[WAIT] = { .name = EVENT_WAIT, .unit = UNIT_NS },
		[WAKEUP] = { .name = EVENT_WAKEUP, .unit = UNIT_NS },
	};
	const struct recorder_options opts = { .path = path, .force = true };
	const struct profile_process process = { .pid = 1, .parent = PROFILE_NONE };
	struct profile_totals totals = { .samples = n, .no_ruby = 1 };
	struct profile_meta meta = { .n_events = ARRAY_SIZE(events) };
	struct err err = { 0 };
	struct recorder *to;
	uint32_t id;

	memcpy(meta.events, events, sizeof(events));
	cr_assert_eq(recorder_open(&opts, &meta, &to, &err), 0, "%s", err.msg);
	cr_assert_eq(sink_process(recorder_sink(to), &process, &id), 0);
	for (uint32_t i = 0; i < 3; i++)
		cr_assert_eq(sink_thread(recorder_sink(to), 0, i + 1, 0, &id), 0);
	for (size_t i = 0; i < n; i++) {
		const struct profile_sample s = {
			.ts = given[i].ts,
			.value = given[i].ts - given[i].since,
			.thread = given[i].thread,
			.event = given[i].event == WAIT_HELD ? WAIT : given[i].event,
			.stack = given_stack(to,
					     given[i].event == WAIT_HELD
						     ? given_stack(to, 0, REASON_GVL_HELD)
						     : 0,
					     given[i].reason),
			.flags = given[i].reason == REASON_INTERRUPT ? SAMPLE_NO_RUBY : 0,
		};

		cr_assert_eq(sink_sample(recorder_sink(to), &s), 0);
	}
	cr_assert_eq(recorder_close(to, &totals, &err), 0, "%s", err.msg);
}

static struct profile read_given(const struct given *given, size_t n, struct wait_set ended)
{
	const struct read_options wanted = { .event = EVENT_WAKEUP, .ended = ended };
	char path[] = "/tmp/rbpf-wakers-XXXXXX";
	struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	close(mkstemp(path));
	write_given(path, given, n);
	cr_assert_eq(profile_read(path, &wanted, &p, &report, &err), 0, "%s", err.msg);
	unlink(path);
	return p;
}

/* A recording has them as native frames, as rbpf 0.1 wrote them; and tells what has a waker. */
Test(wakers, from_a_file)
{
	static const struct given given[] = {
		{ WAKEUP, 0, 20, 50, REASON_INTERRUPT },
		{ WAIT, 0, 10, 50, REASON_WAIT_TIMER },
		{ WAIT, 0, 10, 50, REASON_WAIT_CPU },
		{ WAIT, 0, 60, 90, REASON_WAIT_THROTTLED },
	};
	_cleanup_profile_ struct profile p = read_given(given, ARRAY_SIZE(given), none);

	cr_assert_eq(p.n_aggregates, 1);
	cr_expect(profile_stack_not_recorded(&p, p.aggregates[0].stack));
	cr_expect_eq(p.totals.not_recorded, 1);
	cr_expect_eq(p.ended_ns, 30);
	cr_expect_eq(p.waited_ns, 40, "without waiting for a CPU");
}

/*
 * Thread 0 waited for the GVL in 100..140, and again from 300 on, which came in two parts; thread 1
 * for the network in 110..150, and for a lock in 300..330; who woke comes first.
 */
static const struct given waits[] = {
	{ WAKEUP, 2, 100, 139, REASON_NONE },	   /* thread 0's first */
	{ WAKEUP, 1, 110, 148, REASON_INTERRUPT }, /* thread 1's first */
	{ WAKEUP, 2, 300, 325, REASON_NONE },	   /* of either thread */
	{ WAKEUP, 0, 300, 357, REASON_INTERRUPT }, /* thread 0's second */
	{ WAKEUP, 2, 299, 325, REASON_NONE },	   /* of none */
	{ WAIT, 0, 100, 140, REASON_WAIT_GVL },	    { WAIT, 0, 140, 145, REASON_WAIT_CPU },
	{ WAIT, 1, 110, 150, REASON_WAIT_NETWORK }, { WAIT, 0, 300, 350, REASON_WAIT_GVL },
	{ WAIT, 0, 350, 360, REASON_WAIT_GVL },	    { WAIT, 1, 300, 330, REASON_WAIT_LOCK },
};

/* Thread 0 waited for the disk in 100..140 with the GVL, and in 200..230 without it. */
static const struct given held[] = {
	{ WAKEUP, 1, 100, 139, REASON_NONE },
	{ WAKEUP, 1, 200, 227, REASON_NONE },
	{ WAIT_HELD, 0, 100, 140, REASON_WAIT_DISK },
	{ WAIT, 0, 200, 230, REASON_WAIT_DISK },
};

static void expect_ended(const char *states, uint64_t ended_ns, size_t n, uint64_t waited_ns)
{
	struct err err = { 0 };
	struct profile p;
	uint64_t set = 0;

	cr_assert_eq(state_set_parse(states, &set, &err), 0, "%s", err.msg);
	p = read_given(waits, ARRAY_SIZE(waits), state_reasons(set));
	cr_expect_eq(p.n_samples, 5, "of all");
	cr_expect_eq(p.n_kept, n, "%s: %zu are kept", states, p.n_kept);
	cr_expect_eq(p.ended_ns, ended_ns, "%s: %zu", states, (size_t)p.ended_ns);
	cr_expect_eq(p.waited_ns, waited_ns, "%s: %zu", states, (size_t)p.waited_ns);
	cr_expect_eq(p.wakeups_unknown, 2);
	ended_ns = 0;
	for (size_t i = 0; i < p.n_aggregates; i++)
		ended_ns += p.aggregates[i].value;
	cr_expect_eq(ended_ns, p.ended_ns);
	profile_deinit(&p);
}

/* A wait with the GVL is one of its state, too. */
Test(wakers, of_waits_with_the_gvl)
{
	static const struct {
		const char *words;
		uint64_t ended_ns, waited_ns;
	} cases[] = {
		{ "gvl-held", 39, 40 },
		{ "disk", 39 + 27, 40 + 30 },
		{ "network", 0, 0 },
		{ "network,gvl-held", 39, 40 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = { 0 };
		struct profile p;
		uint64_t set = 0;

		cr_assert_eq(state_set_parse(cases[i].words, &set, &err), 0, "%s", err.msg);
		p = read_given(held, ARRAY_SIZE(held), state_reasons(set));
		cr_expect_eq(p.ended_ns, cases[i].ended_ns, "%s", cases[i].words);
		cr_expect_eq(p.waited_ns, cases[i].waited_ns, "%s", cases[i].words);
		cr_expect_eq(p.wakeups_unknown, 0);
		profile_deinit(&p);
	}
}

/* What was waited for when they came; if that is not certain it is of none. */
Test(wakers, of_waits_for_something)
{
	expect_ended("gvl", 39 + 57, 2, 40 + 50 + 10);
	expect_ended("network", 38, 1, 40);
	expect_ended("gvl,network", 39 + 57 + 38, 3, 40 + 40 + 50 + 10);
	expect_ended("lock", 0, 0, 30);
	expect_ended("wait", 39 + 57 + 38, 3, 40 + 40 + 50 + 10 + 30);
}
