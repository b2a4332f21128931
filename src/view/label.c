/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/label.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "profile/profile.h"

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

void label_container(const struct profile *p, uint32_t container, struct buf *out)
{
	const char *id = profile_str(p, container);

	if (strlen(id) == LONG_ID && strspn(id, "0123456789abcdef") == LONG_ID)
		buf_add(out, id, SHORT_ID);
	else
		buf_addstr(out, *id ? id : "[no container]");
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
	const char *name = profile_str(p, p->threads[thread].name);

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

static bool starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* The directory below the last "/gems/" (gems may vendor gems), or NULL. Also of bundler/gems. */
static const char *gem_dir(const char *path)
{
	const char *found = NULL;

	for (const char *s = path; (s = strstr(s, "/gems/")); s += strlen("/gems"))
		found = s + strlen("/gems/");
	return found;
}

/*
 * Wherever Ruby is installed, its library is below lib/ruby (…/lib/ruby/3.3.0/set.rb), except that
 * Fedora has /usr/share/ruby and Debian has parts in /usr/share/rubygems-integration.
 */
static bool in_stdlib(const char *path)
{
	return strstr(path, "/lib/ruby/") || strstr(path, "/share/ruby/") ||
	       strstr(path, "/rubygems/") || strstr(path, "/rubygems-integration/");
}

static enum code_origin ruby_origin(const char *path)
{
	if (starts_with(path, "<internal:"))
		return ORIGIN_CORE;
	return gem_dir(path) || in_stdlib(path) ? ORIGIN_LIBRARY : ORIGIN_APP;
}

enum code_origin label_origin(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames[frame];

	switch (f->kind) {
	case FRAME_RUBY:
		return ruby_origin(profile_str(p, f->file));
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
	default:
		return ORIGIN_UNKNOWN;
	}
}

static void add_ruby_package(const char *path, struct buf *out)
{
	const char *gem = gem_dir(path);

	if (starts_with(path, "<internal:"))
		buf_addstr(out, "ruby core");
	else if (gem && strcspn(gem, "/"))
		buf_add(out, gem, strcspn(gem, "/"));
	else
		buf_addstr(out, gem || in_stdlib(path) ? "ruby stdlib" : "app");
}

void label_package(const struct profile *p, uint32_t frame, struct buf *out)
{
	const struct profile_frame *f = &p->frames[frame];
	const char *module = "";

	if (f->module != PROFILE_NONE)
		module = label_basename(profile_str(p, p->modules[f->module].path));
	switch (f->kind) {
	case FRAME_RUBY:
		add_ruby_package(profile_str(p, f->file), out);
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
	case FRAME_NATIVE:
		buf_addstr(out, *module ? module : "unknown");
		break;
	default:
		buf_addstr(out, "unknown");
	}
}
