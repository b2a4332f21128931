/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/annotate_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "cmd/annotate_code.h"
#include "cmd/command.h"
#include "cmd/filter_options.h"
#include "cmd/messages.h"
#include "cmd/open_recording.h"
#include "cmd/output.h"
#include "elf/code.h"
#include "ui/term.h"
#include "view/filter.h"
#include "view/instructions.h"
#include "worker/file_worker.h"

#define MAX_FUNCTIONS 20 /* native ones, whose instructions are printed */

struct annotate_line {
	const char *input, *source_root, *module_root;
	uint64_t context;
	bool json, csv, md;
	struct filter_options filter;
};

#define OPT(member) .offset = offsetof(struct annotate_line, member)

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
		.name = "source-root",
		.type = OPTION_STRING,
		OPT(source_root),
		.arg = "DIR",
		.help = "look for source files below this directory, by the last parts of their "
			"paths",
		.complete = COMPLETE_FILE,
	},
	{
		.name = "module-root",
		.type = OPTION_STRING,
		OPT(module_root),
		.arg = "DIR",
		.help = "read the files of native functions below this directory, as in a "
			"container's root",
		.complete = COMPLETE_FILE,
	},
	{
		.name = "context",
		.type = OPTION_U64,
		OPT(context),
		.arg = "N",
		.help = "lines or instructions to show around each one with samples",
		.initial = "2",
		.min = 0,
		.max = 1000000,
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
};

static const struct option_group group = {
	.title = "Options",
	.options = specs,
	.n = ARRAY_SIZE(specs),
};

static const struct option_group filters = FILTER_OPTION_GROUP(struct annotate_line, filter);

/* The compiled patterns of the command line. */
struct patterns {
	struct view_filter filter;
	bool has_method;
	regex_t method;
	char *file; /* owned */
};

static void patterns_deinit(struct patterns *p)
{
	view_filter_deinit(&p->filter);
	if (p->has_method)
		regfree(&p->method);
	free(p->file);
}

/* "cart.rb:57": with a line, if that is a number and the rest names a file. */
static int split_line(const struct profile *p, const char *target, struct patterns *patterns,
		      struct source_choice *choice)
{
	const char *colon = strrchr(target, ':');
	uint64_t line;

	if (!colon || parse_u64(colon + 1, "line", 1, UINT32_MAX, &line, NULL))
		return 0;
	free(patterns->file);
	patterns->file = strndup(target, (size_t)(colon - target));
	if (!patterns->file)
		return -ENOMEM;
	if (source_is_known(p, patterns->file)) {
		choice->file = patterns->file;
		choice->line = (uint32_t)line;
	}
	return 0;
}

/*
 * What is the name of a file in the recording is that, all else a pattern for methods; for native
 * functions alone, if these are to be shown.
 */
static int choose(struct annotate *a, struct patterns *patterns, struct err *err)
{
	const struct profile *p = &a->report.rec->profile;
	bool native = patterns->filter.stack == STACK_NATIVE;
	int r;

	if (!native && source_is_known(p, a->target))
		a->choice.file = a->target;
	else if (!native && split_line(p, a->target, patterns, &a->choice))
		return err_oom(err);
	if (a->choice.file)
		return 0;
	r = view_filter_regex(&patterns->method, &patterns->has_method, a->target, "the method",
			      err);
	a->choice.method = &patterns->method;
	a->report.method = &patterns->method;
	return r;
}

static int check_line(const struct annotate_line *line, const struct option_rest *rest,
		      struct err *err)
{
	if (line->json + line->csv + line->md > 1)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "--json, --csv and --md exclude each other");
	if (line->filter.stack == STACK_BOTH)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "either source lines of Ruby code or, with --stack native, "
			       "instructions: not --stack both");
	if (line->module_root && line->filter.stack != STACK_NATIVE)
		return err_set(err, -EINVAL, ERR_USAGE, "--module-root is for --stack native");
	if (rest->n != 1)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "'annotate' needs one argument: a method or a file");
	return 0;
}

static int render(const struct annotate_line *line, struct annotate *a, struct buf *out,
		  struct err *err)
{
	int r;

	if (line->json)
		return annotate_json(a, out, err);
	if (line->csv)
		return annotate_csv(a, out, err);
	r = annotate_text(a, out, err);
	if (!r && line->md)
		report_to_markdown(out);
	return r;
}

/* As render(), of native functions; @worker was made before rbpf had read anything. */
static int render_code(const struct annotate_line *line, struct annotate *a,
		       struct file_worker *worker, struct buf *out, struct err *err)
{
	const struct profile *p = &a->report.rec->profile;
	_cleanup_instructions_ struct instructions code = INSTRUCTIONS_INIT;
	int r;

	r = instructions_find(p, a->report.filter, a->report.method, MAX_FUNCTIONS, &code);
	if (!r)
		r = annotate_read_code(p, worker, line->module_root ? line->module_root : "",
				       &code);
	if (!r)
		r = instructions_add_up(p, a->report.filter, &code);
	if (r)
		return err_code(err, r);
	if (line->json)
		return annotate_code_json(a, &code, out, err);
	if (line->csv)
		return annotate_code_csv(a, &code, out, err);
	r = annotate_code_text(a, &code, out, err);
	if (!r && line->md)
		report_to_markdown(out);
	return r;
}

/*
 * What there is of one event, or -ENODATA with ERR_EMPTY. @rec is then open, too, if --event has
 * not named the event: for the names of the others.
 */
static int annotate_event(const struct cmd_context *ctx, const struct annotate_line *line,
			  const char *target, struct patterns *patterns, struct file_worker *worker,
			  struct recording *rec, struct buf *out, struct err *err)
{
	static const struct option_rest no_recording = { 0 };
	const struct read_options needs = { .sources = true };
	struct annotate a = {
		.report = {
			.rec = rec,
			.filter = &patterns->filter,
			.by = FLAT_BY_FUNCTION,
			.limit = REPORT_NO_LIMIT,
			.width = line->md ? 0 : term_width(STDOUT_FILENO),
			.color = !line->md && term_color(STDOUT_FILENO, ctx->color),
			.markdown = line->md,
		},
		.target = target,
		.source_root = line->source_root,
		.context = (uint32_t)line->context,
	};
	int r;

	r = (patterns->filter.event ? cmd_open_recording : cmd_open_recording_of_any_event)(
		ctx, line->input, &no_recording, &patterns->filter, &needs, rec, err);
	if (r)
		return r;
	cmd_limit_output(rec, out);
	r = cmd_prepare_recording(rec, &patterns->filter, err);
	if (!r)
		r = choose(&a, patterns, err);
	if (!r)
		r = worker ? render_code(line, &a, worker, out, err) : render(line, &a, out, err);
	return cmd_rendered(r, rec, out, err);
}

/*
 * Without --event it is the first event that has samples of @target: a file in which threads only
 * wait has none of CPU time. The recording is read again for each.
 */
static int annotate_recording(const struct cmd_context *ctx, struct annotate_line *line,
			      const char *target, struct patterns *patterns,
			      struct file_worker *worker, struct err *err)
{
	_cleanup_recording_ struct recording rec = RECORDING_INIT;
	_cleanup_recording_ struct recording other = RECORDING_INIT;
	_cleanup_buf_ struct buf out = BUF_INIT;
	bool any_event = !patterns->filter.event;
	int r;

	r = annotate_event(ctx, line, target, patterns, worker, &rec, &out, err);
	for (uint32_t i = 1; r == -ENODATA && any_event && i < rec.profile.meta.n_events; i++) {
		if (!strcmp(rec.path, "-")) {
			err_hint(err, "--event may have it; a recording that comes from a pipe is "
				      "read only once");
			break;
		}
		recording_close(&other);
		patterns->filter.event = rec.profile.meta.events[i].name;
		if (!annotate_event(ctx, line, target, patterns, worker, &other, &out, NULL))
			r = 0;
	}
	return r ? r : cmd_write(NULL, &out, err);
}

/* With a worker, which has the disassembler, if there is one on this machine. */
static int annotate_native(const struct cmd_context *ctx, struct annotate_line *line,
			   const char *target, struct patterns *patterns, struct err *err)
{
	struct file_worker worker _cleanup_(file_worker_deinit);
	int r;

	file_worker_init(&worker, NULL);
	elf_code_load();
	r = cmd_prepare_worker(&worker, err);
	if (!r)
		r = annotate_recording(ctx, line, target, patterns, &worker, err);
	cmd_warn_of_unread(ctx, &worker);
	return r;
}

static int annotate_main(struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	struct annotate_line line = { .filter = FILTER_OPTIONS_INIT };
	struct patterns patterns = { .filter = VIEW_FILTER_INIT };
	struct option_rest rest;
	int r;

	r = command_parse(&command_annotate, ctx, &line, argc, argv, &rest, err);
	if (!r)
		r = check_line(&line, &rest, err);
	if (!r)
		r = cmd_filter(&line.filter, STACK_RUBY, &patterns.filter, err);
	if (!r && line.filter.stack == STACK_NATIVE)
		r = annotate_native(ctx, &line, rest.argv[0], &patterns, err);
	else if (!r)
		r = annotate_recording(ctx, &line, rest.argv[0], &patterns, NULL, err);
	else if (r == COMMAND_DONE)
		r = 0;
	patterns_deinit(&patterns);
	command_release(&command_annotate, &line);
	return r;
}

static const char *const usages[] = { "[OPTION...] METHOD | FILE[:LINE]", NULL };

static const struct option_group *const groups[] = { &group, &filters };

static const struct command_example examples[] = {
	{ "rbpf annotate '^Cart#total$'", "the lines of a method, its callers and callees" },
	{ "rbpf annotate app/models/cart.rb", "the lines of a file" },
	{ "rbpf annotate --source-root ~/shop cart.rb:57", "a line, its source elsewhere" },
	{ "rbpf annotate --stack native '^deflate_slow$'", "the instructions of a C function" },
	{ NULL, NULL },
};

const struct command command_annotate = {
	.name = "annotate",
	.summary = "print source lines or instructions with their CPU time",
	.usage = usages,
	.about =
		"Prints the source of a method or a file, with the time of each line: TOTAL with "
		"what the line calls, SELF without. METHOD is a pattern for names of methods, FILE "
		"the path of a source file or the last parts of it. The source is what the "
		"recording has kept, or else read below --source-root. With --stack native, METHOD "
		"is a pattern for names of native functions, and their instructions are printed.",
	.groups = groups,
	.n_groups = ARRAY_SIZE(groups),
	.args = ARGS_TARGET,
	.examples = examples,
	.run = annotate_main,
};
