/* SPDX-License-Identifier: GPL-2.0-only */
/* The longest single requests: which they are, how long, and what is said of them. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "profile/reader.h"
#include "profile/reason.h"
#include "profile/recorder.h"
#include "report/report.h"
#include "support/sink_define.h"
#include "view/filter.h"
#include "view/longest_requests.h"
#include "view/request.h"

#define MS     NSEC_PER_MSEC
#define START  (1000 * MS)
#define PERIOD (10 * MS)
#define MANY   4000

enum { CPU, WAIT, GVL };

static char dir[] = "/tmp/rbpf-longest-XXXXXX";
static char path[64];

/* A recording that is being made: threads 0 and 1 of one process, with tids 11 and 12. */
static struct {
	struct recorder *rec;
	struct sink *sink;
	bool without_waits, by_second;
} made;

static uint32_t begin(uint32_t thread, const char *name)
{
	const struct profile_request_kind kind = { .framework = string_of(made.sink, "rails"),
						   .name = string_of(made.sink, name) };
	uint32_t id = 0;

	cr_assert_eq(sink_request(made.sink, thread, &kind, &id), 0);
	return id;
}

/* A wait for @reason from @from to @to, in ms. */
static void waits(uint32_t thread, uint32_t request, uint64_t from, uint64_t to,
		  enum frame_reason reason)
{
	const struct profile_sample s = { .ts = START + to * MS,
					  .value = (to - from) * MS,
					  .thread = thread,
					  .stack = wait_of(made.sink, reason),
					  .event = WAIT,
					  .request = request };

	if (!made.without_waits)
		cr_assert_eq(sink_sample(made.sink, &s), 0);
}

/* A tick at @at, in ms, in a method. */
static void tick(uint32_t thread, uint32_t request, uint64_t at, const char *method)
{
	const struct profile_frame frame = { .kind = FRAME_RUBY,
					     .name = string_of(made.sink, method),
					     .module = PROFILE_NONE };
	struct profile_sample s = {
		.ts = START + at * MS, .value = PERIOD, .thread = thread, .request = request
	};
	uint32_t id = 0;

	cr_assert_eq(sink_frame(made.sink, &frame, &id), 0);
	cr_assert_eq(sink_stack(made.sink, 0, id, &s.stack), 0);
	cr_assert_eq(sink_sample(made.sink, &s), 0);
}

/*
 * Thread 0: "A" from 100 to between 400 and 405, "B" from 500 to 550, "C" of one tick between 800
 * and 810. Thread 1: "Job" at 50 and at 950, and nothing else.
 */
static void write_requests(void)
{
	uint32_t r = begin(1, "Job");

	tick(1, r, 50, "work");
	waits(0, 0, 0, 100, REASON_WAIT_IDLE);
	r = begin(0, "A");
	waits(0, r, 100, 390, REASON_WAIT_NETWORK);
	tick(0, r, 398, "render");
	tick(0, r, 400, "render");
	waits(0, 0, 405, 500, REASON_WAIT_IDLE);
	r = begin(0, "B");
	waits(0, r, 500, 549, REASON_WAIT_NETWORK);
	waits(0, r, 549, 550, REASON_WAIT_DISK);
	waits(0, 0, 550, 800, REASON_WAIT_IDLE);
	r = begin(0, "C");
	tick(0, r, 805, "render");
	waits(0, 0, 810, 900, REASON_WAIT_IDLE);
	tick(0, 0, 910, "other");
	tick(1, 1, 950, "work");
}

/* What is expected of it. */
#define ALL                                                                                        \
	"Job 900-0 at 50 begin? end? user 20\n"                                                    \
	"A 300-305 at 100 user 20 network 290\n"                                                   \
	"B 50-50 at 500 disk 1 network 49\n"                                                       \
	"C 0-10 at 805 user 10\n"

static void record_requests(void (*write)(void))
{
	struct profile_meta meta = {
		.start_monotonic_ns = START,
		.frequency = 100,
		.by_second = made.by_second,
		.n_events = made.without_waits ? 1 : 3,
		.events = { [CPU] = { .name = EVENT_CPU, .unit = UNIT_NS, .period = PERIOD },
			    [WAIT] = { .name = EVENT_WAIT, .unit = UNIT_NS },
			    [GVL] = { .name = EVENT_GVL, .unit = UNIT_NS } },
	};
	const struct profile_process process = { .pid = 10, .parent = PROFILE_NONE };
	const struct recorder_options opts = { .path = path, .force = true };
	struct err err = { 0 };
	uint32_t id;

	cr_assert_eq(recorder_open(&opts, &meta, &made.rec, &err), 0, "%s", err.msg);
	made.sink = recorder_sink(made.rec);
	cr_assert_eq(sink_process(made.sink, &process, &id), 0);
	cr_assert_eq(sink_thread(made.sink, id, 11, string_of(made.sink, "web 1"), &id), 0);
	cr_assert_eq(sink_thread(made.sink, 0, 12, string_of(made.sink, "jobs"), &id), 0);
	write();
	cr_assert_eq(recorder_close(made.rec, NULL, &err), 0, "%s", err.msg);
}

static void setup(void)
{
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/x.data", dir);
}

static void teardown(void)
{
	unlink(path);
	rmdir(dir);
}

TestSuite(longest_requests, .init = setup, .fini = teardown);

static struct profile read_with(struct read_options opts)
{
	struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	opts.by_request = opts.by_thread = opts.wall = opts.gvl_caused = true;
	cr_assert_eq(profile_read(path, &opts, &p, &report, &err), 0, "%s", err.msg);
	return p;
}

static struct profile read_all(void (*write)(void))
{
	record_requests(write);
	return read_with((struct read_options) { 0 });
}

/* " user 20 network 290", without those of which there are none; in ms. */
static void add_states(const uint64_t ns[STATES], struct buf *out)
{
	for (size_t i = 0; i < STATES; i++)
		if (ns[i])
			buf_addf(out, " %s %d", state_word(i), (int)(ns[i] / MS));
}

/* "NAME least-most at begin, what is unknown, states", by line; times in ms. */
static void expect_list(const struct profile *p, const struct view_filter *f, size_t max,
			const char *want)
{
	_cleanup_longest_requests_ struct longest_requests list = LONGEST_REQUESTS_INIT;
	const struct replay from = { .path = path, .options = { .wall = true } };
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct err err = { 0 };

	cr_assert_eq(longest_requests_build(p, f, &from, max, &list, &err), 0, "%s", err.msg);
	for (size_t i = 0; i < list.n; i++) {
		const struct longest_request *one = &list.v[i];
		const struct profile_request *r = &p->requests[one->id];

		buf_addf(&out, "%s %d-%d at %d%s%s", request_label(p, r->kind),
			 (int)(one->length.least / MS), (int)(one->length.most / MS),
			 (int)((r->first_ts - START) / MS), one->begin_unknown ? " begin?" : "",
			 one->end_unknown ? " end?" : "");
		if (list.has_states)
			add_states(one->states, &out);
		else
			buf_addf(&out, " %d", (int)(one->value / MS));
		buf_addch(&out, '\n');
	}
	cr_expect_str_eq(buf_str(&out), want);
}

/* ---- which they are ---- */

Test(longest_requests, with_their_bounds_and_states)
{
	_cleanup_profile_ struct profile p = read_all(write_requests);

	expect_list(&p, NULL, LONGEST_REQUESTS_MAX, ALL);
	expect_list(&p, NULL, 2,
		    "Job 900-0 at 50 begin? end? user 20\n"
		    "A 300-305 at 100 user 20 network 290\n");
}

/* Without waits a thread without samples may wait; a single tick says nothing. */
Test(longest_requests, of_cpu_time_alone_lengths_are_lower_bounds)
{
	made.without_waits = true;
	{
		_cleanup_profile_ struct profile p = read_all(write_requests);

		cr_expect_eq(p.n_kept, 0);
		expect_list(&p, NULL, 5,
			    "Job 900-0 at 50 begin? end? 20\n"
			    "A 2-0 at 398 begin? 20\n");
	}
}

Test(longest_requests, of_none)
{
	struct profile p = { .by_request = true, .by_thread = true };

	expect_list(&p, NULL, 5, "");
}

/* Each a wait of so many ms, with a thread that waits for the next one in between. */
static uint64_t lengths[MANY];

static void write_many(void)
{
	uint64_t at = 100, random = 7;

	waits(0, 0, 0, at, REASON_WAIT_IDLE);
	for (size_t i = 0; i < MANY; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		lengths[i] = 1 + (random >> 33) % 30000;
		waits(0, begin(0, "A"), at, at + lengths[i], REASON_WAIT_NETWORK);
		at += lengths[i];
		waits(0, 0, at, at + 5, REASON_WAIT_IDLE);
		at += 5;
	}
}

static int descending(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y) - (x > y);
}

Test(longest_requests, of_many)
{
	static const size_t numbers[] = { 1, 2, 7, LONGEST_REQUESTS_MAX };
	const struct replay from = { .path = path };
	_cleanup_profile_ struct profile p = read_all(write_many);
	struct longest_requests list;
	struct err err = { 0 };

	qsort(lengths, MANY, sizeof(*lengths), descending);
	for (size_t k = 0; k < sizeof(numbers) / sizeof(*numbers); k++) {
		cr_assert_eq(longest_requests_build(&p, NULL, &from, numbers[k], &list, &err), 0);
		cr_assert_eq(list.n, numbers[k]);
		for (size_t i = 0; i < list.n; i++) {
			cr_assert_eq(list.v[i].length.least, lengths[i] * MS, "%zu of %zu", i,
				     list.n);
			cr_assert_eq(list.v[i].states[STATE_NETWORK], lengths[i] * MS);
		}
		longest_requests_deinit(&list);
	}
}

/* ---- filters ---- */

Test(longest_requests, threads_and_names_are_selected)
{
	_cleanup_profile_ struct profile p = read_all(write_requests);
	pid_t tids[] = { 12 };
	struct view_filter of_thread = { .tids = tids, .n_tids = 1 };
	struct view_filter of_name = VIEW_FILTER_INIT;
	struct err err = { 0 };

	expect_list(&p, &of_thread, 5, "Job 900-0 at 50 begin? end? user 20\n");
	cr_assert_eq(view_filter_regex(&of_name.request, &of_name.has_request, "^[BC]$", "x", &err),
		     0);
	expect_list(&p, &of_name, 5,
		    "B 50-50 at 500 disk 1 network 49\n"
		    "C 0-10 at 805 user 10\n");
	view_filter_deinit(&of_name);
}

Test(longest_requests, slow_ones_are_selected)
{
	struct view_filter f = { .slower_than_ns = 300 * MS };

	record_requests(write_requests);
	{
		_cleanup_profile_ struct profile p =
			read_with((struct read_options) { .slow_ns = 300 * MS });

		expect_list(&p, &f, 5,
			    "Job 900-0 at 50 begin? end? user 20\n"
			    "A 300-305 at 100 user 20 network 290\n");
	}
}

/* Those that have such a sample, with as much of their time as such samples have. */
Test(longest_requests, samples_are_selected)
{
	_cleanup_profile_ struct profile p = read_all(write_requests);
	struct view_filter f = { .states = state_set_of(STATE_NETWORK) };

	cr_expect(longest_requests_need_samples(&f));
	expect_list(&p, &f, 5,
		    "A 300-305 at 100 network 290\n"
		    "B 50-50 at 500 network 49\n");
}

/* They are read again, for they are not kept. */
Test(longest_requests, samples_of_cpu_time_are_selected)
{
	struct view_filter f = VIEW_FILTER_INIT;
	struct err err = { 0 };

	made.without_waits = true;
	cr_assert_eq(view_filter_regex(&f.exclude, &f.has_exclude, "work", "x", &err), 0);
	{
		_cleanup_profile_ struct profile p = read_all(write_requests);

		expect_list(&p, &f, 5, "A 2-0 at 398 begin? 20\n");
	}
	view_filter_deinit(&f);
}

/* Of a request what is within these (a wait that is cut there begins 1 ns before them); samples out
 * of them bound it. */
Test(longest_requests, times_are_selected)
{
	record_requests(write_requests);
	{
		_cleanup_profile_ struct profile p =
			read_with((struct read_options) { .from_ns = 300 * MS, .to_ns = 520 * MS });

		expect_list(&p, NULL, 5,
			    "A 100-305 at 300 user 20 network 90\n"
			    "B 20-49 at 499 network 20\n");
	}
}

/* ---- reports ---- */

typedef int renderer(const struct report *, struct buf *, struct err *);

static struct buf render(renderer *renders, const char *name)
{
	_cleanup_profile_ struct profile p = read_all(write_requests);
	const struct view_filter f = VIEW_FILTER_INIT;
	const struct recording rec = { .path = name, .profile = p };
	const struct report report = { .rec = &rec,
				       .filter = &f,
				       .limit = REPORT_NO_LIMIT,
				       .longest = 3,
				       .from = { .path = path, .options.wall = true } };
	struct buf out = BUF_INIT;
	struct err err = { 0 };

	cr_assert_eq(renders(&report, &out, &err), 0, "%s", err.msg);
	return out;
}

static void expect_text(const struct buf *out, const char *text, bool there)
{
	cr_expect_eq(!!strstr(buf_str(out), text), there, "\"%s\" in\n%s", text, buf_str(out));
}

Test(longest_requests, as_a_table)
{
	_cleanup_buf_ struct buf text = render(report_requests, "x.data");
	_cleanup_buf_ struct buf piped = render(report_requests, "-");

	expect_text(&text,
		    "\n   LONGEST   BEGAN  MOSTLY                      REQUEST  TID  THREAD\n"
		    "   ≥900 ms  0.050s  user 20 ms                  Job       12  jobs\n"
		    "300-305 ms  0.100s  network 290 ms, user 20 ms  A         11  web 1\n"
		    "     50 ms  0.500s  network 49 ms, disk 1 ms    B         11  web 1\n"
		    "  LONGEST: single requests, with the same bounds; BEGAN: since the start of "
		    "the recording\n"
		    "  MOSTLY: waits are exact, CPU time is by the ticks of its clock\n"
		    "  ≥: at least; it may have begun before the recording, or gone on after it\n"
		    "  the first one: rbpf flame -i x.data --event wall --tid 12 --from 0.050000s "
		    "--to 0.950001s > longest.svg\n",
		    true);
	expect_text(&piped, "LONGEST: ", true);
	expect_text(&piped, "the first one", false);
}

Test(longest_requests, of_cpu_time_as_a_table)
{
	made.without_waits = true;
	{
		_cleanup_buf_ struct buf text = render(report_requests, "x.data");

		expect_text(&text,
			    "\nLONGEST   BEGAN   TIME  REQUEST  TID  THREAD\n"
			    "≥900 ms  0.050s  0.02s  Job       12  jobs\n"
			    "  ≥2 ms  0.398s  0.02s  A         11  web 1\n"
			    "  LONGEST: single requests, at least, from the first sample to the "
			    "last; others may have waited longer without one\n"
			    "  the first one: rbpf flame -i x.data --event cpu --tid 12 --from "
			    "0.050000s --to "
			    "0.950001s > longest.svg\n",
			    true);
	}
}

Test(longest_requests, as_json)
{
	_cleanup_buf_ struct buf json = render(report_requests_json, "x.data");

	expect_text(
		&json,
		"\"longest\":[{\"request\":\"Job\",\"framework\":\"rails\",\"pid\":10,\"tid\":12,"
		"\"thread\":\"jobs\",\"from_ns\":50000000,\"length_ns\":900000000,"
		"\"length_most_ns\":0,\"begin_unknown\":true,\"end_unknown\":true,\"samples\":2,"
		"\"self_ns\":20000000,\"states\":{\"user\":20000000,\"system\":0,",
		true);
	expect_text(&json,
		    "\"from_ns\":100000000,\"length_ns\":300000000,\"length_most_ns\":305000000,"
		    "\"samples\":3,\"self_ns\":310000000,",
		    true);
}

/* Its samples are of all requests of a name in a second. */
Test(longest_requests, of_what_was_added_up_by_the_second_none_is_told)
{
	made.by_second = true;
	{
		_cleanup_buf_ struct buf text = render(report_requests, "x.data");
		_cleanup_buf_ struct buf json = render(report_requests_json, "x.data");

		expect_text(&text, "LONGEST", false);
		expect_text(&json, "longest", false);
	}
}
