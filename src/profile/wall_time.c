/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/wall_time.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"

#define HOUR 3600

bool wall_time_is_meant(const char *s)
{
	return strchr(s, ':') != NULL;
}

/* @n digits at *@s, from @min to @max; moves *@s behind them. */
static bool number(const char **s, size_t n, int min, int max, int *ret)
{
	int v = 0;

	if (strspn(*s, "0123456789") < n)
		return false;
	for (; n; n--)
		v = v * 10 + *(*s)++ - '0';
	*ret = v;
	return v >= min && v <= max;
}

static bool skip(const char **s, char c)
{
	if (**s != c)
		return false;
	(*s)++;
	return true;
}

static int days_of(int year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return days[month - 1] + (month == 2 && leap);
}

/* A day that its month has not would be taken for one of the next month. */
static bool parse_date(const char **s, struct wall_time *t)
{
	t->has_date = true;
	return number(s, 4, 1970, 2400, &t->year) && skip(s, '-') &&
	       number(s, 2, 1, 12, &t->month) && skip(s, '-') &&
	       number(s, 2, 1, days_of(t->year, t->month), &t->day) &&
	       (skip(s, 'T') || skip(s, ' '));
}

/* ".25"; up to nine digits */
static bool parse_fraction(const char **s, struct wall_time *t)
{
	size_t n = strspn(*s, "0123456789");
	uint32_t unit = NSEC_PER_SEC / 10;

	for (size_t i = 0; i < n && i < 9; i++, unit /= 10)
		t->ns += (uint32_t)((*s)[i] - '0') * unit;
	*s += n;
	return n && n <= 9;
}

static bool parse(const char *s, struct wall_time *t)
{
	t->given = true;
	if (strchr(s, '-') && !parse_date(&s, t))
		return false;
	if (!number(&s, 2, 0, 23, &t->hour) || !skip(&s, ':') || !number(&s, 2, 0, 59, &t->minute))
		return false;
	if (skip(&s, ':') && !number(&s, 2, 0, 60, &t->second))
		return false;
	if (skip(&s, '.') && !parse_fraction(&s, t))
		return false;
	t->is_utc = skip(&s, 'Z');
	return !*s;
}

int wall_time_parse(const char *s, const char *what, struct wall_time *ret, struct err *err)
{
	struct wall_time t = { 0 };

	if (!parse(s, &t)) {
		err_set(err, -EINVAL, ERR_USAGE, "%s: '%.100s' is no time", what, s);
		err_hint(err,
			 "a time is 12:00:05, or 2026-11-23T12:00:05; with Z at the end in UTC");
		return -EINVAL;
	}
	*ret = t;
	return 0;
}

/* The seconds since 1970 of @t on the day that @start is on, or as many days later. */
static time_t seconds_of(const struct wall_time *t, time_t start, int days)
{
	struct tm tm = { 0 };

	if (t->is_utc)
		gmtime_r(&start, &tm);
	else
		localtime_r(&start, &tm);
	if (t->has_date) {
		tm.tm_year = t->year - 1900;
		tm.tm_mon = t->month - 1;
		tm.tm_mday = t->day;
	}
	tm.tm_mday += days;
	tm.tm_hour = t->hour;
	tm.tm_min = t->minute;
	tm.tm_sec = t->second;
	tm.tm_isdst = -1; /* as it is on that day */
	return t->is_utc ? timegm(&tm) : mktime(&tm);
}

uint64_t wall_time_since(const struct wall_time *t, uint64_t start_ns)
{
	const time_t start = (time_t)(start_ns / NSEC_PER_SEC);
	time_t at = seconds_of(t, start, 0);
	uint64_t ns;

	if (!t->has_date && at <= start - HOUR)
		at = seconds_of(t, start, 1);
	else if (!t->has_date && at > start + 23 * HOUR)
		at = seconds_of(t, start, -1);
	if (at < 0)
		return 0;
	ns = (uint64_t)at * NSEC_PER_SEC + t->ns;
	return ns > start_ns ? ns - start_ns : 0;
}
