/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/export.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cmd/command.h"
#include "cmd/filter_options.h"
#include "cmd/output.h"
#include "cmd/open_recording.h"
#include "view/filter.h"

struct export_line {
	unsigned int format; /* index of cmd_format_choice(), or OPTION_UNSET */
	const char *input;
	const char *output;
	unsigned int weight; /* place in weights, or OPTION_UNSET */
	bool threads;
	struct filter_options filter;
};

#define OPT(member) .offset = offsetof(struct export_line, member)

static const char *format_help(size_t i)
{
	return i < n_exporters ? exporters[i].description : "the same as flame";
}

static const struct {
	const char *word;
	enum folded_weight weight;
} weights[] = {
	{ "samples", WEIGHT_SAMPLES },
	{ "time", WEIGHT_TIME },
};

static const char *weight_choice(size_t i)
{
	return i < ARRAY_SIZE(weights) ? weights[i].word : NULL;
}

static const struct option_spec specs[] = {
	{
		.letter = 'f',
		.name = "format",
		.type = OPTION_CHOICE,
		OPT(format),
		.arg = "FORMAT",
		.help = "what to write:",
		.choice = cmd_format_choice,
		.choice_help = format_help,
	},
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
		.letter = 'o',
		.name = "output",
		.type = OPTION_STRING,
		OPT(output),
		.arg = "FILE",
		.help = "write to this file; - is stdout",
		.initial = "-",
		.complete = COMPLETE_FILE,
	},
	{
		.name = "weight",
		.type = OPTION_CHOICE,
		OPT(weight),
		.arg = "WHAT",
		.help = "what the numbers of folded stacks are (default samples, but time, in "
			"microseconds, if the event is of waits)",
		.choice = weight_choice,
	},
	{
		.name = "threads",
		.type = OPTION_FLAG,
		OPT(threads),
		.help = "put the name of the thread before folded stacks",
	},
};

static const struct option_group group = {
	.title = "Options",
	.options = specs,
	.n = ARRAY_SIZE(specs),
};

static const struct option_group filters = FILTER_OPTION_GROUP(struct export_line, filter);

/* Options that only one format knows, given for another one. */
static int check_options(const struct export_line *line, const struct exporter *exporter,
			 const struct view_filter *filter, struct err *err)
{
	const struct {
		bool given;
		const char *option, *format;
	} only[] = {
		{ filter->stack == STACK_BOTH, "--stack both", "flame" },
		{ line->threads, "--threads", "folded" },
		{ line->weight != OPTION_UNSET, "--weight", "folded" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(only); i++)
		if (only[i].given && exporter != exporter_find(only[i].format))
			return err_set(err, -EINVAL, ERR_USAGE,
				       "%s works with -f %s only, not with -f %s", only[i].option,
				       only[i].format, exporter->name);
	return 0;
}

static int export_recording(const struct cmd_context *ctx, struct export_line *line,
			    const struct option_rest *rest, struct view_filter *filter,
			    struct err *err)
{
	_cleanup_recording_ struct recording rec = RECORDING_INIT;
	struct export_options opts = {
		.filter = filter,
		.weight = line->weight == OPTION_UNSET ? WEIGHT_OF_EVENT
						       : weights[line->weight].weight,
		.threads = line->threads,
	};
	const struct exporter *exporter;
	struct read_options needs;
	int r;

	if (line->format == OPTION_UNSET) {
		err_set(err, -EINVAL, ERR_USAGE, "which format? give -f FORMAT");
		err_hint(err, "rbpf help export");
		return -EINVAL;
	}
	exporter = cmd_format_exporter(line->format);
	r = cmd_filter(&line->filter, exporter->stack, filter, err);
	if (!r)
		r = check_options(line, exporter, filter, err);
	if (r)
		return r;
	if (exporter->binary && cmd_to_terminal(line->output))
		return cmd_refuse_terminal("binary data", "-o FILE writes it to a file", err);
	needs = exporter_needs(exporter, filter);
	needs.by_thread |= line->threads;
	r = cmd_open_recording(ctx, line->input, rest, filter, &needs, &rec, err);
	if (!r)
		r = cmd_check_output(line->output, rec.path, err);
	return r ? r : cmd_export(ctx, &rec, exporter, &opts, line->output, err);
}

static int export_main(struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	struct view_filter filter = VIEW_FILTER_INIT;
	struct export_line line = { .format = OPTION_UNSET,
				    .weight = OPTION_UNSET,
				    .filter = FILTER_OPTIONS_INIT };
	struct option_rest rest;
	int r;

	r = command_parse(&command_export, ctx, &line, argc, argv, &rest, err);
	if (!r)
		r = export_recording(ctx, &line, &rest, &filter, err);
	else if (r == COMMAND_DONE)
		r = 0;
	view_filter_deinit(&filter);
	command_release(&command_export, &line);
	return r;
}

static const char *const usages[] = { "-f FORMAT [OPTION...] [FILE]", NULL };

static const struct option_group *const groups[] = { &group, &filters };

static const struct command_example examples[] = {
	{ "rbpf export -f folded > out.folded", "stacks for flamegraph.pl and its like" },
	{ "rbpf export -f folded --weight time --threads puma.data | head",
	  "in microseconds, by thread" },
	{ "rbpf export -f speedscope -o app.speedscope.json",
	  "for speedscope.app, with threads in the order of time" },
	{ "rbpf export -f folded --stack native > native.folded",
	  "native and kernel frames alone" },
	{ NULL, NULL },
};

const struct command command_export = {
	.name = "export",
	.summary = "write a recording in the format of another tool",
	.usage = usages,
	.about = "Turns a recording into what other tools read. Without --stack, json has all "
		 "frames "
		 "and the others have those of --stack mixed.",
	.groups = groups,
	.n_groups = ARRAY_SIZE(groups),
	.args = ARGS_RECORDING,
	.examples = examples,
	.run = export_main,
};
