/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What people type as numbers, durations, sizes, lists of pids and times of the clock: refused, or
 * within its limits.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "profile/wall_time.h"

#define MAX_PID	  (1 << 22)
#define TEN_YEARS (3650ull * 86400 * NSEC_PER_SEC)

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* A failure has words, and a kind. */
static void must_tell(int r, const struct err *err)
{
	must((r == -EINVAL || r == -ERANGE) && err->code == r && err->kind == ERR_USAGE &&
	     err->msg[0]);
}

static void check_u64(const char *s)
{
	struct err err = { 0 };
	uint64_t v = 7;
	int r = parse_u64(s, "n", 0, UINT64_MAX, &v, &err);

	if (r) {
		must_tell(r, &err);
		must(v == 7);
		return;
	}
	errno = 0;
	must(strspn(s, "0123456789") == strlen(s) && *s && strtoull(s, NULL, 10) == v && !errno);
	must(!parse_u64(s, "n", v, v, &v, NULL));
	must(!v || parse_u64(s, "n", 0, v - 1, &v, NULL) == -ERANGE);
}

static void check_duration(const char *s)
{
	struct err err = { 0 };
	char again[32];
	uint64_t v = 0, w;
	int r = parse_duration(s, "d", &v, &err);

	if (r) {
		must_tell(r, &err);
		return;
	}
	must(v && v < TEN_YEARS);
	snprintf(again, sizeof(again), "%llu.%09us", (unsigned long long)(v / NSEC_PER_SEC),
		 (unsigned int)(v % NSEC_PER_SEC));
	must(!parse_duration(again, "d", &w, NULL) && w == v);
}

static void check_pids(const char *s)
{
	struct err err = { 0 };
	pid_t *pids = NULL;
	size_t n = 0;
	int r = parse_pid_list(s, "p", &pids, &n, &err);

	if (r) {
		must_tell(r, &err);
		return;
	}
	must(n >= 1 && n <= 4096);
	for (size_t i = 0; i < n; i++) {
		must(pids[i] >= 1 && pids[i] <= MAX_PID);
		for (size_t j = 0; j < i; j++)
			must(pids[j] != pids[i]);
	}
	free(pids);
}

static void check_time(const char *s)
{
	const uint64_t start = 1700000000 * NSEC_PER_SEC;
	struct wall_time t = { 0 };
	struct err err = { 0 };
	int r = wall_time_parse(s, "t", &t, &err);

	if (r) {
		must_tell(r, &err);
		return;
	}
	must(t.given && t.ns < NSEC_PER_SEC && t.hour < 24 && t.minute < 60 && t.second <= 60);
	/* Without a date: within a day, and an hour that summer time may add. */
	must(t.has_date || wall_time_since(&t, start) <= 25 * 3600 * NSEC_PER_SEC);
	wall_time_since(&t, 0);
	wall_time_since(&t, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	struct err err = { 0 };
	double percent = -1;
	uint64_t v = 0;
	int r;

	if (!text)
		return 0;
	check_u64(text);
	check_duration(text);
	check_pids(text);
	check_time(text);
	r = parse_size(text, "s", &v, &err);
	if (r)
		must_tell(r, &err);
	else
		must(v > 0);
	r = parse_percent(text, "%", &percent, &err);
	if (r)
		must_tell(r, &err);
	else
		must(percent >= 0 && percent <= 100);
	free(text);
	return 0;
}
