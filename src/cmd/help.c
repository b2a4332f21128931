/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/help.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "cmd/command.h"
#include "cmd/output.h"
#include "cmd/options.h"

#define HELP_WIDTH    80
#define OPTION_COLUMN 26 /* where the text of an option starts */

/*
 * Append @text, which is ASCII, broken at blanks so that no line passes HELP_WIDTH. The first line
 * goes on at column
 * @column; further ones are indented by @indent. "\n\n" starts a paragraph.
 */
static void add_wrapped(struct buf *out, const char *text, size_t column, size_t indent)
{
	bool first = true;
	size_t len;

	while (*text) {
		if (*text == '\n') {
			buf_addstr(out, "\n\n");
			buf_add_repeat(out, ' ', indent);
			column = indent;
			first = true;
			text += strspn(text, "\n");
			continue;
		}
		len = strcspn(text, " \n");
		if (!first && column + 1 + len > HELP_WIDTH) {
			buf_addch(out, '\n');
			buf_add_repeat(out, ' ', indent);
			column = indent;
		} else if (!first) {
			buf_addch(out, ' ');
			column++;
		}
		buf_add(out, text, len);
		column += len;
		first = false;
		text += len;
		text += strspn(text, " ");
	}
	buf_addch(out, '\n');
}

static void add_choices(struct buf *out, const struct option_spec *spec)
{
	const char *word;
	size_t i;

	buf_addstr(out, ": ");
	for (i = 0; (word = spec->choice(i)); i++) {
		if (i)
			buf_addstr(out, spec->choice(i + 1) ? ", " : " or ");
		buf_addstr(out, word);
	}
}

/* The same, a line for each word with what it means. */
static void add_choice_lines(struct buf *out, const struct option_spec *spec)
{
	const char *word;
	size_t start, i;

	for (i = 0; (word = spec->choice(i)); i++) {
		start = out->len;
		buf_addf(out, "            %-13s ", word);
		add_wrapped(out, spec->choice_help(i), out->len - start, OPTION_COLUMN);
	}
}

static void add_option_text(struct buf *out, const struct option_spec *spec)
{
	buf_addstr(out, spec->help);
	if (spec->type == OPTION_CHOICE && !spec->choice_help)
		add_choices(out, spec);
	if (spec->initial && spec->type != OPTION_SWITCH)
		buf_addf(out, " (default %s)", spec->initial);
	else if (spec->type == OPTION_SWITCH)
		buf_addf(out, " (default %s)", spec->initial ? spec->initial : "no");
}

static void add_option(struct buf *out, const struct option_spec *spec)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	size_t start = out->len, used;

	if (spec->letter)
		buf_addf(out, "  -%c, ", spec->letter);
	else
		buf_addstr(out, "      ");
	buf_addf(out, "--%s%s%s%s", spec->type == OPTION_SWITCH ? "[no-]" : "", spec->name,
		 spec->arg ? " " : "", spec->arg ? spec->arg : "");
	used = out->len - start;
	if (used + 2 > OPTION_COLUMN) {
		buf_addch(out, '\n');
		used = 0;
	}
	buf_add_repeat(out, ' ', OPTION_COLUMN - used);
	add_option_text(&text, spec);
	add_wrapped(out, buf_str(&text), OPTION_COLUMN, OPTION_COLUMN);
	if (spec->choice_help)
		add_choice_lines(out, spec);
}

static bool has_option(const struct command *cmd, const char *name)
{
	size_t g, i;

	for (g = 0; cmd && g < cmd->n_groups; g++)
		for (i = 0; i < cmd->groups[g]->n; i++)
			if (strcmp(cmd->groups[g]->options[i].name, name) == 0)
				return true;
	return false;
}

/* @hider is a command whose options of the same name come first; NULL if none. */
static void add_group(struct buf *out, const struct option_group *group,
		      const struct command *hider)
{
	size_t i;

	buf_addf(out, "\n%s:\n", group->title);
	for (i = 0; i < option_group_offered(group); i++)
		if (!has_option(hider, group->options[i].name))
			add_option(out, &group->options[i]);
}

static void render_rbpf(struct buf *out)
{
	size_t i;

	buf_addstr(out, "rbpf - profile Ruby programs from outside, with eBPF\n\n"
			"usage: rbpf [-v | -q] [--color WHEN] COMMAND [ARG...]\n\n"
			"Commands:\n");
	for (i = 0; i < n_commands; i++)
		buf_addf(out, "  %-12s %s\n", commands[i]->name, commands[i]->summary);
	add_group(out, &option_group_rbpf, NULL);
	buf_addstr(out, "\nExamples:\n"
			"  sudo rbpf record -p 4242 -d 30s\n"
			"  sudo rbpf record -- ruby script.rb\n"
			"  rbpf report\n"
			"  rbpf flame > out.svg\n"
			"\n'rbpf help COMMAND' says more about a command.\n");
}

void help_render(const struct command *cmd, struct buf *out)
{
	const struct command_example *ex;
	size_t i;

	if (!cmd) {
		render_rbpf(out);
		return;
	}
	buf_addf(out, "rbpf %s - %s\n\n", cmd->name, cmd->summary);
	for (i = 0; cmd->usage[i]; i++)
		buf_addf(out, "%s rbpf %s%s%s\n", i ? "      " : "usage:", cmd->name,
			 *cmd->usage[i] ? " " : "", cmd->usage[i]);
	buf_addch(out, '\n');
	add_wrapped(out, cmd->about, 0, 0);
	for (i = 0; i < cmd->n_groups; i++)
		add_group(out, cmd->groups[i], NULL);
	add_group(out, &option_group_global, cmd);
	buf_addstr(out, "\nExamples:\n");
	for (ex = cmd->examples; ex->line; ex++) {
		buf_addf(out, "  %s\n      ", ex->line);
		add_wrapped(out, ex->what, 6, 6);
	}
	if (cmd->page)
		buf_addf(out, "\nMore: man %s\n", cmd->page);
	else
		buf_addf(out, "\nMore: man rbpf-%s\n", cmd->name);
}

int help_print(const struct command *cmd, struct err *err)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	help_render(cmd, &out);
	return cmd_write(NULL, &out, err);
}

static void dump_group(struct buf *out, const char *command, const struct option_group *group)
{
	const struct option_spec *spec;
	char letter[3];
	size_t i;

	for (i = 0; i < option_group_offered(group); i++) {
		spec = &group->options[i];
		snprintf(letter, sizeof(letter), "-%c", spec->letter);
		buf_addf(out, "%s\t--%s\t%s\t%s\t%s\n", command, spec->name, letter,
			 spec->arg ? spec->arg : "-", spec->initial ? spec->initial : "-");
		if (spec->type == OPTION_SWITCH)
			buf_addf(out, "%s\t--no-%s\t-\t-\t-\n", command, spec->name);
	}
}

int help_print_options(struct err *err)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	size_t i, g;

	dump_group(&out, "rbpf", &option_group_rbpf);
	for (i = 0; i < n_commands; i++)
		for (g = 0; g < commands[i]->n_groups; g++)
			dump_group(&out, commands[i]->name, commands[i]->groups[g]);
	return cmd_write(NULL, &out, err);
}

static int help_run(struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	const struct command *cmd = NULL;
	struct option_rest rest;
	int r;

	r = command_parse(&command_help, ctx, NULL, argc, argv, &rest, err);
	if (r)
		return r == COMMAND_DONE ? 0 : r;
	if (rest.n) {
		r = command_lookup(rest.argv[0], &cmd, err);
		if (r)
			return r;
	}
	return help_print(cmd, err);
}

static const char *const usages[] = { "[COMMAND]", NULL };

static const struct command_example examples[] = {
	{ "rbpf help record", "the options of rbpf record" },
	{ NULL, NULL },
};

const struct command command_help = {
	.name = "help",
	.summary = "explain rbpf or one of its commands",
	.usage = usages,
	.about = "Prints what 'rbpf COMMAND --help' prints; without a COMMAND, what there is.",
	.args = ARGS_COMMAND,
	.page = "rbpf",
	.examples = examples,
	.run = help_run,
};
