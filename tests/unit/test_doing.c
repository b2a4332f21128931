/* SPDX-License-Identifier: GPL-2.0-only */
/* What is said of a thread, by what is known of it. */
#include <criterion/criterion.h>

#include "base/array.h"
#include "base/buf.h"
#include "dump/dump.h"

#define RUBY(text)                                                                                 \
	{                                                                                          \
		.kind = FRAME_RUBY, .label = (text), .file = "/app/a.rb", .line = 3, .module = ""  \
	}
#define INTERNAL(text)                                                                             \
	{                                                                                          \
		.kind = FRAME_RUBY, .label = (text), .file = "<internal:thread_sync>",             \
		.module = ""                                                                       \
	}
#define CFUNC(text)                                                                                \
	{                                                                                          \
		.kind = FRAME_CFUNC, .label = (text), .file = "/app/a.rb", .module = ""            \
	}
#define NATIVE(text)                                                                               \
	{                                                                                          \
		.kind = FRAME_NATIVE, .label = (text), .file = "", .module = "/lib/libc.so.6"      \
	}

static void expect_doing(struct dump_doing d, const struct dump_frame *frames, size_t n,
			 const char *words, bool idle)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	dump_doing_conclude(&d, frames, n);
	dump_doing_add(&out, &d);
	cr_expect_str_eq(buf_str(&out), words);
	cr_expect_eq(d.idle, idle, "%s", words);
}

static const struct dump_doing asleep = { .state = 'S', .still = true, .syscall = "futex" };

Test(doing, the_method_that_a_thread_waits_in)
{
	static const struct {
		struct dump_frame frames[3];
		const char *words;
		bool idle;
	} cases[] = {
		{ { CFUNC("Kernel#sleep"), RUBY("A#run") }, "sleeps in Kernel#sleep", true },
		{ { NATIVE("ppoll"), NATIVE("[no table]"), CFUNC("IO#read") },
		  "waits in IO#read",
		  false },
		{ { INTERNAL("Thread::Queue#pop"), RUBY("A#run") },
		  "waits in Thread::Queue#pop",
		  true },
		{ { CFUNC("Thread::Mutex#sleep"), CFUNC("Thread::ConditionVariable#wait") },
		  "waits in Thread::ConditionVariable#wait",
		  true },
		{ { CFUNC("Thread::Mutex#sleep"), RUBY("A#run") },
		  "waits in Thread::Mutex#sleep",
		  true },
		{ { CFUNC("Thread::Mutex#lock"), RUBY("A#run") },
		  "waits in Thread::Mutex#lock",
		  false },
		/* Ruby code does not wait: the virtual machine does, and for what is not known. */
		{ { RUBY("Kernel#sleep"), CFUNC("Kernel#loop") }, "waits in futex", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		expect_doing(asleep, cases[i].frames, cases[i].frames[2].label ? 3 : 2,
			     cases[i].words, cases[i].idle);
}

Test(doing, a_thread_without_ruby_is_idle)
{
	static const struct dump_frame native[] = { NATIVE("ppoll"), NATIVE("timer_thread") };

	expect_doing(asleep, native, 2, "waits in futex", true);
	expect_doing(asleep, NULL, 0, "waits in futex", true);
	expect_doing((struct dump_doing) { .state = 'S', .still = true }, NULL, 0, "sleeping",
		     true);
}

/* A stack that is of another time than the state says nothing. */
Test(doing, one_that_has_run_meanwhile)
{
	static const struct dump_frame frames[] = { CFUNC("Kernel#sleep"), RUBY("A#run") };

	expect_doing((struct dump_doing) { .state = 'S' }, frames, 2, "sleeping", false);
	expect_doing((struct dump_doing) { .state = 'R' }, frames, 2, "running", false);
}

Test(doing, one_that_runs_or_would)
{
	static const struct dump_frame frames[] = { CFUNC("Kernel#sleep"), RUBY("A#run") };

	expect_doing((struct dump_doing) { .state = 'R', .on_cpu = true, .still = false }, frames,
		     2, "running", false);
	expect_doing((struct dump_doing) { .state = 'R', .queued = true, .still = true }, frames, 2,
		     "runnable, waits for a CPU", false);
	expect_doing(
		(struct dump_doing) {
			.state = 'S', .still = true, .waits_for_gvl = true, .syscall = "futex" },
		frames, 2, "waits for the GVL", false);
}

Test(doing, other_states)
{
	static const struct dump_frame frames[] = { CFUNC("IO#write"), RUBY("A#run") };

	expect_doing((struct dump_doing) { .state = 'D', .still = true }, frames, 2,
		     "waits in IO#write, uninterruptible", false);
	expect_doing((struct dump_doing) { .state = 'D', .still = true }, frames + 1, 1,
		     "waits, uninterruptible", false);
	expect_doing((struct dump_doing) { .state = 'T', .still = true }, frames + 1, 1, "stopped",
		     false);
	expect_doing((struct dump_doing) { .state = 't', .still = true }, frames + 1, 1, "stopped",
		     false);
	expect_doing((struct dump_doing) { .state = 0 }, NULL, 0, "ended", false);
}

Test(doing, throttled)
{
	static const struct dump_frame frames[] = { CFUNC("Integer#times"), RUBY("A#run") };
	const struct dump_doing kept = {
		.state = 'R', .still = true, .queued = true, .kept = RBPF_KEPT_THROTTLED
	};

	expect_doing(kept, frames, 2, "throttled by its control group", false);
	cr_expect_str_eq(dump_doing_state(&kept), "running");
}

/* By its control group: version 1 calls that a wait for a disk, version 2 a sleep. */
Test(doing, frozen)
{
	static const struct dump_frame frames[] = { CFUNC("Kernel#sleep"), RUBY("A#run") };
	const struct dump_doing sleeps = { .state = 'S', .still = true, .kept = RBPF_KEPT_FROZEN };
	const struct dump_doing waits = { .state = 'D', .still = true, .kept = RBPF_KEPT_FROZEN };
	const struct dump_doing gvl = {
		.state = 'S', .still = true, .kept = RBPF_KEPT_FROZEN, .waits_for_gvl = true
	};
	const struct dump_doing stopped = { .state = 'T', .still = true, .kept = RBPF_KEPT_FROZEN };

	expect_doing(sleeps, frames, 2, "frozen in Kernel#sleep", true);
	expect_doing(waits, frames, 2, "frozen in Kernel#sleep", true);
	expect_doing(waits, frames + 1, 1, "frozen", false);
	expect_doing(gvl, frames, 2, "frozen, waits for the GVL", false);
	expect_doing(stopped, frames, 2, "stopped", true);
	cr_expect_str_eq(dump_doing_state(&sleeps), "stopped");
	cr_expect_str_eq(dump_doing_state(&waits), "stopped");
}

Test(doing, words_of_machine_output)
{
	static const char *const words[] = { "running", "sleeping", "disk",  "stopped",
					     "stopped", "idle",	    "ended", "ended" };
	static const char states[] = { 'R', 'S', 'D', 'T', 't', 'I', 'X', 0 };

	for (size_t i = 0; i < sizeof(states); i++)
		cr_expect_str_eq(dump_doing_state(&(struct dump_doing) { .state = states[i] }),
				 words[i]);
}
