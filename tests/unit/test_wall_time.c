/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "profile/wall_time.h"

#define DAY 86400

static void set_zone(const char *zone)
{
	setenv("TZ", zone, 1);
	tzset();
}

/* Seconds since 1970 of a moment in UTC. */
static uint64_t utc(int year, int month, int day, int hour, int minute, int second)
{
	struct tm tm = { .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day };

	return (uint64_t)timegm(&tm) + (uint64_t)(hour * 3600 + minute * 60 + second);
}

/* @offset in seconds. */
static void expect_since(const char *s, uint64_t start, double offset)
{
	struct err err = { 0 };
	struct wall_time t;

	cr_assert(wall_time_is_meant(s), "%s", s);
	cr_assert_eq(wall_time_parse(s, "--from", &t, &err), 0, "%s", err.msg);
	cr_expect_eq(wall_time_since(&t, start * NSEC_PER_SEC), (uint64_t)(offset * 1e9),
		     "%s: %llu", s, (unsigned long long)wall_time_since(&t, start * NSEC_PER_SEC));
}

Test(wall_time, of_the_day)
{
	const uint64_t start = utc(2026, 11, 23, 12, 0, 0);

	set_zone("UTC0");
	expect_since("12:00:05", start, 5);
	expect_since("12:00:05.25", start, 5.25);
	expect_since("12:01", start, 60);
	expect_since("12:00:00", start, 0);
	expect_since("11:59:59", start, 0); /* somewhat early: from the start */
	expect_since("11:00:01", start, 0);
	expect_since("11:00:00", start, 23 * 3600);
	expect_since("00:00", start, 12 * 3600); /* the next day */
	expect_since("00:10", utc(2026, 12, 31, 23, 50, 0), 20 * 60);
	expect_since("23:50", utc(2026, 11, 23, 0, 10, 0), 0);
}

Test(wall_time, with_a_date)
{
	const uint64_t start = utc(2026, 11, 23, 12, 0, 0);

	set_zone("UTC0");
	expect_since("2026-11-23T12:00:05", start, 5);
	expect_since("2026-11-24 12:00", start, DAY);
	expect_since("2026-12-23 12:00", start, 30 * DAY);
	expect_since("2026-11-22 12:00", start, 0);
	expect_since("1970-01-01T00:00", start, 0);
	expect_since("2028-02-29T00:00:00Z", utc(2028, 2, 28, 0, 0, 0), DAY);
	expect_since("2400-02-29T00:00:00Z", utc(2400, 2, 28, 0, 0, 0), DAY);
	expect_since("2028-03-01T00:00:00Z", utc(2028, 2, 28, 0, 0, 0), 2 * DAY);
}

Test(wall_time, of_a_time_zone)
{
	const uint64_t start = utc(2026, 11, 23, 12, 0, 0);

	set_zone("IST-5:30");
	expect_since("17:30:05", start, 5);
	expect_since("12:00:05Z", start, 5);
	expect_since("12:00:05", start, 18.5 * 3600 + 5);
	/* In the night when clocks are put back, 04:00 comes an hour later. */
	set_zone("CET-1CEST,M3.5.0,M10.5.0/3");
	expect_since("04:00", utc(2026, 10, 24, 22, 0, 0), 5 * 3600);
	expect_since("04:00", utc(2026, 10, 25, 23, 0, 0), 4 * 3600);
}

Test(wall_time, what_is_none)
{
	static const char *const none[] = {
		"12:",
		":00",
		"24:00",
		"12:60",
		"1:00",
		"12:0",
		"12:00:61",
		"12:00:5",
		"12:00.",
		"12:00:05.",
		"12:00:05.0123456789",
		"12:00 ",
		" 12:00",
		"12:00z",
		"12:00+01:00",
		"2026-13-01T12:00",
		"2026-1-01T12:00",
		"2026-01-32T12:00",
		"2026-02-29T12:00",
		"2100-02-29T12:00",
		"2026-02-31T12:00",
		"2026-11-31T00:00:00",
		"2026-01-01x12:00",
		"2026-01-0112:00",
		"12:00:05Zx",
		"-12:00",
	};

	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		struct wall_time t = { .hour = 77 };
		struct err err = { 0 };

		cr_expect_eq(wall_time_parse(none[i], "--from", &t, &err), -EINVAL, "%s", none[i]);
		cr_expect_eq(err.kind, ERR_USAGE);
		cr_expect_eq(t.hour, 77, "left alone");
	}
	cr_expect_not(wall_time_is_meant("12s"));
}
