/* SPDX-License-Identifier: GPL-2.0-only */
/* The command dump: what its options say, and the function that does it. */
#ifndef RBPF_CMD_DUMP_H
#define RBPF_CMD_DUMP_H

#include <stdbool.h>

#include "cmd/options.h"
#include "view/stack_mode.h"

struct cmd_context;
struct err;

struct dump_options {
	struct pid_list pids; /* at least one */
	bool children;	      /* and their living descendants */
	bool json;
	bool fold;		   /* threads with the same stack, in text */
	bool requests;		   /* tell which request a thread serves, … */
	bool request_paths;	   /* … with method and path, where a rule reads them */
	const char *request_rules; /* … also by the rules in this file; NULL: none */
	bool native;		   /* STACK_MIXED, if stack says nothing */
	unsigned int stack;	   /* the choice, see dump_stack_mode(); or OPTION_UNSET */
};

/* The mode of a choice of --stack, by its index. */
enum stack_mode dump_stack_mode(unsigned int choice);

/*
 * Print the stack of every thread of every process. Returns 0, or a negative errno with @err set.
 */
int dump_run(const struct dump_options *opts, struct cmd_context *ctx, struct err *err);

#endif
