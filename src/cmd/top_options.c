/* SPDX-License-Identifier: GPL-2.0-only */
/* The options of top; what it does is in top.c. */
#include "cmd/top.h"

#include <errno.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "cmd/command.h"
#include "profile/window.h"
#include "top/choice.h"

#define OPT(member)    .offset = offsetof(struct top_options, member)
#define RECORD(member) OPT(record.member)

static const struct option_spec what_specs[] = {
	{
		.letter = 'p',
		.name = "pid",
		.type = OPTION_PIDS,
		RECORD(pids),
		.arg = "LIST",
		.help = "watch these processes (pids separated by commas)",
		.complete = COMPLETE_RUBY_PID,
	},
	{
		.name = "all-ruby",
		.type = OPTION_FLAG,
		RECORD(all_ruby),
		.help = "watch every Ruby on the machine, also those that start later; what is "
			"done "
			"if no processes are named",
	},
	{
		.name = "comm",
		.type = OPTION_STRING,
		RECORD(comm),
		.arg = "RE",
		.help = "watch every Ruby whose command line or name matches",
	},
	{
		.name = "cgroup",
		.type = OPTION_STRING,
		RECORD(cgroup),
		.arg = "PATH",
		.help = "watch every Ruby in this control group or below it",
		.complete = COMPLETE_FILE,
	},
	{
		.name = "container",
		.type = OPTION_STRING,
		RECORD(container),
		.arg = "ID",
		.help = "watch every Ruby in the container whose id begins with ID",
	},
	{
		.name = "user",
		.type = OPTION_STRING,
		RECORD(user),
		.arg = "USER",
		.help = "watch every Ruby of this user (name or uid)",
	},
	{
		.name = "children",
		.type = OPTION_SWITCH,
		RECORD(children),
		.help = "watch the child processes, too: those that run, and new ones",
		.initial = "yes",
	},
	{
		.name = "native",
		.type = OPTION_SWITCH,
		RECORD(native),
		.help = "unwind native stacks, too; the key n shows their frames",
	},
	{
		.name = "mode",
		.type = OPTION_CHOICE,
		RECORD(mode),
		.arg = "MODE",
		.help = "what to sample",
		.initial = "cpu",
		.choice = record_mode_name,
		.choice_hint = record_mode_hint,
	},
	{
		.name = "requests",
		.type = OPTION_SWITCH,
		RECORD(requests),
		.help = "tell which request or job each sample is of",
		.initial = "yes",
	},
	{
		.name = "request-paths",
		.type = OPTION_FLAG,
		RECORD(request_paths),
		.help = "of a request of which only the server is known, not the controller, tell "
			"method and path, without ids",
	},
	{
		.name = "request-rules",
		.type = OPTION_STRING,
		RECORD(request_rules),
		.arg = "FILE",
		.help = "tell requests by the rules in this file, too: rbpf-requests(5)",
		.complete = COMPLETE_FILE,
	},
	RECORD_ARGUMENTS_OPTION(RECORD),
	RECORD_FREQUENCY_OPTIONS(RECORD),
	{
		.name = "keep",
		.type = OPTION_DURATION,
		OPT(keep_ns),
		.arg = "TIME",
		.help = "keep so much of the past, at most 24h; less if it would take more than a "
			"quarter of --memlimit",
		.initial = "10m",
	},
	{
		.name = "memlimit",
		.type = OPTION_SIZE,
		RECORD(memory_limit),
		.arg = "SIZE",
		.help = "memory that rbpf may take before it forgets names, which it then reads "
			"again",
		.initial = "512M",
		.min = 32 << 20,
		.max = 1ull << 40,
	},
	{
		.name = "guarded",
		.type = OPTION_FLAG,
		RECORD(guarded),
		.help = "read the memory of processes in a helper process, so that no process can "
			"block rbpf; rbpf then uses 1.5 to 3 times the CPU time",
	},
	{
		.name = "as-root",
		.type = OPTION_FLAG,
		RECORD(as_root),
		.help = "run CMD as root, not as the user who ran sudo",
	},
};

static const struct option_spec output_specs[] = {
	{
		.name = "view",
		.type = OPTION_CHOICE,
		OPT(view),
		.arg = "VIEW",
		.help = "what to show first, and in plain text: by default processes, and methods "
			"if "
			"one process is watched",
		.choice = top_view_word,
	},
	{
		.name = "idle",
		.type = OPTION_STRING,
		OPT(idle),
		.arg = "REGEX",
		.help = "also take for idle the waits of methods whose name matches; see "
			"rbpf-report(1)",
	},
	{
		.letter = 'd',
		.name = "duration",
		.type = OPTION_DURATION,
		RECORD(duration_ns),
		.arg = "TIME",
		.help = "stop after this time (10, 5m), in whole seconds; with --once, the time "
			"that "
			"is shown",
	},
	{
		.name = "once",
		.type = OPTION_FLAG,
		OPT(once),
		.help = "show one second, or that of --duration, as plain text or JSON",
	},
	{
		.name = "plain",
		.type = OPTION_FLAG,
		OPT(plain),
		.help = "plain lines each second, for screen readers and files, and no keys",
	},
	{
		.name = "json",
		.type = OPTION_FLAG,
		OPT(json),
		.help = "a line of JSON for each second",
	},
	{
		.letter = 'n',
		.name = "limit",
		.type = OPTION_U64,
		OPT(rows),
		.arg = "N",
		.help = "rows of plain text, and of each list in JSON; 0 is all",
		.initial = "20",
		.max = 1000000,
	},
};

static const struct option_group what_group = {
	.title = "What to watch",
	.options = what_specs,
	.n = ARRAY_SIZE(what_specs),
};

static const struct option_group output_group = {
	.title = "Output",
	.options = output_specs,
	.n = ARRAY_SIZE(output_specs),
};

static int usage(struct err *err, const char *message)
{
	return err_set(err, -EINVAL, ERR_USAGE, "%s", message);
}

static int prepare(struct top_options *opts, const struct option_rest *rest, struct err *err)
{
	struct record_options *rec = &opts->record;

	/* In an incident one command has to do. */
	if (!rec->pids.n && !rest->n)
		rec->all_ruby = true;
	if (rec->request_paths && !rec->requests)
		return usage(err, "--request-paths and --no-requests exclude each other");
	if (rec->request_rules && !rec->requests)
		return usage(err, "--request-rules and --no-requests exclude each other");
	if (opts->json && opts->plain)
		return usage(err, "--json and --plain exclude each other");
	if (opts->json && opts->view != OPTION_UNSET)
		return usage(err, "--view does not go with --json, which has all lists");
	if (opts->view == TOP_STATES && !record_mode_waits(rec->mode))
		return usage(err, "--view states needs --mode states");
	if (opts->idle && !record_mode_waits(rec->mode))
		return usage(err, "--idle needs --mode states");
	if (opts->keep_ns < NSEC_PER_SEC || opts->keep_ns > WINDOW_MAX_SECONDS * NSEC_PER_SEC)
		return usage(err, "--keep must be between 1s and 24h");
	if (rec->duration_ns > opts->keep_ns && opts->once)
		return usage(err, "--once cannot show more than --keep keeps");
	return record_take_live(rec, rest, err);
}

static int top_main(struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	struct top_options opts = { .record.max_cost = RECORD_COST_UNSET, .view = OPTION_UNSET };
	struct option_rest rest;
	int r;

	r = command_parse(&command_top, ctx, &opts, argc, argv, &rest, err);
	if (!r)
		r = prepare(&opts, &rest, err);
	if (!r)
		r = top_run(&opts, ctx, err);
	else if (r == COMMAND_DONE)
		r = 0;
	command_release(&command_top, &opts);
	return r;
}

static const char *const usages[] = { "[-p PID[,PID...] | --all-ruby] [OPTION...]",
				      "[OPTION...] -- CMD [ARG...]", NULL };

static const struct option_group *const groups[] = { &what_group, &output_group };

static const struct command_example examples[] = {
	{ "sudo rbpf top", "watch every Ruby on the machine" },
	{ "sudo rbpf top -p 4242", "watch process 4242 and its children" },
	{ "sudo rbpf top --once -d 10s", "what took CPU time in the next ten seconds, as text" },
	{ "sudo rbpf top -p 4242 --json -d 1m > top.json",
	  "the methods of each second, for scripts" },
	{ NULL, NULL },
};

const struct command command_top = {
	.name = "top",
	.summary = "watch what Ruby processes spend CPU time on",
	.usage = usages,
	.about = "Shows each second what the Rubies of this machine do: their processes, threads, "
		 "requests, methods and call trees, in the last 1, 10 or 60 seconds or in all that "
		 "is kept. Nothing is written but what the key S saves, and memory is bounded.\n\n"
		 "The key ? shows all keys. Needs root.",
	.groups = groups,
	.n_groups = ARRAY_SIZE(groups),
	.args = ARGS_PROGRAM,
	.examples = examples,
	.run = top_main,
};
