/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/parse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"

#define NANO		1000000000ull
#define NANO_DIGITS	9
#define DURATION_MAX_NS (10 * 365 * 24 * 3600 * NSEC_PER_SEC) /* excluded */
#define PID_LIMIT	(1u << 22)
#define PID_LIST_MAX	4096
#define WORD_MAX	63 /* bytes of a word that parse_nearest() considers */

/* Messages quote at most so much of what was typed. */
#define QUOTED		"'%.80s'"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * Read digits at *@s and step over them. Returns 0, -EINVAL (there are none) or -ERANGE (more
 * than 64 bits; stepped over all the same, so that the caller sees what comes after).
 */
static int read_digits(const char **s, uint64_t *ret)
{
	uint64_t v = 0;
	int err = 0;

	if (!is_digit(**s))
		return -EINVAL;
	for (; is_digit(**s); (*s)++) {
		if (__builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(**s - '0'), &v))
			err = -ERANGE;
	}
	*ret = v;
	return err;
}

/*
 * "12" or "12.5" with at most 9 decimals, as a whole part and billionths. Returns as read_digits().
 */
static int read_decimal(const char **s, uint64_t *whole, uint64_t *nano)
{
	uint64_t fraction = 0;
	int err = read_digits(s, whole);

	if (err == -EINVAL)
		return err;
	if (**s == '.') {
		const char *first = ++*s;
		ptrdiff_t digits;

		if (read_digits(s, &fraction))
			return -EINVAL;
		digits = *s - first;
		if (digits > NANO_DIGITS)
			return -EINVAL;
		for (; digits < NANO_DIGITS; digits++)
			fraction *= 10;
	}
	*nano = fraction;
	return err;
}

int parse_u64(const char *s, const char *what, uint64_t min, uint64_t max, uint64_t *ret,
	      struct err *err)
{
	const char *p = s;
	uint64_t v;
	int r = read_digits(&p, &v);

	if (r == -EINVAL || *p)
		return err_set(err, -EINVAL, ERR_USAGE, "%s: " QUOTED " is not a whole number",
			       what, s);
	if (r || v < min || v > max)
		return err_set(err, -ERANGE, ERR_USAGE,
			       "%s: %.80s is out of range (%" PRIu64 " to %" PRIu64 ")", what, s,
			       min, max);
	*ret = v;
	return 0;
}

struct unit {
	const char *suffix;
	uint64_t factor;
};

/* The factor of the unit @s, 0 if there is no such unit. */
static uint64_t find_unit(const char *s, const struct unit *units, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(s, units[i].suffix))
			return units[i].factor;
	}
	return 0;
}

/* @factor * (@whole + @nano / 10^9), rounded down. False if it is not below @limit. */
static bool scale(uint64_t whole, uint64_t nano, uint64_t factor, uint64_t limit, uint64_t *ret)
{
	/* 128 bits, or the fraction of an hour would overflow. */
	unsigned __int128 v = (unsigned __int128)whole * factor;

	v += (unsigned __int128)nano * factor / NANO;
	if (v >= limit)
		return false;
	*ret = (uint64_t)v;
	return true;
}

static int parse_ns(const char *s, const char *what, bool above_0, uint64_t *ret, struct err *err)
{
	static const struct unit units[] = {
		{ "", NSEC_PER_SEC },  { "us", NSEC_PER_USEC },	   { "ms", NSEC_PER_MSEC },
		{ "s", NSEC_PER_SEC }, { "m", 60 * NSEC_PER_SEC }, { "h", 3600 * NSEC_PER_SEC },
	};
	uint64_t whole, nano, v, factor = 0;
	const char *p = s;
	int r = read_decimal(&p, &whole, &nano);

	if (r != -EINVAL)
		factor = find_unit(p, units, ARRAY_SIZE(units));
	if (!factor)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "%s: " QUOTED " is not a duration like 30, 1.5, 500ms or 5m", what,
			       s);
	if (r || !scale(whole, nano, factor, DURATION_MAX_NS, &v) || (above_0 && !v))
		return err_set(err, -ERANGE, ERR_USAGE,
			       "%s: %.80s is out of range (%sbelow 10 years)", what, s,
			       above_0 ? "above 0, " : "");
	*ret = v;
	return 0;
}

int parse_duration(const char *s, const char *what, uint64_t *ret, struct err *err)
{
	return parse_ns(s, what, true, ret, err);
}

int parse_time_since(const char *s, const char *what, uint64_t *ret, struct err *err)
{
	return parse_ns(s, what, false, ret, err);
}

int parse_size(const char *s, const char *what, uint64_t *ret, struct err *err)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "K", 1u << 10 },
		{ "M", 1u << 20 },
		{ "G", 1u << 30 },
	};
	uint64_t v, factor = 0;
	const char *p = s;
	int r = read_digits(&p, &v);

	if (r != -EINVAL)
		factor = find_unit(p, units, ARRAY_SIZE(units));
	if (!factor)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "%s: " QUOTED " is not a size in bytes like 65536, 64K, 8M or 1G",
			       what, s);
	if (r || !v || __builtin_mul_overflow(v, factor, &v))
		return err_set(err, -ERANGE, ERR_USAGE,
			       "%s: %.80s is out of range (above 0, below 2^64 bytes)", what, s);
	*ret = v;
	return 0;
}

int parse_percent(const char *s, const char *what, double *ret, struct err *err)
{
	uint64_t whole, nano, v;
	const char *p = s;
	int r = read_decimal(&p, &whole, &nano);

	if (r != -EINVAL && *p == '%')
		p++;
	if (r == -EINVAL || *p)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "%s: " QUOTED " is not a percentage like 5 or 0.5%%", what, s);
	if (r || !scale(whole, nano, NANO, 100 * NANO + 1, &v))
		return err_set(err, -ERANGE, ERR_USAGE, "%s: %.80s is out of range (0 to 100)",
			       what, s);
	/* One division of integers that a double holds exactly: rounded right. */
	*ret = (double)v / (double)NANO;
	return 0;
}

static bool has_pid(const pid_t *pids, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++) {
		if (pids[i] == pid)
			return true;
	}
	return false;
}

int parse_pid_list(const char *s, const char *what, pid_t **ret, size_t *n, struct err *err)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t count = 0, cap = 0;
	const char *p = s;

	for (;;) {
		const char *word = p;
		uint64_t v;
		int r = read_digits(&p, &v);

		if (r == -EINVAL || (*p && *p != ','))
			return err_set(err, -EINVAL, ERR_USAGE,
				       "%s: " QUOTED " is not a pid or a list of pids like 42,43",
				       what, s);
		if (r || v < 1 || v > PID_LIMIT)
			return err_set(err, -ERANGE, ERR_USAGE, "%s: %.*s is not a pid (1 to %u)",
				       what, (int)(p - word > 80 ? 80 : p - word), word, PID_LIMIT);
		if (has_pid(pids, count, (pid_t)v))
			return err_set(err, -EINVAL, ERR_USAGE, "%s: pid %d is listed twice", what,
				       (int)v);
		if (count == PID_LIST_MAX)
			return err_set(err, -ERANGE, ERR_USAGE, "%s: more than %d pids", what,
				       PID_LIST_MAX);
		if (array_reserve(pids, cap, count + 1))
			return err_oom(err);
		pids[count++] = (pid_t)v;
		if (!*p)
			break;
		p++; /* the comma; a pid must follow */
	}
	*ret = take_ptr(pids);
	*n = count;
	return 0;
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * Insertions, deletions, replacements and swaps of neighbours that turn @a into @b (optimal string
 * alignment). Both have at most WORD_MAX bytes.
 */
static size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t rows[3][WORD_MAX + 1];
	size_t *before = rows[0], *above = rows[1], *row = rows[2];

	for (size_t j = 0; j <= b_len; j++)
		above[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t *free_row;

		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			size_t d = above[j - 1] + (a[i - 1] != b[j - 1]);

			d = min_size(d, above[j] + 1);
			d = min_size(d, row[j - 1] + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d = min_size(d, before[j - 2] + 1);
			row[j] = d;
		}
		free_row = before;
		before = above;
		above = row;
		row = free_row;
	}
	return above[b_len];
}

const char *parse_nearest(const char *s, const char *const *words, size_t n)
{
	size_t len = strlen(s);
	const char *best = NULL;
	size_t best_distance = SIZE_MAX;

	if (len > WORD_MAX)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t word_len = strlen(words[i]);
		size_t longer = len > word_len ? len : word_len;
		size_t distance;

		if (word_len > WORD_MAX)
			continue;
		distance = edit_distance(s, len, words[i], word_len);
		/* One slip in three letters is a slip; more, or nothing left in common, is not. */
		if (distance > 1 && distance > longer / 3)
			continue;
		if (distance >= min_size(len, word_len) || distance >= best_distance)
			continue;
		best = words[i];
		best_distance = distance;
	}
	return best;
}
