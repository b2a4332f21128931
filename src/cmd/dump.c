/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/dump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cmd/command.h"
#include "cmd/messages.h"
#include "cmd/output.h"
#include "cmd/request_rules.h"
#include "dump/dump.h"
#include "dump/render.h"
#include "engine/bpf_engine.h"
#include "engine/privileges.h"
#include "request/rules.h"
#include "ruby/cache.h"
#include "ruby/vm.h"
#include "target/family.h"
#include "target/process.h"
#include "worker/file_worker.h"

/* One run of the command. */
struct dumping {
	const struct dump_options *opts;
	struct cmd_context *ctx;
	struct engine *engine;
	struct ruby_cache cache;
	struct ruby_attach_options attach;
	struct request_rules requests;
	struct dump_view view;
	struct family family;
	bool *dumped; /* of each of the family; owned */
	struct buf out;
};

/* Attach to @process and append its threads to @run->out, or nothing if that fails. */
static int dump_process(struct dumping *run, const struct process *process, struct err *err)
{
	struct buf text _cleanup_buf_ = BUF_INIT;
	struct dump *d;
	int r;

	run->attach.uid = process->context.uid;
	r = dump_open(run->engine, process, &run->attach,
		      run->opts->requests ? &run->requests : NULL, run->view.stack != STACK_RUBY,
		      &d, err);
	if (r)
		return r;
	r = run->opts->json ? dump_json(d, process, &run->view, &text)
			    : dump_text(d, process, &run->view, &text);
	dump_close(d);
	if (r || buf_failed(&text))
		return err_oom(err);
	if (!process_alive(process))
		return err_set(err, -ESRCH, ERR_TARGET, "pid %d exited while rbpf read its stacks",
			       (int)process->pid);
	if (!run->opts->json && run->out.len)
		buf_addch(&run->out, '\n');
	buf_add(&run->out, buf_str(&text), text.len);
	return 0;
}

/* The same by pid. */
static int dump_pid(struct dumping *run, pid_t pid, struct err *err)
{
	struct process process _cleanup_(process_close) = PROCESS_INIT;
	int r;

	r = process_open(pid, &process, err);
	if (!r)
		r = engine_follow(run->engine, pid, NULL, 0, err);
	if (r)
		return r;
	r = dump_process(run, &process, err);
	engine_forget(run->engine, pid);
	return r;
}

/*
 * A process that was asked for must be there, and be a Ruby or have one below it. What descends
 * from it may end at any time, and need not be a Ruby.
 */
static int dump_member(struct dumping *run, size_t i, struct err *not_ruby, struct err *err)
{
	const struct family_member *m = &run->family.v[i];
	struct err why = { 0 };
	int r;

	r = dump_pid(run, m->pid, &why);
	run->dumped[i] = !r;
	if (r == -ENOENT && m->root)
		not_ruby[i] = why;
	if (r == -ENOENT || !r)
		return 0;
	if (m->root || r == -ENOMEM) {
		*err = why;
		return r;
	}
	if (r != -ESRCH && r != -EAGAIN)
		cmd_warn(run->ctx, "%s", why.msg);
	return 0;
}

static bool has_ruby(const struct dumping *run, size_t root)
{
	for (size_t i = 0; i < run->family.n; i++)
		if (run->dumped[i] && family_descends(&run->family, i, root))
			return true;
	return false;
}

static int dump_family(struct dumping *run, struct err *err)
{
	_cleanup_free_ struct err *not_ruby = calloc(run->family.n + 1, sizeof(*not_ruby));
	size_t i;
	int r = 0;

	run->dumped = calloc(run->family.n + 1, sizeof(*run->dumped));
	if (!not_ruby || !run->dumped)
		return err_oom(err);
	for (i = 0; i < run->family.n && !r; i++)
		r = dump_member(run, i, not_ruby, err);
	for (i = 0; i < run->family.n && !r; i++) {
		if (!run->family.v[i].root || has_ruby(run, i))
			continue;
		*err = not_ruby[i];
		r = -ENOENT;
	}
	return r ? r : cmd_write(NULL, &run->out, err);
}

/* Load the BPF programs, without which no thread can be found, and give up what is not needed. */
static int open_engine(struct dumping *run, struct err *err)
{
	int r = bpf_engine_open_idle(&run->engine, err);

	if (!r)
		privileges_reduce();
	return r;
}

int dump_run(const struct dump_options *opts, struct cmd_context *ctx, struct err *err)
{
	struct file_worker worker _cleanup_(file_worker_deinit);
	struct dumping run = { .opts = opts,
			       .ctx = ctx,
			       .cache = RUBY_CACHE_INIT,
			       .requests = REQUEST_RULES_INIT,
			       .view = { .stack = opts->native ? STACK_MIXED : STACK_RUBY,
					 .fold = opts->fold },
			       .out = BUF_INIT };
	int r;

	file_worker_init(&worker, NULL);
	run.attach = (struct ruby_attach_options) { .worker = &worker, .cache = &run.cache };
	if (opts->stack != OPTION_UNSET)
		run.view.stack = dump_stack_mode(opts->stack);
	r = opts->requests ? cmd_request_rules(opts->request_rules, opts->request_paths,
					       &run.requests, err)
			   : 0;
	if (!r)
		r = cmd_check_environment(ctx, err);
	if (!r)
		r = ruby_sources_parse(ctx->layout_from, &run.attach.sources, err);
	if (!r)
		r = family_list(opts->pids.pids, opts->pids.n, opts->children, &run.family, err);
	if (!r)
		r = cmd_prepare_worker(&worker, err);
	if (!r) {
		cmd_log_libbpf(ctx);
		r = open_engine(&run, err);
	}
	if (!r)
		r = dump_family(&run, err);
	cmd_warn_of_unread(ctx, &worker);
	engine_close(run.engine);
	ruby_cache_deinit(&run.cache);
	family_deinit(&run.family);
	request_rules_deinit(&run.requests);
	free(run.dumped);
	buf_deinit(&run.out);
	return r;
}
