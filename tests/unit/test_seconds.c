/* SPDX-License-Identifier: GPL-2.0-only */
/* Rows that are seconds of a recording. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "profile/replay.h"
#include "profile/sample_parts.h"
#include "profile/wall_time.h"
#include "report/report.h"
#include "support/profile_builder.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/seconds.h"

static struct profile_builder b;
static uint32_t thread;

static void setup(void)
{
	builder_init(&b);
	thread = builder_thread(&b, builder_process(&b, 42, "ruby app.rb"), 42, "main");
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(seconds, .init = setup, .fini = teardown);

static void add_at(uint64_t ms, uint64_t value)
{
	b.now = BUILDER_START + ms * NSEC_PER_MSEC;
	builder_sample(&b, thread, builder_path(&b, "<main>"), value, 0);
}

static void build(const struct view_filter *f, enum flat_sort sort, struct flat *ret)
{
	const struct replay kept = { 0 };
	struct err err = { 0 };

	cr_assert_eq(flat_build_time(&b.out.profile, &kept, f, sort, ret, &err), 0);
}

/* "second samples value", a line each row. */
static void expect_rows(const struct view_filter *f, enum flat_sort sort, const char *expected)
{
	struct buf out = BUF_INIT;
	struct flat flat;

	build(f, sort, &flat);
	for (size_t i = 0; i < flat.n_rows; i++) {
		buf_addf(&out, "%u %d %d\n", flat.rows[i].id, (int)flat.rows[i].samples,
			 (int)flat.rows[i].self_value);
		cr_expect_eq(flat.rows[i].total_samples, flat.rows[i].samples);
		cr_expect_eq(flat.rows[i].total_value, flat.rows[i].self_value);
	}
	cr_expect_str_eq(buf_str(&out), expected, "%s", buf_str(&out));
	buf_deinit(&out);
	flat_deinit(&flat);
}

Test(seconds, in_the_order_of_time)
{
	const struct view_filter other = { .no_gc = true };

	add_at(0, 1);
	add_at(999, 2);
	add_at(2000, 4);
	add_at(3999, 8); /* records of different CPUs may be out of order */
	add_at(1999, 16);
	add_at(3000, 32);
	b.now = BUILDER_START - 1; /* of just before the start */
	builder_sample(&b, thread, 0, 64, 0);
	b.now = BUILDER_START + NSEC_PER_SEC;
	builder_sample(&b, thread, builder_path(&b, "<main>"), 128, SAMPLE_GC);
	expect_rows(NULL, FLAT_SORT_TIME, "0 3 67\n1 2 144\n2 1 4\n3 2 40\n");
	expect_rows(NULL, FLAT_SORT_SELF, "1 2 144\n0 3 67\n3 2 40\n2 1 4\n");
	expect_rows(&other, FLAT_SORT_TIME, "0 3 67\n1 1 16\n2 1 4\n3 2 40\n");
}

/* A wait is in each second that it was in. */
Test(seconds, of_waits)
{
	const uint32_t wait = builder_reason(&b, builder_path(&b, "<main>"), REASON_WAIT_TIMER);

	b.now = BUILDER_START + 3 * NSEC_PER_SEC + 5;
	builder_sample(&b, thread, wait, NSEC_PER_SEC + 15, 0);
	b.now = BUILDER_START + NSEC_PER_SEC;
	builder_sample(&b, thread, wait, 7, 0); /* ends with the first second */
	b.now = BUILDER_START + 20;
	builder_sample(&b, thread, wait, 100, 0); /* began before the recording */
	expect_rows(NULL, FLAT_SORT_TIME, "0 2 107\n1 1 10\n2 1 1000000000\n3 1 5\n");
}

/* Against the filter that names a second. */
Test(seconds, random_profiles_agree_with_from_and_to)
{
	struct flat flat;

	builder_add_random(&b, 7, 900);
	build(NULL, FLAT_SORT_TIME, &flat);
	cr_expect_eq(flat.n_rows, 9);
	for (size_t i = flat.n_rows; i--;) {
		const uint64_t from = BUILDER_START + flat.rows[i].id * NSEC_PER_SEC;
		uint64_t value = 0, samples = 0;
		struct profile *p = &b.out.profile;

		for (size_t k = 0; k < p->n_kept; k++) {
			struct profile_sample s = p->samples[k];

			/* What was before the start is of the first second. */
			if (!sample_part_within(p, &s, flat.rows[i].id ? from : 0,
						from + NSEC_PER_SEC))
				continue;
			value += s.value;
			samples++;
		}
		cr_expect_eq(flat.rows[i].self_value, value);
		cr_expect_eq(flat.rows[i].samples, samples);
	}
	flat_deinit(&flat);
}

Test(seconds, samples_of_another_event_are_not_counted)
{
	add_at(0, 1);
	b.out.profile.samples[0].event = 1;
	add_at(1000, 2);
	expect_rows(NULL, FLAT_SORT_TIME, "1 1 2\n");
}

/* Neither of a file nor kept. */
Test(seconds, samples_are_needed)
{
	struct flat flat;

	add_at(0, 1);
	cr_expect_eq(flat_build(&b.out.profile, NULL, FLAT_BY_TIME, FLAT_SORT_TIME, &flat),
		     -EINVAL);
}

/* What is shown as the time of a row is in its second, and no earlier. */
static void expect_clock(uint64_t start_ns, uint32_t second, const char *want)
{
	const struct profile p = { .meta.start_realtime_ns = start_ns };
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct wall_time t = { 0 };
	struct err err = { 0 };
	uint64_t since;

	report_add_clock(&p, second * (uint64_t)NSEC_PER_SEC, &text);
	cr_expect_str_eq(buf_str(&text), want);
	cr_assert_eq(wall_time_parse(buf_str(&text), "--from", &t, &err), 0, "%s", err.msg);
	since = wall_time_since(&t, start_ns);
	cr_expect_eq(since / NSEC_PER_SEC, second, "%s is in second %llu", want,
		     (unsigned long long)since / NSEC_PER_SEC);
	cr_expect_lt(since % NSEC_PER_SEC, NSEC_PER_MSEC);
}

Test(seconds, clock_of_a_second)
{
	const uint64_t start = 1795850877717375580;

	cr_assert_eq(setenv("TZ", "UTC", 1), 0);
	expect_clock(start, 0, "07:27:57.718");
	expect_clock(start, 3, "07:28:00.718");
	expect_clock(start + 282 * NSEC_PER_MSEC, 1, "07:27:59.000");
	expect_clock(start - start % NSEC_PER_SEC, 1, "07:27:58.000");
	expect_clock(start, 60000, "00:07:57.718");
}
