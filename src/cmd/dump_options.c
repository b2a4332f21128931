/* SPDX-License-Identifier: GPL-2.0-only */
/* The options of dump; what it does is in dump.c. */
#include "cmd/dump.h"

#include <errno.h>

#include "base/array.h"
#include "base/err.h"
#include "cmd/command.h"

#define OPT(member) .offset = offsetof(struct dump_options, member)

static const struct {
	enum stack_mode mode;
	const char *help;
} stacks[] = {
	{ STACK_RUBY, "Ruby frames" },
	{ STACK_NATIVE, "native frames" },
	{ STACK_MIXED, "both, without the interpreter's own native frames" },
	{ STACK_ALL, "all Ruby and native frames" },
};

enum stack_mode dump_stack_mode(unsigned int choice)
{
	return stacks[choice].mode;
}

static const char *stack_choice(size_t i)
{
	return i < ARRAY_SIZE(stacks) ? stack_mode_name(stacks[i].mode) : NULL;
}

static const char *stack_choice_help(size_t i)
{
	return stacks[i].help;
}

static const struct option_spec specs[] = {
	{
		.letter = 'p',
		.name = "pid",
		.type = OPTION_PIDS,
		OPT(pids),
		.arg = "LIST",
		.help = "print the stacks of these processes (pids separated by commas)",
		.complete = COMPLETE_RUBY_PID,
	},
	{
		.name = "children",
		.type = OPTION_SWITCH,
		OPT(children),
		.help = "print the stacks of all their descendants, too",
		.initial = "yes",
	},
	{
		.name = "native",
		.type = OPTION_FLAG,
		OPT(native),
		.help = "print native frames, too: the same as --stack mixed",
	},
	{
		.name = "stack",
		.type = OPTION_CHOICE,
		OPT(stack),
		.arg = "WHICH",
		.help = "print these frames",
		.choice = stack_choice,
		.choice_help = stack_choice_help,
	},
	{
		.name = "fold",
		.type = OPTION_SWITCH,
		OPT(fold),
		.help = "print threads with the same stack as one (not with --json)",
		.initial = "yes",
	},
	{
		.name = "requests",
		.type = OPTION_SWITCH,
		OPT(requests),
		.help = "tell which request or job each thread is in",
		.initial = "yes",
	},
	{
		.name = "request-paths",
		.type = OPTION_FLAG,
		OPT(request_paths),
		.help = "of a request of which only the server is known, not the controller, tell "
			"method and path, without ids",
	},
	{
		.name = "request-rules",
		.type = OPTION_STRING,
		OPT(request_rules),
		.arg = "FILE",
		.help = "tell requests by the rules in this file, too: rbpf-requests(5)",
		.complete = COMPLETE_FILE,
	},
	{
		.name = "json",
		.type = OPTION_FLAG,
		OPT(json),
		.help = "print JSON",
	},
};

static const struct option_group group = {
	.title = "Options",
	.options = specs,
	.n = ARRAY_SIZE(specs),
};

static int dump_main(struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	struct dump_options opts = { .stack = OPTION_UNSET };
	struct option_rest rest;
	int r;

	r = command_parse(&command_dump, ctx, &opts, argc, argv, &rest, err);
	if (!r && !opts.pids.n) {
		r = err_set(err, -EINVAL, ERR_USAGE, "which process? give -p PID");
		err_hint(err, "'rbpf ps' lists Ruby processes");
	}
	if (!r && opts.request_paths && !opts.requests)
		r = err_set(err, -EINVAL, ERR_USAGE,
			    "--request-paths and --no-requests exclude each other");
	if (!r && opts.request_rules && !opts.requests)
		r = err_set(err, -EINVAL, ERR_USAGE,
			    "--request-rules and --no-requests exclude each other");
	if (!r)
		r = dump_run(&opts, ctx, err);
	else if (r == COMMAND_DONE)
		r = 0;
	command_release(&command_dump, &opts);
	return r;
}

static const char *const usages[] = { "-p PID[,PID...] [OPTION...]", NULL };

static const struct option_group *const groups[] = { &group };

static const struct command_example examples[] = {
	{ "sudo rbpf dump -p 4242", "where are it and its child processes stuck?" },
	{ "sudo rbpf dump -p 4242 --native", "in which function of which library?" },
	{ "sudo rbpf dump -p 4242 --json", "as JSON, for a script: a line for each process" },
	{ NULL, NULL },
};

const struct command command_dump = {
	.name = "dump",
	.summary = "print the current stack of every thread of Ruby processes",
	.usage = usages,
	.about = "Reads the stack of each thread of running Ruby processes once and prints it, "
		 "innermost frame first, with what the thread is doing. The processes are not "
		 "stopped. Needs root.",
	.groups = groups,
	.n_groups = ARRAY_SIZE(groups),
	.args = ARGS_NONE,
	.examples = examples,
	.run = dump_main,
};
