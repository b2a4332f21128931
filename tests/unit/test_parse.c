/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"

/* What no parser may take for a value. */
static const char *const garbage[] = {
	"",	" ",	" 5",	 "5 ",	  "+5",	  "-1",	   "-",	   "+",	   "5x",    "x5",    "x",
	"0x10", "1e3",	"1_000", "1,000", "1 2",  "\t5",   "5\n",  "--5",  "٣",	    "five",  "nan",
	"inf",	"1..5", ".5",	 "5.",	  ".",	  "1.2.3", "1.-5", "1. 5", "1.+5",  "-0",    "5%%",
	"%",	"5 %",	"K",	 "ms",	  "5 ms", "5kk",   "5KB",  "5KiB", "5\xff", "5\x01",
};

static const char *const too_large[] = {
	"18446744073709551616", /* 2^64 */
	"18446744073709551617",
	"18446744073709551620",
	"99999999999999999999",
	"184467440737095516150",
	"340282366920938463463374607431768211456",
};

/* A refusal says which option and what was typed. */
static void assert_refused(int r, int want, const struct err *err, const char *s)
{
	cr_assert_eq(r, want, "'%s' gives %d, not %d", s, r, want);
	cr_assert_eq(err->code, want, "'%s'", s);
	cr_assert_eq(err->kind, ERR_USAGE, "'%s'", s);
	cr_assert(!strncmp(err->msg, "--opt: ", 7), "'%s': %s", s, err->msg);
	for (const char *p = s; *p; p++) {
		if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
			return; /* is shown in another form */
	}
	cr_assert(strlen(s) > 80 || strstr(err->msg, s), "'%s' is not in: %s", s, err->msg);
}

Test(parse, u64_accepts)
{
	static const struct {
		const char *s;
		uint64_t want;
	} good[] = {
		{ "0", 0 },
		{ "1", 1 },
		{ "99", 99 },
		{ "007", 7 },
		{ "4294967296", 4294967296 },
		{ "18446744073709551615", UINT64_MAX },
		{ "00000000000000000000000000000018446744073709551615", UINT64_MAX },
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct err err = { 0 };
		uint64_t v = 1234;

		cr_expect_eq(parse_u64(good[i].s, "--opt", 0, UINT64_MAX, &v, &err), 0, "%s: %s",
			     good[i].s, err.msg);
		cr_expect_eq(v, good[i].want, "%s", good[i].s);
		cr_expect_eq(err.code, 0, "no error is set on success");
	}
}

Test(parse, u64_refuses_garbage)
{
	static const char *const more[] = { "1.5", "5%", "5K", "5s", "5ms", "1,2" };
	struct err err;
	uint64_t v = 1234;

	for (size_t i = 0; i < ARRAY_SIZE(garbage); i++)
		assert_refused(parse_u64(garbage[i], "--opt", 0, UINT64_MAX, &v, &err), -EINVAL,
			       &err, garbage[i]);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		assert_refused(parse_u64(more[i], "--opt", 0, UINT64_MAX, &v, &err), -EINVAL, &err,
			       more[i]);
	for (size_t i = 0; i < ARRAY_SIZE(too_large); i++)
		assert_refused(parse_u64(too_large[i], "--opt", 0, UINT64_MAX, &v, &err), -ERANGE,
			       &err, too_large[i]);
	assert_refused(parse_u64("99999999999999999999x", "--opt", 0, UINT64_MAX, &v, &err),
		       -EINVAL, &err, "99999999999999999999x");
	cr_expect_eq(v, 1234, "untouched on failure");
}

Test(parse, u64_range_is_inclusive)
{
	struct err err = { 0 };
	uint64_t v = 1234;

	assert_refused(parse_u64("9", "--opt", 10, 20, &v, &err), -ERANGE, &err, "9");
	cr_expect_str_eq(err.msg, "--opt: 9 is out of range (10 to 20)");
	assert_refused(parse_u64("21", "--opt", 10, 20, &v, &err), -ERANGE, &err, "21");
	cr_expect_eq(v, 1234, "untouched on failure");
	cr_expect_eq(parse_u64("10", "--opt", 10, 20, &v, &err), 0);
	cr_expect_eq(v, 10);
	cr_expect_eq(parse_u64("20", "--opt", 10, 20, &v, &err), 0);
	cr_expect_eq(v, 20);
	cr_expect_eq(parse_u64("0", "--opt", 0, 0, &v, &err), 0);
	cr_expect_eq(v, 0);
}

Test(parse, err_may_be_null)
{
	uint64_t v = 1;
	double d = 1;
	pid_t *pids = NULL;
	size_t n = 0;

	cr_expect_eq(parse_u64("x", "--opt", 0, 9, &v, NULL), -EINVAL);
	cr_expect_eq(parse_duration("x", "--opt", &v, NULL), -EINVAL);
	cr_expect_eq(parse_size("x", "--opt", &v, NULL), -EINVAL);
	cr_expect_eq(parse_percent("x", "--opt", &d, NULL), -EINVAL);
	cr_expect_eq(parse_pid_list("x", "--opt", &pids, &n, NULL), -EINVAL);
}

Test(parse, messages_quote_little_and_stay_one_line)
{
	char text[5000];
	struct err err;
	uint64_t v;

	memset(text, 'y', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	cr_assert_eq(parse_u64(text, "--opt", 0, 9, &v, &err), -EINVAL);
	cr_expect_leq(strlen(err.msg), 120, "%s", err.msg);
	cr_assert_eq(parse_u64("5\n\x1b[2J", "--opt", 0, 9, &v, &err), -EINVAL);
	cr_expect_str_eq(err.msg, "--opt: '5??[2J' is not a whole number");
	memset(text, '9', sizeof(text) - 1);
	cr_assert_eq(parse_u64(text, "--opt", 0, 9, &v, &err), -ERANGE);
	cr_expect_leq(strlen(err.msg), 130, "%s", err.msg);
}

Test(parse, duration_accepts)
{
	static const struct {
		const char *s;
		uint64_t want;
	} good[] = {
		{ "30", 30 * NSEC_PER_SEC },
		{ "30s", 30 * NSEC_PER_SEC },
		{ "1.5", 1500 * NSEC_PER_MSEC },
		{ "0.000000001", 1 },
		{ "0.1", 100 * NSEC_PER_MSEC },
		{ "1.000000001s", NSEC_PER_SEC + 1 },
		{ "500ms", 500 * NSEC_PER_MSEC },
		{ "0.5ms", 500 * NSEC_PER_USEC },
		{ "200us", 200 * NSEC_PER_USEC },
		{ "0.001us", 1 },
		{ "1.9999us", 1999 },
		{ "5m", 300 * NSEC_PER_SEC },
		{ "2h", 7200 * NSEC_PER_SEC },
		{ "0.000000001h", 3600 },
		{ "1.999999999h", 7199999996400 },
		{ "007", 7 * NSEC_PER_SEC },
		{ "315359999.999999999", 315360000 * NSEC_PER_SEC - 1 },
		{ "87599h", 87599 * 3600 * NSEC_PER_SEC },
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct err err = { 0 };
		uint64_t v = 1234;

		cr_expect_eq(parse_duration(good[i].s, "--opt", &v, &err), 0, "%s: %s", good[i].s,
			     err.msg);
		cr_expect_eq(v, good[i].want, "%s is %llu ns", good[i].s, (unsigned long long)v);
	}
}

Test(parse, duration_refuses)
{
	static const char *const more[] = {
		"5d",		"5S",		"5sec",
		"5 s",		"5ns",		"1m30s",
		"0.0000000001", "1.0000000000", "1.99999999999999999999999",
		"5%",		"5K",		"1,5"
	};
	static const char *const out[] = { "0",
					   "0s",
					   "0.0",
					   "0ms",
					   "0.0001us",
					   "315360000",
					   "87600h",
					   "5256000m",
					   "315360000000ms",
					   "18446744073709551615",
					   "18446744073709551615h",
					   "18446744073709551616.5" };
	struct err err;
	uint64_t v = 1234;

	for (size_t i = 0; i < ARRAY_SIZE(garbage); i++)
		assert_refused(parse_duration(garbage[i], "--opt", &v, &err), -EINVAL, &err,
			       garbage[i]);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		assert_refused(parse_duration(more[i], "--opt", &v, &err), -EINVAL, &err, more[i]);
	for (size_t i = 0; i < ARRAY_SIZE(out); i++)
		assert_refused(parse_duration(out[i], "--opt", &v, &err), -ERANGE, &err, out[i]);
	for (size_t i = 0; i < ARRAY_SIZE(too_large); i++)
		assert_refused(parse_duration(too_large[i], "--opt", &v, &err), -ERANGE, &err,
			       too_large[i]);
	cr_expect_eq(v, 1234, "untouched on failure");
	/* A time since the start of something may be its start. */
	cr_expect_eq(parse_time_since("0s", "--opt", &v, &err), 0);
	cr_expect_eq(v, 0);
	cr_expect_eq(parse_time_since("12s", "--opt", &v, &err), 0);
	cr_expect_eq(v, 12 * NSEC_PER_SEC);
	cr_expect_eq(parse_time_since("87600h", "--opt", &v, &err), -ERANGE);
	cr_expect_str_eq(err.msg, "--opt: 87600h is out of range (below 10 years)");
}

Test(parse, size_accepts)
{
	static const struct {
		const char *s;
		uint64_t want;
	} good[] = {
		{ "1", 1 },
		{ "65536", 65536 },
		{ "64K", 65536 },
		{ "8M", 8 << 20 },
		{ "1G", 1 << 30 },
		{ "18446744073709551615", UINT64_MAX },
		{ "17179869183G", 17179869183 << 30 },
		{ "18014398509481983K", 18014398509481983 << 10 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct err err = { 0 };
		uint64_t v = 1234;

		cr_expect_eq(parse_size(good[i].s, "--opt", &v, &err), 0, "%s: %s", good[i].s,
			     err.msg);
		cr_expect_eq(v, good[i].want, "%s", good[i].s);
	}
}

Test(parse, size_refuses)
{
	static const char *const more[] = { "1.5K", "5T", "5Kx", "5K5", "5KK", "5%", "5s", "1,5" };
	static const char *const out[] = {
		"0", "0K", "0G", "17179869184G", "18014398509481984K", "18446744073709551615M"
	};
	struct err err;
	uint64_t v = 1234;

	for (size_t i = 0; i < ARRAY_SIZE(garbage); i++)
		assert_refused(parse_size(garbage[i], "--opt", &v, &err), -EINVAL, &err,
			       garbage[i]);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		assert_refused(parse_size(more[i], "--opt", &v, &err), -EINVAL, &err, more[i]);
	for (size_t i = 0; i < ARRAY_SIZE(out); i++)
		assert_refused(parse_size(out[i], "--opt", &v, &err), -ERANGE, &err, out[i]);
	for (size_t i = 0; i < ARRAY_SIZE(too_large); i++)
		assert_refused(parse_size(too_large[i], "--opt", &v, &err), -ERANGE, &err,
			       too_large[i]);
	cr_expect_eq(v, 1234, "untouched on failure");
}

Test(parse, percent_accepts)
{
	static const struct {
		const char *s;
		double want;
	} good[] = {
		{ "0", 0.0 },
		{ "0%", 0.0 },
		{ "0.5", 0.5 },
		{ "0.5%", 0.5 },
		{ "33.3", 33.3 },
		{ "99.9%", 99.9 },
		{ "100", 100.0 },
		{ "100.000%", 100.0 },
		{ "0.000000001", 1e-9 },
		{ "12.345678901", 12.345678901 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct err err = { 0 };
		double v = 1234;

		cr_expect_eq(parse_percent(good[i].s, "--opt", &v, &err), 0, "%s: %s", good[i].s,
			     err.msg);
		cr_expect(v == good[i].want, "%s is %.17g", good[i].s, v);
	}
}

Test(parse, percent_refuses)
{
	static const char *const more[] = { "5K", "5s", "1.0000000000", "%5", "1,5", "5%x" };
	static const char *const out[] = {
		"101",	"100.000000001",	"100.1%",
		"1000", "18446744073709551615", "18446744073709551615%"
	};
	struct err err;
	double v = 1234;

	for (size_t i = 0; i < ARRAY_SIZE(garbage); i++)
		assert_refused(parse_percent(garbage[i], "--opt", &v, &err), -EINVAL, &err,
			       garbage[i]);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		assert_refused(parse_percent(more[i], "--opt", &v, &err), -EINVAL, &err, more[i]);
	for (size_t i = 0; i < ARRAY_SIZE(out); i++)
		assert_refused(parse_percent(out[i], "--opt", &v, &err), -ERANGE, &err, out[i]);
	for (size_t i = 0; i < ARRAY_SIZE(too_large); i++)
		assert_refused(parse_percent(too_large[i], "--opt", &v, &err), -ERANGE, &err,
			       too_large[i]);
	cr_expect(v == 1234, "untouched on failure");
}

Test(parse, pid_list_accepts)
{
	static const struct {
		const char *s;
		pid_t want[4];
		size_t n;
	} good[] = {
		{ "42", { 42 }, 1 },
		{ "1", { 1 }, 1 },
		{ "4194304", { 4194304 }, 1 },
		{ "42,43,99", { 42, 43, 99 }, 3 },
		{ "99,1,4194304,2", { 99, 1, 4194304, 2 }, 4 },
		{ "007,8", { 7, 8 }, 2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct err err = { 0 };
		pid_t *pids = NULL;
		size_t n = 0;

		cr_assert_eq(parse_pid_list(good[i].s, "--opt", &pids, &n, &err), 0, "%s: %s",
			     good[i].s, err.msg);
		cr_assert_eq(n, good[i].n, "%s", good[i].s);
		for (size_t k = 0; k < n; k++)
			cr_expect_eq(pids[k], good[i].want[k], "%s, pid %zu", good[i].s, k);
		free(pids);
	}
}

Test(parse, pid_list_refuses)
{
	static const char *const more[] = { ",",    "1,,2", ",1",    "1,",   "1,2,", "1, 2",
					    "1 ,2", "1;2",  "1-3",   "1,-2", "1,+2", "1,x",
					    "all",  "1.5",  "1,2x",  "5K",   "5%",   "0,x",
					    "1\n2", "1,2 ", "1,2\n", "self", ",,",   "1,2,,3" };
	struct err err;
	pid_t *pids = (pid_t *)&err;
	size_t n = 77;

	for (size_t i = 0; i < ARRAY_SIZE(garbage); i++) {
		if (!strcmp(garbage[i], "1,000"))
			continue; /* 000 is no pid: ERANGE, below */
		assert_refused(parse_pid_list(garbage[i], "--opt", &pids, &n, &err), -EINVAL, &err,
			       garbage[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		int r = parse_pid_list(more[i], "--opt", &pids, &n, &err);

		cr_expect(r == -EINVAL || (r == -ERANGE && more[i][0] == '0'), "'%s' gives %d",
			  more[i], r);
		cr_expect_eq(err.kind, ERR_USAGE);
	}
	cr_expect_eq(pids, (pid_t *)&err, "untouched on failure");
	cr_expect_eq(n, 77, "untouched on failure");
}

Test(parse, pid_list_range)
{
	static const struct {
		const char *s, *shown;
	} out[] = {
		{ "0", "--opt: 0 is not a pid" },
		{ "0,1", "--opt: 0 is not a pid" },
		{ "1,000", "--opt: 000 is not a pid" },
		{ "1,4194305,2", "--opt: 4194305 is not a pid" },
		{ "4194305", "--opt: 4194305 is not a pid" },
		{ "4294967338", "--opt: 4294967338 is not a pid" }, /* 2^32 + 42 */
		{ "99999999999999999999", "--opt: 99999999999999999999 is not a pid" },
		{ "1,18446744073709551617", "--opt: 18446744073709551617 is not a pid" },
	};
	pid_t *pids = NULL;
	size_t n = 77;

	for (size_t i = 0; i < ARRAY_SIZE(out); i++) {
		struct err err = { 0 };

		cr_expect_eq(parse_pid_list(out[i].s, "--opt", &pids, &n, &err), -ERANGE, "%s",
			     out[i].s);
		cr_expect(!strncmp(err.msg, out[i].shown, strlen(out[i].shown)), "%s: %s", out[i].s,
			  err.msg);
	}
	cr_expect_null(pids);
	cr_expect_eq(n, 77, "untouched on failure");
}

Test(parse, pid_list_refuses_duplicates)
{
	static const char *const twice[] = { "1,1", "1,2,1", "5,6,7,7", "7,007" };
	pid_t *pids = NULL;
	size_t n = 77;

	for (size_t i = 0; i < ARRAY_SIZE(twice); i++) {
		struct err err = { 0 };

		cr_expect_eq(parse_pid_list(twice[i], "--opt", &pids, &n, &err), -EINVAL, "%s",
			     twice[i]);
		cr_expect(strstr(err.msg, "listed twice"), "%s: %s", twice[i], err.msg);
		cr_expect_eq(err.kind, ERR_USAGE);
	}
	cr_expect_null(pids);
}

Test(parse, pid_list_of_4096_but_no_more)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;
	struct err err = { 0 };
	pid_t *pids = NULL;
	size_t n = 0;

	for (int pid = 1; pid <= 4096; pid++)
		buf_addf(&buf, "%s%d", pid > 1 ? "," : "", pid);
	cr_assert_eq(parse_pid_list(buf_str(&buf), "--opt", &pids, &n, &err), 0, "%s", err.msg);
	cr_assert_eq(n, 4096);
	for (size_t i = 0; i < n; i++)
		cr_assert_eq(pids[i], (pid_t)i + 1);
	free(pids);
	pids = NULL;

	buf_addstr(&buf, ",4097");
	cr_expect_eq(parse_pid_list(buf_str(&buf), "--opt", &pids, &n, &err), -ERANGE);
	cr_expect_str_eq(err.msg, "--opt: more than 4096 pids");
	cr_expect_null(pids);
}

Test(parse, nearest)
{
	static const char *const words[] = { "record", "report", "flame",    "top",
					     "diff",   "export", "annotate", "ps" };
	static const struct {
		const char *s, *want;
	} tries[] = {
		{ "record", "record" },
		{ "recrod", "record" },
		{ "recor", "record" },
		{ "records", "record" },
		{ "reprot", "report" },
		{ "rport", "report" },
		{ "flam", "flame" },
		{ "flmae", "flame" },
		{ "tpo", "top" },
		{ "to", "top" },
		{ "dif", "diff" },
		{ "epxort", "export" },
		{ "anotate", "annotate" },
		{ "annottae", "annotate" },
		{ "Record", "record" },
		{ "", NULL },
		{ "x", NULL },
		{ "p", NULL },
		{ "xyz", NULL },
		{ "help", NULL },
		{ "recordings-of-mine", NULL },
		{ "zzzzzz", NULL },
		{ "xy", NULL },
	};
	char text[200];

	for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
		const char *got = parse_nearest(tries[i].s, words, ARRAY_SIZE(words));

		if (!tries[i].want)
			cr_expect_null(got, "'%s' is not '%s'", tries[i].s, got ? got : "");
		else
			cr_expect(got && !strcmp(got, tries[i].want), "'%s' is '%s', not '%s'",
				  tries[i].s, got ? got : "(none)", tries[i].want);
	}
	cr_expect_null(parse_nearest("top", words, 0), "no words, no answer");
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	cr_expect_null(parse_nearest(text, words, ARRAY_SIZE(words)), "a long word is refused");
}

Test(parse, nearest_at_the_limit_of_length)
{
	char word[65], typed[65];
	const char *words[] = { word };

	memset(word, 'a', 64);
	memcpy(typed, word, 64);
	word[63] = typed[63] = '\0';
	typed[30] = 'b';
	cr_expect_eq(parse_nearest(typed, words, 1), word, "63 bytes are considered");
	word[63] = 'a';
	word[64] = '\0';
	cr_expect_null(parse_nearest(typed, words, 1), "64 bytes are not");
}

Test(parse, nearest_prefers_the_smaller_distance_then_the_first)
{
	static const char *const words[] = { "stats", "state", "states" };

	cr_expect_str_eq(parse_nearest("states", words, 3), "states");
	cr_expect_str_eq(parse_nearest("statx", words, 3), "stats", "the first of equals");
	cr_expect_str_eq(parse_nearest("state", words, 3), "state");
}
