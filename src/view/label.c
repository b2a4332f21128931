/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/label.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "profile/profile.h"
#include "profile/reason.h"
#include "view/gem.h"

const char *label_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Bytes of @cmdline that are the program, which may hold blanks if @exe says so. */
static size_t program_len(const char *cmdline, const char *exe)
{
	size_t n = strlen(exe);

	if (n && !strncmp(cmdline, exe, n) && (cmdline[n] == ' ' || !cmdline[n]))
		return n;
	return strcspn(cmdline, " \t");
}

static bool add_program_name(const char *path, size_t len, struct buf *out)
{
	size_t start;

	/* "puma: worker", as set by setproctitle() */
	while (len && path[len - 1] == ':')
		len--;
	for (start = len; start && path[start - 1] != '/'; start--)
		;
	buf_add(out, path + start, len - start);
	return start < len;
}

void label_process(const struct profile *p, uint32_t process, struct buf *out)
{
	const char *cmdline = profile_str(p, p->processes[process].cmdline);
	const char *exe = profile_str(p, p->processes[process].exe);

	if (!add_program_name(cmdline, program_len(cmdline, exe), out) &&
	    !add_program_name(exe, strlen(exe), out))
		buf_addstr(out, "[unknown]");
}

#define LONG_ID	 64
#define SHORT_ID 12

size_t label_container_len(const char *id)
{
	const size_t len = strlen(id);

	return len == LONG_ID && strspn(id, "0123456789abcdef") == LONG_ID ? SHORT_ID : len;
}

void label_container(const struct profile *p, uint32_t container, struct buf *out)
{
	const char *id = profile_str(p, container);

	if (*id)
		buf_add(out, id, label_container_len(id));
	else
		buf_addstr(out, "[no container]");
}

void label_ruby(const struct profile *p, uint32_t version, struct buf *out)
{
	buf_addstr(out, version ? profile_str(p, version) : "[no Ruby]");
}

void label_pid(const struct profile *p, uint32_t process, struct buf *out)
{
	const struct profile_process *q = &p->processes[process];
	bool other_pid = q->ns_pid && q->ns_pid != q->pid;

	buf_addf(out, "pid %" PRIu32, q->pid);
	if (other_pid)
		buf_addf(out, ", %" PRIu32, q->ns_pid);
	if (q->container) {
		buf_addstr(out, other_pid ? " in " : ", in ");
		label_container(p, q->container, out);
	} else if (other_pid) {
		buf_addstr(out, " inside");
	}
}

void label_thread(const struct profile *p, uint32_t thread, struct buf *out)
{
	const char *name = thread < p->n_threads ? profile_str(p, p->threads[thread].name)
						 : LABEL_NOT_RECORDED;

	buf_addstr(out, *name ? name : "[unnamed]");
}

const char *label_frame(const struct profile *p, uint32_t frame)
{
	const char *name = profile_str(p, p->frames[frame].name);

	return *name ? name : "[unnamed]";
}

void label_line(const struct profile_frame *frame, struct buf *out)
{
	buf_addf(out, "%s%" PRIu32, frame->flags & FRAME_LINE_APPROXIMATE ? "~" : "", frame->line);
}

_Static_assert((int)ORIGIN_APP == GEM_APP && (int)ORIGIN_GEM == GEM_GEM &&
		       (int)ORIGIN_STDLIB == GEM_STDLIB && (int)ORIGIN_CORE == GEM_CORE,
	       "code in Ruby has the same origins");

const char *label_origin_word(size_t origin)
{
	static const char *const words[ORIGIN_COUNT] = {
		[ORIGIN_APP] = "app",
		[ORIGIN_GEM] = "gems",
		[ORIGIN_STDLIB] = "stdlib",
		[ORIGIN_CORE] = "core",
		[ORIGIN_CFUNC] = "cfunc",
		[ORIGIN_NATIVE] = "native",
		[ORIGIN_GC] = "gc",
		[ORIGIN_KERNEL] = "kernel",
		[ORIGIN_FIBER] = "fiber",
		[ORIGIN_UNKNOWN] = "unknown",
		[ORIGIN_GAP] = "gap",
		[ORIGIN_RUNNABLE] = "wait-cpu",
		[ORIGIN_GVL] = "gvl",
		[ORIGIN_LOCK] = "lock",
		[ORIGIN_IO] = "io",
		[ORIGIN_SLEEP] = "timer",
		[ORIGIN_WAIT] = "wait",
		[ORIGIN_IDLE] = "idle",
		[ORIGIN_NOT_RECORDED] = "not-recorded",
	};

	return origin < ORIGIN_COUNT ? words[origin] : NULL;
}

static enum code_origin origin_of_wait(uint32_t reason)
{
	switch (reason) {
	case REASON_WAIT_CPU:
	case REASON_WAIT_THROTTLED:
		return ORIGIN_RUNNABLE;
	case REASON_WAIT_GVL:
	case REASON_GVL_HELD:
	case REASON_GVL_TURN:
		return ORIGIN_GVL;
	case REASON_WAIT_LOCK:
		return ORIGIN_LOCK;
	case REASON_WAIT_FAULT:
	case REASON_WAIT_DISK:
	case REASON_WAIT_NETWORK:
	case REASON_WAIT_PIPE:
		return ORIGIN_IO;
	case REASON_WAIT_TIMER:
		return ORIGIN_SLEEP;
	case REASON_WAIT_IDLE:
		return ORIGIN_IDLE;
	default:
		return ORIGIN_WAIT;
	}
}

enum code_origin label_origin(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames[frame];
	struct gem gem;

	switch (f->kind) {
	case FRAME_RUBY:
		gem_of_path(profile_str(p, f->file), &gem);
		return (enum code_origin)gem.origin;
	case FRAME_CFUNC:
		return ORIGIN_CFUNC;
	case FRAME_NATIVE:
		return ORIGIN_NATIVE;
	case FRAME_KERNEL:
		return ORIGIN_KERNEL;
	case FRAME_GC:
		return ORIGIN_GC;
	case FRAME_FIBER:
		return ORIGIN_FIBER;
	case FRAME_GAP:
		return ORIGIN_GAP;
	case FRAME_WAIT:
		return origin_of_wait(f->reason);
	case FRAME_NOT_RECORDED:
		return ORIGIN_NOT_RECORDED;
	default:
		return ORIGIN_UNKNOWN;
	}
}

static void add_ruby_package(const struct gem *gem, struct buf *out)
{
	static const char *const others[GEM_ORIGINS] = {
		[GEM_APP] = "app",
		[GEM_GEM] = "",
		[GEM_STDLIB] = "ruby stdlib",
		[GEM_CORE] = "ruby core",
	};

	if (gem->dir.len)
		buf_add(out, gem->dir.s, gem->dir.len);
	else if (gem->origin == GEM_GEM)
		gem_name(gem, out);
	else
		buf_addstr(out, others[gem->origin]);
}

void label_package(const struct profile *p, uint32_t frame, struct buf *out)
{
	const struct profile_frame *f = &p->frames[frame];
	const char *module = "";
	struct gem gem;

	if (f->module != PROFILE_NONE)
		module = label_basename(profile_str(p, p->modules[f->module].path));
	switch (f->kind) {
	case FRAME_RUBY:
		gem_of_path(profile_str(p, f->file), &gem);
		add_ruby_package(&gem, out);
		break;
	case FRAME_CFUNC:
		buf_addstr(out, *module ? module : "ruby core");
		break;
	case FRAME_KERNEL:
		buf_addstr(out, "kernel");
		break;
	case FRAME_GC:
		buf_addstr(out, "gc");
		break;
	case FRAME_FIBER:
		buf_addstr(out, "fiber");
		break;
	case FRAME_WAIT:
		buf_addstr(out, "waits");
		break;
	case FRAME_NOT_RECORDED:
		buf_addstr(out, "not recorded");
		break;
	case FRAME_NATIVE:
		buf_addstr(out, *module ? module : "unknown");
		break;
	default:
		buf_addstr(out, "unknown");
	}
}
