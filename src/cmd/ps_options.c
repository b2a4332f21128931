/* SPDX-License-Identifier: GPL-2.0-only */
/* The options of ps; what it does is in ps.c. */
#include "cmd/ps.h"

#include <errno.h>

#include "base/array.h"
#include "base/err.h"
#include "cmd/command.h"

#define OPT(member) .offset = offsetof(struct ps_options, member)

static const struct option_spec specs[] = {
	{
		.name = "json",
		.type = OPTION_FLAG,
		OPT(json),
		.help = "print JSON",
	},
	{
		.name = "pids",
		.type = OPTION_FLAG,
		OPT(pids),
		.help = "print pids only, one a line",
	},
};

static const struct option_group group = {
	.title = "Options",
	.options = specs,
	.n = ARRAY_SIZE(specs),
};

static int ps_main(struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	struct ps_options opts = { .json = false };
	struct option_rest rest;
	int r;

	r = command_parse(&command_ps, ctx, &opts, argc, argv, &rest, err);
	if (r)
		return r == COMMAND_DONE ? 0 : r;
	if (opts.json && opts.pids)
		return err_set(err, -EINVAL, ERR_USAGE, "--json and --pids exclude each other");
	return ps_run(&opts, ctx, err);
}

static const char *const usages[] = { "[--json | --pids]", NULL };

static const struct option_group *const groups[] = { &group };

static const struct command_example examples[] = {
	{ "sudo rbpf ps", "which pid is the web server?" },
	{ "sudo rbpf record -d 30s -p $(sudo rbpf ps --pids | paste -sd,)",
	  "record every Ruby that runs now" },
	{ NULL, NULL },
};

const struct command command_ps = {
	.name = "ps",
	.summary = "list the Ruby processes that rbpf can see",
	.usage = usages,
	.about = "Lists the running Ruby processes with their pid, user, share of a CPU, age, "
		 "version and command. Without root it can look only into your own.",
	.groups = groups,
	.n_groups = ARRAY_SIZE(groups),
	.args = ARGS_NONE,
	.examples = examples,
	.run = ps_main,
};
