/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of the collector, to each other: collector.c keeps the loop, samples.c takes stacks and
 * samples, process_life.c knows how processes begin, change and end, thread_life.c which of their threads have
 * clocks, and system_wide.c which of the machine's are to be followed.
 */
#ifndef RBPF_SAMPLE_COLLECTOR_STATE_H
#define RBPF_SAMPLE_COLLECTOR_STATE_H

#include "sample/collector.h"

#include "ruby/cache.h"
#include "ruby/file_kind.h"
#include "sample/process_table.h"
#include "sample/stack_table.h"
#include "target/users.h"

struct mmap_watch;

struct collector {
	struct collector_options opts;
	struct sink *sink;
	struct engine *engine;
	struct process_table table;
	struct stack_table stacks;
	struct ruby_cache binaries;
	struct ruby_files files;
	struct users users;
	struct intern presets;	  /* struct rbpf_preset_key that layouts were kept by */
	struct mmap_watch *mmaps; /* system-wide; owned */
	struct native *native;	  /* NULL: native stacks are not walked; owned */
	struct profile_totals totals;
	uint64_t reported_lost;
	uint64_t unknown; /* samples of processes that it was not told of */
	uint64_t reported_unknown;
	uint64_t housekeeping_ns;
	uint64_t cpus_ns; /* when was looked which CPUs are online */
	uint64_t round;
	uint64_t account_ns; /* CPU time of all that was followed, as far as it was told */
	size_t held;	     /* bytes of records that wait for names: samples.c */
	uint64_t unchecked;  /* bytes of records since memory was looked at */
	uint64_t forgot_ns;  /* CLOCK_MONOTONIC: when something was forgotten to have memory */
	bool memory_full;    /* beyond memory_limit, with all forgotten that can be learnt again */
	struct put_off *put_off; /* looks for Rubies; NULL: none; owned */
	size_t seen;		 /* processes, ever */
	size_t live;		 /* of them */
	size_t rubies;
	unsigned int warnings;
	bool any_uncovered; /* of the processes */
	char ruby_version[64];
	char refused[512];
	int failed; /* sticky: an error that ends the recording */
};

#define MAX_WARNINGS 20 /* given to opts.warn() */

/* Take the records that the engine has: as engine_drain(). */
int collector_drain(struct collector *c);

/* Put @r, which ended the recording, into words. */
int collector_fail(struct collector *c, int r, struct err *err);

/* ---- samples.c ---- */

/* Records of the kernel side. */
int samples_take_memory(struct collector *c, const struct rbpf_ring_memory *rec, size_t len);
int samples_take_stack(struct collector *c, const struct rbpf_ring_stack *rec, size_t len);
int samples_take_native(struct collector *c, const struct rbpf_ring_native *rec, size_t len);
int samples_take_wanted(struct collector *c, const struct rbpf_ring_wanted *rec);
int samples_take(struct collector *c, const struct rbpf_ring_sample *rec, size_t len);

/* Take what waited for names that are known by now, and at the end the rest. */
int samples_poll(struct collector *c);
int samples_finish(struct collector *c);

/* Take all samples of @p that wait for names, without names if need be: @p ends, or executes another program. */
int samples_release(struct collector *c, struct tracked_process *p);

/* ---- process_life.c and thread_life.c ---- */

/*
 * Follow process @pid, unless it is gone (-ESRCH), system-wide not one of those selected (-ENOENT),
 * or there are too many already, in all or of its user, or too little memory (-E2BIG,
 * check_room()). @since_ns as in struct tracked_process; @preset: the kernel side follows it
 * already.
 */
int life_add(struct collector *c, pid_t pid, uint64_t since_ns, bool preset,
	     struct tracked_process **ret, struct err *err);

/* Look for a Ruby in @p, by the thread pointers in @tasks; NULL: read them. Returns 0 or why none was found. */
int life_attach(struct collector *c, struct tracked_process *p, const struct rbpf_task *tasks,
		size_t n_tasks, struct err *err);

/* The same where it is no failure that there is none, or none that can be walked. */
int life_try(struct collector *c, struct tracked_process *p, const struct rbpf_task *tasks,
	     size_t n_tasks);

/* The same for a process that is seen using CPU: with longer and longer pauses. */
int life_try_again(struct collector *c, struct tracked_process *p);

/* Count @p, once, if it has ended before a Ruby was found in it. */
void life_count_unseen(struct collector *c, struct tracked_process *p);

/* Write what is known of @p to the recording; the first time with its parent, if that is in it. */
int life_record(struct collector *c, struct tracked_process *p);

/* Note that thread @t has had @runtime ns of CPU time in its life so far. */
int life_account(struct collector *c, struct tracked_thread *t, uint64_t runtime);

/* Whether thread @tid of @p had a clock at @ts, which a thread that it created then inherited. */
bool life_was_covered(struct collector *c, struct tracked_process *p, pid_t tid, uint64_t ts);

/* Note the CPU time that each thread of process @pid (0: of all) has used: only what comes later counts. */
int life_begin_account(struct collector *c, pid_t pid);

/* Give clocks to the threads of processes that are uncovered. Not while the ring is read. */
int life_cover(struct collector *c, struct err *err);

/* Records of the kernel side. */
int life_take_thread(struct collector *c, const struct rbpf_ring_life *rec);
int life_take_fork(struct collector *c, const struct rbpf_ring_life *rec);
int life_take_exec(struct collector *c, const struct rbpf_ring_life *rec);
int life_take_exit(struct collector *c, const struct rbpf_ring_life *rec);
int life_take_free(struct collector *c, const struct rbpf_ring_life *rec);

/* Count the processes of each user: of those that are followed. */
void life_count_users(struct collector *c);

/* Notice exits that were not seen, and let go of what ended a while ago. */
int life_sweep(struct collector *c, uint64_t now);

/* The kernel's account of what still lives, at the end. */
int life_finish_account(struct collector *c);

/* ---- system_wide.c ---- */

/* Sample the CPUs that are online now: called again now and then, for that may change. */
int system_wide_sample(struct collector *c, struct err *err);

/* Whether all Rubies are wanted, and not only those selected. */
bool system_wide_is_all(const struct collector *c);

/* Whether process @pid, which has just executed a program, may come to hold a Ruby VM. */
bool system_wide_may_be_ruby(struct collector *c, pid_t pid);

/* Look for Rubies that were mapped since the last look. */
int system_wide_poll(struct collector *c);

/* Look into the processes again that were put off, because looking had used up their user's share of time. */
int system_wide_retry(struct collector *c);

#endif
