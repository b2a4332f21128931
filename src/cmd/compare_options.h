/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What diff and check have in common: their options, and the recordings of both sides.
 */
#ifndef RBPF_CMD_COMPARE_OPTIONS_H
#define RBPF_CMD_COMPARE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/filter_options.h"
#include "report/diff.h"

struct cmd_context;
struct err;

struct compare_line {
	unsigned int normalize; /* enum compare_normalize */
	unsigned int by;	/* what rows are: an index of its words */
	bool self, json, csv;
	struct filter_options filter;
};

#define N_COMPARE_OPTIONS 5
extern const struct option_spec compare_option_specs[N_COMPARE_OPTIONS];

/* The group of these options for a command whose struct @type has them as .compare. */
#define COMPARE_OPTION_GROUP(type)                                                                 \
	{                                                                                          \
		.title = "Options", .options = compare_option_specs, .n = N_COMPARE_OPTIONS,       \
		.offset = offsetof(type, compare),                                                 \
	}

/*
 * Read the recordings that @rest names, "BEFORE AFTER" or "BEFORE... -- AFTER...", one after the
 * other, and compare them into @d, whose comparison is COMPARISON_INIT before. Fails as
 * cmd_filter() and cmd_open_recording() do, and with ERR_USAGE if they are of different events, and
 * ERR_EMPTY if a side has no samples that pass the filters. The caller releases @d with
 * cmd_compare_release(), also after a failure.
 */
int cmd_compare(const struct cmd_context *ctx, struct compare_line *line,
		const struct option_rest *rest, struct diff *d, struct err *err);
void cmd_compare_release(struct diff *d);

/* Render @d as @line says and write it to stdout. */
int cmd_compare_write(const struct compare_line *line, const struct diff *d, struct err *err);

#endif
