/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/dump.h"

#include <errno.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cmd/command.h"
#include "cmd/messages.h"
#include "cmd/output.h"
#include "dump/dump.h"
#include "dump/render.h"
#include "engine/environment.h"
#include "ruby/vm.h"
#include "target/process.h"
#include "worker/file_worker.h"

/* Attach to @process and look at its threads. */
static int look(const struct process *process, const struct ruby_attach_options *attach,
		enum stack_mode stack, bool json, struct buf *out, struct err *err)
{
	struct dump *d;
	int r;

	r = dump_open(process, attach, stack != STACK_RUBY, &d, err);
	if (r)
		return r;
	r = json ? dump_json(d, process, stack, out) : dump_text(d, process, stack, out);
	dump_close(d);
	if (r)
		return err_code(err, r);
	if (!process_alive(process))
		return err_set(err, -ESRCH, ERR_TARGET, "pid %d exited while rbpf read its stacks",
			       (int)process->pid);
	return 0;
}

int dump_run(const struct dump_options *opts, struct cmd_context *ctx, struct err *err)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct process process _cleanup_(process_close) = PROCESS_INIT;
	struct file_worker worker _cleanup_(file_worker_deinit);
	struct ruby_attach_options attach = { .worker = &worker };
	enum stack_mode stack = opts->native ? STACK_MIXED : STACK_RUBY;
	int r;

	file_worker_init(&worker, NULL);
	if (opts->stack != OPTION_UNSET)
		stack = dump_stack_mode(opts->stack);
	r = environment_check(ctx->command_line, err);
	if (!r)
		r = ruby_sources_parse(ctx->layout_from, &attach.sources, err);
	if (!r)
		r = process_open(opts->pid, &process, err);
	if (!r)
		r = cmd_prepare_worker(&worker, err);
	if (r)
		return r;
	cmd_log_libbpf(ctx);
	r = look(&process, &attach, stack, opts->json, &out, err);
	if (!r)
		r = cmd_write(NULL, &out, err);
	cmd_warn_of_files(ctx, &worker);
	return r;
}
