/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tables of the commands: what no compiler checks of them, and the help that is made from them.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/utf8.h"
#include "cmd/command.h"
#include "cmd/help.h"

#define MAX_NAME 40 /* well below what messages have room for */

/* All options that may be given to @cmd, its own first. */
static size_t all_options(const struct command *cmd, const struct option_spec **ret, size_t max)
{
	size_t n = 0, g, i;

	for (g = 0; g < cmd->n_groups; g++)
		for (i = 0; i < cmd->groups[g]->n; i++) {
			cr_assert_lt(n, max);
			ret[n++] = &cmd->groups[g]->options[i];
		}
	for (i = 0; i < option_group_global.n; i++) {
		cr_assert_lt(n, max);
		ret[n++] = &option_group_global.options[i];
	}
	return n;
}

static void assert_sane_option(const struct command *cmd, const struct option_spec *spec)
{
	const char *s;

	cr_assert(spec->name && *spec->name && spec->help && *spec->help);
	cr_expect_lt(strlen(spec->name), MAX_NAME);
	for (s = spec->name; *s; s++)
		cr_expect((*s >= 'a' && *s <= 'z') || *s == '-', "%s --%s", cmd->name, spec->name);
	/* "--no-x" is the other side of a switch, or a flag that takes something away. */
	cr_expect(strncmp(spec->name, "no-", 3) != 0 || spec->type == OPTION_FLAG, "%s --%s",
		  cmd->name, spec->name);
	cr_expect_eq(spec->arg != NULL, option_takes_value(spec->type), "%s --%s", cmd->name,
		     spec->name);
	cr_expect_eq(spec->choice != NULL, spec->type == OPTION_CHOICE, "%s --%s", cmd->name,
		     spec->name);
	if (spec->type == OPTION_U64 || spec->type == OPTION_SIZE)
		cr_expect_lt(spec->min, spec->max, "%s --%s", cmd->name, spec->name);
}

Test(command, tables_are_sane)
{
	const struct option_spec *all[64];
	size_t c, n, i, j;

	for (c = 0; c < n_commands; c++) {
		cr_assert(commands[c]->summary && commands[c]->about && commands[c]->usage[0]);
		cr_assert(commands[c]->examples && commands[c]->examples[0].line);
		cr_assert_not_null(commands[c]->run);
		cr_expect_eq(command_find(commands[c]->name), commands[c]);
		n = all_options(commands[c], all, ARRAY_SIZE(all));
		for (i = 0; i < n; i++)
			assert_sane_option(commands[c], all[i]);
		for (i = 0; i < n; i++)
			for (j = 0; j < i; j++)
				if (all[i]->letter)
					cr_expect_neq(all[i]->letter, all[j]->letter, "%s -%c",
						      commands[c]->name, all[i]->letter);
	}
}

Test(command, names_are_unique_but_for_the_hidden_color)
{
	const struct option_spec *all[64];
	size_t c, n, i, j;

	for (c = 0; c < n_commands; c++) {
		n = all_options(commands[c], all, ARRAY_SIZE(all));
		for (i = 0; i < n; i++)
			for (j = 0; j < i; j++)
				if (strcmp(all[i]->name, "color") != 0)
					cr_expect_str_neq(all[i]->name, all[j]->name, "%s",
							  commands[c]->name);
	}
}

Test(command, no_flag_is_taken_for_the_other_side_of_a_switch)
{
	const struct option_spec *all[64];
	char name[MAX_NAME + sizeof("no-")];
	size_t c, n, i, j;

	for (c = 0; c < n_commands; c++) {
		n = all_options(commands[c], all, ARRAY_SIZE(all));
		for (i = 0; i < n; i++) {
			if (all[i]->type != OPTION_SWITCH)
				continue;
			snprintf(name, sizeof(name), "no-%s", all[i]->name);
			for (j = 0; j < n; j++)
				cr_expect_str_neq(all[j]->name, name, "%s", commands[c]->name);
		}
	}
}

Test(command, initial_values_parse)
{
	/* Larger than the struct of any command, and aligned for all members. */
	static _Alignas(max_align_t) char room[4096];
	struct option_target target;
	struct err err = { 0 };
	size_t c;

	for (c = 0; c < n_commands; c++) {
		memset(room, 0, sizeof(room));
		target = (struct option_target) { commands[c]->groups, commands[c]->n_groups,
						  room };
		cr_expect_eq(options_init(&target, 1, &err), 0, "%s: %s", commands[c]->name,
			     err.msg);
		options_release(&target, 1);
	}
}

static void assert_help_fits(const char *name, const char *help)
{
	const char *line, *end;

	cr_assert_str_not_empty(help);
	for (line = help; *line; line = end + 1) {
		char copy[400];

		end = strchr(line, '\n');
		cr_assert_not_null(end, "the help of %s does not end with a newline", name);
		cr_assert_lt((size_t)(end - line), sizeof(copy), "%s", name);
		memcpy(copy, line, (size_t)(end - line));
		copy[end - line] = '\0';
		cr_expect_leq(utf8_len(copy), 80, "%s: '%s'", name, copy);
		cr_expect(end == line || end[-1] != ' ', "%s: blanks at the end of '%s'", name,
			  copy);
	}
}

Test(command, help_fits_80_columns)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	size_t c;

	help_render(NULL, &out);
	assert_help_fits("rbpf", buf_str(&out));
	for (c = 0; c < n_commands; c++) {
		buf_reset(&out);
		help_render(commands[c], &out);
		assert_help_fits(commands[c]->name, buf_str(&out));
	}
}

Test(command, lookup_says_what_was_meant)
{
	const struct command *cmd = NULL;
	struct err err = { 0 };

	cr_assert_eq(command_lookup("report", &cmd, &err), 0);
	cr_expect_eq(cmd, &command_report);
	cr_expect_eq(command_lookup("repotr", &cmd, &err), -ENOENT);
	cr_expect_eq(err.kind, ERR_USAGE);
	cr_expect_str_eq(err.msg, "unknown command 'repotr' (did you mean report?)");
	cr_expect_eq(cmd, &command_report, "untouched");
	cr_expect_eq(command_lookup("zzzzzzz", &cmd, &err), -ENOENT);
	cr_expect_str_eq(err.msg, "unknown command 'zzzzzzz'");
	cr_expect_str_eq(err.hint, "rbpf help");
}
