/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A time as a clock on the wall shows it, "12:00:05", and when in a recording that was.
 */
#ifndef RBPF_PROFILE_WALL_TIME_H
#define RBPF_PROFILE_WALL_TIME_H

#include <stdbool.h>
#include <stdint.h>

struct err;

struct wall_time {
	bool given;	      /* else all is 0 */
	bool has_date;	      /* else it is of a day near the start of the recording */
	bool is_utc;	      /* else of the time zone of who asks (TZ) */
	int year, month, day; /* 2026, 1 to 12, 1 to 31; 0 without a date */
	int hour, minute, second;
	uint32_t ns;
};

/* Whether @s is meant to be such a time, and no duration: it has a colon. */
bool wall_time_is_meant(const char *s);

/*
 * Parse "12:00", "12:00:05", "12:00:05.25", each also with a date, "2026-11-23 12:00", and with "Z"
 * for UTC at the end. Returns 0, or -EINVAL with ERR_USAGE; @what names the option.
 */
int wall_time_parse(const char *s, const char *what, struct wall_time *ret, struct err *err);

/*
 * How long after @start_ns (since 1970), the start of a recording, it is, in ns; 0 if it is not
 * after. Without a date: the next time that the clock shows it, unless that was in the hour before
 * the start, which is then meant.
 */
uint64_t wall_time_since(const struct wall_time *t, uint64_t start_ns);

#endif
