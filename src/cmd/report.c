/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/report.h"

#include <errno.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "cmd/command.h"
#include "cmd/filter_options.h"
#include "cmd/messages.h"
#include "cmd/open_recording.h"
#include "cmd/output.h"
#include "ui/term.h"
#include "view/filter.h"

#define DEFAULT_LIMIT  30
#define DEFAULT_STACKS 5 /* each fills a screen */

struct report_line {
	const char *input;
	unsigned int by;   /* enum flat_by */
	unsigned int sort; /* enum flat_sort, or OPTION_UNSET */
	uint64_t limit;	   /* REPORT_NO_LIMIT if not given; 0: all */
	bool tree, gc, requests, json, csv, info;
	struct filter_options filter;
};

#define OPT(member) .offset = offsetof(struct report_line, member)

static const char *by_choice(size_t i)
{
	static const char *const words[] = {
		[FLAT_BY_FUNCTION] = "function",   [FLAT_BY_LINE] = "line",
		[FLAT_BY_FILE] = "file",	   [FLAT_BY_THREAD] = "thread",
		[FLAT_BY_PROCESS] = "process",	   [FLAT_BY_KIND] = "kind",
		[FLAT_BY_CONTAINER] = "container", [FLAT_BY_RUBY] = "ruby",
		[FLAT_BY_MODULE] = "module",	   [FLAT_BY_GEM] = "gem",
		[FLAT_BY_REQUEST] = "request",	   [FLAT_BY_TIME] = "time",
	};

	return i < ARRAY_SIZE(words) ? words[i] : NULL;
}

static const char *sort_choice(size_t i)
{
	static const char *const words[] = {
		[FLAT_SORT_SELF] = "self",
		[FLAT_SORT_TOTAL] = "total",
	};

	return i < ARRAY_SIZE(words) ? words[i] : NULL;
}

static const struct option_spec specs[] = {
	{
		.letter = 'i',
		.name = "input",
		.type = OPTION_STRING,
		OPT(input),
		.arg = "FILE",
		.help = "the recording; - is stdin (default $RBPF_DATA or " CMD_DEFAULT_RECORDING
			")",
		.complete = COMPLETE_FILE,
	},
	{
		.name = "by",
		.type = OPTION_CHOICE,
		OPT(by),
		.arg = "WHAT",
		.help = "what a row is",
		.initial = "function",
		.choice = by_choice,
	},
	{
		.name = "sort",
		.type = OPTION_CHOICE,
		OPT(sort),
		.arg = "TIME",
		.help = "order of the rows (default self; with --by time, that of time)",
		.choice = sort_choice,
	},
	{
		.letter = 'n',
		.name = "limit",
		.type = OPTION_U64,
		OPT(limit),
		.arg = "N",
		.help = "rows to show, 0 for all (default 30; 5 stacks with --stack both; all with "
			"--tree, --json, --csv and seconds in their order)",
		.min = 0,
		.max = 1000000000,
	},
	{
		.name = "tree",
		.type = OPTION_FLAG,
		OPT(tree),
		.help = "print the call tree",
	},
	{
		.name = "gc",
		.type = OPTION_FLAG,
		OPT(gc),
		.help = "print what garbage collection took, and who caused it",
	},
	{
		.name = "requests",
		.type = OPTION_FLAG,
		OPT(requests),
		.help = "print how many requests and jobs were seen, what they took, and how long "
			"they were",
	},
	{
		.name = "json",
		.type = OPTION_FLAG,
		OPT(json),
		.help = "print JSON",
	},
	{
		.name = "csv",
		.type = OPTION_FLAG,
		OPT(csv),
		.help = "print comma-separated values",
	},
	{
		.name = "info",
		.type = OPTION_FLAG,
		OPT(info),
		.help = "print how the recording was made and what it holds",
	},
};

static const struct option_group group = {
	.title = "Options",
	.options = specs,
	.n = ARRAY_SIZE(specs),
};

static const struct option_group filters = FILTER_OPTION_GROUP(struct report_line);

typedef int (*renderer)(const struct report *r, struct buf *out, struct err *err);

static int exclude_each_other(const char *one, const char *other, struct err *err)
{
	return err_set(err, -EINVAL, ERR_USAGE, "%s and %s exclude each other", one, other);
}

/* Requests have a table of their own, which goes with --json alone. */
static int choose_of_requests(const struct report_line *line, renderer *ret, struct err *err)
{
	const char *other = line->tree			       ? "--tree"
			    : line->gc			       ? "--gc"
			    : line->csv			       ? "--csv"
			    : line->info		       ? "--info"
			    : line->filter.stack == STACK_BOTH ? "--stack both"
			    : line->sort != OPTION_UNSET       ? "--sort"
			    : line->by != FLAT_BY_FUNCTION     ? "--by"
							       : NULL;

	if (other)
		return exclude_each_other("--requests", other, err);
	*ret = line->json ? report_requests_json : report_requests;
	return 0;
}

static int choose_renderer(const struct report_line *line, renderer *ret, struct err *err)
{
	const struct {
		bool chosen;
		renderer render;
		renderer render_gc;   /* NULL: does not go with --gc */
		renderer render_both; /* NULL: does not go with --stack both */
		const char *name;
	} kinds[] = {
		{ line->tree, report_tree, NULL, NULL, "--tree" },
		{ line->json, report_json, report_gc_json, report_both_json, "--json" },
		{ line->csv, report_csv, report_gc_csv, NULL, "--csv" },
		{ line->info, report_info, NULL, NULL, "--info" },
	};
	bool both = line->filter.stack == STACK_BOTH;
	const char *chosen = NULL;
	size_t i;

	if (line->gc && both)
		return exclude_each_other("--gc", "--stack both", err);
	if (line->requests)
		return choose_of_requests(line, ret, err);
	*ret = line->gc ? report_gc : both ? report_both : report_text;
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!kinds[i].chosen)
			continue;
		if (chosen)
			return exclude_each_other(chosen, kinds[i].name, err);
		if (line->gc && !kinds[i].render_gc)
			return exclude_each_other(kinds[i].name, "--gc", err);
		if (both && !kinds[i].render_both)
			return exclude_each_other(kinds[i].name, "--stack both", err);
		chosen = kinds[i].name;
		*ret = line->gc ? kinds[i].render_gc
		       : both	? kinds[i].render_both
				: kinds[i].render;
	}
	return 0;
}

/* Options that are right by themselves, but not together. */
static int check_line(const struct report_line *line, struct err *err)
{
	const char *narrow = line->gc				? "--gc"
			     : line->tree			? "--tree"
			     : line->filter.stack == STACK_BOTH ? "--stack both"
								: NULL;

	if (line->gc && line->filter.no_gc)
		return exclude_each_other("--gc", "--no-gc", err);
	if (narrow && line->by != FLAT_BY_FUNCTION && line->by != FLAT_BY_LINE)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "%s needs --by function or line, not --by %s", narrow,
			       by_choice(line->by));
	return 0;
}

/*
 * Methods are what a reader can change, so a table of them shows these alone. Where rows are not
 * methods, and in a tree, native frames tell more; but not the interpreter's own.
 */
static enum stack_mode usual_mode(const struct report_line *line)
{
	switch (line->by) {
	case FLAT_BY_FUNCTION:
	case FLAT_BY_LINE:
	case FLAT_BY_FILE:
		return line->tree ? STACK_MIXED : STACK_RUBY;
	default:
		return STACK_MIXED;
	}
}

static enum flat_sort usual_sort(const struct report_line *line)
{
	if (line->sort != OPTION_UNSET)
		return line->sort;
	return line->by == FLAT_BY_TIME ? FLAT_SORT_TIME : FLAT_SORT_SELF;
}

static uint64_t rows_wanted(const struct report_line *line, renderer render)
{
	if (line->limit == 0)
		return REPORT_NO_LIMIT;
	if (line->limit != REPORT_NO_LIMIT)
		return line->limit;
	if (usual_sort(line) == FLAT_SORT_TIME)
		return REPORT_NO_LIMIT;
	if (render == report_text || render == report_gc || render == report_requests)
		return DEFAULT_LIMIT;
	if (render == report_both)
		return DEFAULT_STACKS;
	return line->limit;
}

static int report_recording(const struct cmd_context *ctx, struct report_line *line,
			    const struct option_rest *rest, struct view_filter *filter,
			    struct err *err)
{
	_cleanup_recording_ struct recording rec = RECORDING_INIT;
	struct report report = {
		.rec = &rec,
		.filter = filter,
		.by = line->by,
		.sort = usual_sort(line),
		.width = term_width(STDOUT_FILENO),
		.color = term_color(STDOUT_FILENO, ctx->color),
	};
	struct read_options needs = { .by_thread = line->gc || line->requests ||
						   flat_by_thread(line->by),
				      .by_request = line->requests || line->by == FLAT_BY_REQUEST,
				      .keep_samples = line->by == FLAT_BY_TIME };
	_cleanup_buf_ struct buf out = BUF_INIT;
	renderer render = report_text;
	int r;

	r = choose_renderer(line, &render, err);
	if (!r)
		r = check_line(line, err);
	if (r)
		return r;
	report.limit = rows_wanted(line, render);
	r = cmd_filter(&line->filter, usual_mode(line), filter, err);
	if (r)
		return r;
	needs.by_thread |= filter->stack == STACK_BOTH;
	r = cmd_open_recording(ctx, line->input, rest, filter, &needs, &rec, err);
	if (r)
		return r;
	cmd_limit_output(&rec, &out);
	if (render != report_info)
		r = cmd_prepare_recording(&rec, filter, err);
	if (!r)
		r = render(&report, &out, err);
	r = cmd_rendered(r, &rec, &out, err);
	if (r)
		return r;
	return cmd_write(NULL, &out, err);
}

static int report_main(struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	struct report_line line = { .sort = OPTION_UNSET,
				    .limit = REPORT_NO_LIMIT,
				    .filter = FILTER_OPTIONS_INIT };
	struct view_filter filter = VIEW_FILTER_INIT;
	struct option_rest rest;
	int r;

	r = command_parse(&command_report, ctx, &line, argc, argv, &rest, err);
	if (!r)
		r = report_recording(ctx, &line, &rest, &filter, err);
	else if (r == COMMAND_DONE)
		r = 0;
	view_filter_deinit(&filter);
	command_release(&command_report, &line);
	return r;
}

static const char *const usages[] = { "[OPTION...] [FILE]", NULL };

static const struct option_group *const groups[] = { &group, &filters };

static const struct command_example examples[] = {
	{ "rbpf report", "the 30 methods of rbpf.data with the most time of their own" },
	{ "rbpf report --by line --sort total -n 10 puma.data", "lines, with what they call" },
	{ "rbpf report --by request", "which requests and jobs use the CPU" },
	{ "rbpf report --requests", "how many there were of each, and how long they took" },
	{ "rbpf report --by container", "which container uses the CPU" },
	{ "rbpf report --tree --include 'Cart#total'", "the call tree around a method" },
	{ "rbpf report --by module --stack native", "which libraries use the CPU" },
	{ "rbpf report --by time --sort self -n 5", "the five seconds with the most CPU time" },
	{ "rbpf report --by gem", "which gems use the CPU, with the C code that they call" },
	{ "rbpf report --stack both -n 3", "the three heaviest stacks, Ruby next to native" },
	{ "rbpf report --gc --by line", "the lines that cause garbage collection" },
	{ NULL, NULL },
};

const struct command command_report = {
	.name = "report",
	.summary = "print where the CPU time of a recording went",
	.usage = usages,
	.about = "Prints a row for each method (or line, file, ...): SELF is the time it ran "
		 "itself, "
		 "TOTAL the time it or what it called ran. +/- is how far SELF% may be off by "
		 "chance (95 of 100 times it is closer), because samples are a sample. Without "
		 "--stack, rows of methods, lines and files have the frames of --stack ruby, all "
		 "others and --tree those of --stack mixed.",
	.groups = groups,
	.n_groups = ARRAY_SIZE(groups),
	.args = ARGS_RECORDING,
	.examples = examples,
	.run = report_main,
};
