/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the commands that make a page of a recording, timeline and heatmap, have in common: their
 * options, and how they are run.
 */
#ifndef RBPF_CMD_PAGE_LINE_H
#define RBPF_CMD_PAGE_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/filter_options.h"

struct buf;
struct command;
struct cmd_context;
struct err;
struct page_options;
struct profile;

/* The command line of both. */
struct page_line {
	const char *input;
	const char *output;
	const char *title;
	uint64_t max_size;
	uint64_t rows; /* heatmap's alone */
	struct filter_options filter;
};

#define PAGE_LINE(member) .offset = offsetof(struct page_line, member)

#define N_PAGE_OPTIONS	  4
extern const struct option_spec page_option_specs[N_PAGE_OPTIONS];
extern const struct option_group page_option_group;
extern const struct option_group page_filter_group;
extern const struct option_group page_own_time_group; /* the same but for events of others */

/* Append the page of @p to @out: timeline_render(), heatmap_render(). */
typedef int page_renderer(const struct profile *p, const struct page_options *opts, struct buf *out,
			  struct err *err);

/*
 * Parse the command line of @command, read the recording, render it and write the page.
 * @wall: struct read_options; it shows what threads did themselves, and nothing else.
 */
int cmd_page(const struct command *command, bool wall, page_renderer *render,
	     struct cmd_context *ctx, int argc, char **argv, struct err *err);

#endif
