/* SPDX-License-Identifier: GPL-2.0-only */
/* The command dump: what its options say, and the function that does it. */
#ifndef RBPF_CMD_DUMP_H
#define RBPF_CMD_DUMP_H

#include <stdbool.h>
#include <sys/types.h>

struct cmd_context;
struct err;

struct dump_options {
	pid_t pid; /* always given */
	bool json;
};

/* Print the stack of every thread. Returns 0, or a negative errno with @err set. */
int dump_run(const struct dump_options *opts, struct cmd_context *ctx, struct err *err);

#endif
