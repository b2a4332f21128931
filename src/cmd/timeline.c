/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/array.h"
#include "cmd/command.h"
#include "cmd/page_line.h"
#include "export/timeline.h"

static int timeline_main(struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	return cmd_page(&command_timeline, true, timeline_render, ctx, argc, argv, err);
}

static const char *const usages[] = { "[OPTION...] [FILE] > page.html", NULL };

static const struct option_group *const groups[] = { &page_option_group, &page_own_time_group };

static const struct command_example examples[] = {
	{ "rbpf timeline > page.html", "what the threads of rbpf.data did when" },
	{ "rbpf timeline --thread puma --from 10s --to 20s -o page.html puma.data",
	  "ten seconds of some threads" },
	{ NULL, NULL },
};

const struct command command_timeline = {
	.name = "timeline",
	.summary = "draw what each thread did when, as an HTML page",
	.usage = usages,
	.about = "Draws a row for each thread, with what it did in the course of time: where it "
		 "used the CPU and, in recordings made with --mode states, what it waited for. "
		 "The page is one file; in a browser it can be zoomed, and a click shows the stack "
		 "of a time.",
	.groups = groups,
	.n_groups = ARRAY_SIZE(groups),
	.args = ARGS_RECORDING,
	.examples = examples,
	.run = timeline_main,
};
