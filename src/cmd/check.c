/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdint.h>

#include "base/array.h"
#include "base/err.h"
#include "cmd/command.h"
#include "cmd/compare_options.h"

struct check_line {
	const char *fail_on;
	struct compare_line compare;
};

#define OPT(member) .offset = offsetof(struct check_line, member)

static const struct option_spec specs[] = {
	{
		.name = "fail-on",
		.type = OPTION_STRING,
		OPT(fail_on),
		.arg = "RULE",
		.help = "METHOD>PERCENT: fail if a method whose name matches has grown by more "
			"than "
			"this share of the whole",
	},
};

static const struct option_group group = {
	.title = "Rule",
	.options = specs,
	.n = ARRAY_SIZE(specs),
};
static const struct option_group compare = COMPARE_OPTION_GROUP(struct check_line);
static const struct option_group filters = FILTER_OPTION_GROUP(struct check_line, compare.filter);

/* Of a rule that is about nothing in @d. */
static int nothing_matches(const struct diff *d, const struct check_rule *rule, struct err *err)
{
	const bool by_request = d->comparison->by_request;

	err_set(err, -ENODATA, ERR_EMPTY, "no %s has a name that matches '%.200s'",
		by_request ? "request" : "method", rule->pattern);
	err_hint(err, "'rbpf report %s-n 0' lists them", by_request ? "--by request " : "");
	return -ENODATA;
}

/* Returns 0, EXIT_REGRESSION, or a negative errno. */
static int check(const struct cmd_context *ctx, struct check_line *line,
		 const struct option_rest *rest, struct check_rule *rule, struct diff *d,
		 struct err *err)
{
	size_t failed;
	int r;

	if (!line->fail_on)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "--fail-on is missing: which method must not grow by how much?");
	if (line->compare.normalize == COMPARE_NONE)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "a rule is a share: not with --normalize none");
	r = check_rule_parse(line->fail_on, rule, err);
	if (!r)
		r = cmd_compare(ctx, &line->compare, rest, d, err);
	if (r)
		return r;
	failed = check_rows(d, rule);
	if (!d->comparison->n_rows)
		return nothing_matches(d, rule, err);
	d->limit = failed;
	d->rule = line->fail_on;
	r = cmd_compare_write(&line->compare, d, err);
	return !r && failed ? EXIT_REGRESSION : r;
}

static int check_main(struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	struct check_line line = { .compare.filter = FILTER_OPTIONS_INIT };
	struct comparison comparison = COMPARISON_INIT;
	struct diff d = { .comparison = &comparison };
	struct check_rule rule = { 0 };
	struct option_rest rest;
	int r;

	r = command_parse(&command_check, ctx, &line, argc, argv, &rest, err);
	if (!r)
		r = check(ctx, &line, &rest, &rule, &d, err);
	else if (r == COMMAND_DONE)
		r = 0;
	check_rule_deinit(&rule);
	cmd_compare_release(&d);
	command_release(&command_check, &line);
	return r;
}

static const char *const usages[] = { "--fail-on RULE [OPTION...] BASE NEW",
				      "--fail-on RULE [OPTION...] BASE... -- NEW...", NULL };

static const struct option_group *const groups[] = { &group, &compare, &filters };

static const struct command_example examples[] = {
	{ "rbpf check --fail-on '^Cart#total$>5%' base.data new.data",
	  "fail if it takes 5 % of the time more than before" },
	{ "rbpf check --self --fail-on '.>1%' base.data new.data", "the same of any method" },
	{ NULL, NULL },
};

const struct command command_check = {
	.name = "check",
	.summary = "fail if a method takes more time than before",
	.usage = usages,
	.about = "Compares two recordings as rbpf diff does, and prints the methods that break the "
		 "rule. The exit status is 7 if there are any. A method breaks it if the lower end "
		 "of the 95 % interval of its growth is above PERCENT: where no method has grown "
		 "so much, 39 of 40 checks or more pass.",
	.groups = groups,
	.n_groups = ARRAY_SIZE(groups),
	.args = ARGS_RECORDINGS,
	.examples = examples,
	.run = check_main,
};
