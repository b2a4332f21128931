/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a command says besides its result: lines on stderr, in the form "rbpf: error: WHAT: WHY"
 * with a hint on a line of its own.
 */
#ifndef RBPF_CMD_MESSAGES_H
#define RBPF_CMD_MESSAGES_H

struct buf;
struct cmd_context;
struct err;
struct file_worker;

/* Print @err and return the exit status of its kind. @code is the errno that came with it. */
int cmd_fail(const struct cmd_context *ctx, int code, const struct err *err);

/* "rbpf: warning: …"; nothing with --quiet. */
void cmd_warn(const struct cmd_context *ctx, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The hint of @err, if it has one, below a warning; nothing with --quiet. */
void cmd_hint(const struct cmd_context *ctx, const struct err *err);

/* "rbpf: …"; nothing with --quiet. */
void cmd_info(const struct cmd_context *ctx, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* "rbpf: …", with --verbose only. */
void cmd_verbose(const struct cmd_context *ctx, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* From here on print what libbpf says, with --verbose only. */
void cmd_log_libbpf(const struct cmd_context *ctx);

/* Whole lines as they are (a summary), to stderr; nothing with --quiet. */
void cmd_lines(const struct cmd_context *ctx, const struct buf *lines);

/* environment_check() for the command of @ctx; warns of what reads worse without a capability. */
int cmd_check_environment(const struct cmd_context *ctx, struct err *err);

/*
 * Fork the processes of @worker, and those that read processes, before rbpf opens anything that
 * they could inherit. Returns 0, or fails with ERR_RUNTIME.
 */
int cmd_prepare_worker(struct file_worker *worker, struct err *err);

/* Warn of the processes that were given up, and of the files that @worker gave up. */
void cmd_warn_of_unread(const struct cmd_context *ctx, const struct file_worker *worker);

#endif
