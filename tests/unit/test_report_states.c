/* SPDX-License-Identifier: GPL-2.0-only */
/* rbpf report --states, on small profiles made in memory. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "report/report.h"
#include "support/profile_builder.h"
#include "view/filter.h"
#include "view/reshape.h"

static struct profile_builder b;
static uint32_t runs, sleeps, disk;

static void setup(void)
{
	builder_init(&b);
	runs = builder_path(&b, "<main>");
	sleeps = builder_reason(&b, runs, REASON_WAIT_TIMER);
	disk = builder_reason(&b, runs, REASON_WAIT_DISK);
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(report_states, .init = setup, .fini = teardown);

/* What a thread spends is one after the other, from the start on. */
static uint32_t add_thread(uint32_t tid, uint64_t runs_ms, uint64_t sleeps_ms, uint64_t disk_ms)
{
	const uint64_t ms[] = { runs_ms, sleeps_ms, disk_ms };
	const uint32_t stacks[] = { runs, sleeps, disk };
	const uint32_t thread = builder_thread(&b, 0, tid, "worker");
	uint64_t now = BUILDER_START;

	for (size_t i = 0; i < 3; i++) {
		b.now = now += ms[i] * NSEC_PER_MSEC;
		if (ms[i])
			builder_sample(&b, thread, stacks[i], ms[i] * NSEC_PER_MSEC, 0);
	}
	b.out.profile.threads[thread].first_ns = BUILDER_START;
	b.out.profile.threads[thread].last_ns = now;
	return thread;
}

static void render(const struct view_filter *f, uint64_t limit, struct buf *out)
{
	struct recording rec = { .path = "x.data" };
	struct report report = { .rec = &rec, .filter = f, .limit = limit };
	struct err err = { 0 };

	rec.profile = *builder_finish(&b);
	rec.report.complete = true;
	buf_reset(out);
	cr_assert_eq(report_states(&report, out, &err), 0, "%s", err.msg);
}

/* A state has a column if it is visible in all time, or in that of a row that is shown. */
Test(report_states, columns)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	builder_process(&b, 42, "ruby app.rb");
	add_thread(1, 500, 0, 0);
	add_thread(2, 9, 990, 1); /* a thousandth of it */
	for (uint32_t tid = 3; tid < 20; tid++)
		add_thread(tid, 1, 999, 0);
	add_thread(20, 0, 90, 10); /* a tenth of it */
	render(NULL, REPORT_NO_LIMIT, &out);
	cr_expect(strstr(buf_str(&out), "ELAPSED     SUM"), "%s", buf_str(&out));
	cr_expect(strstr(buf_str(&out), "disk"), "%s", buf_str(&out));
	cr_expect(strstr(buf_str(&out), "10.0%"), "%s", buf_str(&out));
	render(NULL, 1, &out); /* that row is not shown */
	cr_expect_null(strstr(buf_str(&out), "disk"), "%s", buf_str(&out));
}

/* What the words mean is in one column, however long they are. */
Test(report_states, legend)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	uint32_t thread;

	builder_process(&b, 42, "ruby app.rb");
	thread = add_thread(1, 500, 0, 500);
	builder_sample(&b, thread, runs, 500 * NSEC_PER_MSEC, SAMPLE_KERNEL | SAMPLE_PAGE_FAULT);
	render(NULL, REPORT_NO_LIMIT, &out);
	cr_expect(strstr(buf_str(&out),
			 "\n  user         runs Ruby and native code\n"
			 "  minor-fault  handles a page fault in the kernel\n"
			 "  disk         waits for a file\n"
			 "  gvl-held     of its waits, those in which the thread held the GVL\n"),
		  "%s", buf_str(&out));
}

/* Of a part of the time it is said how long that was, and nothing is to add up. */
Test(report_states, of_a_part)
{
	const struct view_filter waits = { .states = 1u << STATE_TIMER };
	_cleanup_buf_ struct buf out = BUF_INIT;

	builder_process(&b, 42, "ruby app.rb");
	add_thread(1, 600, 300, 100);
	render(&waits, REPORT_NO_LIMIT, &out);
	cr_expect(strstr(buf_str(&out), " TIME   timer  gvl-held"), "%s", buf_str(&out));
	cr_expect(strstr(buf_str(&out), "0.30s  100.0%"), "%s", buf_str(&out));
	cr_expect_null(strstr(buf_str(&out), "ELAPSED"), "%s", buf_str(&out));
	cr_expect_null(strstr(buf_str(&out), "add up"), "%s", buf_str(&out));
	render(NULL, REPORT_NO_LIMIT, &out);
	cr_expect(strstr(buf_str(&out), "  1.00s  100.0%  60.0%  10.0%  30.0%"), "%s",
		  buf_str(&out));
	cr_expect(strstr(buf_str(&out), "states add up to 1.0 s of 1.0 s"), "%s", buf_str(&out));
}

/* Of a subtree the kernel's account of the whole thread says nothing. */
Test(report_states, of_a_subtree)
{
	struct reshape_options root = { .has_root = true };
	struct view_filter f = { 0 };
	_cleanup_buf_ struct buf out = BUF_INIT;
	uint32_t thread, inner;

	builder_process(&b, 42, "ruby app.rb");
	thread = add_thread(1, 600, 300, 100);
	inner = builder_path(&b, "x|inner");
	builder_sample(&b, thread, inner, 200 * NSEC_PER_MSEC, 0);
	b.out.profile.threads[thread].cpu_ns = 800 * NSEC_PER_MSEC;
	b.out.profile.threads[thread].cpu_known = true;
	b.out.profile.threads[thread].went_on = sleeps;
	cr_assert_eq(regcomp(&root.root, "^inner$", REG_EXTENDED | REG_NOSUB), 0);
	builder_finish(&b);
	cr_assert_eq(profile_reshape(&b.out.profile, &f, &root), 0);
	regfree(&root.root);
	cr_expect_eq(b.out.profile.threads[thread].went_on, 0, "it is outside");
	render(&f, REPORT_NO_LIMIT, &out);
	cr_expect(strstr(buf_str(&out), "0.20s  100.0%"), "%s", buf_str(&out));
	cr_expect_null(strstr(buf_str(&out), "ELAPSED"), "%s", buf_str(&out));
}

/* Waits that are longer than the recording, of the threads that are shown. */
Test(report_states, waits_that_are_cut)
{
	struct view_filter f = { 0 };
	_cleanup_buf_ struct buf out = BUF_INIT;
	uint32_t thread;

	builder_process(&b, 42, "ruby app.rb");
	add_thread(1, 600, 300, 100);
	render(NULL, REPORT_NO_LIMIT, &out);
	cr_expect_null(strstr(buf_str(&out), "went on"), "%s", buf_str(&out));
	thread = add_thread(2, 600, 300, 100);
	b.out.profile.threads[thread].began_before = sleeps;
	b.out.profile.threads[thread].went_on = disk;
	thread = add_thread(3, 0, 300, 0);
	b.out.profile.threads[thread].went_on = sleeps;
	render(NULL, REPORT_NO_LIMIT, &out);
	cr_expect(strstr(buf_str(&out),
			 "\n  1 wait began before the recording, and 2 went on after it (disk 1, "
			 "timer 2): only what is in it is counted\n"),
		  "%s", buf_str(&out));
	f.states = 1u << STATE_TIMER;
	render(&f, REPORT_NO_LIMIT, &out);
	cr_expect_null(strstr(buf_str(&out), "went on"), "%s", buf_str(&out));
}
