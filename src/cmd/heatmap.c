/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/array.h"
#include "cmd/command.h"
#include "cmd/page_line.h"
#include "export/heatmap.h"

static const struct option_spec specs[] = {
	{
		.name = "rows",
		.type = OPTION_U64,
		PAGE_LINE(rows),
		.arg = "N",
		.help = "cells of a second, 1 to 1000",
		.initial = "50",
		.min = 1,
		.max = 1000,
	},
};

static const struct option_group group = {
	.title = "Heat map",
	.options = specs,
	.n = ARRAY_SIZE(specs),
};

static int heatmap_main(struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	return cmd_page(&command_heatmap, false, heatmap_render, ctx, argc, argv, err);
}

static const char *const usages[] = { "[OPTION...] [FILE] > page.html", NULL };

static const struct option_group *const groups[] = { &page_option_group, &group,
						     &page_filter_group };

static const struct command_example examples[] = {
	{ "rbpf heatmap > page.html", "when the CPU time of rbpf.data was used" },
	{ "rbpf heatmap --event wait --state gvl -o gvl.html puma.data",
	  "when threads waited for the GVL" },
	{ NULL, NULL },
};

const struct command command_heatmap = {
	.name = "heatmap",
	.summary = "draw when the CPU time was used, as an HTML page",
	.usage = usages,
	.about =
		"Draws a column for each second, with a cell for each fraction of it, whose colour "
		"shows how much CPU time was used then. The page is one file; in a browser, select "
		"a range of time to see its flame graph.",
	.groups = groups,
	.n_groups = ARRAY_SIZE(groups),
	.args = ARGS_RECORDING,
	.examples = examples,
	.run = heatmap_main,
};
