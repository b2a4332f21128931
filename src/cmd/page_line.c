/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/page_line.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cmd/command.h"
#include "cmd/open_recording.h"
#include "cmd/output.h"
#include "export/page_about.h"
#include "view/filter.h"

const struct option_spec page_option_specs[N_PAGE_OPTIONS] = {
	{
		.letter = 'i',
		.name = "input",
		.type = OPTION_STRING,
		PAGE_LINE(input),
		.arg = "FILE",
		.help = "the recording; - is stdin (default $RBPF_DATA or " CMD_DEFAULT_RECORDING
			")",
		.complete = COMPLETE_FILE,
	},
	{
		.letter = 'o',
		.name = "output",
		.type = OPTION_STRING,
		PAGE_LINE(output),
		.arg = "FILE",
		.help = "write to this file; - is stdout",
		.initial = "-",
		.complete = COMPLETE_FILE,
	},
	{
		.name = "title",
		.type = OPTION_STRING,
		PAGE_LINE(title),
		.arg = "TEXT",
		.help = "title of the page (default: what was recorded)",
	},
	{
		.name = "max-size",
		.type = OPTION_SIZE,
		PAGE_LINE(max_size),
		.arg = "SIZE",
		.help = "show less detail if the data would take more, 64K to 256M",
		.initial = "3M",
		.min = 64 << 10,
		.max = 256 << 20,
	},
};

const struct option_group page_option_group = {
	.title = "Options",
	.options = page_option_specs,
	.n = ARRAY_SIZE(page_option_specs),
};

const struct option_group page_filter_group = FILTER_OPTION_GROUP(struct page_line, filter);

const struct option_group page_own_time_group = {
	.title = "Filters",
	.options = filter_option_specs,
	.n = N_FILTER_OPTIONS,
	.n_refused = N_FILTER_OF_OTHERS,
	.offset = offsetof(struct page_line, filter),
};

/* What --waker and --blocker show is not the time of threads, whatever the recording has. */
static int refuse_others(const struct command *command, const struct filter_options *filter,
			 struct err *err)
{
	const char *option = filter->waker ? "--waker" : "--blocker";

	if (!filter->waker && !filter->blocker)
		return 0;
	err_set(err, -EINVAL, ERR_USAGE, "%s shows what threads did themselves: not with %s",
		command->name, option);
	err_hint(err, "'rbpf heatmap %s' and 'rbpf flame %s' show that", option, option);
	return -EINVAL;
}

static void add_word(const char *word, struct buf *out)
{
	buf_add(out, word, strlen(word) + 1);
}

static void add_name(const struct option_spec *spec, struct buf *out)
{
	buf_addf(out, "--%s", spec->name);
	buf_addch(out, '\0');
}

static void add_pids(const struct option_spec *spec, const struct pid_list *list, struct buf *out)
{
	if (!list->n)
		return;
	add_name(spec, out);
	for (size_t i = 0; i < list->n; i++)
		buf_addf(out, "%s%d", i ? "," : "", (int)list->pids[i]);
	buf_addch(out, '\0');
}

/* The filters as words of a command line, but for the times: see struct page_options. */
static void add_filters(const struct filter_options *filter, struct buf *out)
{
	for (size_t i = 0; i < N_FILTER_OPTIONS; i++) {
		const struct option_spec *spec = &filter_option_specs[i];
		const void *member = (const char *)filter + spec->offset;

		if (!strcmp(spec->name, "from") || !strcmp(spec->name, "to"))
			continue;
		if (spec->type == OPTION_STRING && *(const char *const *)member) {
			add_name(spec, out);
			add_word(*(const char *const *)member, out);
		} else if (spec->type == OPTION_FLAG && *(const bool *)member) {
			add_name(spec, out);
		} else if (spec->type == OPTION_PIDS) {
			add_pids(spec, member, out);
		} else if (spec->type == OPTION_CHOICE &&
			   *(const unsigned int *)member != OPTION_UNSET) {
			add_name(spec, out);
			add_word(spec->choice(*(const unsigned int *)member), out);
		}
	}
}

static int make_page(const struct command *command, bool wall, page_renderer *render,
		     const struct cmd_context *ctx, struct page_line *line,
		     const struct option_rest *rest, struct view_filter *filter, struct err *err)
{
	const struct read_options needs = { .read_again = true, .wall = wall };
	_cleanup_recording_ struct recording rec = RECORDING_INIT;
	_cleanup_buf_ struct buf page = BUF_INIT;
	_cleanup_buf_ struct buf filters = BUF_INIT;
	struct replay from = { 0 };
	struct page_options opts = { .filter = filter,
				     .from = &from,
				     .title = line->title,
				     .filters = &filters,
				     .command = ctx->command_line,
				     .max_bytes = line->max_size,
				     .rows = line->rows };
	char hint[64];
	int r;

	snprintf(hint, sizeof(hint), "rbpf %s > page.html", command->name);
	if (cmd_to_terminal(line->output))
		return cmd_refuse_terminal("HTML", hint, err);
	add_filters(&line->filter, &filters);
	r = buf_failed(&filters) ? err_oom(err) : 0;
	if (!r && wall)
		r = refuse_others(command, &line->filter, err);
	if (!r)
		r = cmd_filter(&line->filter, STACK_MIXED, filter, err);
	if (!r && filter->stack == STACK_BOTH)
		r = err_set(err, -EINVAL, ERR_USAGE,
			    "--stack both works with flame and report only");
	if (!r)
		r = cmd_open_recording(ctx, line->input, rest, filter, &needs, &rec, err);
	if (!r)
		r = cmd_check_output(line->output, rec.path, err);
	if (!r)
		r = cmd_prepare_recording(&rec, filter, err);
	if (r)
		return r;
	opts.recording = ctx->recording ? ctx->recording : rec.path;
	from = cmd_replay(&rec, filter, &needs);
	cmd_limit_output(&rec, &page);
	r = cmd_rendered(render(&rec.profile, &opts, &page, err), &rec, &page, err);
	return r ? r : cmd_write(line->output, &page, err);
}

int cmd_page(const struct command *command, bool wall, page_renderer *render,
	     struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	struct page_line line = { .filter = FILTER_OPTIONS_INIT };
	struct view_filter filter = VIEW_FILTER_INIT;
	struct option_rest rest;
	int r = command_parse(command, ctx, &line, argc, argv, &rest, err);

	if (!r)
		r = make_page(command, wall, render, ctx, &line, &rest, &filter, err);
	else if (r == COMMAND_DONE)
		r = 0;
	view_filter_deinit(&filter);
	command_release(command, &line);
	return r;
}
