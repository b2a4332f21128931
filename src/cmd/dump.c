/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The present stack of every thread, read from outside while the threads run on.
 *
 * A thread that sleeps keeps its stack, so what is read is what is there. One that runs changes it
 * while it is read: its stack is taken when two readings in a row agree, and marked as changing if
 * none do.
 */
#include "cmd/dump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cmd/command.h"
#include "cmd/common.h"
#include "ruby/vm.h"
#include "ruby/walk.h"
#include "sample/environment.h"
#include "sample/session.h"
#include "symbol/resolver.h"
#include "target/process.h"

#define READ_ATTEMPTS 50

struct dump {
	struct process process;
	struct ruby_vm vm;
	struct resolver *resolver;
	struct rbpf_task *tasks;
	size_t n_tasks;
};

static const char *state_name(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
		return "sleeping";
	case 'D':
		return "disk";
	case 'T':
	case 't':
		return "stopped";
	case 'I':
		return "idle";
	default:
		return "ended";
	}
}

/* Read the stack until it holds still. *@changing tells that it did not. */
static int read_stack(const struct dump *d, uint64_t ec, struct ruby_stack *ret, bool *changing)
{
	struct ruby_stack before, now;
	int attempt, r;

	r = ruby_walk(&d->vm.mem, &d->vm.walk, ec, RBPF_MAX_FRAMES, &before);
	for (attempt = 0; !r && attempt < READ_ATTEMPTS; attempt++) {
		r = ruby_walk(&d->vm.mem, &d->vm.walk, ec, RBPF_MAX_FRAMES, &now);
		if (r)
			break;
		*changing = now.hash != before.hash || now.status != before.status;
		ruby_stack_deinit(&before);
		if (!*changing || attempt == READ_ATTEMPTS - 1) {
			*ret = now;
			return 0;
		}
		before = now;
	}
	return r;
}

/* One thread on its way to text or JSON. */
struct dump_thread {
	pid_t tid;
	char name[64]; /* valid UTF-8 */
	char state;
	bool has_ruby;
	bool changing;
	const uint32_t *symbols; /* the resolver's */
	size_t n_symbols;
};

static int look_at_thread(const struct dump *d, const struct rbpf_task *task,
			  struct dump_thread *ret)
{
	struct dump_thread t = { .tid = (pid_t)task->tid };
	struct buf clean _cleanup_(buf_deinit) = BUF_INIT;
	struct code_moment moment = { .gc_era = 0 };
	struct ruby_stack stack;
	char comm[16] = "";
	uint64_t ec;
	int r = 0;

	/* No collection since before the stack was read: what it leads to is what was there. */
	ruby_vm_gc_era(&d->vm, &moment.gc_era);
	t.state = thread_state(d->process.pid, t.tid);
	thread_name(d->process.pid, t.tid, comm);
	utf8_sanitise(&clean, comm, strlen(comm));
	snprintf(t.name, sizeof(t.name), "%s", buf_str(&clean));
	if (!ruby_vm_thread_ec(&d->vm, task->thread_pointer, &ec)) {
		r = read_stack(d, ec, &stack, &t.changing);
		if (r)
			return r;
		t.has_ruby = stack.status == RBPF_OK;
		resolver_round(d->resolver);
		r = resolver_stack(d->resolver, &moment, stack.frames, stack.n_frames, &t.symbols,
				   &t.n_symbols);
		ruby_stack_deinit(&stack);
	}
	*ret = t;
	return r;
}

static void add_json(struct json *j, const struct dump *d, const struct dump_thread *t)
{
	size_t i;

	json_object_begin(j, NULL);
	json_u64(j, "tid", (uint64_t)t->tid);
	json_str(j, "name", t->name);
	json_str(j, "state", state_name(t->state));
	json_bool(j, "changing", t->changing);
	json_array_begin(j, "frames");
	for (i = 0; i < t->n_symbols; i++) {
		const struct symbol *s = resolver_symbol(d->resolver, t->symbols[i]);

		json_object_begin(j, NULL);
		json_str(j, "kind", frame_kind_name(s->kind));
		json_str(j, "label", s->name);
		json_str(j, "path", s->file);
		json_u64(j, "line", s->line);
		if (s->approximate)
			json_bool(j, "approximate", true);
		json_str(j, "module", "");
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

/* Labels stand in a column; one that is wider pushes its own place to the right. */
static size_t label_column(const struct dump *d, const struct dump_thread *t)
{
	size_t i, width = 0, len;

	for (i = 0; i < t->n_symbols; i++) {
		len = utf8_len(resolver_symbol(d->resolver, t->symbols[i])->name);
		if (len > width && len <= 48)
			width = len;
	}
	return width;
}

static void add_text(struct buf *out, const struct dump *d, const struct dump_thread *t)
{
	size_t i, width = label_column(d, t), len;

	buf_addf(out, "thread %d \"%s\"  (%s%s)\n", (int)t->tid, t->name, state_name(t->state),
		 t->changing ? ", changing while it is read" : "");
	for (i = 0; i < t->n_symbols; i++) {
		const struct symbol *s = resolver_symbol(d->resolver, t->symbols[i]);

		buf_addf(out, "    %s", s->name);
		len = utf8_len(s->name);
		if (s->kind == FRAME_CFUNC)
			buf_addstr(out, " (C)");
		else if (s->file[0]) {
			buf_add_repeat(out, ' ', (len < width ? width - len : 0) + 4);
			buf_addf(out, "  %s:%s%u", s->file, s->approximate ? "~" : "", s->line);
		}
		buf_addch(out, '\n');
	}
	if (!t->n_symbols)
		buf_addf(out, "    %s\n", t->has_ruby ? "no Ruby frame" : "not a Ruby thread");
}

static int render(const struct dump *d, bool json_wanted, struct buf *out)
{
	struct json j = JSON_INIT(out);
	struct buf clean _cleanup_(buf_deinit) = BUF_INIT;
	struct dump_thread t;
	size_t i;
	int r;

	utf8_sanitise(&clean, d->process.cmdline, strlen(d->process.cmdline));
	if (json_wanted) {
		json_object_begin(&j, NULL);
		json_u64(&j, "pid", (uint64_t)d->process.pid);
		json_str(&j, "ruby", d->vm.binary.version);
		json_array_begin(&j, "threads");
	} else {
		buf_addf(out, "pid %d  %s   ruby %s\n", (int)d->process.pid, buf_str(&clean),
			 d->vm.binary.version);
	}
	for (i = 0; i < d->n_tasks; i++) {
		if (d->tasks[i].tgid != (uint32_t)d->process.pid)
			continue;
		r = look_at_thread(d, &d->tasks[i], &t);
		if (r)
			return r;
		if (json_wanted)
			add_json(&j, d, &t);
		else
			add_text(out, d, &t);
	}
	if (json_wanted) {
		json_array_end(&j);
		json_object_end(&j);
		buf_addch(out, '\n');
	}
	return 0;
}

int dump_run(const struct dump_options *opts, struct cmd_context *ctx, struct err *err)
{
	struct buf out _cleanup_(buf_deinit) = BUF_INIT;
	struct dump d = { .process = PROCESS_INIT };
	struct ruby_attach_options attach = { 0 };
	int r;

	r = environment_check(ctx->command_line, err);
	if (!r)
		r = ruby_sources_parse(ctx->layout_from, &attach.sources, err);
	if (!r)
		r = process_open(opts->pid, &d.process, err);
	if (r)
		return r;
	cmd_log_libbpf(ctx);
	r = session_list_threads(opts->pid, &d.tasks, &d.n_tasks, err);
	if (!r) {
		attach.tasks = d.tasks;
		attach.n_tasks = d.n_tasks;
		r = ruby_vm_attach(opts->pid, &attach, &d.vm, err);
		if (r == -ENOENT)
			process_not_ruby(&d.process, err);
	}
	if (!r && resolver_new(&d.vm, &d.resolver))
		r = err_oom(err);
	if (!r && render(&d, opts->json, &out))
		r = err_oom(err);
	if (!r && !process_alive(&d.process))
		r = err_set(err, -ESRCH, ERR_TARGET, "pid %d exited while it was looked at",
			    (int)opts->pid);
	if (!r)
		r = cmd_write(NULL, &out, err);
	resolver_free(d.resolver);
	ruby_vm_deinit(&d.vm);
	free(d.tasks);
	process_close(&d.process);
	return r;
}
