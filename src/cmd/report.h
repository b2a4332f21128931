/* SPDX-License-Identifier: GPL-2.0-only */
/* The command report: what its options say, and the function that does it. */
#ifndef RBPF_CMD_REPORT_H
#define RBPF_CMD_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/filter_options.h"
#include "cmd/shape_options.h"

struct cmd_context;
struct err;
struct option_rest;

struct report_line {
	const char *input;
	unsigned int by;   /* enum flat_by */
	unsigned int sort; /* enum flat_sort, or OPTION_UNSET */
	uint64_t limit;	   /* REPORT_NO_LIMIT if not given; 0: all */
	bool tree, inverted, gc, states, requests, waits, json, csv, md, info, merge_threads;
	const char *callers, *callees, *sandwich, *match; /* regexes or NULL */
	struct shape_options shape;
	struct filter_options filter;
};

/* What --by is given for enum flat_by; NULL: there is no such word. */
const char *report_by_word(size_t by);

/*
 * Print what is asked for of the recording that @rest names. Returns 0, or a negative errno with
 * @err set: ERR_USAGE for options that are right by themselves, but not together.
 */
int report_run(struct report_line *line, const struct option_rest *rest, struct cmd_context *ctx,
	       struct err *err);

#endif
