/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The present stack of every thread of a process, read from outside while the threads run on.
 *
 * A thread that sleeps keeps its stack, so what is read is what is there. One that runs changes it
 * while it is read: its stack is taken when two readings in a row agree, and marked as changing if
 * none do.
 *
 * What a thread waits in is said only if it has not run from before its stack was read until after
 * it: so its state and the number of times that it has left a CPU tell. A state that is read at
 * another time than the stack can be that of another moment.
 *
 * A native stack is walked from the registers that the thread had when it entered the kernel last.
 * It has them still if it does not run, and has not run since: so its CPU time tells, read before
 * and after. For one that runs they are those of some time before. Not thread-safe.
 */
#ifndef RBPF_DUMP_DUMP_H
#define RBPF_DUMP_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "dump/doing.h"
#include "dump/requests.h"
#include "profile/reason.h"
#include "rbpf_abi.h"
#include "target/waits_on.h"

struct dump;
struct engine;
struct err;
struct process;
struct request_rules;
struct ruby_attach_options;

/* The strings live as long as the dump. */
struct dump_frame {
	enum frame_kind kind;
	enum frame_reason reason;
	uint32_t flags; /* FRAME_LINE_APPROXIMATE … */
	const char *label;
	const char *raw_label; /* as Ruby has it; label itself if that is not made from it */
	const char *file;      /* of a Ruby frame; "" if none */
	uint32_t line;	       /* of execution; 0 if none */
	const char *module;    /* of a native frame; "" if none */
	uint64_t address;      /* in the module */
	uint64_t pc;	       /* native: in the process, where it goes on or is; 0: a gap's */
};

struct dump_thread {
	pid_t tid;
	char name[64];		     /* valid UTF-8 */
	struct dump_doing doing;     /* while its stack was read */
	struct dump_request request; /* then; owned */
	bool has_ruby;
	bool has_native;	   /* its registers are known */
	bool changing;		   /* while it was read */
	struct dump_frame *frames; /* innermost first; owned */
	size_t n_frames;
	uint64_t thread;	       /* its rb_thread_t; 0 if it is none of Ruby's */
	uint64_t mutex;		       /* the Mutex that it waits for; 0 if it waits for none */
	struct dump_thread *owner;     /* that holds it; NULL if that is not known */
	size_t n_waiters;	       /* threads whose owner it is */
	struct dump_thread *gvl_owner; /* if it waits for the GVL: that holds it; NULL: not known */
	bool holds_gvl;		       /* when all threads had been read */
	struct waits_on on;
	enum rbpf_native_end end; /* why the native stack ends */
	uint32_t n_gaps;	  /* in it */
};

/*
 * Attach to @process, which @engine follows; both must outlive what is made, as must @rules, by
 * which requests are told (NULL: none are). With @native, to its native stacks too. @attach without
 * tasks. Returns 0 or a negative errno with @err set: of ruby_vm_attach(), or of the engine.
 */
int dump_open(struct engine *engine, const struct process *process,
	      const struct ruby_attach_options *attach, const struct request_rules *rules,
	      bool native, struct dump **ret, struct err *err);
void dump_close(struct dump *d); /* accepts NULL */

/* "3.3.6" */
const char *dump_ruby_version(const struct dump *d);
bool dump_has_native(const struct dump *d);

struct dump_threads {
	struct dump_thread *v; /* by tid; owned */
	size_t n;
};

/*
 * Read the threads that the process had when it was attached to, one after the other. Returns 0 or
 * -ENOMEM; @ret: dump_threads_deinit(), before the dump is closed.
 */
int dump_read_threads(struct dump *d, struct dump_threads *ret);
void dump_threads_deinit(struct dump_threads *t);

#endif
