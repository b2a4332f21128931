/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "cmd/messages.h"
#include "cmd/help.h"
#include "cmd/other_profilers.h"
#include "ui/term.h"

const struct command *const commands[] = {
	&command_record,   &command_top,     &command_serve,  &command_report,
	&command_annotate, &command_diff,    &command_check,  &command_flame,
	&command_timeline, &command_heatmap, &command_export, &command_dump,
	&command_ps,	   &command_doctor,  &command_help,   &command_completion,
};
const size_t n_commands = ARRAY_SIZE(commands);

static const char *color_choice(size_t i)
{
	static const char *const words[] = { "auto", "always", "never" };

	return i < ARRAY_SIZE(words) ? words[i] : NULL;
}

#define OPT(member) .offset = offsetof(struct cmd_context, member)

static const struct option_spec rbpf_options[] = {
	{
		.letter = 'v',
		.name = "verbose",
		.type = OPTION_FLAG,
		OPT(verbose),
		.help = "say more on stderr",
	},
	{
		.letter = 'q',
		.name = "quiet",
		.type = OPTION_FLAG,
		OPT(quiet),
		.help = "print errors only",
	},
	{
		.name = "color",
		.type = OPTION_CHOICE,
		OPT(color),
		.arg = "WHEN",
		.help = "colour the terminal",
		.initial = "auto",
		.choice = color_choice,
	},
	{
		.name = "help",
		.type = OPTION_FLAG,
		OPT(help),
		.help = "print this help",
	},
	/* The last one is rbpf's alone. */
	{
		.name = "version",
		.type = OPTION_FLAG,
		OPT(version),
		.help = "print the version",
	},
};

const struct option_group option_group_rbpf = {
	.title = "Options",
	.options = rbpf_options,
	.n = ARRAY_SIZE(rbpf_options),
};

const struct option_group option_group_global = {
	.title = "Common options",
	.options = rbpf_options,
	.n = ARRAY_SIZE(rbpf_options) - 1,
};

static const struct option_spec hidden_options[] = {
	{
		.name = "layout-from",
		.type = OPTION_STRING,
		OPT(layout_from),
	},
};

const struct option_group option_group_hidden = {
	.options = hidden_options,
	.n = ARRAY_SIZE(hidden_options),
};

const struct command *command_find(const char *name)
{
	size_t i;

	for (i = 0; i < n_commands; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

/* What does here what other profilers have a command @name for; else where all commands are. */
static const char *instead_of(const char *name)
{
	static const struct {
		const char *theirs, *hint;
	} names[] = { { "snapshot", "'rbpf dump -p PID' says where each thread is now" },
		      { "flamegraph", "rbpf flame > out.svg" },
		      { "script", "rbpf export -f perf-script" },
		      { "version", "rbpf --version" } };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i].theirs, name))
			return names[i].hint;
	return "rbpf help";
}

int command_lookup(const char *name, const struct command **ret, struct err *err)
{
	const struct command *cmd = command_find(name);
	const char *words[ARRAY_SIZE(commands)];
	const char *near;
	size_t i;

	if (cmd) {
		*ret = cmd;
		return 0;
	}
	for (i = 0; i < n_commands; i++)
		words[i] = commands[i]->name;
	near = parse_nearest(name, words, n_commands);
	if (near)
		return err_set(err, -ENOENT, ERR_USAGE, "unknown command '%s' (did you mean %s?)",
			       name, near);
	err_set(err, -ENOENT, ERR_USAGE, "unknown command '%s'", name);
	err_hint(err, "%s", instead_of(name));
	return -ENOENT;
}

static bool is_number(const char *text)
{
	return *text && !text[strspn(text, "0123456789")];
}

static bool takes_pid(const struct command *cmd)
{
	for (size_t g = 0; g < cmd->n_groups; g++)
		for (size_t i = 0; i < cmd->groups[g]->n; i++)
			if (cmd->groups[g]->options[i].letter == 'p')
				return true;
	return false;
}

static int unexpected(const struct command *cmd, const char *argument, struct err *err)
{
	err_set(err, -EINVAL, ERR_USAGE, "unexpected argument '%s' for '%s'", argument, cmd->name);
	/* Other profilers take a pid so. */
	if (is_number(argument) && takes_pid(cmd))
		err_hint(err, "rbpf %s -p %s", cmd->name, argument);
	else if (cmd->args == ARGS_PROGRAM)
		err_hint(err, "rbpf %s -- %s ... runs a program", cmd->name, argument);
	return -EINVAL;
}

/* Most commands take the recording as an argument. */
static int unexpected_target(const struct command *cmd, const struct option_rest *rest,
			     struct err *err)
{
	unexpected(cmd, rest->argv[1], err);
	if (rest->n == 2)
		err_hint(err, "rbpf %s -i %s '%s'", cmd->name, rest->argv[0], rest->argv[1]);
	return -EINVAL;
}

static int refuse_arguments(const struct command *cmd, const struct option_rest *rest,
			    struct err *err)
{
	switch (cmd->args) {
	case ARGS_NONE:
		return rest->n ? unexpected(cmd, rest->argv[0], err) : 0;
	case ARGS_RECORDING:
	case ARGS_COMMAND:
	case ARGS_SHELL:
		return rest->n > 1 ? unexpected(cmd, rest->argv[1], err) : 0;
	case ARGS_TARGET:
		return rest->n > 1 ? unexpected_target(cmd, rest, err) : 0;
	case ARGS_PROGRAM:
		return rest->n_before ? unexpected(cmd, rest->argv[0], err) : 0;
	case ARGS_RECORDING_OR_PROGRAM:
		if (rest->n_before > 1)
			return unexpected(cmd, rest->argv[1], err);
		if (rest->n_before && rest->n > 1)
			return err_set(err, -EINVAL, ERR_USAGE,
				       "the recording '%s' and -- CMD exclude each other",
				       rest->argv[0]);
		return 0;
	case ARGS_RECORDINGS:
		return 0;
	}
	return 0;
}

static int check_context(const struct cmd_context *ctx, struct err *err)
{
	if (ctx->verbose && ctx->quiet)
		return err_set(err, -EINVAL, ERR_USAGE, "--verbose and --quiet exclude each other");
	return 0;
}

bool command_has_option(const struct command *cmd, const char *name, size_t len)
{
	for (size_t g = 0; g < cmd->n_groups; g++)
		for (size_t i = 0; i < cmd->groups[g]->n; i++)
			if (strlen(cmd->groups[g]->options[i].name) == len &&
			    !strncmp(cmd->groups[g]->options[i].name, name, len))
				return true;
	return false;
}

/* @option, as typed, is not one of @cmd, but maybe one of another command. */
static void hint_at_other_command(const struct command *cmd, const char *option, struct err *err)
{
	const char *name = option + 2;
	const int len = (int)strcspn(name, "=");

	if (other_profilers_hint(cmd, option, err) || option[1] != '-')
		return;
	for (size_t i = 0; i < n_commands; i++) {
		if (!command_has_option(commands[i], name, (size_t)len))
			continue;
		err_hint(err, "--%.*s is an option of 'rbpf %s'; 'rbpf help %s' has those of %s",
			 len, name, commands[i]->name, cmd->name, cmd->name);
		return;
	}
}

/* Something is wrong behind the words of @rest, or with an option. */
static void hint_at_mistake(const struct command *cmd, const struct option_rest *rest,
			    struct err *err)
{
	/* perf(1) takes the options behind a program as the program's. */
	if (cmd->args == ARGS_PROGRAM && rest->n_before && !is_number(rest->argv[0]))
		err_hint(err, "rbpf %s -- %s ... runs a program", cmd->name, rest->argv[0]);
	else if (rest->unknown)
		hint_at_other_command(cmd, rest->unknown, err);
}

int command_parse(const struct command *cmd, struct cmd_context *ctx, void *opts, int argc,
		  char **argv, struct option_rest *rest, struct err *err)
{
	static const struct option_group *const global[] = { &option_group_global,
							     &option_group_hidden };
	const struct option_target targets[] = {
		{ .groups = cmd->groups, .n_groups = cmd->n_groups, .base = opts },
		{ .groups = global, .n_groups = ARRAY_SIZE(global), .base = ctx },
	};
	int r;

	/* @ctx has its values since before the command was known: "rbpf --color never report". */
	r = options_init(targets, 1, err);
	if (r)
		return r;
	r = options_parse(targets, ARRAY_SIZE(targets), cmd->name, false, argc, argv, rest, err);
	if (r) {
		hint_at_mistake(cmd, rest, err);
		return r;
	}
	if (ctx->help) {
		r = help_print(cmd, err);
		return r ? r : COMMAND_DONE;
	}
	r = check_context(ctx, err);
	if (r)
		return r;
	return refuse_arguments(cmd, rest, err);
}

void command_release(const struct command *cmd, void *opts)
{
	const struct option_target target = {
		.groups = cmd->groups,
		.n_groups = cmd->n_groups,
		.base = opts,
	};

	options_release(&target, 1);
}

/* Options are rearranged while they are parsed, so this comes first. */
static char *join_arguments(int argc, char **argv)
{
	struct buf line = BUF_INIT;
	int i;

	for (i = 0; i < argc; i++) {
		if (i)
			buf_addch(&line, ' ');
		buf_add_shell_word(&line, argv[i]);
	}
	if (buf_failed(&line) || !line.data) {
		buf_deinit(&line);
		return NULL;
	}
	return line.data;
}

static int run(struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	static const struct option_group *const groups[] = { &option_group_rbpf };
	const struct option_target target = { .groups = groups, .n_groups = 1, .base = ctx };
	const struct command *cmd;
	struct option_rest rest;
	int r;

	r = options_init(&target, 1, err);
	if (r)
		return r;
	r = options_parse(&target, 1, NULL, true, argc, argv, &rest, err);
	if (r)
		return r;
	r = check_context(ctx, err);
	if (r)
		return r;
	if (ctx->version)
		return io_write_output(NULL, "rbpf " RBPF_VERSION "\n",
				       strlen("rbpf " RBPF_VERSION "\n"), err);
	if (ctx->help && !rest.n)
		return help_print(NULL, err);
	if (!rest.n) {
		err_set(err, -EINVAL, ERR_USAGE, "no command given");
		err_hint(err, "rbpf help");
		return -EINVAL;
	}
	if (strcmp(rest.argv[0], "__options") == 0)
		return help_print_options(err);
	r = command_lookup(rest.argv[0], &cmd, err);
	if (r)
		return r;
	ctx->command = cmd->name;
	return cmd->run(ctx, (int)rest.n, rest.argv, err);
}

int command_main(int argc, char **argv)
{
	_cleanup_free_ char *line = join_arguments(argc, argv);
	struct cmd_context ctx = { .command_line = line ? line : "rbpf" };
	struct err err = { 0 };
	int r;

	r = run(&ctx, argc, argv, &err);
	if (r >= 0)
		return r;
	return cmd_fail(&ctx, r, &err);
}
