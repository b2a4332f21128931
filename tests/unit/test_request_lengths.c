/* SPDX-License-Identifier: GPL-2.0-only */
/* How long requests were: what is known of it, and what a report says of what it cannot know. */
#include <criterion/criterion.h>
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
#include "view/gvl_pairs.h"
#include "view/request.h"

#define START  (1000 * NSEC_PER_MSEC)
#define PERIOD (10 * NSEC_PER_MSEC)
#define ROUNDS 10

enum { CPU, WAIT, GVL };

/* What is recorded. */
struct server {
	bool without_waits;
	bool without_rails;
	uint64_t other_gvl; /* ns that a thread without requests waits for the GVL */
};

static char dir[] = "/tmp/rbpf-lengths-XXXXXX";
static char path[64];
static struct sink *sink;

static uint32_t begin(const char *framework, const char *name)
{
	const struct profile_request_kind kind = { .framework = string_of(sink, framework),
						   .name = string_of(sink, name) };
	uint32_t id = 0;

	cr_assert_eq(sink_request(sink, 0, &kind, &id), 0);
	return id;
}

/* A wait of @thread of @ns that ends at @ts, or with @stack 0 a tick. */
static void sample(const struct server *server, uint32_t thread, uint32_t request, uint64_t ts,
		   uint64_t ns, uint32_t stack)
{
	const struct profile_sample s = { .ts = START + ts,
					  .value = stack ? ns : PERIOD,
					  .thread = thread,
					  .stack = stack,
					  .event = stack ? WAIT : CPU,
					  .request = request };

	if (!stack || !server->without_waits)
		cr_assert_eq(sink_sample(sink, &s), 0);
}

/*
 * A request that has come waits 5 ms for the GVL before its frames tell it; Puma waits 1 ms, Rails
 * runs at a tick, 2 ms later, Puma waits again, 3 ms later, and 1 ms after that the thread is idle.
 */
static void serve(const struct server *server, uint64_t at)
{
	const uint32_t gvl = wait_of(sink, REASON_WAIT_GVL),
		       network = wait_of(sink, REASON_WAIT_NETWORK);
	const uint32_t idle = wait_of(sink, REASON_WAIT_IDLE);
	uint32_t puma;

	sample(server, 0, 0, at, 5 * NSEC_PER_MSEC, gvl);
	puma = begin("puma", "Puma request");
	sample(server, 0, puma, at + NSEC_PER_MSEC, NSEC_PER_MSEC, network);
	sample(server, 0, server->without_rails ? puma : begin("rails", "OrdersController#show"),
	       at + 3 * NSEC_PER_MSEC, 0, 0);
	if (!server->without_rails)
		puma = begin("puma", "Puma request");
	sample(server, 0, puma, at + 7 * NSEC_PER_MSEC, NSEC_PER_MSEC, network);
	sample(server, 0, 0, at + 90 * NSEC_PER_MSEC, 82 * NSEC_PER_MSEC, idle);
}

static void record_server(const struct server *server)
{
	struct profile_meta meta = {
		.start_monotonic_ns = START,
		.frequency = 100,
		.n_events = server->without_waits ? 1 : 3,
		.events = { [CPU] = { .name = EVENT_CPU, .unit = UNIT_NS, .period = PERIOD },
			    [WAIT] = { .name = EVENT_WAIT, .unit = UNIT_NS },
			    [GVL] = { .name = EVENT_GVL, .unit = UNIT_NS } },
	};
	const struct profile_process process = { .pid = 1, .parent = PROFILE_NONE };
	const struct recorder_options opts = { .path = path };
	struct recorder *rec = NULL;
	struct err err = { 0 };
	uint32_t id;

	cr_assert_eq(recorder_open(&opts, &meta, &rec, &err), 0, "%s", err.msg);
	sink = recorder_sink(rec);
	cr_assert_eq(sink_process(sink, &process, &id), 0);
	cr_assert_eq(sink_thread(sink, id, 11, 0, &id), 0);
	cr_assert_eq(sink_thread(sink, 0, 12, 0, &id), 0);
	for (uint64_t i = 1; i <= ROUNDS; i++)
		serve(server, i * 100 * NSEC_PER_MSEC);
	if (server->other_gvl)
		sample(server, 1, 0, 1100 * NSEC_PER_MSEC, server->other_gvl,
		       wait_of(sink, REASON_WAIT_GVL));
	cr_assert_eq(recorder_close(rec, NULL, &err), 0, "%s", err.msg);
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

TestSuite(request_lengths, .init = setup, .fini = teardown);

typedef int renderer(const struct report *, struct buf *, struct err *);

/* What @render makes of @server as it was from @from_ns of the recording on. */
static struct buf report_of(const struct server *server, renderer *render, uint64_t from_ns)
{
	const struct read_options opts = {
		.by_request = true, .wall = true, .gvl_caused = true, .from_ns = from_ns
	};
	const struct view_filter f = VIEW_FILTER_INIT;
	struct recording rec = { .path = "x.data" };
	const struct report report = {
		.rec = &rec, .filter = &f, .limit = REPORT_NO_LIMIT, .gvl_pairs = true
	};
	struct read_report how;
	struct buf out = BUF_INIT;
	struct err err = { 0 };

	record_server(server);
	cr_assert_eq(profile_read(path, &opts, &rec.profile, &how, &err), 0, "%s", err.msg);
	cr_assert_eq(render(&report, &out, &err), 0, "%s", err.msg);
	profile_deinit(&rec.profile);
	return out;
}

static void expect_text(const struct buf *out, const char *text, bool there)
{
	cr_expect_eq(!!strstr(buf_str(out), text), there, "\"%s\" in\n%s", text, buf_str(out));
}

/* Its tick is of a moment: it was there for no longer than from one wait of Puma to the other. */
Test(request_lengths, of_a_single_tick_an_upper_bound_is_known)
{
	const struct server server = { 0 };
	_cleanup_buf_ struct buf text = report_of(&server, report_requests, 0);
	_cleanup_buf_ struct buf csv = report_of(&server, report_requests_csv, 0);
	_cleanup_buf_ struct buf json = report_of(&server, report_requests_json, 0);

	expect_text(&text, "10   <5 ms  <5 ms  OrdersController#show\n", true);
	expect_text(&text, "20  1-3 ms  <5 ms  Puma request\n", true);
	expect_text(&text, "requests without one are missing\n", true);
	expect_text(&text, "  P50, P99: how long those took: at least and at most; <: at most\n",
		    true);
	expect_text(&csv, "OrdersController#show,rails,10,10,100000000,0,0,0,0,0,", true);
	expect_text(&csv, ",0,5000000,5000000,5000000,0\r\n", true);
	expect_text(&csv, ",0,3000000,5000000,5000000,1\r\n", true);
	expect_text(&json,
		    "\"p50_ns\":0,\"p50_most_ns\":5000000,\"p95_ns\":0,\"p95_most_ns\":5000000,"
		    "\"p99_ns\":0,\"p99_most_ns\":5000000",
		    true);
}

/* Without waits a thread that has no sample may wait: there is no bound, and no length. */
Test(request_lengths, of_a_single_tick_alone_nothing_is_known)
{
	const struct server server = { .without_waits = true };
	_cleanup_buf_ struct buf text = report_of(&server, report_requests, 0);
	_cleanup_buf_ struct buf csv = report_of(&server, report_requests_csv, 0);

	expect_text(&text, "10  <10 ms    -    -    -  OrdersController#show  rails\n", true);
	expect_text(&text, "  SEEN: with a sample; requests without one are missing\n", true);
	expect_text(&text, "took at least, from the first sample to the last; -: it has one\n",
		    true);
	expect_text(&csv, "OrdersController#show,rails,10,10,100000000,0,0,0,0,0,0,0,0,0\r\n",
		    true);
}

/* Samples out of the times that are read count as bounds: a request is not as old as the rest. */
Test(request_lengths, bounds_are_of_samples_that_are_not_read)
{
	const struct server server = { 0 };
	_cleanup_buf_ struct buf text = report_of(&server, report_requests, 1002 * NSEC_PER_MSEC);

	expect_text(&text, " 1  <5 ms  <5 ms  OrdersController#show\n", true);
}

/* One that goes on after another sample is bounded by what comes after its last one. */
Test(request_lengths, bounds_are_of_the_whole_request)
{
	struct profile_thread thread = { 0 };
	struct profile_request requests[2] = { 0 };
	struct profile p = { .threads = &thread,
			     .n_threads = 1,
			     .requests = requests,
			     .n_requests = 2,
			     .totals.end_monotonic_ns = 1000 };
	const struct {
		uint64_t ts;
		uint32_t request;
	} samples[] = { { 100, 0 }, { 200, 1 }, { 300, 0 }, { 400, 1 } };

	for (size_t i = 0; i < 4; i++)
		profile_note_request(&p,
				     &(struct profile_sample) { .ts = samples[i].ts,
								.request = samples[i].request },
				     true, true);
	cr_expect_eq(profile_request_least_ns(&requests[1]), 200);
	cr_expect_eq(profile_request_most_ns(&p, &requests[1]), 900, "to the end");
	profile_note_request(&p, &(struct profile_sample) { .ts = 450 }, true, true);
	cr_expect_eq(profile_request_most_ns(&p, &requests[1]), 350);
	profile_note_request(&p, &(struct profile_sample) { .ts = 500, .request = 1 }, true, true);
	profile_note_request(&p, &(struct profile_sample) { .ts = 600, .request = 1 }, true, false);
	cr_expect_eq(profile_request_most_ns(&p, &requests[1]), 500, "it is not asked for later");
	requests[1].last_ts = 400;
	/* A sample that overlaps is no bound within it. */
	requests[1].after_ts = 250;
	requests[1].until_ts = 350;
	cr_expect_eq(profile_request_most_ns(&p, &requests[1]), 200);
	cr_expect_eq(profile_request_most_ns(&p, &requests[0]), 0, "no sample");
}

/* An estimate that adds half a period at each end is not more than there was room for. */
Test(request_lengths, the_estimate_is_within_the_bounds)
{
	struct profile p = { .meta = { .n_events = 1,
				       .events = { { .name = EVENT_CPU, .period = 10 } } } };
	struct profile_request r = {
		.first_ts = 100, .last_ts = 100, .after_ts = 98, .until_ts = 102
	};

	cr_expect_eq(profile_request_ns(&p, &r), 4);
	r.after_ts = 50;
	cr_expect_eq(profile_request_ns(&p, &r), 10);
}

/* ---- what is counted, and what is between requests ---- */

#define PARTS                                                                                      \
	"  requests of puma: in parts, before and after what runs in them; SEEN counts parts\n"

Test(request_lengths, a_server_with_a_framework_in_it_is_seen_in_parts)
{
	const struct server rails = { 0 }, alone = { .without_rails = true };
	_cleanup_buf_ struct buf both = report_of(&rails, report_requests, 0);
	_cleanup_buf_ struct buf one = report_of(&alone, report_requests, 0);
	_cleanup_buf_ struct buf both_json = report_of(&rails, report_requests_json, 0);
	_cleanup_buf_ struct buf one_json = report_of(&alone, report_requests_json, 0);

	expect_text(&both, PARTS, true);
	expect_text(&both_json, "\"in_parts\":true", true);
	expect_text(&one, "10  7-8 ms  7-8 ms  Puma request\n", true);
	expect_text(&one, "in parts", false);
	expect_text(&one_json, "in_parts", false);
}

#define BETWEEN                                                                                    \
	"  GVL of [no request]: 0.05s between requests of a thread, when the next may have come"

Test(request_lengths, waiting_for_the_gvl_between_requests_is_told)
{
	const struct server server = { .other_gvl = 20 * NSEC_PER_MSEC },
			    little = { .other_gvl = 1000 * NSEC_PER_MSEC };
	_cleanup_buf_ struct buf text = report_of(&server, report_requests, 0);
	_cleanup_buf_ struct buf json = report_of(&server, report_requests_json, 0);
	_cleanup_buf_ struct buf other = report_of(&little, report_requests, 0);

	expect_text(&text, BETWEEN, true);
	expect_text(&json, "\"gvl_between_ns\":50000000", true);
	expect_text(&other, "between requests", false);
}
