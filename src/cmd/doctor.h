/* SPDX-License-Identifier: GPL-2.0-only */
/* The command doctor: what its options say, and the function that does it. */
#ifndef RBPF_CMD_DOCTOR_H
#define RBPF_CMD_DOCTOR_H

#include <stdbool.h>
#include <sys/types.h>

struct cmd_context;
struct err;

struct doctor_options {
	pid_t pid; /* 0 if not given */
	bool json;
};

/*
 * Check what recording needs. Returns 0 if it will work, ERR_ENV or ERR_TARGET (as exit statuses:
 * all was said) if not on this machine, or not of this process, or a negative errno with @err set.
 */
int doctor_run(const struct doctor_options *opts, struct cmd_context *ctx, struct err *err);

#endif
