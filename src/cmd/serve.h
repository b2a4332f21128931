/* SPDX-License-Identifier: GPL-2.0-only */
/* The command serve: what its options say, and the function that does it. */
#ifndef RBPF_CMD_SERVE_H
#define RBPF_CMD_SERVE_H

#include <stdint.h>

#include "cmd/record.h"
#include "serve/guard.h"

struct serve_line {
	struct record_options record; /* what is sampled, if anything */
	const char *input;	      /* -i */
	const char *listen;
	uint64_t keep_ns; /* how much of the past is kept */
	struct serve_address address;
};

/*
 * Serve until a signal comes: what is sampled, or with @rest (NULL: sampled) the recording that it
 * or -i names. Returns 0 or a negative errno with @err set.
 */
int serve_run(struct serve_line *line, const struct option_rest *rest, struct cmd_context *ctx,
	      struct err *err);

#endif
