/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/human.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"

void human_count(struct buf *out, uint64_t n)
{
	char digits[24];
	size_t len = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, n);

	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			buf_addch(out, ',');
		buf_addch(out, digits[i]);
	}
}

void human_count_of(struct buf *out, uint64_t n, const char *one, const char *many)
{
	human_count(out, n);
	buf_addf(out, " %s", n == 1 ? one : many);
}

/* @hundredths / 100 with @decimals (0 to 2) digits after the point. */
static void add_fixed(struct buf *out, uint64_t hundredths, unsigned int decimals)
{
	static const unsigned int units[] = { 100, 10, 1 };
	uint64_t n = (hundredths + units[decimals] / 2) / units[decimals];

	switch (decimals) {
	case 0:
		human_count(out, n);
		break;
	case 1:
		human_count(out, n / 10);
		buf_addf(out, ".%u", (unsigned int)(n % 10));
		break;
	default:
		human_count(out, n / 100);
		buf_addf(out, ".%02u", (unsigned int)(n % 100));
	}
}

void human_duration(struct buf *out, uint64_t ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "s", NSEC_PER_SEC },
		{ "ms", NSEC_PER_MSEC },
		{ "µs", NSEC_PER_USEC },
	};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		uint64_t hundredth = units[i].ns / 100;
		uint64_t n = ns / hundredth + (ns % hundredth >= hundredth / 2);

		if (ns < units[i].ns)
			continue;
		/* Three digits, but whole seconds are never without a tenth. */
		add_fixed(out, n, n < 1000 ? 2 : n < 10000 || !i ? 1 : 0);
		buf_addf(out, " %s", units[i].name);
		return;
	}
	buf_addf(out, ns ? "%" PRIu64 " ns" : "%" PRIu64 " s", ns);
}

static void human_bytes(struct buf *out, uint64_t bytes)
{
	static const char *const names[] = { "B", "kB", "MB", "GB", "TB", "PB", "EB" };
	uint64_t unit = 1;
	size_t i = 0;

	for (; i + 1 < ARRAY_SIZE(names) && bytes / unit >= 1000; i++)
		unit *= 1000;
	if (i)
		add_fixed(out, bytes / (unit / 100), 1); /* hundredths */
	else
		human_count(out, bytes);
	buf_addf(out, " %s", names[i]);
}

void human_value(struct buf *out, enum value_unit unit, uint64_t value)
{
	if (unit == UNIT_NS)
		human_duration(out, value);
	else if (unit == UNIT_BYTES)
		human_bytes(out, value);
	else
		human_count(out, value);
}

void human_percent(struct buf *out, uint64_t part, uint64_t whole)
{
	uint64_t hundredths;

	if (!whole || !part) {
		buf_addstr(out, "0%");
		return;
	}
	hundredths = (uint64_t)(((unsigned __int128)part * 10000 + whole / 2) / whole);
	if (!hundredths)
		buf_addstr(out, "<0.01%");
	else if (part == whole)
		buf_addstr(out, "100%");
	else {
		add_fixed(out, hundredths, hundredths < 100 ? 2 : 1);
		buf_addch(out, '%');
	}
}
