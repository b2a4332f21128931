/* SPDX-License-Identifier: GPL-2.0-only */
/* The command top: what its options say, and the function that does it. */
#ifndef RBPF_CMD_TOP_H
#define RBPF_CMD_TOP_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/record.h"

struct top_options {
	struct record_options record; /* what is sampled; duration_ns also ends the screen */
	uint64_t keep_ns;	      /* how much of the past is kept */
	unsigned int view;	      /* enum top_view, OPTION_UNSET: that which fits the targets */
	uint64_t rows;		      /* of plain text and JSON; 0: all */
	const char *idle;	      /* a regex or NULL */
	bool once, json, plain;
};

/* Show. The options are complete and consistent. Returns 0 or a negative errno with @err set. */
int top_run(const struct top_options *opts, struct cmd_context *ctx, struct err *err);

#endif
