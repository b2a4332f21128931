/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "serve/guard.h"
#include "serve/query.h"

/* ---- the token ---- */

Test(serve, tokens_differ_and_are_long_enough)
{
	struct serve_token a, b;

	cr_assert_eq(serve_token_make(&a), 0);
	cr_assert_eq(serve_token_make(&b), 0);
	cr_expect_str_neq(a.s, b.s);
	cr_expect_eq(strlen(a.s), SERVE_TOKEN_LEN);
	cr_expect_eq(strspn(a.s, "0123456789abcdef"), SERVE_TOKEN_LEN);
	cr_expect_geq(SERVE_TOKEN_BITS, 128);
}

static const char *checked(const struct serve_token *t, const char *before, const char *after)
{
	static char path[4 * SERVE_TOKEN_LEN];

	snprintf(path, sizeof(path), "%s%s%s", before, t->s, after);
	return serve_token_check(t, path);
}

Test(serve, only_the_whole_token_at_the_start_opens)
{
	struct serve_token t, other;
	char path[2 * SERVE_TOKEN_LEN];

	cr_assert_eq(serve_token_make(&t), 0);
	cr_expect_str_eq(checked(&t, "/", "/"), "");
	cr_expect_str_eq(checked(&t, "/", "/flame.svg"), "flame.svg");
	cr_expect_str_eq(checked(&t, "/", "//"), "/");
	cr_expect_null(checked(&t, "/", ""));
	cr_expect_null(checked(&t, "", "/"));
	cr_expect_null(checked(&t, "//", "/"));
	cr_expect_null(checked(&t, "x", "/"));
	cr_expect_null(checked(&t, "/", "x/"));
	cr_expect_null(checked(&t, "/../", "/"));
	for (size_t i = 0; i < SERVE_TOKEN_LEN; i++) {
		other = t;
		other.s[i] ^= 1;
		snprintf(path, sizeof(path), "/%s/", other.s);
		cr_expect_null(serve_token_check(&t, path), "digit %zu", i);
		snprintf(path, sizeof(path), "/%.*s/", (int)i, t.s);
		cr_expect_null(serve_token_check(&t, path), "%zu digits", i);
	}
}

/* ---- the host ---- */

Test(serve, names_of_the_loopback_with_any_port_are_ours)
{
	static const char *const ours[] = { "localhost",      "LocalHost:80", "127.0.0.1",
					    "127.0.0.1:8080", "127.1.2.3:1",  "[::1]",
					    "[::1]:65535" };

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		cr_expect(serve_host_is_ours(ours[i], false, "box"), "%s", ours[i]);
}

Test(serve, other_names_are_not)
{
	static const char *const others[] = {
		"",
		":80",
		"evil.example",
		"evil.example:80",
		"localhost.evil.example",
		"127.0.0.1.evil.example",
		"localhost:",
		"localhost:80x",
		"localhost:123456",
		"localhost:80:80",
		"localhost ",
		"user@localhost",
		"[::1",
		"[::1]x",
		"[::1].evil",
		"[]",
		"::1",
		"[127.0.0.1]",
		"0x7f.0.0.1",
		"127.1",
	};

	cr_expect(!serve_host_is_ours(NULL, true, "box"));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		cr_expect(!serve_host_is_ours(others[i], false, "box"), "%s", others[i]);
		cr_expect(!serve_host_is_ours(others[i], true, "box"), "anywhere: %s", others[i]);
	}
}

Test(serve, anywhere_addresses_and_the_own_name_are_ours_too)
{
	static const char *const more[] = { "192.0.2.7:80", "[2001:db8::1]:80", "box", "BOX:80" };

	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		cr_expect(serve_host_is_ours(more[i], true, "box"), "%s", more[i]);
		cr_expect(!serve_host_is_ours(more[i], false, "box"), "loopback: %s", more[i]);
	}
	cr_expect(!serve_host_is_ours("box", true, NULL));
}

/* ---- the address ---- */

static void expect_address(const char *s, const char *text, bool loopback, bool any)
{
	char got[SERVE_ADDRESS_TEXT];
	struct serve_address a;
	struct err err = { 0 };

	cr_assert_eq(serve_address_parse(s, &a, &err), 0, "%s: %s", s, err.msg);
	serve_address_text(&a, got);
	cr_expect_str_eq(got, text);
	cr_expect_eq(serve_address_is_loopback(&a), loopback, "%s", s);
	cr_expect_eq(serve_address_is_any(&a), any, "%s", s);
}

Test(serve, addresses_to_listen_on)
{
	static const char *const wrong[] = {
		"",	   ":80",	   "localhost:80",  "127.0.0.1:",    "127.0.0.1:65536",
		"1.2.3:0", "127.0.0.1:-1", "::1:80",	    "[::1:80",	     "[::1]80",
		"[]:80",   "8080x",	   "127.0.0.1: 80", "127.0.0.1:+80", "[127.0.0.1]:80",
	};

	expect_address("8080", "127.0.0.1:8080", true, false);
	expect_address("127.0.0.1:0", "127.0.0.1:0", true, false);
	expect_address("127.9.9.9:1", "127.9.9.9:1", true, false);
	expect_address("0.0.0.0:80", "0.0.0.0:80", false, true);
	expect_address("192.0.2.7:65535", "192.0.2.7:65535", false, false);
	expect_address("[::1]:80", "[::1]:80", true, false);
	expect_address("[::]:80", "[::]:80", false, true);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct serve_address a;
		struct err err = { 0 };

		cr_expect_lt(serve_address_parse(wrong[i], &a, &err), 0, "%s", wrong[i]);
		cr_expect_eq(err.kind, ERR_USAGE, "%s", wrong[i]);
	}
}

/* ---- queries ---- */

#define MAX_GIVEN (SERVE_MAX_PARAMETERS + 2)

/* "flame.svg?from=1s&app=1", without %. Returns what serve_query_parse() does. */
static int parse(const char *s, struct serve_query *ret, struct err *err)
{
	struct serve_parameter given[MAX_GIVEN];
	_cleanup_free_ char *copy = strdup(s);
	char *rest = copy, *path = strsep(&rest, "?"), *word, *name;
	size_t n = 0;

	while ((word = strsep(&rest, "&")) && n < MAX_GIVEN) {
		name = strsep(&word, "=");
		given[n++] = (struct serve_parameter) { name, word };
	}
	return serve_query_parse(path, given, n, ret, err);
}

/* The command line for the seconds from @from on and before @to, its words split by blanks. */
static void expect_command(const char *s, uint64_t from, uint64_t to, const char *command)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct serve_query q;
	struct err err = { 0 };

	cr_assert_eq(parse(s, &q, &err), 0, "%s: %s", s, err.msg);
	serve_query_command(&q, "FILE", from, to, &out);
	for (size_t i = 0; i + 1 < out.len; i++)
		if (!out.data[i])
			out.data[i] = ' ';
	cr_expect_str_eq(buf_str(&out), command);
	serve_query_deinit(&q);
}

Test(serve, a_view_is_a_command_with_options)
{
	expect_command("flame.svg", 0, 9, "flame FILE");
	expect_command("report.json?by=process&limit=5", 0, 9,
		       "report --json --by=process --limit=5 FILE");
	expect_command("requests.json?pid=1,2", 0, 9, "report --requests --json --pid=1,2 FILE");
	expect_command("firefox.json?app=1", 0, 9, "export -f firefox --app FILE");
	expect_command("states.json?idle=Poller#run$", 0, 9,
		       "report --states --json --idle=Poller#run$ FILE");
	expect_command("timeline.html?thread=--output=x", 0, 9,
		       "timeline --thread=--output=x FILE");
}

Test(serve, times_are_those_of_the_recording)
{
	expect_command("flame.svg?from=0s&to=9s", 0, 9, "flame FILE");
	expect_command("flame.svg?from=2s&to=9s", 0, 9, "flame --from=2.000000000 FILE");
	expect_command("flame.svg?from=2s&to=3.5", 0, 9,
		       "flame --from=2.000000000 --to=3.500000000 FILE");
	/* The recording begins at second 2. */
	expect_command("flame.svg?from=2s&to=5s", 2, 5, "flame FILE");
	expect_command("flame.svg?from=2500ms&to=5s", 2, 5, "flame --from=0.500000000 FILE");
	expect_command("flame.svg?from=6s&to=8s&base-from=2s&base-to=4s", 2, 8,
		       "flame --from=4.000000000 --base-to=2.000000000 FILE");
	expect_command("flame.svg?from=2s&to=4s&base-from=6s&base-to=8s", 2, 8,
		       "flame --to=2.000000000 --base-from=4.000000000 --base-to=6.000000000 FILE");
}

Test(serve, the_seconds_are_those_of_both_ranges)
{
	struct serve_query q;
	uint64_t from, to;

	cr_assert_eq(parse("flame.svg?from=2500ms&to=4.1", &q, NULL), 0);
	serve_query_seconds(&q, &from, &to);
	cr_expect_eq(from, 2);
	cr_expect_eq(to, 5);
	serve_query_deinit(&q);
	cr_assert_eq(parse("flame.svg?from=5s&to=6s&base-from=1s&base-to=2s", &q, NULL), 0);
	serve_query_seconds(&q, &from, &to);
	cr_expect_eq(from, 1);
	cr_expect_eq(to, 6);
	serve_query_deinit(&q);
	cr_assert_eq(parse("flame.svg", &q, NULL), 0);
	serve_query_seconds(&q, &from, &to);
	cr_expect_eq(from, 0);
	cr_expect_gt(to, 10ull * 365 * 86400);
	serve_query_deinit(&q);
}

Test(serve, what_is_not_listed_is_refused)
{
	static const char *const wrong[] = {
		"flame.svg?output=x",
		"flame.svg?-o=x",
		"flame.svg?o=x",
		"flame.svg?input=/etc/passwd",
		"flame.svg?diff=/etc/passwd",
		"flame.svg?title=x",
		"flame.svg?",
		"flame.svg?by=process", /* an option, but of another view */
		"timeline.html?base-from=1s&base-to=2s",
		"state.json?from=1s",
		"rbpf.data?pid=1",
		"?from=1s",
		"flame.svg?from=1s&from=2s",
		"flame.svg?from",
		"flame.svg?from=",
		"flame.svg?from=-1s",
		"flame.svg?from=12:00",
		"flame.svg?from=3s&to=3s",
		"flame.svg?base-from=3s&base-to=2s",
		"flame.svg?base-from=3s",
		"flame.svg?to=20y",
		"flame.svg?app=yes",
		"flame.svg?app=0",
		"flame.svg?split=Thread",
		"flame.svg?split=a b",
		"flame.svg?stack=../x",
		"flame.svg?pid=1;2",
		"flame.svg?thread=",
		"flame.svg?thread=a\nb",
		"flame.svg?thread=a\x1b[2J",
		"flame.svg?thread=a\xff",
		"flame.svg?thread=a\u202e",
		"report.json?limit=1e9",
		"report.json?limit=-1",
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct serve_query q = { .from_ns = 77 };
		struct err err = { 0 };

		cr_expect_lt(parse(wrong[i], &q, &err), 0, "%s", wrong[i]);
		cr_expect(*err.msg, "%s", wrong[i]);
		cr_expect_eq(q.from_ns, 77, "%s leaves its result alone", wrong[i]);
	}
}

/* What the client made up is not repeated to it. */
Test(serve, a_parameter_of_another_view_is_named)
{
	struct serve_query q;
	struct err err = { 0 };

	cr_assert_lt(parse("report.json?base-from=1s", &q, &err), 0);
	cr_expect_str_eq(err.msg, "parameter 'base-from' is not one of this view");
	cr_assert_lt(parse("states.json?by=thread", &q, &err), 0);
	cr_expect_str_eq(err.msg, "parameter 'by' is not one of this view");
	cr_assert_lt(parse("report.json?<b>=1", &q, &err), 0);
	cr_expect_str_eq(err.msg, "parameter '?' is not known");
}

Test(serve, there_is_no_other_view)
{
	static const char *const none[] = { "/",      "flame",	       "flame.svg/",  "FLAME.SVG",
					    "..",     "../state.json", "/etc/passwd", "report",
					    "record", "flame.svg\n" };
	struct serve_query q;

	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		cr_expect_eq(parse(none[i], &q, NULL), -ENOENT, "%s", none[i]);
}

Test(serve, values_and_parameters_have_limits)
{
	struct serve_parameter given[MAX_GIVEN];
	char value[SERVE_MAX_VALUE + 2];
	struct serve_query q;
	struct err err = { 0 };

	memset(value, 'x', sizeof(value));
	value[SERVE_MAX_VALUE] = '\0';
	given[0] = (struct serve_parameter) { "thread", value };
	cr_assert_eq(serve_query_parse("flame.svg", given, 1, &q, &err), 0);
	serve_query_deinit(&q);
	value[SERVE_MAX_VALUE] = 'x';
	value[SERVE_MAX_VALUE + 1] = '\0';
	cr_expect_eq(serve_query_parse("flame.svg", given, 1, &q, &err), -EINVAL);
	for (size_t i = 0; i < MAX_GIVEN; i++)
		given[i] = (struct serve_parameter) { "thread", "x" };
	cr_expect_eq(serve_query_parse("flame.svg", given, SERVE_MAX_PARAMETERS + 1, &q, &err),
		     -EINVAL);
	cr_expect_str_eq(err.msg, "too many parameters");
}
