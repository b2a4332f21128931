/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What requests took and made others wait, of a recording with waits; and which of them were slow.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "export/flame_diff.h"
#include "profile/reader.h"
#include "profile/reason.h"
#include "profile/recorder.h"
#include "report/report.h"
#include "support/profile_check.h"
#include "support/sink_define.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/gvl_pairs.h"
#include "view/request.h"
#include "view/request_stats.h"

#define PERIOD 10

enum { CPU, WAIT, GVL, ALLOC };

static char dir[] = "/tmp/rbpf-costs-XXXXXX";
static char path[64];

/* A recording that is being made: threads 0 and 1 of one process. */
static struct {
	struct recorder *rec;
	struct sink *sink;
	uint32_t waits_for_gvl, sleeps; /* stacks */
} made;

static uint32_t begin(uint32_t thread, const char *name)
{
	const struct profile_request_kind kind = { .framework = string_of(made.sink,
									  *name ? "rails" : ""),
						   .name = string_of(made.sink, name) };
	uint32_t id = 0;

	cr_assert_eq(sink_request(made.sink, thread, &kind, &id), 0);
	return id;
}

static void sample(uint32_t thread, uint32_t request, uint16_t event, uint64_t ts, uint64_t value,
		   uint32_t stack)
{
	const struct profile_sample s = { .ts = ts,
					  .value = value,
					  .thread = thread,
					  .stack = stack,
					  .event = event,
					  .request = request };

	cr_assert_eq(sink_sample(made.sink, &s), 0);
}

static void tick(uint32_t thread, uint32_t request, uint64_t ts)
{
	sample(thread, request, CPU, ts, PERIOD, 0);
}

/*
 * Thread 0: requests "light" that sleep and wait for the GVL, the second one longer. Thread 1: a
 * job "heavy", then none, in an unknown one, and in none again: each has the GVL while thread 0
 * waits.
 */
static void write_requests(void)
{
	uint32_t r;

	r = begin(0, "light");
	sample(0, r, WAIT, 1120, 20, made.sleeps); /* from 1100 */
	sample(0, r, WAIT, 1170, 50, made.waits_for_gvl);
	tick(0, r, 1175); /* to 1180 */
	r = begin(0, "light");
	tick(0, r, 1205); /* from 1200 */
	sample(0, r, WAIT, 1510, 300, made.waits_for_gvl);
	r = begin(1, "heavy");
	tick(1, r, 1150);
	sample(1, r, GVL, 1151, 40, 0);
	sample(1, r, ALLOC, 9000, 1, 0); /* of whatever else: it tells nothing of time */
	tick(1, 0, 1160);
	sample(1, 0, GVL, 1161, 10, 0);
	r = begin(1, "");
	tick(1, r, 1400);
	sample(1, r, GVL, 1401, 200, 0);
	r = begin(1, "heavy");
	tick(1, r, 1500);
	sample(1, r, GVL, 1501, 100, 0);
}

static void setup(void)
{
	struct profile_meta meta = {
		.start_monotonic_ns = 1000,
		.frequency = 100,
		.n_events = 4,
		.events = { [CPU] = { .name = EVENT_CPU, .unit = UNIT_NS, .period = PERIOD },
			    [WAIT] = { .name = EVENT_WAIT, .unit = UNIT_NS },
			    [GVL] = { .name = EVENT_GVL, .unit = UNIT_NS },
			    [ALLOC] = { .name = "alloc", .unit = UNIT_BYTES } },
	};
	const struct profile_process process = { .pid = 1, .parent = PROFILE_NONE };
	struct recorder_options opts = { .path = path };
	struct err err = { 0 };
	uint32_t id;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/x.data", dir);
	cr_assert_eq(recorder_open(&opts, &meta, &made.rec, &err), 0, "%s", err.msg);
	made.sink = recorder_sink(made.rec);
	cr_assert_eq(sink_process(made.sink, &process, &id), 0);
	cr_assert_eq(sink_thread(made.sink, id, 11, 0, &id), 0);
	cr_assert_eq(sink_thread(made.sink, 0, 12, 0, &id), 0);
	made.waits_for_gvl = wait_of(made.sink, REASON_WAIT_GVL);
	made.sleeps = wait_of(made.sink, REASON_WAIT_TIMER);
	write_requests();
	cr_assert_eq(recorder_close(made.rec, NULL, &err), 0, "%s", err.msg);
}

static void teardown(void)
{
	unlink(path);
	rmdir(dir);
}

TestSuite(request_costs, .init = setup, .fini = teardown);

static struct profile read_with(struct read_options opts)
{
	struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };
	const char *problem;

	opts.by_request = true;
	cr_assert_eq(profile_read(path, &opts, &p, &report, &err), 0, "%s", err.msg);
	problem = check_profile(&p);
	cr_assert_null(problem, "%s", problem);
	return p;
}

static struct profile read_all_time(uint64_t slow_ns)
{
	return read_with((struct read_options) {
		.by_thread = true, .wall = true, .gvl_caused = true, .slow_ns = slow_ns });
}

/* "NAME samples value gvl caused requests p50 p99", by line; the latter at least-at most. */
static void expect_stats(const struct profile *p, const struct view_filter *f, const char *want)
{
	_cleanup_request_stats_ struct request_stats stats = REQUEST_STATS_INIT;
	_cleanup_buf_ struct buf out = BUF_INIT;

	cr_assert_eq(request_stats_build(p, f, &stats), 0);
	for (size_t i = 0; i < stats.n_rows; i++) {
		const struct request_row *row = &stats.rows[i];

		buf_addf(&out, "%s %d %d %d %d %d %d-%d %d-%d\n", request_label(p, row->kind),
			 (int)row->samples, (int)row->value, (int)row->states[STATE_GVL],
			 (int)row->gvl_caused, (int)row->requests, (int)row->p50.least,
			 (int)row->p50.most, (int)row->p99.least, (int)row->p99.most);
	}
	cr_expect_str_eq(buf_str(&out), want);
}

Test(request_costs, all_time_and_what_was_caused)
{
	_cleanup_profile_ struct profile p = read_all_time(0);

	cr_expect_str_eq(profile_event(&p)->name, EVENT_WALL);
	expect_stats(&p, NULL,
		     "light 5 390 350 0 2 75-205 305-7825\n"
		     "heavy 2 20 0 140 2 0-160 0-7600\n"
		     "[unknown request] 1 10 0 200 1 0-340 0-340\n"
		     "[no request] 1 10 0 10 0 0-0 0-0\n");
	cr_expect_eq(p.n_samples, 9, "what was caused is not of the event");
	cr_expect_eq(p.threads[1].samples, 4);
}

/* Then there are no pairs of a thread and a stack, of which there may be many. */
Test(request_costs, without_a_filter_of_samples_threads_need_not_be_told_apart)
{
	_cleanup_profile_ struct profile p =
		read_with((struct read_options) { .wall = true, .gvl_caused = true });
	struct view_filter of_states = { .states = 1u << STATE_GVL };
	struct request_stats stats;

	expect_stats(&p, NULL,
		     "light 5 390 350 0 2 75-205 305-7825\n"
		     "heavy 2 20 0 140 2 0-160 0-7600\n"
		     "[unknown request] 1 10 0 200 1 0-340 0-340\n"
		     "[no request] 1 10 0 10 0 0-0 0-0\n");
	cr_expect_eq(request_stats_build(&p, &of_states, &stats), -EINVAL);
}

Test(request_costs, of_one_event_nothing_else_is_added_up)
{
	_cleanup_profile_ struct profile p =
		read_with((struct read_options) { .gvl_caused = true });

	cr_expect_str_eq(profile_event(&p)->name, EVENT_CPU);
	/* But how long requests took is known of all of them. */
	expect_stats(&p, NULL,
		     "heavy 2 20 0 0 2 0-160 0-7600\n"
		     "light 2 20 0 0 2 75-205 305-7825\n"
		     "[unknown request] 1 10 0 0 1 0-340 0-340\n"
		     "[no request] 1 10 0 0 0 0-0 0-0\n");
}

Test(request_costs, times_that_are_read_alone_count)
{
	_cleanup_profile_ struct profile p = read_with(
		(struct read_options) { .wall = true, .gvl_caused = true, .from_ns = 200 });

	expect_stats(&p, NULL,
		     "light 2 310 300 0 1 305-7825 305-7825\n"
		     "[unknown request] 1 10 0 200 1 0-340 0-340\n"
		     "heavy 1 10 0 100 1 0-7600 0-7600\n");
}

Test(request_costs, threads_are_selected)
{
	_cleanup_profile_ struct profile p = read_all_time(0);
	pid_t tids[] = { 11 };
	struct view_filter f = { .tids = tids, .n_tids = 1 };

	expect_stats(&p, &f, "light 5 390 350 0 2 75-205 305-7825\n");
}

Test(request_costs, slow_ones_and_the_others)
{
	_cleanup_profile_ struct profile p = read_all_time(80);
	struct view_filter f = { .slower_than_ns = 80 };

	expect_stats(&p, &f, "light 2 310 300 0 1 305-7825 305-7825\n");
	f.not_slower = true;
	expect_stats(&p, &f,
		     "light 3 80 50 0 1 75-205 75-205\n"
		     "heavy 2 20 0 140 2 0-160 0-7600\n"
		     "[unknown request] 1 10 0 200 1 0-340 0-340\n");
}

Test(request_costs, a_filter_needs_what_was_read)
{
	_cleanup_profile_ struct profile p = read_all_time(80);
	struct view_filter f = { .slower_than_ns = 81 };
	struct view_selection *sel;

	cr_expect(view_filter_by_request(&f));
	cr_expect_eq(view_selection_new(&p, &f, &sel), -EINVAL);
	f.slower_than_ns = 80;
	cr_assert_eq(view_selection_new(&p, &f, &sel), 0);
	view_selection_free(sel);
}

/* One by one they are the same as added up. */
Test(request_costs, slow_samples_one_by_one)
{
	_cleanup_profile_ struct profile p = read_with(
		(struct read_options) { .event = EVENT_WALL, .slow_ns = 80, .keep_samples = true });
	const struct view_filter f = { .slower_than_ns = 80 };
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	size_t n = 0;

	cr_assert_eq(view_selection_new(&p, &f, &sel), 0);
	cr_assert_eq(p.n_kept, 9);
	for (size_t i = 0; i < p.n_kept; i++) {
		const struct profile_aggregate alike = profile_aggregate_of(&p, &p.samples[i]);

		n += view_selected(sel, &alike);
	}
	cr_expect_eq(n, 2);
}

Test(request_costs, of_memory_they_are_as_long)
{
	struct profile_request ticks = { .first_ts = 100, .last_ts = 150 };
	const struct profile_request waits = { .first_ts = 100,
					       .last_ts = 150,
					       .first_waits = true,
					       .last_waits = true },
				     ends = { .first_ts = 100, .last_ts = 150, .last_waits = true },
				     most = { .first_ts = 1, .last_ts = UINT64_MAX }, none = { 0 };
	struct profile p = PROFILE_INIT;

	cr_expect_eq(profile_request_ns(&p, &ticks), 50, "no clock is known");
	p.meta.n_events = 1;
	p.meta.events[0] =
		(struct profile_event) { .name = EVENT_CPU, .unit = UNIT_NS, .period = 7 };
	cr_expect_eq(profile_request_ns(&p, &ticks), 57);
	cr_expect_eq(profile_request_ns(&p, &waits), 50);
	cr_expect_eq(profile_request_ns(&p, &ends), 54);
	cr_expect_eq(profile_request_ns(&p, &most), UINT64_MAX);
	cr_expect_eq(profile_request_ns(&p, &none), 0);
	/* Where there were fewer samples, half of what its own stand for. */
	p.n_samples = 3;
	p.totals.lowest_hz = 24;
	ticks.samples = 2;
	ticks.value = 40;
	cr_expect_eq(profile_request_ns(&p, &ticks), 70);
	cr_expect_eq(profile_request_ns(&p, &ends), 54);
	/* Of all time it is not known which of them were waits: the longest period, then. */
	p.meta.frequency = 99;
	p.meta.n_events = 2;
	p.meta.events[1] =
		(struct profile_event) { .name = EVENT_WALL, .unit = UNIT_NS, .period = 7 };
	p.event = 1;
	cr_expect(profile_samples_differ(&p));
	cr_expect_eq(profile_request_ns(&p, &ticks), 50 + 7 * 99 / 24);
	p.totals.lowest_hz = 0;
	cr_expect_not(profile_samples_differ(&p));
	cr_expect_eq(profile_request_ns(&p, &ticks), 57);
}

/* ---- who made whom wait ---- */

static void expect_pairs(const struct profile *p, const struct view_filter *f, const char *want)
{
	_cleanup_gvl_pairs_ struct gvl_pairs pairs = GVL_PAIRS_INIT;
	_cleanup_buf_ struct buf out = BUF_INIT;

	cr_assert_eq(gvl_pairs_build(p, f, &pairs), 0);
	for (size_t i = 0; i < pairs.n; i++)
		buf_addf(&out, "%s for %s %d\n", request_label(p, pairs.v[i].waiting),
			 request_label(p, pairs.v[i].holding), (int)pairs.v[i].ns);
	cr_expect_str_eq(buf_str(&out), want);
}

/* From 1120 to 1170 and from 1210 to 1510, with charges at 1151, 1161, 1401 and 1501. */
Test(request_costs, waits_are_divided_by_who_was_charged)
{
	_cleanup_profile_ struct profile p = read_all_time(80);
	struct view_filter f = { .slower_than_ns = 80 };

	expect_pairs(&p, NULL,
		     "light for [unknown request] 200\n"
		     "light for heavy 131\n"
		     "light for [no request] 10\n");
	/* Of the waits that are selected; whoever had the GVL. */
	expect_pairs(&p, &f, "light for [unknown request] 191\nlight for heavy 100\n");
}

Test(request_costs, nobody_waits_in_cpu_time)
{
	_cleanup_profile_ struct profile p = read_with((struct read_options) { 0 });

	expect_pairs(&p, NULL, "");
	p.by_request = false;
	cr_expect_eq(gvl_pairs_build(&p, NULL, &(struct gvl_pairs) { 0 }), -EINVAL);
}

/* Another process has another GVL. */
Test(request_costs, processes_are_charged_by_themselves)
{
	struct profile_process processes[2] = { { .pid = 1 }, { .pid = 2 } };
	_cleanup_profile_ struct profile p = read_all_time(0);

	free(p.processes);
	p.processes = processes;
	p.n_processes = 2;
	p.threads[1].process = 1;
	expect_pairs(&p, NULL, "");
	p.processes = NULL;
	p.n_processes = 0;
}

/* ---- reports ---- */

static struct buf render(int (*renderer)(const struct report *, struct buf *, struct err *),
			 const struct profile *p)
{
	const struct view_filter f = VIEW_FILTER_INIT;
	const struct recording rec = { .path = "x.data", .profile = *p };
	const struct report report = {
		.rec = &rec, .filter = &f, .limit = REPORT_NO_LIMIT, .gvl_pairs = true
	};
	struct buf out = BUF_INIT;
	struct err err = { 0 };

	cr_assert_eq(renderer(&report, &out, &err), 0, "%s", err.msg);
	return out;
}

Test(request_costs, as_a_table)
{
	_cleanup_profile_ struct profile p = read_all_time(0);
	_cleanup_buf_ struct buf text = render(report_requests, &p);

	cr_expect(strstr(buf_str(&text), "CAUSED"), "%s", buf_str(&text));
	cr_expect(strstr(buf_str(&text), "0.0-0.3 µs  <7.9 µs  light"), "%s", buf_str(&text));
	/* Of 390 ns it ran 20, slept 20, and waited 350. */
	cr_expect(strstr(buf_str(&text), "light    [unknown request]\n"), "%s", buf_str(&text));
	cr_expect(strstr(buf_str(&text), "5.1%  89.7%   5.1%  light\n"), "%s", buf_str(&text));
}

Test(request_costs, for_programs)
{
	_cleanup_profile_ struct profile p = read_all_time(0);
	_cleanup_profile_ struct profile cpu = read_with((struct read_options) { 0 });
	_cleanup_buf_ struct buf csv = render(report_requests_csv, &p);
	_cleanup_buf_ struct buf cpu_csv = render(report_requests_csv, &cpu);
	_cleanup_buf_ struct buf json = render(report_requests_json, &p);

	cr_expect(strstr(buf_str(&csv), "p99_ns,gvl_caused_ns,user_ns,system_ns,minor-fault_ns,"
					"wait-cpu_ns,throttled_ns,gvl_ns,"),
		  "%s", buf_str(&csv));
	cr_expect(strstr(buf_str(&csv), "\r\nlight,rails,2,5,390,0,75,305,305,0,20,0,0,0,0,350,"),
		  "%s", buf_str(&csv));
	cr_expect(strstr(buf_str(&csv), "\r\n[unknown request],,1,1,10,0,0,0,0,200,10,"), "%s",
		  buf_str(&csv));
	cr_expect(strstr(buf_str(&cpu_csv),
			 "p99_ns,gc_unknown_ns,p50_most_ns,p95_most_ns,p99_most_ns,in_parts\r\n"),
		  "%s", buf_str(&cpu_csv));
	cr_expect(strstr(buf_str(&cpu_csv),
			 "\r\nlight,rails,2,2,20,0,75,305,305,0,205,7825,7825,0\r\n"),
		  "%s", buf_str(&cpu_csv));
	cr_expect(strstr(buf_str(&json), "\"request\":\"heavy\""), "%s", buf_str(&json));
	cr_expect(strstr(buf_str(&json),
			 "{\"request\":\"light\",\"held_by\":\"heavy\",\"waited_ns\":131}"),
		  "%s", buf_str(&json));
	cr_expect(strstr(buf_str(&json), "\"gvl_caused_ns\":140,\"states\":{\"user\":20,"), "%s",
		  buf_str(&json));
}

/* Of a Ruby whose collector is not known no share is made up. */
Test(request_costs, collection_that_is_not_known)
{
	_cleanup_profile_ struct profile p = read_with((struct read_options) { 0 });

	for (size_t i = 0; i < p.n_aggregates; i++)
		p.aggregates[i].flags |= SAMPLE_GC_UNKNOWN;
	{
		_cleanup_buf_ struct buf text = render(report_requests, &p);
		_cleanup_buf_ struct buf json = render(report_requests_json, &p);
		_cleanup_buf_ struct buf csv = render(report_requests_csv, &p);

		cr_expect(strstr(buf_str(&text), "%    ?     2"), "%s", buf_str(&text));
		cr_expect(strstr(buf_str(&text), "\n  GC unknown for 0.1 µs (100.0%)"), "%s",
			  buf_str(&text));
		cr_expect(strstr(buf_str(&json), "\"gc_ns\":0,\"gc_unknown_ns\":20,"), "%s",
			  buf_str(&json));
		cr_expect(strstr(buf_str(&csv),
				 "\r\nlight,rails,2,2,20,0,75,305,305,20,205,7825,7825,0\r\n"),
			  "%s", buf_str(&csv));
	}
}

/* What a picture of slow requests is compared with. */
Test(request_costs, other_requests_are_the_base_of_a_picture)
{
	_cleanup_profile_ struct profile p =
		read_with((struct read_options) { .event = EVENT_WALL, .slow_ns = 80 });
	const struct view_filter f = { .slower_than_ns = 80, .not_slower = true };
	struct flame_base base;

	cr_assert_eq(flame_base_init(&p, &f, false, &base), 0);
	cr_expect_eq(base.all.samples, 6);
	cr_expect_eq(base.all.value, 110);
	flame_base_deinit(&base);
}
