/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/messages.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fds.h"
#include "base/io.h"
#include "base/number.h"
#include "base/utf8.h"
#include "cmd/command.h"
#include "engine/bpf_engine.h"
#include "engine/environment.h"
#include "target/remote.h"
#include "ui/term.h"
#include "worker/file_worker.h"

/* One write(), so that lines of several processes do not mix. A failure has nowhere to be told. */
static void write_stderr(const struct buf *line)
{
	if (line->data)
		io_write_full(STDERR_FILENO, line->data, line->len);
}

static void message(const struct cmd_context *ctx, const char *label, const char *color,
		    const char *fmt, va_list ap)
{
	bool colored = color && term_color(STDERR_FILENO, ctx->color);
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_buf_ struct buf line = BUF_INIT;

	buf_vaddf(&text, fmt, ap);
	buf_addstr(&line, "rbpf: ");
	if (label)
		buf_addf(&line, "%s%s:%s ", colored ? color : "", label, colored ? TERM_RESET : "");
	utf8_sanitise(&line, buf_str(&text), text.len);
	buf_addch(&line, '\n');
	write_stderr(&line);
}

static void error_line(const struct cmd_context *ctx, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void error_line(const struct cmd_context *ctx, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	message(ctx, "error", TERM_RED, fmt, ap);
	va_end(ap);
}

static void add_hint(const struct err *err, struct buf *lines)
{
	if (err->hint[0])
		buf_addf(lines, "  hint: %s\n", err->hint);
	else if (err->code == -EMFILE)
		buf_addstr(lines, "  hint: " FDS_HINT "\n");
}

int cmd_fail(const struct cmd_context *ctx, int code, const struct err *err)
{
	_cleanup_buf_ struct buf lines = BUF_INIT;

	if (!err->code) {
		error_line(ctx, "internal error: %s", strerror(-code));
		return ERR_RUNTIME;
	}
	error_line(ctx, "%s", err->msg);
	if (err->excerpt[0]) {
		buf_addf(&lines, "  %s\n  ", err->excerpt);
		buf_add_repeat(&lines, ' ', err->column);
		buf_addstr(&lines, "^\n");
	}
	add_hint(err, &lines);
	write_stderr(&lines);
	return err->kind;
}

void cmd_warn(const struct cmd_context *ctx, const char *fmt, ...)
{
	va_list ap;

	if (ctx->quiet)
		return;
	va_start(ap, fmt);
	message(ctx, "warning", TERM_AMBER, fmt, ap);
	va_end(ap);
}

void cmd_hint(const struct cmd_context *ctx, const struct err *err)
{
	_cleanup_buf_ struct buf line = BUF_INIT;

	add_hint(err, &line);
	if (!ctx->quiet)
		write_stderr(&line);
}

void cmd_info(const struct cmd_context *ctx, const char *fmt, ...)
{
	va_list ap;

	if (ctx->quiet)
		return;
	va_start(ap, fmt);
	message(ctx, NULL, NULL, fmt, ap);
	va_end(ap);
}

void cmd_verbose(const struct cmd_context *ctx, const char *fmt, ...)
{
	va_list ap;

	if (!ctx->verbose)
		return;
	va_start(ap, fmt);
	message(ctx, NULL, NULL, fmt, ap);
	va_end(ap);
}

static void log_libbpf(const char *line)
{
	struct buf text _cleanup_buf_ = BUF_INIT;

	buf_addstr(&text, "libbpf| ");
	utf8_sanitise(&text, line, strlen(line));
	buf_addch(&text, '\n');
	write_stderr(&text);
}

void cmd_log_libbpf(const struct cmd_context *ctx)
{
	bpf_engine_set_log(ctx->verbose ? log_libbpf : NULL);
}

void cmd_lines(const struct cmd_context *ctx, const struct buf *lines)
{
	_cleanup_buf_ struct buf clean = BUF_INIT;
	const char *line = buf_str(lines);
	size_t len;

	if (ctx->quiet)
		return;
	while (*line) {
		len = strcspn(line, "\n");
		utf8_sanitise(&clean, line, len);
		buf_addch(&clean, '\n');
		line += len + (line[len] == '\n');
	}
	write_stderr(&clean);
}

int cmd_check_environment(const struct cmd_context *ctx, struct err *err)
{
	int r = environment_check(strcmp(ctx->command, "record") ? ctx->command : "recording",
				  ctx->command_line, err);

	if (!r && !environment_keeps_pages_shared())
		cmd_warn(ctx, "without CAP_DAC_READ_SEARCH, reading a forked worker copies the "
			      "memory pages that it shares; 'rbpf doctor' lists all capabilities");
	return r;
}

int cmd_prepare_worker(struct file_worker *worker, struct err *err)
{
	int r = file_worker_prepare(worker);

	remote_prepare();
	return r ? err_set(err, r, ERR_RUNTIME,
			   "cannot start the worker process that reads files: %s", strerror(-r))
		 : 0;
}

static void warn_of_processes(const struct cmd_context *ctx)
{
	const struct remote_losses *l = remote_losses();
	struct buf names _cleanup_(buf_deinit) = BUF_INIT;
	size_t i;

	if (!l->processes)
		return;
	for (i = 0; i < l->n_names; i++)
		buf_addf(&names, "%s%s", i ? ", " : "", l->names[i]);
	cmd_warn(ctx, "%s not be read, because " REMOTE_HANGS ": pid %s%s",
		 num_of(l->processes, "process could", "processes could").s, buf_str(&names),
		 l->processes > l->n_names ? ", ..." : "");
}

static void warn_of_files(const struct cmd_context *ctx, const struct file_worker *worker)
{
	const struct file_losses *l = &worker->losses;
	struct buf names _cleanup_(buf_deinit) = BUF_INIT;
	size_t i;

	if (!l->files)
		return;
	for (i = 0; i < l->n_names; i++)
		buf_addf(&names, "%s%s", i ? ", " : "", l->names[i]);
	cmd_warn(ctx, "%s not be read: %s%s", num_of(l->files, "file could", "files could").s,
		 buf_str(&names), l->files > l->n_names ? ", ..." : "");
}

void cmd_warn_of_unread(const struct cmd_context *ctx, const struct file_worker *worker)
{
	warn_of_processes(ctx);
	warn_of_files(ctx, worker);
}
