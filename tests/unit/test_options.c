/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "cmd/options.h"

struct inner {
	struct pid_list pids;
	const char *text;
};

struct opts {
	bool flag;
	bool other;
	bool follow;
	uint64_t number;
	uint64_t duration;
	uint64_t size;
	double percent;
	unsigned int choice;
	pid_t pid;
	struct inner inner;
};

static const char *choice(size_t i)
{
	static const char *const words[] = { "first", "second", "third" };

	return i < ARRAY_SIZE(words) ? words[i] : NULL;
}

#define OPT(member) .offset = offsetof(struct opts, member)

static const struct option_spec specs[] = {
	{ .letter = 'f', .name = "flag", .type = OPTION_FLAG, OPT(flag) },
	{ .letter = 'g', .name = "other", .type = OPTION_FLAG, OPT(other) },
	{ .name = "follow", .type = OPTION_SWITCH, OPT(follow), .initial = "yes" },
	{ .letter = 'n',
	  .name = "number",
	  .type = OPTION_U64,
	  OPT(number),
	  .arg = "N",
	  .initial = "7",
	  .min = 1,
	  .max = 100 },
	{ .letter = 'd', .name = "duration", .type = OPTION_DURATION, OPT(duration), .arg = "T" },
	{ .name = "size",
	  .type = OPTION_SIZE,
	  OPT(size),
	  .arg = "SIZE",
	  .initial = "8M",
	  .min = 64 << 10,
	  .max = 1 << 30 },
	{ .name = "percent", .type = OPTION_PERCENT, OPT(percent), .arg = "P" },
	{ .letter = 'c',
	  .name = "choice",
	  .type = OPTION_CHOICE,
	  OPT(choice),
	  .arg = "WORD",
	  .choice = choice },
	{ .letter = 'P', .name = "one-pid", .type = OPTION_PID, OPT(pid), .arg = "PID" },
};

#undef OPT
#define OPT(member) .offset = offsetof(struct inner, member)

static const struct option_spec inner_specs[] = {
	{ .letter = 'p', .name = "pid", .type = OPTION_PIDS, OPT(pids), .arg = "LIST" },
	{ .letter = 'o', .name = "text", .type = OPTION_STRING, OPT(text), .arg = "TEXT" },
};

/* A second struct, whose option of the same name is hidden by the first. */
struct global {
	bool verbose;
	uint64_t number;
};

#undef OPT
#define OPT(member) .offset = offsetof(struct global, member)

static const struct option_spec global_specs[] = {
	{ .letter = 'v', .name = "verbose", .type = OPTION_FLAG, OPT(verbose) },
	{ .name = "number", .type = OPTION_U64, OPT(number), .arg = "N", .max = 100 },
};

static const struct option_group group = { .options = specs, .n = ARRAY_SIZE(specs) };
static const struct option_group inner_group = {
	.options = inner_specs,
	.n = ARRAY_SIZE(inner_specs),
	.offset = offsetof(struct opts, inner),
};
static const struct option_group global_group = {
	.options = global_specs,
	.n = ARRAY_SIZE(global_specs),
};

#define MAX_WORDS 16

/* One parse of a command line: what it was given and what came of it. */
struct parse {
	struct opts opts;
	struct global global;
	struct option_rest rest;
	struct err err;
	char *argv[MAX_WORDS + 2];
	int argc;
};

static void targets_of(struct parse *p, struct option_target targets[2])
{
	static const struct option_group *const own[] = { &group, &inner_group };
	static const struct option_group *const global[] = { &global_group };

	targets[0] = (struct option_target) { own, ARRAY_SIZE(own), &p->opts };
	targets[1] = (struct option_target) { global, ARRAY_SIZE(global), &p->global };
}

static int parse_words(struct parse *p, bool stop_at_word, const char *const *words)
{
	struct option_target targets[2];

	memset(p, 0, sizeof(*p));
	p->opts.choice = OPTION_UNSET;
	p->argv[p->argc++] = (char *)"command";
	for (; *words; words++) {
		cr_assert_lt(p->argc, MAX_WORDS);
		p->argv[p->argc++] = (char *)*words;
	}
	targets_of(p, targets);
	cr_assert_eq(options_init(targets, 2, &p->err), 0, "%s", p->err.msg);
	return options_parse(targets, 2, "command", stop_at_word, p->argc, p->argv, &p->rest,
			     &p->err);
}

static void parse_deinit(struct parse *p)
{
	struct option_target targets[2];

	targets_of(p, targets);
	options_release(targets, 2);
	cr_expect_null(p->opts.inner.pids.pids);
}

#define PARSE(p, ...) parse_words(p, false, (const char *const[]) { __VA_ARGS__, NULL })

/* The words are accepted. */
#define ACCEPT(p, ...)                                                                             \
	do {                                                                                       \
		int accept_r = PARSE(p, __VA_ARGS__);                                              \
		cr_assert_eq(accept_r, 0, "%s", (p)->err.msg);                                     \
	} while (0)

/* The words are refused with this message. */
#define REFUSE(message, ...)                                                                       \
	do {                                                                                       \
		struct parse refuse;                                                               \
		int refuse_r = PARSE(&refuse, __VA_ARGS__);                                        \
		cr_assert(refuse_r == -EINVAL || refuse_r == -ERANGE, "accepted: %s", message);    \
		cr_expect_eq(refuse.err.code, refuse_r);                                           \
		cr_expect_eq(refuse.err.kind, ERR_USAGE);                                          \
		cr_expect_str_eq(refuse.err.msg, message);                                         \
		parse_deinit(&refuse);                                                             \
	} while (0)

Test(options, initial_values)
{
	struct parse p;

	cr_assert_eq(parse_words(&p, false, (const char *const[]) { NULL }), 0);
	cr_expect_eq(p.opts.flag, false);
	cr_expect_eq(p.opts.follow, true);
	cr_expect_eq(p.opts.number, 7);
	cr_expect_eq(p.opts.size, 8 << 20);
	cr_expect_eq(p.opts.choice, OPTION_UNSET);
	cr_expect_eq(p.opts.inner.pids.n, 0);
	cr_expect_eq(p.rest.n, 0);
	cr_expect_null(p.rest.argv[0]);
	parse_deinit(&p);
}

Test(options, every_type_in_every_form)
{
	struct parse p;

	ACCEPT(&p, "--flag", "--no-follow", "--number=42", "--duration", "500ms", "--size=1M",
	       "--percent", "0.5%", "--choice=third", "--one-pid", "77", "--text", "x y");
	cr_expect_eq(p.opts.flag, true);
	cr_expect_eq(p.opts.follow, false);
	cr_expect_eq(p.opts.number, 42);
	cr_expect_eq(p.opts.duration, 500 * NSEC_PER_MSEC);
	cr_expect_eq(p.opts.size, 1 << 20);
	cr_expect_eq(p.opts.percent, 0.5);
	cr_expect_eq(p.opts.choice, 2);
	cr_expect_eq(p.opts.pid, 77);
	cr_expect_str_eq(p.opts.inner.text, "x y");
	parse_deinit(&p);
}

Test(options, short_options_bundle_and_take_what_follows)
{
	struct parse p;

	ACCEPT(&p, "-fgn5", "-d", "2m", "-csecond", "-vo", "-");
	cr_expect(p.opts.flag && p.opts.other && p.global.verbose);
	cr_expect_eq(p.opts.number, 5);
	cr_expect_eq(p.opts.duration, 120 * NSEC_PER_SEC);
	cr_expect_eq(p.opts.choice, 1);
	cr_expect_str_eq(p.opts.inner.text, "-");
	parse_deinit(&p);
}

Test(options, last_one_wins_but_pids_add_up)
{
	struct parse p;

	ACCEPT(&p, "-n1", "--number=2", "--no-follow", "--follow", "-p", "5", "--pid=7,6");
	cr_expect_eq(p.opts.number, 2);
	cr_expect_eq(p.opts.follow, true);
	cr_assert_eq(p.opts.inner.pids.n, 3);
	cr_expect_eq(p.opts.inner.pids.pids[0], 5);
	cr_expect_eq(p.opts.inner.pids.pids[1], 7);
	cr_expect_eq(p.opts.inner.pids.pids[2], 6);
	parse_deinit(&p);
}

Test(options, words_and_the_double_dash)
{
	struct parse p;

	ACCEPT(&p, "one", "-f", "two", "-", "--", "three", "--flag", "-x", "--");
	cr_assert_eq(p.rest.n, 7);
	cr_expect_eq(p.rest.n_before, 3);
	cr_expect_str_eq(p.rest.argv[0], "one");
	cr_expect_str_eq(p.rest.argv[2], "-");
	cr_expect_str_eq(p.rest.argv[3], "three");
	cr_expect_str_eq(p.rest.argv[4], "--flag");
	cr_expect_str_eq(p.rest.argv[6], "--");
	cr_expect_null(p.rest.argv[7]);
	parse_deinit(&p);
}

Test(options, stops_at_the_first_word)
{
	struct parse p;

	cr_assert_eq(parse_words(&p, true, (const char *const[]) { "-f", "record", "-x", NULL }),
		     0);
	cr_expect(p.opts.flag);
	cr_assert_eq(p.rest.n, 2);
	cr_expect_str_eq(p.rest.argv[0], "record");
	cr_expect_str_eq(p.rest.argv[1], "-x");
	parse_deinit(&p);
}

Test(options, an_earlier_target_hides_a_later)
{
	struct parse p;

	ACCEPT(&p, "--number", "9");
	cr_expect_eq(p.opts.number, 9);
	cr_expect_eq(p.global.number, 0);
	parse_deinit(&p);
}

Test(options, unknown_names_and_near_ones)
{
	REFUSE("unknown option '--nubmer' for 'command' (did you mean --number?)", "--nubmer=3");
	REFUSE("unknown option '--no-folow' for 'command' (did you mean --no-follow?)",
	       "--no-folow");
	REFUSE("unknown option '--zzz' for 'command'", "--zzz");
	REFUSE("unknown option '-z' for 'command'", "-z");
	REFUSE("unknown option '-z' for 'command'", "-fz");
	/* No abbreviations, and only switches have a --no- form. */
	REFUSE("unknown option '--num' for 'command'", "--num=3");
	REFUSE("unknown option '--no-flag' for 'command'", "--no-flag");
	REFUSE("unknown option '--=3' for 'command'", "--=3");
	REFUSE("unknown option '---' for 'command'", "---");
}

Test(options, values_missing_or_too_many)
{
	REFUSE("--number needs a value (N)", "--number");
	REFUSE("--number needs a value (N)", "-fn");
	REFUSE("--number needs a value (N), got the option '-f'", "-n", "-f");
	REFUSE("--text needs a value (TEXT), got the option '--'", "-o", "--", "x");
	REFUSE("--flag takes no value", "--flag=yes");
	REFUSE("--no-follow takes no value", "--no-follow=");
	REFUSE("--text must not be empty", "--text=");
	REFUSE("--text must not be empty", "-o", "");
}

Test(options, bad_values)
{
	REFUSE("--number must be between 1 and 100, got 101", "-n101");
	REFUSE("--number must be between 1 and 100, got 0", "-n", "0");
	REFUSE("--number: '-5' is not a whole number", "-n", "-5");
	REFUSE("--number: '' is not a whole number", "--number=");
	REFUSE("--number: '=5' is not a whole number", "-n=5");
	REFUSE("--size must be between 64K and 1G, got 2G", "--size=2G");
	REFUSE("--size must be between 64K and 1G, got 65535", "--size=65535");
	REFUSE("unknown value 'secnod' for --choice (did you mean second?)", "-c", "secnod");
	REFUSE("unknown value 'zzzzzz' for --choice", "-c", "zzzzzz");
	REFUSE("--one-pid takes one pid, got '1,2'", "-P1,2");
}

Test(options, bad_pid_lists)
{
	REFUSE("invalid pid list '42,foo': 'foo' is not a number", "-p", "42,foo");
	REFUSE("invalid pid list 'foo': 'foo' is not a number", "-p", "foo");
	REFUSE("invalid pid list '': '' is not a number", "--pid=");
	REFUSE("invalid pid list '1,': '' is not a number", "-p1,");
	REFUSE("invalid pid list ',1': '' is not a number", "-p,1");
	REFUSE("invalid pid list '1,,2': '' is not a number", "-p1,,2");
	REFUSE("invalid pid list '-1': '-1' is not a number", "-p", "-1");
	REFUSE("invalid pid list '1 2': '1 2' is not a number", "-p", "1 2");
	REFUSE("invalid pid list '0x10': '0x10' is not a number", "-p0x10");
	REFUSE("--pid: pid 3 is listed twice", "-p3", "-p", "4,3");
	REFUSE("--pid: pid 3 is listed twice", "-p3,3");
}

Test(options, a_refused_pid_list_adds_nothing)
{
	struct parse p;

	cr_assert_eq(PARSE(&p, "-p1,2", "-p3,x"), -EINVAL);
	cr_expect_eq(p.opts.inner.pids.n, 2);
	parse_deinit(&p);
}
