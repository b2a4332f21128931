/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdint.h>

#include "base/array.h"
#include "cmd/command.h"
#include "cmd/compare_options.h"

#define DEFAULT_LIMIT 30

enum diff_sort { DIFF_SORT_ABS, DIFF_SORT_DELTA };

struct diff_line {
	uint64_t limit;	   /* UINT64_MAX if not given; 0: all */
	unsigned int sort; /* enum diff_sort */
	struct compare_line compare;
};

#define OPT(member) .offset = offsetof(struct diff_line, member)

static const char *sort_choice(size_t i)
{
	static const char *const words[] = { [DIFF_SORT_ABS] = "abs", [DIFF_SORT_DELTA] = "delta" };

	return i < ARRAY_SIZE(words) ? words[i] : NULL;
}

static const struct option_spec specs[] = {
	{
		.letter = 'n',
		.name = "limit",
		.type = OPTION_U64,
		OPT(limit),
		.arg = "N",
		.help = "rows to show, 0 for all (default 30; all with --json and --csv)",
		.min = 0,
		.max = 1000000000,
	},
	{
		.name = "sort",
		.type = OPTION_CHOICE,
		OPT(sort),
		.arg = "HOW",
		.help = "the greatest differences first, or the greatest growths",
		.initial = "abs",
		.choice = sort_choice,
	},
};

static const struct option_group group = {
	.title = "Rows",
	.options = specs,
	.n = ARRAY_SIZE(specs),
};
static const struct option_group compare = COMPARE_OPTION_GROUP(struct diff_line);
static const struct option_group filters = FILTER_OPTION_GROUP(struct diff_line, compare.filter);

static uint64_t rows_wanted(const struct diff_line *line)
{
	if (line->limit == UINT64_MAX && !line->compare.json && !line->compare.csv)
		return DEFAULT_LIMIT;
	return line->limit ? line->limit : UINT64_MAX;
}

static int diff_main(struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	struct diff_line line = { .limit = UINT64_MAX, .compare.filter = FILTER_OPTIONS_INIT };
	struct comparison comparison = COMPARISON_INIT;
	struct diff d = { .comparison = &comparison };
	struct option_rest rest;
	int r;

	r = command_parse(&command_diff, ctx, &line, argc, argv, &rest, err);
	d.limit = rows_wanted(&line);
	d.options.by_delta = line.sort == DIFF_SORT_DELTA;
	if (!r)
		r = cmd_compare(ctx, &line.compare, &rest, &d, err);
	else if (r == COMMAND_DONE)
		goto out;
	if (!r)
		r = cmd_compare_write(&line.compare, &d, err);
out:
	cmd_compare_release(&d);
	command_release(&command_diff, &line);
	return r == COMMAND_DONE ? 0 : r;
}

static const char *const usages[] = { "[OPTION...] BEFORE AFTER",
				      "[OPTION...] BEFORE... -- AFTER...", NULL };

static const struct option_group *const groups[] = { &compare, &group, &filters };

static const struct command_example examples[] = {
	{ "rbpf diff before.data after.data", "which methods take another share of the time" },
	{ "rbpf diff --self --normalize time before.data after.data",
	  "self times, per second of the recordings" },
	{ "rbpf diff a1.data a2.data -- b1.data b2.data", "two recordings of each side" },
	{ "rbpf diff --by request before.data after.data", "which requests and jobs do" },
	{ NULL, NULL },
};

const struct command command_diff = {
	.name = "diff",
	.summary = "compare two recordings",
	.usage = usages,
	.about = "Prints how much more or less of the time each method takes. DELTA is estimated "
		 "from samples: it is between FROM and TO in 95 of 100 cases. Rows that may be due "
		 "to chance say so, and come last.",
	.groups = groups,
	.n_groups = ARRAY_SIZE(groups),
	.args = ARGS_RECORDINGS,
	.examples = examples,
	.run = diff_main,
};
