/* SPDX-License-Identifier: GPL-2.0-only */
#include "dump/doing.h"

#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "dump/dump.h"

/* Methods in which a thread waits for something to do, by their labels. */
static const char *const idle_methods[] = {
	"IO.select",
	"Kernel#select",
	"Kernel#sleep",
	"Kernel.select",
	"Kernel.sleep",
	"NIO::Selector#select",
	"Process.wait",
	"Process.wait2",
	"Process.waitall",
	"Process.waitpid",
	"Process.waitpid2",
	"Process::Status.wait",
	"Ractor#take",
	"Ractor.receive",
	"Ractor.select",
	"Socket#__accept_nonblock",
	"Socket#accept",
	"TCPServer#accept",
	"Thread#join",
	"Thread#value",
	"Thread.stop",
	"Thread::ConditionVariable#wait",
	"Thread::Mutex#sleep",
	"Thread::Queue#pop",
	"Thread::SizedQueue#pop",
	"UNIXServer#accept",
};

static const char *const sleep_methods[] = { "Kernel#sleep", "Kernel.sleep", "Thread.stop" };

static bool is_one_of(const char *label, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(label, list[i]))
			return true;
	return false;
}

static bool is_method(const struct dump_frame *f)
{
	return f->kind == FRAME_RUBY || f->kind == FRAME_CFUNC;
}

bool dump_frame_is_internal(const struct dump_frame *f)
{
	return f->kind == FRAME_RUBY && !strncmp(f->file, "<internal:", strlen("<internal:"));
}

static const struct dump_frame *next_method(const struct dump_frame *f,
					    const struct dump_frame *end)
{
	while (f < end && !is_method(f))
		f++;
	return f < end ? f : NULL;
}

/* The method that blocks; NULL if the innermost one is ordinary Ruby code, which does not. */
static const struct dump_frame *blocking_method(const struct dump_frame *frames, size_t n)
{
	const struct dump_frame *end = frames + n, *f = next_method(frames, end), *caller;

	if (!f || (f->kind != FRAME_CFUNC && !dump_frame_is_internal(f)))
		return NULL;
	/* A condition variable waits by letting its mutex sleep. */
	caller = !strcmp(f->label, "Thread::Mutex#sleep") ? next_method(f + 1, end) : NULL;
	if (caller && !strcmp(caller->label, "Thread::ConditionVariable#wait"))
		return caller;
	return f;
}

void dump_doing_conclude(struct dump_doing *d, const struct dump_frame *frames, size_t n)
{
	const struct dump_frame *f;

	if (!d->still || d->state == 'R' || d->waits_for_gvl)
		return;
	f = blocking_method(frames, n);
	if (f) {
		d->method = f->label;
		d->sleeps = is_one_of(f->label, sleep_methods, ARRAY_SIZE(sleep_methods));
		d->idle = is_one_of(f->label, idle_methods, ARRAY_SIZE(idle_methods));
	} else {
		d->idle = !next_method(frames, frames + n);
	}
}

/* A thread that is frozen has the state of one that sleeps. */
static bool is_frozen(const struct dump_doing *d)
{
	return d->kept == RBPF_KEPT_FROZEN && (d->state == 'S' || d->state == 'D');
}

const char *dump_doing_state(const struct dump_doing *d)
{
	if (is_frozen(d))
		return "stopped";
	switch (d->state) {
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

/* What it would do if it were not. */
static void add_frozen(struct buf *out, const struct dump_doing *d)
{
	buf_addstr(out, "frozen");
	if (d->waits_for_gvl)
		buf_addstr(out, ", waits for the GVL");
	else if (d->method)
		buf_addf(out, " in %s", d->method);
}

void dump_doing_add(struct buf *out, const struct dump_doing *d)
{
	if (is_frozen(d)) {
		add_frozen(out, d);
		return;
	}
	if (d->state == 'R' && d->queued && d->kept == RBPF_KEPT_THROTTLED)
		buf_addstr(out, "throttled by its control group");
	else if (d->state == 'R' && d->queued)
		buf_addstr(out, "runnable, waits for a CPU");
	else if (d->state != 'S' && d->state != 'D')
		buf_addstr(out, dump_doing_state(d));
	else if (d->waits_for_gvl)
		buf_addstr(out, "waits for the GVL");
	else if (d->method)
		buf_addf(out, "%s in %s", d->sleeps ? "sleeps" : "waits", d->method);
	else if (d->syscall)
		buf_addf(out, "waits in %s", d->syscall);
	else
		buf_addstr(out, d->state == 'D' ? "waits" : "sleeping");
	/* Such a thread cannot be interrupted: it waits for a disk, mostly. */
	if (d->state == 'D')
		buf_addstr(out, ", uninterruptible");
}
