/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/number.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/array.h"
#include "base/clock.h"

/* @n / @unit, rounded; @unit is 1 or even. */
static uint64_t rounded(uint64_t n, uint64_t unit)
{
	return n / unit + (unit > 1 && n % unit >= unit / 2);
}

struct num_text num_count(uint64_t n)
{
	struct num_text ret;
	char digits[24];
	size_t len, i, o = 0;

	len = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, n);
	for (i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			ret.s[o++] = ',';
		ret.s[o++] = digits[i];
	}
	ret.s[o] = '\0';
	return ret;
}

struct num_text num_bytes(uint64_t bytes)
{
	static const char *const units[] = { "kB", "MB", "GB", "TB", "PB", "EB" };
	uint64_t unit = 1000, tenths;
	struct num_text ret;
	size_t i;

	if (bytes < unit) {
		snprintf(ret.s, sizeof(ret.s), "%u B", (unsigned int)bytes);
		return ret;
	}
	/* 999.95 would be printed as 1000.0. */
	for (i = 0; i + 1 < ARRAY_SIZE(units) && bytes >= unit * 1000 - unit / 20; i++)
		unit *= 1000;
	tenths = rounded(bytes, unit / 10);
	snprintf(ret.s, sizeof(ret.s), "%u.%u %s", (unsigned int)(tenths / 10),
		 (unsigned int)(tenths % 10), units[i]);
	return ret;
}

struct num_text num_of(uint64_t n, const char *singular, const char *plural)
{
	struct num_text ret;

	snprintf(ret.s, sizeof(ret.s), "%.32s %.28s", num_count(n).s, n == 1 ? singular : plural);
	return ret;
}

struct num_text num_frequency(uint64_t lowest_hz, uint64_t hz)
{
	struct num_text ret;

	if (lowest_hz && lowest_hz < hz)
		snprintf(ret.s, sizeof(ret.s), "%" PRIu64 " to %" PRIu64 " Hz", lowest_hz, hz);
	else
		snprintf(ret.s, sizeof(ret.s), "%" PRIu64 " Hz", hz);
	return ret;
}

/* The unit of the last digit that is shown of @ns, in ns. */
static uint64_t digit_of(uint64_t ns)
{
	if (ns < 100 * NSEC_PER_USEC)
		return NSEC_PER_USEC / 10;
	if (ns < NSEC_PER_MSEC)
		return NSEC_PER_USEC;
	return ns < NSEC_PER_SEC ? NSEC_PER_MSEC : NSEC_PER_SEC / 10;
}

struct num_text num_duration(uint64_t ns)
{
	/* 999.6 µs are 1 ms. */
	const uint64_t shown = rounded(ns, digit_of(ns)) * digit_of(ns), digit = digit_of(shown);
	const uint64_t n = shown / digit;
	struct num_text ret;

	if (ns == 0)
		snprintf(ret.s, sizeof(ret.s), "0 s");
	else if (digit == NSEC_PER_USEC / 10)
		snprintf(ret.s, sizeof(ret.s), "%u.%u µs", (unsigned int)(n / 10),
			 (unsigned int)(n % 10));
	else if (digit < NSEC_PER_SEC / 10)
		snprintf(ret.s, sizeof(ret.s), "%u %s", (unsigned int)n,
			 digit == NSEC_PER_USEC ? "µs" : "ms");
	else
		snprintf(ret.s, sizeof(ret.s), "%.32s.%u s", num_count(n / 10).s,
			 (unsigned int)(n % 10));
	return ret;
}

struct num_text num_duration_at_least(uint64_t ns)
{
	const uint64_t cut = ns - ns % digit_of(ns);

	/* Not "0 s", which is exact. */
	return num_duration(cut ? cut : ns != 0);
}

struct num_text num_duration_at_most(uint64_t ns)
{
	const uint64_t digit = digit_of(ns), over = ns % digit;

	return num_duration(over && ns <= UINT64_MAX - digit ? ns - over + digit : ns);
}

/* @hundredths / 100 with @decimals (0 to 2) digits after the point, and @unit. */
static struct num_text fixed(uint64_t hundredths, unsigned int decimals, const char *unit)
{
	static const unsigned int steps[] = { 100, 10, 1 };
	uint64_t n = rounded(hundredths, steps[decimals]), power = 100 / steps[decimals];
	struct num_text ret;

	if (decimals)
		snprintf(ret.s, sizeof(ret.s), "%.32s.%0*u%s", num_count(n / power).s,
			 (int)decimals, (unsigned int)(n % power), unit);
	else
		snprintf(ret.s, sizeof(ret.s), "%.32s%s", num_count(n).s, unit);
	return ret;
}

struct num_text num_duration_fine(uint64_t ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ " s", NSEC_PER_SEC },
		{ " ms", NSEC_PER_MSEC },
		{ " µs", NSEC_PER_USEC },
	};
	struct num_text ret;

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		uint64_t n = rounded(ns, units[i].ns / 100);

		/* Three digits, but whole seconds are never without a tenth. */
		if (ns >= units[i].ns)
			return fixed(n, n < 1000 ? 2 : n < 10000 || !i ? 1 : 0, units[i].name);
	}
	snprintf(ret.s, sizeof(ret.s), ns ? "%u ns" : "%u s", (unsigned int)ns);
	return ret;
}

struct num_text num_seconds(uint64_t ns)
{
	struct num_text ret;

	snprintf(ret.s, sizeof(ret.s), "%.2fs", (double)ns / (double)NSEC_PER_SEC);
	return ret;
}

struct num_text num_clock(uint64_t ns)
{
	uint64_t s = ns / NSEC_PER_SEC;
	struct num_text ret;

	if (s < 3600)
		snprintf(ret.s, sizeof(ret.s), "%02u:%02u", (unsigned int)(s / 60),
			 (unsigned int)(s % 60));
	else
		snprintf(ret.s, sizeof(ret.s), "%" PRIu64 ":%02u:%02u", s / 3600,
			 (unsigned int)(s / 60 % 60), (unsigned int)(s % 60));
	return ret;
}

struct num_text num_percent(uint64_t part, uint64_t whole)
{
	struct num_text ret;

	snprintf(ret.s, sizeof(ret.s), "%.1f%%",
		 whole ? 100.0 * (double)part / (double)whole : 0.0);
	return ret;
}

struct num_text num_percent_fine(uint64_t part, uint64_t whole)
{
	uint64_t hundredths;

	if (!whole || !part)
		return (struct num_text) { "0%" };
	hundredths = (uint64_t)(((unsigned __int128)part * 10000 + whole / 2) / whole);
	if (!hundredths)
		return (struct num_text) { "<0.01%" };
	if (part == whole)
		return (struct num_text) { "100%" };
	return fixed(hundredths, hundredths < 100 ? 2 : 1, "%");
}
