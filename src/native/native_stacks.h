/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Native stacks in user space. It tells whoever walks them (the BPF programs, or native_here.h)
 * which code each process has mapped, and turns their addresses into frames of the recording. Not
 * thread-safe.
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
struct placement;
struct sink;
struct resolver;
struct ruby_vm;
struct unwind_memory;

/* Where the code of process @pid is in the memory that it is walked by; NULL: not known any more. */
typedef void native_set_code_fn(void *arg, pid_t pid, const struct rbpf_code *code);

/*
 * Unwind tables are written to @mem, which must outlive what is made, and @set_code is called with @arg to
 * say where in it those of a process are. Both NULL: stacks are only named. @worker, which must outlive
 * it too, reads files; @inlines as in native_names_new(). Returns 0 or -errno.
 */
int native_new(const struct unwind_memory *mem, struct file_worker *worker, bool inlines,
	       native_set_code_fn *set_code, void *arg, struct native **ret);
void native_free(struct native *n); /* accepts NULL */

/* Perf maps may take a quarter of @bytes or PERF_MAPS_MAX_MEMORY, whichever is less. To be called before a process is added. */
void native_limit_memory(struct native *n, uint64_t bytes);

/* Give memory back: frames from native_frames() mean nothing any more. Returns 0 or -ENOMEM. */
int native_forget(struct native *n);

/*
 * The process @pid begins to be followed, or as a fork of that of @parent; nothing is looked at yet.
 * @place (not owned) must outlive it, and may be filled in later. Returns 0 or -ENOMEM.
 */
int native_process_new(struct native *n, pid_t pid, const struct placement *place,
		       struct native_process **ret);
int native_process_fork(const struct native_process *parent, pid_t pid,
			const struct placement *place, struct native_process **ret);
void native_process_free(struct native_process *p); /* accepts NULL */

/*
 * Look (again) what code the process has; @vm is its Ruby, NULL if none is known. A process that is
 * gone keeps what was known. Returns 0 or -ENOMEM.
 */
int native_process_look(struct native_process *p, const struct ruby_vm *vm);

/*
 * @names has named iseqs of @vm, whose code tells where the interpreter is: from then on its frames are
 * told from others. Returns 1 if it is known, 0 if not, -EAGAIN (the symbols of its file are being
 * read: native_poll()) or -ENOMEM.
 */
int native_process_interpreter(struct native_process *p, const struct ruby_vm *vm,
			       const struct resolver *names);

/*
 * The walk met code at @addr that it knows nothing of, or has no table of yet: @end is
 * RBPF_NATIVE_NO_MAP, RBPF_NATIVE_NO_RANGE or RBPF_NATIVE_UNREAD. As native_process_look().
 */
int native_process_wanted(struct native_process *p, uint64_t addr, enum rbpf_native_end end,
			  const struct ruby_vm *vm);

/*
 * How many looks at memory maps were put off since the last call, because those before took too much
 * CPU time: until they are made, native stacks of these processes may have gaps.
 */
uint64_t native_looks_put_off(struct native *n);

/* A frame of a native stack. */
struct native_frame {
	struct merge_native what;
	uint32_t name; /* for native_frame_id() and native_frame_name() */
};

struct native_frames {
	struct native_frame *v; /* owned by who has it */
	size_t n, cap;
};

/*
 * Whether all that is needed to name @words of @p has been read from its files: what was not will be,
 * by a worker, meanwhile. Returns 1, 0 (not yet) or -ENOMEM.
 */
int native_ready(struct native_process *p, const uint64_t *words, size_t n_words);

/* Take what was read meanwhile; if @wait, until nothing is left to read. Returns 0 or -ENOMEM. */
int native_poll(struct native *n, bool wait);

/*
 * Append the frames that @n_words words of @p are: one for each word, and one more for each function that
 * it was inlined into. @p NULL: the process is gone. @in_haste: symbols that are being read are not waited
 * for; a function has no name then but its address. Returns 0 or -ENOMEM.
 */
int native_frames(struct native *n, struct native_process *p, bool in_haste, const uint64_t *words,
		  size_t n_words, struct native_frames *ret);

/* The native name with id @name; valid until native_forget(). */
const struct native_name *native_frame_name(const struct native *n, uint32_t name);

/* What a Ruby frame of @kind is to merge_stacks(), as the resolver has named it. */
struct merge_ruby native_merge_ruby(enum frame_kind kind, const struct frame_origin *origin);

/* As struct merge.goes_on, for a process; @arg is its struct native_process, NULL if unknown. */
bool native_goes_on(void *arg, uint64_t function, uint64_t other);

/* The recording's frame for @name, FRAME_INTERNAL or not. Returns 0 or -errno. */
int native_frame_id(struct native *n, struct sink *out, uint32_t name, bool internal,
		    uint32_t *ret);

/* Set what was left out of processes' code and its names, by enum profile_counter. */
void native_count(const struct native *n, uint64_t *counters);

/* Give memory back and refill the budgets: to be called once or twice a second. */
void native_tick(struct native *n);

#endif
