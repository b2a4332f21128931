/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Completion for shells, made from the tables.
 *
 * Each shell gets a short fixed function and the data it works on. The pids of Ruby processes are
 * asked for when they are needed, from "rbpf ps --pids".
 */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "cmd/command.h"
#include "cmd/output.h"

typedef void (*option_visitor)(struct buf *out, const struct command *cmd,
			       const struct option_spec *spec);

/* Whether @cmd has an option of its own in place of the global one of this name. */
static bool hides(const struct command *cmd, const char *name)
{
	size_t g, i;

	for (g = 0; g < cmd->n_groups; g++)
		for (i = 0; i < cmd->groups[g]->n; i++)
			if (strcmp(cmd->groups[g]->options[i].name, name) == 0)
				return true;
	return false;
}

static void each_option(struct buf *out, const struct command *cmd, option_visitor visit)
{
	const struct option_group *global = &option_group_global;
	size_t g, i;

	for (g = 0; g < cmd->n_groups; g++)
		for (i = 0; i < option_group_offered(cmd->groups[g]); i++)
			visit(out, cmd, &cmd->groups[g]->options[i]);
	for (i = 0; i < global->n; i++)
		if (!hides(cmd, global->options[i].name))
			visit(out, cmd, &global->options[i]);
}

static void add_choices(struct buf *out, const struct option_spec *spec)
{
	const char *word;
	size_t i;

	for (i = 0; (word = spec->choice(i)); i++)
		buf_addf(out, "%s%s", i ? " " : "", word);
}

static void add_commands(struct buf *out)
{
	size_t i;

	for (i = 0; i < n_commands; i++)
		buf_addf(out, "%s%s", i ? " " : "", commands[i]->name);
}

#define SHELLS "bash zsh fish"

/* bash: _rbpf_options CMD and _rbpf_value CMD OPTION are case statements over the tables. */

static void bash_option(struct buf *out, const struct command *cmd, const struct option_spec *spec)
{
	(void)cmd;
	if (spec->letter)
		buf_addf(out, " -%c", spec->letter);
	buf_addf(out, " --%s", spec->name);
	if (spec->type == OPTION_SWITCH)
		buf_addf(out, " --no-%s", spec->name);
}

static void bash_value(struct buf *out, const struct command *cmd, const struct option_spec *spec)
{
	if (!option_takes_value(spec->type))
		return;
	buf_addf(out, "\t%s:--%s", cmd->name, spec->name);
	if (spec->letter)
		buf_addf(out, " | %s:-%c", cmd->name, spec->letter);
	buf_addstr(out, ") echo \"");
	if (spec->type == OPTION_CHOICE)
		add_choices(out, spec);
	else if (spec->complete == COMPLETE_FILE)
		buf_addstr(out, "@file");
	else if (spec->complete == COMPLETE_RUBY_PID)
		buf_addstr(out, "@pid");
	else
		buf_addstr(out, "@none");
	buf_addstr(out, "\" ;;\n");
}

static void bash_arguments(struct buf *out, const struct command *cmd)
{
	static const char *const words[] = {
		[ARGS_NONE] = "@none",
		[ARGS_RECORDING] = "@file",
		[ARGS_RECORDING_OR_PROGRAM] = "@file",
		[ARGS_PROGRAM] = "@none",
		[ARGS_COMMAND] = "@command",
		[ARGS_SHELL] = SHELLS,
		[ARGS_RECORDINGS] = "@file",
		[ARGS_TARGET] = "@file",
	};

	buf_addf(out, "\t%s) echo \"%s\" ;;\n", cmd->name, words[cmd->args]);
}

static void add_bash(struct buf *out)
{
	static const char functions[] =
		"_rbpf()\n"
		"{\n"
		"	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
		"	local cmd= what= i\n"
		"	COMPREPLY=()\n"
		"	# Readline splits \"--by=line\" at the \"=\".\n"
		"	if [[ $cur == = ]]; then\n"
		"		cur=\n"
		"	elif [[ $prev == = && COMP_CWORD -gt 1 ]]; then\n"
		"		prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
		"	fi\n"
		"	for ((i = 1; i < COMP_CWORD; i++)); do\n"
		"		case ${COMP_WORDS[i]} in\n"
		"		--)\n"
		"			# After \"--\" stands a program and what is its own.\n"
		"			_rbpf_program $((i + 1))\n"
		"			return ;;\n"
		"		-* | = | auto | always | never) ;;\n"
		"		*) [[ $cmd ]] || cmd=${COMP_WORDS[i]} ;;\n"
		"		esac\n"
		"	done\n"
		"	[[ $cmd ]] && what=$(_rbpf_value \"$cmd:$prev\")\n"
		"	[[ $prev == --color && ! $what ]] && what=\"auto always never\"\n"
		"	if [[ ! $what ]]; then\n"
		"		if [[ ! $cmd ]]; then\n"
		"			what=@command\n"
		"			[[ $cur == -* ]] && what=$(_rbpf_options rbpf)\n"
		"		elif [[ $cur == -* ]]; then\n"
		"			what=$(_rbpf_options \"$cmd\")\n"
		"		else\n"
		"			what=$(_rbpf_arguments \"$cmd\")\n"
		"		fi\n"
		"	fi\n"
		"	case $what in\n"
		"	@none) ;;\n"
		"	@file) compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
		"	@pid) COMPREPLY=($(compgen -W \"$(rbpf ps --pids 2>/dev/null)\" -- "
		"\"$cur\")) "
		";;\n"
		"	@command) COMPREPLY=($(compgen -W \"$_rbpf_commands\" -- \"$cur\")) ;;\n"
		"	*) COMPREPLY=($(compgen -W \"$what\" -- \"$cur\")) ;;\n"
		"	esac\n"
		"}\n"
		"\n"
		"_rbpf_program()\n"
		"{\n"
		"	if declare -F _command_offset >/dev/null; then\n"
		"		_command_offset \"$1\"\n"
		"	elif ((COMP_CWORD == $1)); then\n"
		"		COMPREPLY=($(compgen -c -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
		"	else\n"
		"		compopt -o default\n"
		"	fi\n"
		"}\n"
		"\n"
		"complete -F _rbpf rbpf\n";
	size_t i;

	buf_addstr(out, "# bash completion for rbpf; made by 'rbpf completion bash'\n\n"
			"_rbpf_commands=\"");
	add_commands(out);
	buf_addstr(out, "\"\n\n_rbpf_options()\n{\n\tcase $1 in\n\trbpf) echo \"");
	for (i = 0; i < option_group_rbpf.n; i++)
		bash_option(out, NULL, &option_group_rbpf.options[i]);
	buf_addstr(out, "\" ;;\n");
	for (i = 0; i < n_commands; i++) {
		buf_addf(out, "\t%s) echo \"", commands[i]->name);
		each_option(out, commands[i], bash_option);
		buf_addstr(out, "\" ;;\n");
	}
	buf_addstr(out, "\tesac\n}\n\n_rbpf_value()\n{\n\tcase $1 in\n");
	for (i = 0; i < n_commands; i++)
		each_option(out, commands[i], bash_value);
	buf_addstr(out, "\tesac\n}\n\n_rbpf_arguments()\n{\n\tcase $1 in\n");
	for (i = 0; i < n_commands; i++)
		bash_arguments(out, commands[i]);
	buf_addstr(out, "\tesac\n}\n\n");
	buf_addstr(out, functions);
}

/* zsh: a call of _arguments for each command, with the help of each option. */

/*
 * In _arguments, help stands in brackets and a message ends at a colon, all within single quotes.
 */
static void zsh_text(struct buf *out, const char *s)
{
	for (; *s; s++) {
		if (*s == '\'')
			buf_addstr(out, "'\\''");
		else if (strchr("[]:\\", *s))
			buf_addf(out, "\\%c", *s);
		else
			buf_addch(out, *s);
	}
}

static void zsh_action(struct buf *out, const struct option_spec *spec)
{
	if (!option_takes_value(spec->type))
		return;
	buf_addch(out, ':');
	zsh_text(out, spec->arg);
	buf_addch(out, ':');
	if (spec->type == OPTION_CHOICE) {
		buf_addch(out, '(');
		add_choices(out, spec);
		buf_addch(out, ')');
	} else if (spec->complete == COMPLETE_FILE) {
		buf_addstr(out, "_files");
	} else if (spec->complete == COMPLETE_RUBY_PID) {
		buf_addstr(out, "_rbpf_pids");
	} else {
		buf_addch(out, ' ');
	}
}

static void zsh_option(struct buf *out, const struct command *cmd, const struct option_spec *spec)
{
	bool value = option_takes_value(spec->type);

	(void)cmd;
	if (spec->letter)
		buf_addf(out, " \\\n\t\t\t'(-%c --%s)'{-%c%s,--%s%s}'[", spec->letter, spec->name,
			 spec->letter, value ? "+" : "", spec->name, value ? "=" : "");
	else
		buf_addf(out, " \\\n\t\t\t'--%s%s[", spec->name, value ? "=" : "");
	zsh_text(out, spec->help);
	buf_addch(out, ']');
	zsh_action(out, spec);
	buf_addch(out, '\'');
	if (spec->type == OPTION_SWITCH)
		buf_addf(out, " \\\n\t\t\t'--no-%s[not --%s]'", spec->name, spec->name);
}

static void zsh_command(struct buf *out, const struct command *cmd)
{
	static const char *const arguments[] = {
		[ARGS_NONE] = "",
		[ARGS_RECORDING] = " \\\n\t\t\t':recording:_files'",
		[ARGS_RECORDING_OR_PROGRAM] = " \\\n\t\t\t':recording:_files'",
		[ARGS_RECORDINGS] = " \\\n\t\t\t'*:recording:_files'",
		[ARGS_TARGET] = " \\\n\t\t\t':file:_files'",
		[ARGS_PROGRAM] = " \\\n\t\t\t'(-):program: _command_names -e'"
				 " \\\n\t\t\t'*::argument: _normal'",
		[ARGS_COMMAND] = " \\\n\t\t\t':command:_rbpf_commands'",
		[ARGS_SHELL] = " \\\n\t\t\t':shell:(" SHELLS ")'",
	};

	buf_addf(out, "\t\t%s)\n\t\t_arguments -s", cmd->name);
	each_option(out, cmd, zsh_option);
	buf_addf(out, "%s ;;\n", arguments[cmd->args]);
}

static void add_zsh(struct buf *out)
{
	size_t i;

	buf_addstr(out, "#compdef rbpf\n"
			"# zsh completion for rbpf; made by 'rbpf completion zsh'\n\n"
			"_rbpf_pids()\n{\n"
			"	local -a pids\n"
			"	pids=(${(f)\"$(rbpf ps --pids 2>/dev/null)\"})\n"
			"	compadd -- $pids\n}\n\n"
			"_rbpf_commands()\n{\n"
			"	local -a commands\n"
			"	commands=(\n");
	for (i = 0; i < n_commands; i++) {
		buf_addf(out, "\t\t'%s:", commands[i]->name);
		zsh_text(out, commands[i]->summary);
		buf_addstr(out, "'\n");
	}
	buf_addstr(out, "	)\n	_describe command commands\n}\n\n"
			"_rbpf()\n{\n"
			"	local context state line\n"
			"	typeset -A opt_args\n"
			"	_arguments -C -s");
	for (i = 0; i < option_group_rbpf.n; i++)
		zsh_option(out, NULL, &option_group_rbpf.options[i]);
	buf_addstr(out, " \\\n\t\t\t'1:command:_rbpf_commands' \\\n\t\t\t'*::argument:->command'\n"
			"	[[ $state == command ]] || return\n"
			"	case $line[1] in\n");
	for (i = 0; i < n_commands; i++)
		zsh_command(out, commands[i]);
	buf_addstr(out, "	esac\n}\n\n"
			"if [[ $funcstack[1] == _rbpf ]]; then\n"
			"	_rbpf \"$@\"\n"
			"else\n"
			"	compdef _rbpf rbpf\n"
			"fi\n");
}

/* fish: a line for each option. */

static void fish_text(struct buf *out, const char *s)
{
	buf_addch(out, '\'');
	for (; *s; s++) {
		if (*s == '\'' || *s == '\\')
			buf_addch(out, '\\');
		buf_addch(out, *s);
	}
	buf_addch(out, '\'');
}

static void fish_line(struct buf *out, const char *condition, const struct option_spec *spec)
{
	buf_addf(out, "complete -c rbpf -n %s", condition);
	if (spec->letter)
		buf_addf(out, " -s %c", spec->letter);
	buf_addf(out, " -l %s", spec->name);
	if (spec->type == OPTION_CHOICE) {
		buf_addstr(out, " -x -a '");
		add_choices(out, spec);
		buf_addch(out, '\'');
	} else if (spec->complete == COMPLETE_FILE) {
		buf_addstr(out, " -r -F");
	} else if (spec->complete == COMPLETE_RUBY_PID) {
		buf_addstr(out, " -x -a '(rbpf ps --pids 2>/dev/null)'");
	} else if (option_takes_value(spec->type)) {
		buf_addstr(out, " -x");
	}
	buf_addstr(out, " -d ");
	fish_text(out, spec->help);
	buf_addch(out, '\n');
	if (spec->type == OPTION_SWITCH)
		buf_addf(out, "complete -c rbpf -n %s -l no-%s -d 'not --%s'\n", condition,
			 spec->name, spec->name);
}

static void fish_option(struct buf *out, const struct command *cmd, const struct option_spec *spec)
{
	char condition[80];

	snprintf(condition, sizeof(condition), "'__fish_seen_subcommand_from %s'", cmd->name);
	fish_line(out, condition, spec);
}

static void fish_arguments(struct buf *out, const struct command *cmd)
{
	static const char *const words[] = {
		[ARGS_NONE] = NULL,
		[ARGS_RECORDING] = "-F",
		[ARGS_RECORDING_OR_PROGRAM] = "-F",
		[ARGS_RECORDINGS] = "-F",
		[ARGS_TARGET] = "-F",
		[ARGS_PROGRAM] = "-F -a '(contains -- -- (commandline -opc); "
				 "and __fish_complete_command)'",
		[ARGS_COMMAND] = "-a \"$__rbpf_commands\"",
		[ARGS_SHELL] = "-a '" SHELLS "'",
	};

	if (words[cmd->args])
		buf_addf(out, "complete -c rbpf -n '__fish_seen_subcommand_from %s' %s\n",
			 cmd->name, words[cmd->args]);
}

static void add_fish(struct buf *out)
{
	size_t i;

	buf_addstr(out, "# fish completion for rbpf; made by 'rbpf completion fish'\n\n"
			"set -g __rbpf_commands ");
	add_commands(out);
	buf_addstr(out, "\ncomplete -c rbpf -f\n");
	for (i = 0; i < n_commands; i++) {
		buf_addf(out, "complete -c rbpf -n __fish_use_subcommand -a %s -d ",
			 commands[i]->name);
		fish_text(out, commands[i]->summary);
		buf_addch(out, '\n');
	}
	for (i = 0; i < option_group_rbpf.n; i++)
		fish_line(out, "__fish_use_subcommand", &option_group_rbpf.options[i]);
	for (i = 0; i < n_commands; i++) {
		each_option(out, commands[i], fish_option);
		fish_arguments(out, commands[i]);
	}
}

static int completion_main(struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	static const char *const shells[] = { "bash", "zsh", "fish" };
	static void (*const add[])(struct buf * out) = { add_bash, add_zsh, add_fish };
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct option_rest rest;
	const char *near;
	size_t i;
	int r;

	r = command_parse(&command_completion, ctx, NULL, argc, argv, &rest, err);
	if (r)
		return r == COMMAND_DONE ? 0 : r;
	if (!rest.n)
		return err_set(err, -EINVAL, ERR_USAGE, "which shell? bash, zsh or fish");
	for (i = 0; i < ARRAY_SIZE(shells); i++) {
		if (strcmp(rest.argv[0], shells[i]) != 0)
			continue;
		add[i](&out);
		return cmd_write(NULL, &out, err);
	}
	near = parse_nearest(rest.argv[0], shells, ARRAY_SIZE(shells));
	if (near)
		return err_set(err, -EINVAL, ERR_USAGE, "unknown shell '%s' (did you mean %s?)",
			       rest.argv[0], near);
	return err_set(err, -EINVAL, ERR_USAGE, "unknown shell '%s': there are bash, zsh and fish",
		       rest.argv[0]);
}

static const char *const usages[] = { "bash|zsh|fish", NULL };

static const struct command_example examples[] = {
	{ "rbpf completion bash > ~/.local/share/bash-completion/completions/rbpf", "for bash" },
	{ "source <(rbpf completion zsh)", "in ~/.zshrc, after compinit" },
	{ "rbpf completion fish > ~/.config/fish/completions/rbpf.fish", "for fish" },
	{ NULL, NULL },
};

const struct command command_completion = {
	.name = "completion",
	.summary = "print the completion script of a shell",
	.usage = usages,
	.about =
		"Prints a script that makes the shell complete the commands, options and values of "
		"rbpf, and the pids of Ruby processes.",
	.args = ARGS_SHELL,
	.examples = examples,
	.run = completion_main,
};
