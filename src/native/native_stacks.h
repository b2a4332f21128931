/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Native stacks in user space. It tells whoever walks them (the BPF programs, or
 * native_user_walk.h) which code each process has mapped, and turns their addresses into frames of
 * the recording. Not thread-safe.
 */
#ifndef RBPF_NATIVE_NATIVE_STACKS_H
#define RBPF_NATIVE_NATIVE_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile/profile.h"
#include "rbpf_abi.h"
#include "native/merge.h"

struct file_worker;
struct frame_origin;
struct native;
struct native_name;
struct native_process;
struct process_context;
struct sink;
struct resolver;
struct ruby_vm;
struct unwind_memory;

/*
 * Where the ranges of process @pid are in the unwind memory; NULL: its code is not known any more.
 */
typedef void native_set_code_fn(void *arg, pid_t pid, const struct rbpf_code *code);

/*
 * Make a struct native. It writes the unwind tables of processes to @mem, and calls @set_code with
 * @arg to say where in it those of a process are. If both are NULL, stacks are only named. @worker
 * reads files; it and @mem must outlive *@ret. @inlines as in native_names_new(). Returns 0 or
 * -errno.
 */
int native_new(const struct unwind_memory *mem, struct file_worker *worker, bool inlines,
	       native_set_code_fn *set_code, void *arg, struct native **ret);
void native_free(struct native *n); /* accepts NULL */

/*
 * Limit the memory of perf maps to a quarter of @bytes, or to PERF_MAPS_MAX_MEMORY if that is less.
 * To be called before a process is added.
 */
void native_limit_memory(struct native *n, uint64_t bytes);

/* Give memory back: frames from native_frames() mean nothing any more. Returns 0 or -ENOMEM. */
int native_forget(struct native *n);

/*
 * Name all anew that is met from now on. The names that native_frames() made before stay until the
 * second call, which gives back the memory of those of code that is gone.
 */
void native_renew_names(struct native *n);

/* Bytes of memory of the names that were made since native_renew_names(). */
size_t native_names_memory(const struct native *n);

/*
 * Begin to follow process @pid: a new one, or a fork of @parent, whose code map it shares. Nothing
 * is read. @context (not owned) must outlive it, and may be filled in later. Returns 0 or -ENOMEM.
 */
int native_process_new(struct native *n, pid_t pid, const struct process_context *context,
		       struct native_process **ret);
int native_process_fork(const struct native_process *parent, pid_t pid,
			const struct process_context *context, struct native_process **ret);
/* Accepts NULL. Whoever walks its stacks is told that its code is not known any more. */
void native_process_free(struct native_process *p);

/*
 * Read (again) which code the process has mapped; @vm is its Ruby, NULL if none is known. If the
 * process has ended, what was known stays. Returns 0 or -ENOMEM.
 */
int native_process_read_map(struct native_process *p, const struct ruby_vm *vm);

/*
 * Find the interpreter (vm_exec_core(), rb_vm_exec()) by the code of the iseqs of @vm that @names
 * has read. Once it is known, its native frames are told from others. Returns 1 if it is known, 0
 * if not, -EAGAIN (the symbols of its file are being read: native_poll()) or -ENOMEM.
 */
int native_process_interpreter(struct native_process *p, const struct ruby_vm *vm,
			       const struct resolver *names);

/*
 * A walk ended at @addr, for want of a map of the code (@end RBPF_NATIVE_NO_MAP), of a range there
 * (RBPF_NATIVE_NO_RANGE), or of the table of its file (RBPF_NATIVE_UNREAD): read what is missing.
 * @vm and the result as of native_process_read_map().
 */
int native_process_miss(struct native_process *p, uint64_t addr, enum rbpf_native_end end,
			const struct ruby_vm *vm);

/* Whether code of a JIT compiler may run in @p, as far as what it has mapped tells. */
bool native_process_may_have_jit(const struct native_process *p);

/*
 * How many reads of memory maps were deferred since the last call, because those before took too
 * much CPU time: until they are made, native stacks of these processes may have gaps.
 */
uint64_t native_map_reads_deferred(struct native *n);

/* A frame of a native stack. */
struct native_frame {
	struct merge_native what;
	uint32_t name; /* for native_frame_id() and native_frame_name() */
};

struct native_frames {
	struct native_frame *v; /* owned */
	size_t n, cap;
};

/*
 * Whether the symbols of all files that @words of @p lie in have been read. Those that have not are
 * queued for the worker. Returns 1, 0 (not yet) or -ENOMEM.
 */
int native_ready(struct native_process *p, const uint64_t *words, size_t n_words);

/* Take what the worker has read; if @wait, wait until it has read all. Returns 0 or -ENOMEM. */
int native_poll(struct native *n, bool wait);

/*
 * Append the frames of the native stack @words of process @p (NULL: it is gone): one for each word,
 * and one more for each function that it was inlined into. If symbols are still being read, this
 * waits for them; @no_wait it does not, and names by address. Returns 0 or -ENOMEM.
 */
int native_frames(struct native *n, struct native_process *p, bool no_wait, const uint64_t *words,
		  size_t n_words, struct native_frames *ret);

/*
 * Differs from what it was if native_frames() might name words of @p (NULL: it is gone) otherwise
 * than then. Never UINT64_MAX.
 */
uint64_t native_names_age(struct native *n, struct native_process *p);

/* The native name with id @name; valid until native_forget(). */
const struct native_name *native_frame_name(const struct native *n, uint32_t name);

/* Convert a Ruby frame, as the resolver has named it, into what merge_stacks() takes. */
struct merge_ruby native_merge_ruby(enum frame_kind kind, const struct frame_origin *origin);

/*
 * As struct merge.makes_tail_call, for a process; @arg is its struct native_process, NULL if
 * unknown.
 */
bool native_makes_tail_call(void *arg, uint64_t function, uint64_t other);

/* The recording's frame for @name, FRAME_INTERNAL or not. Returns 0 or -errno. */
int native_frame_id(struct native *n, struct sink *out, uint32_t name, bool internal,
		    uint32_t *ret);

/* Forget which frames of the recording names have: it is asked for them again. */
void native_forget_ids(struct native *n);

/* Set what was left out of processes' code and its names, by enum profile_counter. */
void native_count(const struct native *n, uint64_t *counters);

/* Give memory back and refill the budgets: to be called once or twice a second. */
void native_tick(struct native *n);

#endif
