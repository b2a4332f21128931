/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/number.h"
#include "cmd/command.h"
#include "cmd/filter_options.h"
#include "cmd/output.h"
#include "cmd/open_recording.h"
#include "cmd/shape_options.h"
#include "export/flame.h"
#include "export/flame_diff.h"
#include "profile/profile.h"
#include "view/tree.h"
#include "view/filter.h"
#include "view/thread_series.h"

struct flame_line {
	const char *input;
	const char *diff;		 /* a recording, or NULL */
	const char *base_from, *base_to; /* another time of the same one to compare with, or NULL */
	const char *output;
	const char *title;
	bool icicle;
	bool inverted;
	double min_width; /* below 0: not given */
	uint64_t width;
	unsigned int color; /* of color_choice(), or OPTION_UNSET */
	unsigned int split; /* enum tree_split */
	bool merge_threads;
	struct shape_options shape;
	struct filter_options filter;
};

#define OPT(member) .offset = offsetof(struct flame_line, member)

static const char *color_choice(size_t i)
{
	static const char *const words[] = {
		[FLAME_COLOR_KIND] = "kind", [FLAME_COLOR_MODULE] = "module",
		[FLAME_COLOR_HASH] = "hash", [FLAME_COLOR_STATE] = "state",
		[FLAME_COLOR_GEM] = "gem",
	};

	/* The usual one has no word. */
	return i + 1 < ARRAY_SIZE(words) ? words[i + 1] : NULL;
}

static const char *split_choice(size_t i)
{
	static const char *const words[] = {
		[TREE_SPLIT_NONE] = "none",	[TREE_SPLIT_PROCESS] = "process",
		[TREE_SPLIT_THREAD] = "thread", [TREE_SPLIT_CONTAINER] = "container",
		[TREE_SPLIT_RUBY] = "ruby",	[TREE_SPLIT_REQUEST] = "request",
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
		.name = "title",
		.type = OPTION_STRING,
		OPT(title),
		.arg = "TEXT",
		.help = "title of the picture (default: what was recorded)",
	},
	{
		.name = "icicle",
		.type = OPTION_FLAG,
		OPT(icicle),
		.help = "put the outermost frames at the top",
	},
	{
		.name = "inverted",
		.type = OPTION_FLAG,
		OPT(inverted),
		.help = "start from the innermost frames, with their callers above",
	},
	{
		.name = "split",
		.type = OPTION_CHOICE,
		OPT(split),
		.arg = "BY",
		.help = "keep these apart",
		.initial = "none",
		.choice = split_choice,
	},
	{
		.name = "merge-threads",
		.type = OPTION_FLAG,
		OPT(merge_threads),
		.help = "with --split thread: one tower for threads of a process whose names "
			"differ in "
			"numbers only",
	},
	{
		.name = "color",
		.type = OPTION_CHOICE,
		OPT(color),
		.arg = "BY",
		.help = "what the colour of a frame shows (kind, and state where threads run and "
			"wait)",
		.choice = color_choice,
	},
	{
		.name = "diff",
		.type = OPTION_STRING,
		OPT(diff),
		.arg = "BASE",
		.help = "colour what has grown or shrunk since this recording",
		.complete = COMPLETE_FILE,
	},
	{
		.name = "base-from",
		.type = OPTION_STRING,
		OPT(base_from),
		.arg = "TIME",
		.help = "colour what has grown or shrunk since another time of the same recording, "
			"which begins here",
	},
	{
		.name = "base-to",
		.type = OPTION_STRING,
		OPT(base_to),
		.arg = "TIME",
		.help = "and that ends here",
	},
	{
		.name = "min-width",
		.type = OPTION_PERCENT,
		OPT(min_width),
		.arg = "PERCENT",
		.help = "leave out frames narrower than this share of the whole (0.01, or more "
			"if the picture would be too large to open)",
	},
	{
		.name = "width",
		.type = OPTION_U64,
		OPT(width),
		.arg = "PIXELS",
		.help = "width of the picture, 300 to 20000",
		.initial = "1200",
		.min = 300,
		.max = 20000,
	},
};

static const struct option_group group = {
	.title = "Options",
	.options = specs,
	.n = ARRAY_SIZE(specs),
};

static const struct option_group shape = SHAPE_OPTION_GROUP(struct flame_line);
static const struct option_group filters = FILTER_OPTION_GROUP(struct flame_line, filter);

static bool compares_times(const struct flame_line *line)
{
	return line->base_from || line->base_to;
}

/*
 * Whether the picture compares: with another recording or time, or slow requests with the others.
 */
static bool is_diff(const struct flame_line *line)
{
	return line->diff || compares_times(line) || line->filter.slower_than;
}

static enum flame_color color_of(const struct flame_line *line)
{
	if (is_diff(line))
		return FLAME_COLOR_DIFF;
	return line->color == OPTION_UNSET ? FLAME_COLOR_USUAL
					   : (enum flame_color)(line->color + 1);
}

/* Without Ruby frames it is not seen which gem a box is of. */
static int check_gem(const struct flame_line *line, enum stack_mode stack, struct err *err)
{
	if (color_of(line) != FLAME_COLOR_GEM || (stack != STACK_NATIVE && stack != STACK_BOTH))
		return 0;
	return err_set(err, -EINVAL, ERR_USAGE, "--color gem and --stack %s exclude each other",
		       stack_mode_name(stack));
}

/* Colours by state need samples that have one. */
static int check_event(const struct flame_line *line, const struct view_filter *filter,
		       struct err *err)
{
	if (color_of(line) != FLAME_COLOR_STATE)
		return 0;
	if (filter->event && !event_is_of_own_time(filter->event))
		return cmd_refuse_event(&line->filter, "--color state", filter->event, err);
	return 0;
}

static int check_diff(const struct flame_line *line, struct err *err)
{
	const bool times = compares_times(line);
	const char *what = line->diff	     ? "--diff"
			   : line->base_from ? "--base-from"
			   : line->base_to   ? "--base-to"
					     : "--request-slower-than";
	const char *other = line->split != TREE_SPLIT_NONE     ? "--split"
			    : line->filter.stack == STACK_BOTH ? "--stack both"
			    : line->color != OPTION_UNSET      ? "--color"
			    : line->diff && times	       ? "--base-from and --base-to"
			    : (line->diff || times) && line->filter.slower_than
				    ? "--request-slower-than"
			    : line->diff && line->filter.pids.n ? "--pid"
			    : line->diff && line->filter.tids.n ? "--tid"
								: NULL;

	if (is_diff(line) && other)
		return err_set(err, -EINVAL, ERR_USAGE, "%s and %s exclude each other", what,
			       other);
	return 0;
}

/* Of @rec, which is what is compared with. */
static int refuse_empty_base(const struct flame_line *line, const struct recording *rec,
			     struct err *err)
{
	const char *when = line->base_from && line->base_to ? " between --base-from and --base-to"
			   : line->base_from		    ? " after --base-from"
			   : line->base_to		    ? " before --base-to"
							    : "";

	err_set(err, -ENODATA, ERR_EMPTY, "no sample of %s%s passes the filters",
		recording_name(rec), when);
	err_hint(err, "there is nothing to compare with");
	return -ENODATA;
}

/* Read the recording that --diff names, or the other time of that of @rest. */
static int read_base(const struct cmd_context *ctx, const struct flame_line *line,
		     const struct option_rest *rest, struct flame_base *ret, struct err *err)
{
	static const struct option_rest none = { 0 };
	const struct read_options needs = { 0 };
	_cleanup_recording_ struct recording rec = RECORDING_INIT;
	struct filter_options options = line->filter;
	struct view_filter filter = VIEW_FILTER_INIT;
	struct reshape_options shape_to = { 0 };
	int r;

	if (compares_times(line)) {
		options.from = line->base_from;
		options.to = line->base_to;
		options.from_option = "--base-from";
		options.to_option = "--base-to";
	}
	r = cmd_filter(&options, STACK_MIXED, &filter, err);
	if (!r)
		r = cmd_shape(&line->shape, &shape_to, err);
	if (!r)
		r = line->diff
			    ? cmd_open_recording(ctx, line->diff, &none, &filter, &needs, &rec, err)
			    : cmd_open_recording(ctx, line->input, rest, &filter, &needs, &rec,
						 err);
	if (!r)
		r = cmd_shape_recording(&rec, &filter, &shape_to, err);
	if (!r) {
		r = flame_base_init(&rec.profile, &filter, line->inverted, ret);
		if (r)
			tree_error(r, err);
		else if (!ret->all.samples)
			r = refuse_empty_base(line, &rec, err);
	}
	cmd_shape_release(&shape_to);
	view_filter_deinit(&filter);
	return r;
}

/* What is not of the same kind is no more, and no less. */
static int check_same_event(const struct flame_base *base, const struct recording *rec,
			    const struct flame_line *line, struct err *err)
{
	const struct profile_event *event = profile_event(&rec->profile);

	if (!line->diff || event_is_same(&base->event, event))
		return 0;
	return err_set(err, -EINVAL, ERR_USAGE,
		       "%s is of the event %s, --diff %s of %s: --event chooses one", rec->path,
		       event->name, line->diff, base->event.name);
}

/* What slow requests are compared with: the others of @rec. */
static int take_other_requests(const struct recording *rec, const struct view_filter *filter,
			       bool inverted, struct flame_base *ret, struct err *err)
{
	struct view_filter others = *filter; /* what it owns stays @filter's */
	int r;

	others.not_slower = true;
	r = flame_base_init(&rec->profile, &others, inverted, ret);
	if (r)
		return tree_error(r, err);
	if (ret->all.samples)
		return 0;
	err_set(err, -ENODATA, ERR_EMPTY, "%s has no request that took up to %s",
		recording_name(rec), num_duration(filter->slower_than_ns).s);
	err_hint(err, "there is nothing to compare slower ones with");
	return -ENODATA;
}

/* Reshape @rec, and take what it is compared with if that is in it. */
static int shape_picture(struct recording *rec, struct view_filter *filter,
			 const struct reshape_options *shape_to, bool inverted,
			 struct flame_base *base, struct err *err)
{
	const uint64_t slower_than_ns = filter->slower_than_ns;
	int r;

	/* Of all requests. */
	filter->slower_than_ns = 0;
	r = cmd_shape_recording(rec, filter, shape_to, err);
	filter->slower_than_ns = slower_than_ns;
	if (!r && slower_than_ns)
		r = take_other_requests(rec, filter, inverted, base, err);
	return r;
}

static int flame_graph(const struct cmd_context *ctx, struct flame_line *line,
		       const struct option_rest *rest, struct view_filter *filter,
		       struct reshape_options *shape_to, struct flame_base *base, struct err *err)
{
	_cleanup_recording_ struct recording rec = RECORDING_INIT;
	const struct flame_options opts = {
		.filter = filter,
		.title = line->title,
		.icicle = line->icicle,
		.inverted = line->inverted,
		.min_width = line->min_width == 0  ? -1
			     : line->min_width < 0 ? 0 /* not given: its default */
						   : line->min_width,
		.width = (unsigned int)line->width,
		.color = color_of(line),
		.base = is_diff(line) ? base : NULL,
		.base_name = line->diff		    ? line->diff
			     : compares_times(line) ? "another time"
						    : "the other requests",
		.split = line->split,
		.command = ctx->command_line,
	};
	const struct read_options needs = { .by_thread = line->split != TREE_SPLIT_NONE,
					    .by_request = line->split == TREE_SPLIT_REQUEST,
					    .wall = color_of(line) == FLAME_COLOR_STATE };
	_cleanup_buf_ struct buf svg = BUF_INIT;
	int r;

	if (cmd_to_terminal(line->output))
		return cmd_refuse_terminal("SVG", "rbpf flame > out.svg", err);
	if (line->merge_threads && line->split != TREE_SPLIT_THREAD)
		return err_set(err, -EINVAL, ERR_USAGE, "--merge-threads needs --split thread");
	r = check_diff(line, err);
	if (!r && (line->diff || compares_times(line)))
		r = read_base(ctx, line, rest, base, err);
	if (r)
		return r;
	r = cmd_filter(&line->filter, STACK_MIXED, filter, err);
	if (!r)
		r = cmd_shape(&line->shape, shape_to, err);
	if (r)
		return r;
	r = check_event(line, filter, err);
	if (!r)
		r = check_gem(line, filter->stack, err);
	if (r)
		return r;
	r = cmd_open_recording(ctx, line->input, rest, filter, &needs, &rec, err);
	if (!r)
		r = check_same_event(base, &rec, line, err);
	if (!r)
		r = cmd_check_output(line->output, rec.path, err);
	if (r)
		return r;
	cmd_limit_output(&rec, &svg);
	r = shape_picture(&rec, filter, shape_to, line->inverted, base, err);
	if (!r && line->merge_threads)
		r = err_code(err, thread_series_find(&rec.profile, filter));
	if (!r)
		r = flame_render(&rec.profile, &opts, &svg, err);
	r = cmd_rendered(r, &rec, &svg, err);
	if (r)
		return r;
	return cmd_write(line->output, &svg, err);
}

static int flame_main(struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	struct view_filter filter = VIEW_FILTER_INIT;
	struct reshape_options shape_to = { 0 };
	struct flame_base base = { 0 };
	struct flame_line line = { .min_width = -1,
				   .color = OPTION_UNSET,
				   .filter = FILTER_OPTIONS_INIT };
	struct option_rest rest;
	int r;

	r = command_parse(&command_flame, ctx, &line, argc, argv, &rest, err);
	if (!r)
		r = flame_graph(ctx, &line, &rest, &filter, &shape_to, &base, err);
	else if (r == COMMAND_DONE)
		r = 0;
	view_filter_deinit(&filter);
	cmd_shape_release(&shape_to);
	flame_base_deinit(&base);
	command_release(&command_flame, &line);
	return r;
}

static const char *const usages[] = { "[OPTION...] [FILE] > out.svg", NULL };

static const struct option_group *const groups[] = { &group, &shape, &filters };

static const struct command_example examples[] = {
	{ "rbpf flame > out.svg", "the flame graph of rbpf.data" },
	{ "rbpf flame --split thread --stack ruby -o threads.svg puma.data",
	  "one tower for each thread, of Ruby methods only" },
	{ "rbpf flame --diff before.data after.data > diff.svg",
	  "after.data, with colours for what has changed" },
	{ "rbpf flame --base-to 10s --from 10s > later.svg",
	  "what takes more or less after the first ten seconds than in them" },
	{ "rbpf flame --request-slower-than 500ms > slow.svg",
	  "requests of more than half a second, with colours for what others do less or more of" },
	{ "rbpf flame --color state > wall.svg",
	  "what threads do and wait for, of a recording made with --mode states" },
	{ "rbpf flame --stack both > both.svg", "Ruby and native stacks side by side" },
	{ NULL, NULL },
};

const struct command command_flame = {
	.name = "flame",
	.summary = "draw the flame graph of a recording, as SVG",
	.usage = usages,
	.about = "Draws where the CPU time went: the width of a frame is its share, and a frame "
		 "stands "
		 "on its caller. The picture is one SVG file; in a browser it can be zoomed and "
		 "searched. Without --stack it has the frames of --stack mixed.",
	.groups = groups,
	.n_groups = ARRAY_SIZE(groups),
	.args = ARGS_RECORDING,
	.examples = examples,
	.run = flame_main,
};
