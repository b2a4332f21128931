/* SPDX-License-Identifier: GPL-2.0-only */
/* The command dump: what its options say, and the function that does it. */
#ifndef RBPF_CMD_DUMP_H
#define RBPF_CMD_DUMP_H

#include <stdbool.h>
#include <sys/types.h>

struct cmd_context;
struct err;

/* Which frames to print. */
enum dump_stack {
	DUMP_RUBY,
	DUMP_NATIVE, /* all native ones */
	DUMP_MIXED,  /* both, but native ones only that tell more than the Ruby ones next to them */
	DUMP_ALL,    /* both */
};

struct dump_options {
	pid_t pid; /* always given */
	bool json;
	bool native;	    /* DUMP_MIXED, if stack says nothing */
	unsigned int stack; /* enum dump_stack or OPTION_UNSET */
};

/* Print the stack of every thread. Returns 0, or a negative errno with @err set. */
int dump_run(const struct dump_options *opts, struct cmd_context *ctx, struct err *err);

#endif
