/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The present stack of every thread, read from outside while the threads run on.
 *
 * A thread that sleeps keeps its stack, so what is read is what is there. One that runs changes it
 * while it is read: its stack is taken when two readings in a row agree, and marked as changing if
 * none do.
 *
 * A native stack is walked from the registers that the thread had when it entered the kernel last. It
 * has them still if it does not run, and has not run since: so its CPU time tells, looked at before
 * and after. For one that runs they are those of some moment before.
 */
#include "cmd/dump.h"

#include <errno.h>
#include <inttypes.h>
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
#include "cmd/messages.h"
#include "cmd/output.h"
#include "cmd/dump_native.h"
#include "ruby/vm.h"
#include "ruby/walk.h"
#include "engine/environment.h"
#include "native/native_here.h"
#include "engine/privileges.h"
#include "engine/bpf_engine.h"
#include "symbol/native_names.h"
#include "symbol/resolver.h"
#include "target/process.h"
#include "worker/file_worker.h"

#define READ_ATTEMPTS	50
#define NATIVE_ATTEMPTS 10 /* of all of these */

struct dump {
	struct process process;
	struct file_worker worker;
	struct engine *engine;
	enum dump_stack stack;
	struct ruby_vm vm;
	struct resolver *resolver;
	struct dump_native *native; /* NULL: DUMP_RUBY */
	struct rbpf_task *tasks;
	size_t n_tasks;
	struct rbpf_thread *threads; /* at the last look at registers */
	size_t n_threads;
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
	bool has_native;
	bool changing;
	struct dump_frame *frames; /* innermost first; owned */
	size_t n_frames;
	enum rbpf_native_end end;
	uint32_t n_gaps;
};

/* What was read of a thread, not named yet. */
struct readings {
	struct ruby_stack ruby;
	struct native_stack native;
	bool has_ec, has_native, changing;
};

static void readings_deinit(struct readings *r)
{
	ruby_stack_deinit(&r->ruby);
	native_stack_deinit(&r->native);
	*r = (struct readings) { 0 };
}

/* ---- reading ---- */

/* Look at the registers of all threads. */
static int look_at_registers(struct dump *d, struct err *err)
{
	struct rbpf_thread *threads;
	size_t n;
	int r;

	r = engine_read_registers(d->engine, d->process.pid, &threads, &n, err);
	if (r)
		return r;
	free(d->threads);
	d->threads = threads;
	d->n_threads = n;
	return 0;
}

/* Thread @tid as it was at the last look; false: it had ended. */
static bool find_thread(const struct dump *d, uint32_t tid, struct rbpf_thread *ret)
{
	size_t i;

	for (i = 0; i < d->n_threads; i++) {
		if (d->threads[i].task.tid != tid)
			continue;
		*ret = d->threads[i];
		return true;
	}
	return false;
}

/* Whether the thread has not run between the two looks. */
static bool stood_still(const struct rbpf_thread *before, const struct rbpf_thread *after)
{
	return !before->on_cpu && !after->on_cpu && before->has_regs == after->has_regs &&
	       before->task.runtime == after->task.runtime &&
	       (!after->has_regs || !memcmp(&before->regs, &after->regs, sizeof(before->regs)));
}

static int read_once(const struct dump *d, uint64_t tp, const struct rbpf_thread *thread,
		     struct readings *ret)
{
	uint64_t ec = 0;
	int r = 0;

	ret->has_ec = !ruby_vm_thread_ec(&d->vm, tp, &ec);
	if (ret->has_ec)
		r = read_stack(d, ec, &ret->ruby, &ret->changing);
	if (r || !thread || !thread->has_regs)
		return r;
	ret->has_native = true;
	return dump_native_walk(d->native, ret->has_ec ? ec : 0, &thread->regs, &ret->native);
}

/* Read both stacks until the thread has not run meanwhile. Returns 0 or -ENOMEM. */
static int read_both(struct dump *d, const struct rbpf_task *task, struct readings *ret)
{
	struct rbpf_thread before, after;
	bool alive = find_thread(d, task->tid, &before);
	bool still = false;
	int attempt, r = 0;

	for (attempt = 0; attempt < NATIVE_ATTEMPTS && alive && !still && !r; attempt++) {
		readings_deinit(ret);
		r = read_once(d, task->thread_pointer, &before, ret);
		alive = !look_at_registers(d, NULL) && find_thread(d, task->tid, &after);
		if (!alive)
			break;
		still = stood_still(&before, &after);
		before = after;
	}
	ret->changing = ret->changing || !still;
	return r;
}

/* The names of what was read at @moment. Returns 0 or -ENOMEM. */
static int name_frames(const struct dump *d, const struct code_moment *moment,
		       const struct readings *readings, struct dump_thread *t)
{
	struct dump_ruby ruby = { .resolver = d->resolver };
	struct dump_frame *frames;
	size_t i;
	int r;

	resolver_round(d->resolver);
	r = resolver_stack(d->resolver, moment, readings->ruby.frames, readings->ruby.n_frames,
			   &ruby.symbols, &ruby.n);
	if (r)
		return r;
	if (d->native)
		return dump_native_weave(d->native, &ruby, &readings->native, &t->frames,
					 &t->n_frames);
	frames = calloc(ruby.n + 1, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	for (i = 0; i < ruby.n; i++)
		frames[i].ruby = resolver_symbol(d->resolver, ruby.symbols[i]);
	t->frames = frames;
	t->n_frames = ruby.n;
	return 0;
}

static void describe_thread(const struct dump *d, struct dump_thread *t)
{
	struct buf clean _cleanup_(buf_deinit) = BUF_INIT;
	char comm[16] = "";

	t->state = thread_state(d->process.pid, t->tid);
	thread_name(d->process.pid, t->tid, comm);
	utf8_sanitise(&clean, comm, strlen(comm));
	snprintf(t->name, sizeof(t->name), "%s", buf_str(&clean));
}

/* @ret->frames is the caller's to free. */
static int look_at_thread(struct dump *d, const struct rbpf_task *task, struct dump_thread *ret)
{
	struct readings readings _cleanup_(readings_deinit) = { .has_ec = false };
	struct dump_thread t = { .tid = (pid_t)task->tid };
	struct code_moment moment = { .gc_era = 0 };
	uint32_t i;
	int r;

	/* No collection since before the stack was read: what it leads to is what was there. */
	ruby_vm_gc_era(&d->vm, &moment.gc_era);
	describe_thread(d, &t);
	if (d->native)
		r = read_both(d, task, &readings);
	else
		r = read_once(d, task->thread_pointer, NULL, &readings);
	if (!r)
		r = name_frames(d, &moment, &readings, &t);
	if (r)
		return r;
	t.has_ruby = readings.has_ec && readings.ruby.status == RBPF_OK;
	t.has_native = readings.has_native;
	t.changing = readings.changing;
	t.end = readings.native.end;
	for (i = 0; i < readings.native.n_words; i++)
		t.n_gaps += readings.native.words[i] < RBPF_NATIVE_END_COUNT;
	*ret = t;
	return 0;
}

/* ---- printing ---- */

static void add_json_ruby(struct json *j, const struct symbol *s)
{
	json_str(j, "kind", frame_kind_name(s->kind));
	json_str(j, "label", s->name);
	json_str(j, "path", s->file);
	json_u64(j, "line", s->line);
	if (s->flags & FRAME_LINE_APPROXIMATE)
		json_bool(j, "approximate", true);
	json_str(j, "module", "");
}

static void add_json_native(struct json *j, const struct dump_frame *f)
{
	char pc[sizeof("0x") + 16];

	json_str(j, "kind", frame_kind_name(f->native->kind));
	json_str(j, "label", f->native->name);
	json_str(j, "path", "");
	json_u64(j, "line", 0);
	json_str(j, "module", f->native->module);
	if (f->pc) {
		json_u64(j, "address", f->native->address);
		snprintf(pc, sizeof(pc), "0x%" PRIx64, f->pc);
		json_str(j, "pc", pc);
	}
	if (f->internal)
		json_bool(j, "internal", true);
}

static void add_json(struct json *j, const struct dump *d, const struct dump_thread *t)
{
	size_t i;

	json_object_begin(j, NULL);
	json_u64(j, "tid", (uint64_t)t->tid);
	json_str(j, "name", t->name);
	json_str(j, "state", state_name(t->state));
	json_bool(j, "changing", t->changing);
	if (d->native) {
		json_object_begin(j, "native");
		json_str(j, "end", t->has_native ? dump_native_end(t->end) : "no-registers");
		json_u64(j, "gaps", t->n_gaps);
		json_object_end(j);
	}
	json_array_begin(j, "frames");
	for (i = 0; i < t->n_frames; i++) {
		const struct dump_frame *f = &t->frames[i];

		if (f->ruby && d->stack == DUMP_NATIVE)
			continue;
		json_object_begin(j, NULL);
		if (f->ruby)
			add_json_ruby(j, f->ruby);
		else
			add_json_native(j, f);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

/* Labels stand in a column; one that is wider pushes its own place to the right. */
static size_t label_column(const struct dump_thread *t)
{
	size_t i, width = 0, len;

	for (i = 0; i < t->n_frames; i++) {
		len = t->frames[i].ruby ? utf8_len(t->frames[i].ruby->name) : 0;
		if (len > width && len <= 48)
			width = len;
	}
	return width;
}

static void add_text_ruby(struct buf *out, const struct symbol *s, size_t width)
{
	size_t len = utf8_len(s->name);

	buf_addf(out, "    %s", s->name);
	if (s->kind == FRAME_CFUNC)
		buf_addstr(out, " (C)");
	else if (s->file[0]) {
		buf_add_repeat(out, ' ', (len < width ? width - len : 0) + 4);
		buf_addf(out, "  %s:%s%u", s->file, s->flags & FRAME_LINE_APPROXIMATE ? "~" : "",
			 s->line);
	}
	buf_addch(out, '\n');
}

static void add_text_native(struct buf *out, const struct native_name *name)
{
	const char *slash = strrchr(name->module, '/');
	const char *base = slash ? slash + 1 : name->module;

	buf_addf(out, "    %s", name->name);
	if (base[0])
		buf_addf(out, base[0] == '[' ? "  %s" : "  [%s]", base); /* "[vdso]" */
	buf_addch(out, '\n');
}

static void add_text(struct buf *out, const struct dump *d, const struct dump_thread *t)
{
	size_t i, width = label_column(t), printed = 0;

	buf_addf(out, "thread %d \"%s\"  (%s%s)\n", (int)t->tid, t->name, state_name(t->state),
		 t->changing ? ", changing while it is read" : "");
	for (i = 0; i < t->n_frames; i++) {
		const struct dump_frame *f = &t->frames[i];

		if (f->ruby ? d->stack == DUMP_NATIVE : f->internal && d->stack == DUMP_MIXED)
			continue;
		if (f->ruby)
			add_text_ruby(out, f->ruby, width);
		else
			add_text_native(out, f->native);
		printed++;
	}
	if (!printed)
		buf_addf(out, "    %s\n", t->has_ruby ? "no Ruby frame" : "not a Ruby thread");
}

static int render(struct dump *d, bool json_wanted, struct buf *out)
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
		free(t.frames);
	}
	if (json_wanted) {
		json_array_end(&j);
		json_object_end(&j);
		buf_addch(out, '\n');
	}
	return 0;
}

/* ---- the command ---- */

static int attach_vm(struct dump *d, const struct ruby_attach_options *opts, struct err *err)
{
	struct ruby_attach_options attach = *opts;
	pid_t pid = d->process.pid;
	int r;

	r = bpf_engine_open_idle(pid, &d->engine, err);
	if (!r)
		r = engine_read_threads(d->engine, pid, &d->tasks, &d->n_tasks, err);
	if (r)
		return r;
	privileges_reduce();
	attach.tasks = d->tasks;
	attach.n_tasks = d->n_tasks;
	r = ruby_vm_attach(pid, &attach, &d->vm, err);
	if (r == -ENOENT)
		process_not_ruby(&d->process, err);
	if (!r && resolver_new(&d->vm, &d->resolver))
		r = err_oom(err);
	if (!r && d->stack != DUMP_RUBY && dump_native_new(&d->vm, &d->native))
		r = err_oom(err);
	if (!r && d->native)
		r = look_at_registers(d, err);
	return r;
}

static void dump_deinit(struct dump *d)
{
	dump_native_free(d->native);
	resolver_free(d->resolver);
	ruby_vm_deinit(&d->vm);
	free(d->tasks);
	free(d->threads);
	engine_close(d->engine);
	file_worker_deinit(&d->worker);
	process_close(&d->process);
}

int dump_run(const struct dump_options *opts, struct cmd_context *ctx, struct err *err)
{
	struct buf out _cleanup_(buf_deinit) = BUF_INIT;
	struct dump d _cleanup_(dump_deinit) = { .process = PROCESS_INIT };
	struct ruby_attach_options attach = { 0 };
	int r;

	file_worker_init(&d.worker, NULL);
	attach.worker = &d.worker;
	d.stack = opts->native ? DUMP_MIXED : DUMP_RUBY;
	if (opts->stack != OPTION_UNSET)
		d.stack = (enum dump_stack)opts->stack;
	r = environment_check(ctx->command_line, err);
	if (!r)
		r = ruby_sources_parse(ctx->layout_from, &attach.sources, err);
	if (!r)
		r = process_open(opts->pid, &d.process, err);
	if (!r)
		r = cmd_prepare_worker(&d.worker, err);
	if (r)
		return r;
	cmd_log_libbpf(ctx);
	r = attach_vm(&d, &attach, err);
	if (!r && render(&d, opts->json, &out))
		r = err_oom(err);
	if (!r && !process_alive(&d.process))
		r = err_set(err, -ESRCH, ERR_TARGET, "pid %d exited while it was looked at",
			    (int)opts->pid);
	if (!r)
		r = cmd_write(NULL, &out, err);
	cmd_warn_of_files(ctx, &d.worker);
	return r;
}
