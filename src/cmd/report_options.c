/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/array.h"
#include "base/err.h"
#include "cmd/command.h"
#include "cmd/open_recording.h"
#include "cmd/report.h"
#include "report/report.h"

#define OPT(member) .offset = offsetof(struct report_line, member)

/* The name that --by method had. */
#define BY_FUNCTION (FLAT_BY_TIME + 1)

const char *report_by_word(size_t by)
{
	static const char *const words[] = {
		[FLAT_BY_FUNCTION] = "method",	   [FLAT_BY_LINE] = "line",
		[FLAT_BY_FILE] = "file",	   [FLAT_BY_THREAD] = "thread",
		[FLAT_BY_PROCESS] = "process",	   [FLAT_BY_KIND] = "kind",
		[FLAT_BY_CONTAINER] = "container", [FLAT_BY_RUBY] = "ruby",
		[FLAT_BY_MODULE] = "module",	   [FLAT_BY_GEM] = "gem",
		[FLAT_BY_REQUEST] = "request",	   [FLAT_BY_STATE] = "state",
		[FLAT_BY_PEER] = "peer",	   [FLAT_BY_TRACE] = "trace",
		[FLAT_BY_TIME] = "time",	   [BY_FUNCTION] = "function",
	};

	return by < ARRAY_SIZE(words) ? words[by] : NULL;
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
		.initial = "method",
		.choice = report_by_word,
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
			"--tree, --requests, --json, --csv and seconds in their order; of single "
			"requests 5, of single waits 10, of both 100 with --json, and 500 at most)",
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
		.name = "inverted",
		.type = OPTION_FLAG,
		OPT(inverted),
		.help = "with --tree: start from the innermost methods, with their callers below",
	},
	{
		.name = "callers",
		.type = OPTION_STRING,
		OPT(callers),
		.arg = "REGEX",
		.help = "print who calls the methods whose name matches",
	},
	{
		.name = "callees",
		.type = OPTION_STRING,
		OPT(callees),
		.arg = "REGEX",
		.help = "print whom the methods call whose name matches",
	},
	{
		.name = "sandwich",
		.type = OPTION_STRING,
		OPT(sandwich),
		.arg = "REGEX",
		.help = "print both: their callers and their callees",
	},
	{
		.name = "match",
		.type = OPTION_STRING,
		OPT(match),
		.arg = "REGEX",
		.help = "print only rows whose name matches",
	},
	{
		.name = "gc",
		.type = OPTION_FLAG,
		OPT(gc),
		.help = "print what garbage collection took, and who caused it",
	},
	{
		.name = "states",
		.type = OPTION_FLAG,
		OPT(states),
		.help = "print how each thread spent its time: on a CPU, or waiting for what (of "
			"recordings made with --mode states); with --by: of each process, "
			"container, Ruby or second",
	},
	{
		.name = "merge-threads",
		.type = OPTION_FLAG,
		OPT(merge_threads),
		.help = "with --by thread and --states: show threads of a process whose names "
			"differ in numbers only as one",
	},
	{
		.name = "requests",
		.type = OPTION_FLAG,
		OPT(requests),
		.help = "print how many requests and jobs were seen, what they took, how long "
			"they were, and the longest single ones",
	},
	{
		.name = "waits",
		.type = OPTION_FLAG,
		OPT(waits),
		.help = "print the longest single waits: when, for what, of which thread, and in "
			"which method (of recordings made with --mode states)",
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
		.name = "md",
		.type = OPTION_FLAG,
		OPT(md),
		.help = "print Markdown",
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

static const struct option_group shape = SHAPE_OPTION_GROUP(struct report_line);
static const struct option_group filters = FILTER_OPTION_GROUP(struct report_line, filter);

static int report_main(struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	struct report_line line = { .sort = OPTION_UNSET,
				    .limit = REPORT_NO_LIMIT,
				    .filter = FILTER_OPTIONS_INIT };
	struct option_rest rest;
	int r;

	r = command_parse(&command_report, ctx, &line, argc, argv, &rest, err);
	if (line.by == BY_FUNCTION)
		line.by = FLAT_BY_FUNCTION;
	if (!r)
		r = report_run(&line, &rest, ctx, err);
	else if (r == COMMAND_DONE)
		r = 0;
	command_release(&command_report, &line);
	return r;
}

static const char *const usages[] = { "[OPTION...] [FILE]", NULL };

static const struct option_group *const groups[] = { &group, &shape, &filters };

static const struct command_example examples[] = {
	{ "rbpf report", "the 30 methods of rbpf.data with the most time of their own" },
	{ "rbpf report --by line --sort total -n 10 puma.data", "lines, with what they call" },
	{ "rbpf report --by request", "which requests and jobs use the CPU" },
	{ "rbpf report --requests", "how many were seen of each, and how long these took" },
	{ "rbpf report --waits --state disk,network",
	  "the ten longest waits for a file or the network" },
	{ "rbpf report --by container", "which container uses the CPU" },
	{ "rbpf report --tree --include 'Cart#total'", "the call tree around a method" },
	{ "rbpf report --sandwich '^Cart#total$'", "who calls a method, and whom it calls" },
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
		 "TOTAL the time it or what it called ran. +/-: in 95 of 100 recordings the "
		 "true SELF% is within this distance. Without "
		 "--stack, rows of methods, lines and files have the frames of --stack ruby, all "
		 "others and --tree those of --stack mixed.",
	.groups = groups,
	.n_groups = ARRAY_SIZE(groups),
	.args = ARGS_RECORDING,
	.examples = examples,
	.run = report_main,
};
