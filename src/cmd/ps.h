/* SPDX-License-Identifier: GPL-2.0-only */
/* The command ps: what its options say, and the function that does it. */
#ifndef RBPF_CMD_PS_H
#define RBPF_CMD_PS_H

#include <stdbool.h>

struct cmd_context;
struct err;

struct ps_options {
	bool json; /* at most one of the two */
	bool pids; /* pids only, one a line: for scripts and for shell completion */
};

/* List the Ruby processes. Returns 0, or a negative errno with @err set. */
int ps_run(const struct ps_options *opts, struct cmd_context *ctx, struct err *err);

#endif
