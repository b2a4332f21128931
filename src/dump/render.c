/* SPDX-License-Identifier: GPL-2.0-only */
#include "dump/render.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/number.h"
#include "base/utf8.h"
#include "dump/dump.h"
#include "dump/fold.h"
#include "dump/locks.h"
#include "dump/waits_on.h"
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
	if (t->doing.for_ns)
		json_u64(j, "for_ns", t->doing.for_ns);
	if (t->owner)
		json_u64(j, "held_by", (uint64_t)t->owner->tid);
	if (t->gvl_owner)
		json_u64(j, "gvl_held_by", (uint64_t)t->gvl_owner->tid);
	if (t->holds_gvl)
		json_bool(j, "holds_gvl", true);
}

static void json_waits_on(struct json *j, const struct waits_on *on)
{
	_cleanup_buf_ struct buf peer = BUF_INIT;

	if (on->fd >= 0) {
		json_u64(j, "descriptor", (uint64_t)on->fd);
		json_str(j, "file", on->file);
		dump_peer_add(&peer, on);
		json_str(j, "peer", buf_str(&peer));
	} else if (on->child) {
		json_u64(j, "child", on->child > 0 ? (uint64_t)on->child : 0);
	}
}

/* The threads that wait for what @t holds. */
static void json_waiters(struct json *j, const struct dump_threads *threads,
			 const struct dump_thread *t)
{
	json_array_begin(j, "waiters");
	for (size_t i = 0; i < threads->n; i++)
		if (threads->v[i].owner == t)
			json_u64(j, NULL, (uint64_t)threads->v[i].tid);
	json_array_end(j);
}

static void json_thread(struct json *j, const struct dump *d, enum stack_mode stack,
			const struct dump_threads *threads, const struct dump_thread *t)
{
	size_t i;

	json_object_begin(j, NULL);
	json_u64(j, "tid", (uint64_t)t->tid);
	json_str(j, "name", t->name);
	json_str(j, "state", dump_doing_state(&t->doing));
	json_doing(j, t);
	json_waits_on(j, &t->on);
	if (t->request.name) {
		json_str(j, "request", t->request.name);
		json_str(j, "framework", t->request.framework);
	}
	if (t->n_waiters)
		json_waiters(j, threads, t);
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

int dump_json(struct dump *d, const struct process *process, const struct dump_view *view,
	      struct buf *out)
{
	struct dump_threads threads _cleanup_(dump_threads_deinit) = { .n = 0 };
	_cleanup_buf_ struct buf clean = BUF_INIT;
	struct json j = JSON_INIT(out);
	size_t i;
	int r;

	r = dump_read_threads(d, &threads);
	if (r)
		return r;
	utf8_sanitise(&clean, process->cmdline, strlen(process->cmdline));
	json_object_begin(&j, NULL);
	json_u64(&j, "pid", (uint64_t)process->pid);
	json_u64(&j, "ppid", (uint64_t)process->ppid);
	json_str(&j, "command", buf_str(&clean));
	json_str(&j, "ruby", dump_ruby_version(d));
	json_array_begin(&j, "threads");
	for (i = 0; i < threads.n; i++)
		json_thread(&j, d, view->stack, &threads, &threads.v[i]);
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

/* What is shown of a thread below its head. */
static void text_frames(struct buf *out, enum stack_mode stack, const struct dump_thread *t)
{
	size_t i, width = label_column(t), printed = 0;

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

/* Where Ruby code is in the stack of a thread; NULL if nowhere. */
static const struct dump_frame *ruby_frame(const struct dump_thread *t)
{
	for (size_t i = 0; i < t->n_frames; i++) {
		const struct dump_frame *f = &t->frames[i];

		if (f->kind == FRAME_RUBY && !dump_frame_is_internal(f))
			return f;
	}
	return NULL;
}

/* Who holds @what the thread waits for, and where that one is. */
static void text_owner(struct buf *out, const char *what, const struct dump_thread *owner)
{
	const struct dump_frame *f = ruby_frame(owner);

	buf_addf(out, "    %sheld by thread %d \"%s\"", what, (int)owner->tid, owner->name);
	if (f)
		buf_addf(out, " in %s  %s:%u", f->label, f->file, f->line);
	buf_addch(out, '\n');
}

/* Of threads that are shown as one: the shortest and the longest; 0: not known of any. */
struct times {
	uint64_t from_ns, to_ns;
};

/* "3.2 s", "at least 80 ms", "12 ms to 3.2 s" */
static void text_times(struct buf *out, const struct dump_thread *t, const struct times *times)
{
	const bool at_least = locks_wake_waiters(&t->doing);
	struct num_text (*const text)(uint64_t ns) = at_least ? num_duration_at_least
							      : num_duration;
	const struct num_text from = text(times->from_ns), to = text(times->to_ns);

	if (!times->to_ns)
		return;
	buf_addf(out, ", %s%s", at_least ? "at least " : "", from.s);
	if (strcmp(from.s, to.s))
		buf_addf(out, " to %s", to.s);
}

/* What it does, without a newline. */
static void text_doing(struct buf *out, const struct dump_thread *t, const struct times *times)
{
	buf_addstr(out, "  (");
	dump_doing_add(out, &t->doing);
	text_times(out, t, times);
	if (t->holds_gvl)
		buf_addstr(out, "; holds the GVL");
	if (t->n_waiters)
		buf_addf(out, "; holds what %zu thread%s for", t->n_waiters,
			 t->n_waiters == 1 ? " waits" : "s wait");
	buf_addf(out, "%s)", t->changing ? ", changing while it is read" : "");
}

/* What stands below the head of a thread. */
static void text_below(struct buf *out, enum stack_mode stack, const struct dump_thread *t)
{
	_cleanup_buf_ struct buf on = BUF_INIT;

	if (t->request.name)
		buf_addf(out, "    in request %s\n", t->request.name);
	dump_waits_on_add(&on, &t->on);
	if (on.len)
		buf_addf(out, "    for %s\n", buf_str(&on));
	if (t->owner)
		text_owner(out, "", t->owner);
	if (t->gvl_owner)
		text_owner(out, "GVL ", t->gvl_owner);
	text_frames(out, stack, t);
}

/* Who they are: the beginning of their head. */
static int text_who(struct buf *out, const struct dump_threads *threads, const size_t *which,
		    size_t n)
{
	_cleanup_free_ const char **names = calloc(n, sizeof(*names));
	_cleanup_free_ pid_t *tids = calloc(n, sizeof(*tids));
	size_t i;

	if (!names || !tids)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		names[i] = threads->v[which[i]].name;
		tids[i] = threads->v[which[i]].tid;
	}
	if (n > 1)
		buf_addf(out, "%zu threads ", n);
	else
		buf_addstr(out, "thread ");
	fold_add_ids(out, tids, n);
	buf_addch(out, ' ');
	fold_add_names(out, names, n);
	return 0;
}

/* The threads of a process as text, before they are folded. */
struct texts {
	struct buf *bufs; /* what is shown of each, but who it is and how long it does what it does:
			     a head … */
	size_t *heads;	  /* … of so many bytes, and what stands below it */
	struct fold_thread *threads;
	size_t n;
};

static void texts_deinit(struct texts *t)
{
	for (size_t i = 0; t->bufs && i < t->n; i++)
		buf_deinit(&t->bufs[i]);
	free(t->bufs);
	free(t->heads);
	free(t->threads);
}

static int texts_make(const struct dump_threads *threads, enum stack_mode stack, struct texts *t)
{
	const struct times none = { 0 };
	size_t i;

	t->n = threads->n;
	t->bufs = calloc(t->n + 1, sizeof(*t->bufs));
	t->heads = calloc(t->n + 1, sizeof(*t->heads));
	t->threads = calloc(t->n + 1, sizeof(*t->threads));
	if (!t->bufs || !t->heads || !t->threads)
		return -ENOMEM;
	for (i = 0; i < t->n; i++) {
		text_doing(&t->bufs[i], &threads->v[i], &none);
		buf_addch(&t->bufs[i], '\n');
		t->heads[i] = t->bufs[i].len;
		text_below(&t->bufs[i], stack, &threads->v[i]);
		if (buf_failed(&t->bufs[i]))
			return -ENOMEM;
		t->threads[i].text = buf_str(&t->bufs[i]);
		t->threads[i].idle = threads->v[i].doing.idle;
	}
	return 0;
}

static struct times times_of(const struct dump_threads *threads, const size_t *which, size_t n)
{
	struct times times = { 0 };

	for (size_t i = 0; i < n; i++) {
		const uint64_t ns = threads->v[which[i]].doing.for_ns;

		if (ns && (!times.from_ns || ns < times.from_ns))
			times.from_ns = ns;
		if (ns > times.to_ns)
			times.to_ns = ns;
	}
	return times;
}

/* Threads @which are shown as one: they have the same text. */
static int text_group(struct buf *out, const struct dump_threads *threads,
		      const struct texts *texts, const size_t *which, size_t n)
{
	const struct times times = times_of(threads, which, n);
	int r = text_who(out, threads, which, n);

	if (r)
		return r;
	text_doing(out, &threads->v[which[0]], &times);
	buf_addch(out, '\n');
	buf_addstr(out, texts->threads[which[0]].text + texts->heads[which[0]]);
	return 0;
}

static int text_threads(struct buf *out, const struct dump_threads *threads,
			const struct dump_view *view)
{
	struct texts texts _cleanup_(texts_deinit) = { .n = 0 };
	struct fold fold _cleanup_(fold_deinit) = { .n_groups = 0 };
	size_t i;
	int r;

	r = texts_make(threads, view->stack, &texts);
	if (!r)
		r = fold_threads(texts.threads, texts.n, !view->fold, &fold);
	for (i = 0; i < fold.n_groups && !r; i++)
		r = text_group(out, threads, &texts, &fold.threads[fold.groups[i].first],
			       fold.groups[i].n);
	return r;
}

int dump_text(struct dump *d, const struct process *process, const struct dump_view *view,
	      struct buf *out)
{
	struct dump_threads threads _cleanup_(dump_threads_deinit) = { .n = 0 };
	_cleanup_buf_ struct buf clean = BUF_INIT;
	int r;

	r = dump_read_threads(d, &threads);
	if (r)
		return r;
	utf8_sanitise(&clean, process->cmdline, strlen(process->cmdline));
	buf_addf(out, "pid %d  %s   ruby %s\n", (int)process->pid, buf_str(&clean),
		 dump_ruby_version(d));
	return text_threads(out, &threads, view);
}
