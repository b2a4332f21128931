/* SPDX-License-Identifier: GPL-2.0-only */
/* The options of serve; what it does is in serve.c. */
#include "cmd/serve.h"

#include <errno.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "cmd/command.h"
#include "cmd/open_recording.h"
#include "profile/window.h"

#define OPT(member)    .offset = offsetof(struct serve_line, member)
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
		.help = "watch every Ruby on the machine, also those that start later",
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
		.help = "unwind native stacks, too",
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

static const struct option_spec serve_specs[] = {
	{
		.letter = 'i',
		.name = "input",
		.type = OPTION_STRING,
		OPT(input),
		.arg = "FILE",
		.help = "the recording, if nothing is watched (default $RBPF_DATA "
			"or " CMD_DEFAULT_RECORDING ")",
		.complete = COMPLETE_FILE,
	},
	{
		.name = "listen",
		.type = OPTION_STRING,
		OPT(listen),
		.arg = "ADDRESS:PORT",
		.help = "where browsers reach it; port 0 is any that is free",
		.initial = "127.0.0.1:0",
	},
};

static const struct option_group serve_group = {
	.title = "Serving",
	.options = serve_specs,
	.n = ARRAY_SIZE(serve_specs),
};

static const struct option_group what_group = {
	.title = "What to watch",
	.options = what_specs,
	.n = ARRAY_SIZE(what_specs),
};

static int usage(struct err *err, const char *message)
{
	return err_set(err, -EINVAL, ERR_USAGE, "%s", message);
}

/* Whether processes are watched, and no recording is served. */
static bool is_live(const struct record_options *rec, const struct option_rest *rest)
{
	return rec->pids.n || rec->all_ruby || rec->comm || rec->cgroup || rec->container ||
	       rec->user || rest->n > rest->n_before;
}

static int prepare_live(struct serve_line *line, const struct option_rest *rest, struct err *err)
{
	struct record_options *rec = &line->record;

	if (line->input || rest->n_before)
		return usage(err, "a recording and processes to watch exclude each other");
	if (rec->request_paths && !rec->requests)
		return usage(err, "--request-paths and --no-requests exclude each other");
	if (rec->request_rules && !rec->requests)
		return usage(err, "--request-rules and --no-requests exclude each other");
	if (line->keep_ns < NSEC_PER_SEC || line->keep_ns > WINDOW_MAX_SECONDS * NSEC_PER_SEC)
		return usage(err, "--keep must be between 1s and 24h");
	return record_take_live(rec, rest, err);
}

static int serve_main(struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	struct serve_line line = { .record.max_cost = RECORD_COST_UNSET };
	struct option_rest rest;
	bool live;
	int r;

	r = command_parse(&command_serve, ctx, &line, argc, argv, &rest, err);
	if (!r)
		r = serve_address_parse(line.listen, &line.address, err);
	live = !r && is_live(&line.record, &rest);
	if (live)
		r = prepare_live(&line, &rest, err);
	if (!r)
		r = serve_run(&line, live ? NULL : &rest, ctx, err);
	else if (r == COMMAND_DONE)
		r = 0;
	command_release(&command_serve, &line);
	return r;
}

static const char *const usages[] = { "[OPTION...] [FILE]",
				      "{-p PID[,PID...] | --all-ruby} [OPTION...]",
				      "[OPTION...] -- CMD [ARG...]", NULL };

static const struct option_group *const groups[] = { &serve_group, &what_group };

static const struct command_example examples[] = {
	{ "rbpf serve puma.data", "look at a recording in a browser" },
	{ "sudo rbpf serve --all-ruby", "watch every Ruby on the machine in a browser" },
	{ "sudo rbpf serve -p 4242 --listen 127.0.0.1:8080", "process 4242, at a port for ssh -L" },
	{ NULL, NULL },
};

const struct command command_serve = {
	.name = "serve",
	.summary = "serve a page with all views, live or of a recording",
	.usage = usages,
	.about =
		"Prints the address of a page for a browser: overview, flame graph, table, "
		"timeline, "
		"heat map, requests and comparisons, of a recording or of processes that are being "
		"watched. Only who knows the address can open it, and by default only from this "
		"machine.\n\n"
		"Ctrl-C ends it. Watching processes needs root; what serves the page runs without "
		"privileges.",
	.groups = groups,
	.n_groups = ARRAY_SIZE(groups),
	.args = ARGS_RECORDING_OR_PROGRAM,
	.examples = examples,
	.run = serve_main,
};
