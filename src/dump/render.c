/* SPDX-License-Identifier: GPL-2.0-only */
#include "dump/render.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"
#include "dump/dump.h"
#include "profile/profile.h"
#include "target/process.h"

static bool is_ruby(const struct dump_frame *f)
{
	return f->kind != FRAME_NATIVE && f->kind != FRAME_KERNEL && f->kind != FRAME_GAP;
}

static bool is_shown(enum stack_mode stack, const struct dump_frame *f)
{
	const struct profile_frame frame = { .kind = f->kind,
					     .flags = f->flags,
					     .reason = f->reason };

	return stack_mode_shows_frame(stack, &frame);
}

/* ---- JSON ---- */

/* The word of machine output: "outermost", "no-table", …. */
static const char *end_name(enum rbpf_native_end end)
{
	static const char *const words[RBPF_NATIVE_END_COUNT] = {
		[RBPF_NATIVE_OUTERMOST] = "outermost",
		[RBPF_NATIVE_NO_MAP] = "no-map",
		[RBPF_NATIVE_NO_RANGE] = "no-range",
		[RBPF_NATIVE_UNREAD] = "unread",
		[RBPF_NATIVE_NO_TABLE] = "no-table",
		[RBPF_NATIVE_NO_ROOM] = "no-room",
		[RBPF_NATIVE_NO_RULE] = "no-rule",
		[RBPF_NATIVE_REGISTER] = "register",
		[RBPF_NATIVE_FAULT] = "fault",
		[RBPF_NATIVE_STUCK] = "stuck",
		[RBPF_NATIVE_JIT] = "jit",
		[RBPF_NATIVE_LIMIT] = "limit",
	};

	return words[end];
}

static void json_frame(struct json *j, const struct dump_frame *f)
{
	char pc[sizeof("0x") + 16];

	json_object_begin(j, NULL);
	json_str(j, "kind", frame_kind_name(f->kind));
	json_str(j, "label", f->label);
	if (strcmp(f->label, f->raw_label))
		json_str(j, "raw_label", f->raw_label);
	json_str(j, "path", f->file);
	json_u64(j, "line", f->line);
	if (f->flags & FRAME_LINE_APPROXIMATE)
		json_bool(j, "approximate", true);
	json_str(j, "module", f->module);
	if (f->pc) {
		json_u64(j, "address", f->address);
		snprintf(pc, sizeof(pc), "0x%" PRIx64, f->pc);
		json_str(j, "pc", pc);
	}
	if (f->flags & FRAME_INTERNAL)
		json_bool(j, "internal", true);
	json_object_end(j);
}

static void json_doing(struct json *j, const struct dump_thread *t)
{
	_cleanup_buf_ struct buf words = BUF_INIT;

	dump_doing_add(&words, &t->doing);
	json_str(j, "doing", buf_str(&words));
	if (t->doing.method)
		json_str(j, "waits_in", t->doing.method);
	if (t->doing.syscall)
		json_str(j, "syscall", t->doing.syscall);
	json_bool(j, "idle", t->doing.idle);
}

static void json_thread(struct json *j, const struct dump *d, enum stack_mode stack,
			const struct dump_thread *t)
{
	size_t i;

	json_object_begin(j, NULL);
	json_u64(j, "tid", (uint64_t)t->tid);
	json_str(j, "name", t->name);
	json_str(j, "state", dump_doing_state(&t->doing));
	json_doing(j, t);
	json_bool(j, "changing", t->changing);
	if (dump_has_native(d)) {
		json_object_begin(j, "native");
		json_str(j, "end", t->has_native ? end_name(t->end) : "no-registers");
		json_u64(j, "gaps", t->n_gaps);
		json_object_end(j);
	}
	json_array_begin(j, "frames");
	for (i = 0; i < t->n_frames; i++)
		if (stack == STACK_MIXED || is_shown(stack, &t->frames[i]))
			json_frame(j, &t->frames[i]);
	json_array_end(j);
	json_object_end(j);
}

int dump_json(struct dump *d, const struct process *process, enum stack_mode stack, struct buf *out)
{
	_cleanup_buf_ struct buf clean = BUF_INIT;
	struct json j = JSON_INIT(out);
	struct dump_thread t;
	size_t i;
	int r;

	utf8_sanitise(&clean, process->cmdline, strlen(process->cmdline));
	json_object_begin(&j, NULL);
	json_u64(&j, "pid", (uint64_t)process->pid);
	json_u64(&j, "ppid", (uint64_t)process->ppid);
	json_str(&j, "command", buf_str(&clean));
	json_str(&j, "ruby", dump_ruby_version(d));
	json_array_begin(&j, "threads");
	for (i = 0; i < dump_n_threads(d); i++) {
		r = dump_read_thread(d, i, &t);
		if (r)
			return r;
		json_thread(&j, d, stack, &t);
		dump_thread_deinit(&t);
	}
	json_array_end(&j);
	json_object_end(&j);
	buf_addch(out, '\n');
	return 0;
}

/* ---- text ---- */

/* Labels stand in a column; one that is wider pushes its own place to the right. */
static size_t label_column(const struct dump_thread *t)
{
	size_t i, width = 0, len;

	for (i = 0; i < t->n_frames; i++) {
		len = is_ruby(&t->frames[i]) ? utf8_len(t->frames[i].label) : 0;
		if (len > width && len <= 48)
			width = len;
	}
	return width;
}

static void text_ruby(struct buf *out, const struct dump_frame *f, size_t width)
{
	size_t len = utf8_len(f->label);

	buf_addf(out, "    %s", f->label);
	if (f->kind == FRAME_CFUNC)
		buf_addstr(out, " (C)");
	else if (f->file[0]) {
		buf_add_repeat(out, ' ', (len < width ? width - len : 0) + 4);
		buf_addf(out, "  %s:%s%u", f->file, f->flags & FRAME_LINE_APPROXIMATE ? "~" : "",
			 f->line);
	}
	buf_addch(out, '\n');
}

static void text_native(struct buf *out, const struct dump_frame *f)
{
	const char *slash = strrchr(f->module, '/');
	const char *base = slash ? slash + 1 : f->module;

	buf_addf(out, "    %s", f->label);
	if (base[0])
		buf_addf(out, base[0] == '[' ? "  %s" : "  [%s]", base); /* "[vdso]" */
	buf_addch(out, '\n');
}

static void text_thread(struct buf *out, enum stack_mode stack, const struct dump_thread *t)
{
	size_t i, width = label_column(t), printed = 0;

	buf_addf(out, "thread %d \"%s\"  (", (int)t->tid, t->name);
	dump_doing_add(out, &t->doing);
	buf_addf(out, "%s)\n", t->changing ? ", changing while it is read" : "");
	for (i = 0; i < t->n_frames; i++) {
		const struct dump_frame *f = &t->frames[i];

		if (!is_shown(stack, f))
			continue;
		if (is_ruby(f))
			text_ruby(out, f, width);
		else
			text_native(out, f);
		printed++;
	}
	if (!printed)
		buf_addf(out, "    %s\n", t->has_ruby ? "no Ruby frame" : "not a Ruby thread");
}

int dump_text(struct dump *d, const struct process *process, enum stack_mode stack, struct buf *out)
{
	_cleanup_buf_ struct buf clean = BUF_INIT;
	struct dump_thread t;
	size_t i;
	int r;

	utf8_sanitise(&clean, process->cmdline, strlen(process->cmdline));
	buf_addf(out, "pid %d  %s   ruby %s\n", (int)process->pid, buf_str(&clean),
		 dump_ruby_version(d));
	for (i = 0; i < dump_n_threads(d); i++) {
		r = dump_read_thread(d, i, &t);
		if (r)
			return r;
		text_thread(out, stack, &t);
		dump_thread_deinit(&t);
	}
	return 0;
}
