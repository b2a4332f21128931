/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What takes samples, as its clients see it: which processes and threads it is to sample, the
 * records that it makes (include/rbpf_abi.h), and what it counts. An engine moves records and does
 * not know what they mean.
 *
 * bpf_engine.h is the one that rbpf has. An implementation puts struct engine first in its own
 * struct, fills in the operations that it has, and hands out a pointer to it;
 * tests/support/scripted_engine.h is one that plays records of a test. Not thread-safe.
 */
#ifndef RBPF_ENGINE_ENGINE_H
#define RBPF_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rbpf_abi.h"
#include "rbpf_cfi.h"

struct cpus;
struct engine;
struct err;
struct profile_event;

#define ENGINE_RING_BYTES (8u << 20) /* of the ring, if nothing else is asked for */

struct engine_options {
	uint32_t frequency;  /* Hz of the CPU time of each thread or CPU; 0: nothing is sampled */
	uint32_t max_frames; /* RBPF_MIN_FRAMES to RBPF_MAX_FRAMES */
	uint64_t ring_bytes; /* a power of two, at least a page */
	bool follow;	     /* also the children of the targets */
	bool system_wide;    /* clocks of CPUs, not of threads; and each exec is reported */
	bool native;	     /* walk native stacks, too */
	bool kernel;	     /* and the kernel's part of them */
	bool waits;	     /* each wait of a thread is a sample, too … */
	bool wakers;	     /* … and so is who ended it, where that is known */
};

/* Takes a record of @len bytes. Negative stops the drain and is returned by it. */
typedef int engine_record_fn(void *arg, const void *data, size_t len);

/*
 * The memory that native stacks are walked by, zeroed at first: unwind_tables.h writes it, and the
 * engine reads it meanwhile. All 0: it walks none.
 */
struct unwind_memory {
	uint32_t *words; /* of the tables */
	size_t n_words;
	struct rbpf_cfi_rule *rules;
	size_t n_rules; /* a row whose rule has a higher number counts as having none; at least 1 */
	struct rbpf_range *ranges;
	size_t n_ranges;
};

/* How often something ran, and how long in all. */
struct engine_runs {
	uint64_t n;
	uint64_t ns;
};

/* What is run where samples are taken, all over the machine; 0 if unknown. */
struct engine_cost {
	struct engine_runs ticks;    /* of clocks */
	struct engine_runs switches; /* of threads, to tell their waits */
	struct engine_runs wakeups;  /* of threads, for the same */
	uint64_t all_ns;	     /* these, and what else runs outside of rbpf's own processes */
};

/*
 * Operations of an engine; each is described at the function that calls it. Those after "may be
 * NULL" are left NULL by an engine that does not need them: then the function does nothing and its
 * results are 0, but engine_fd() is -1 and engine_read_registers() fails with -ENOTSUP.
 */
struct engine_ops {
	const char *name;
	void (*close)(struct engine *e);
	int (*follow)(struct engine *e, pid_t tgid, const struct rbpf_layout *layout,
		      uint64_t since_ns, struct err *err);
	void (*forget)(struct engine *e, pid_t tgid);
	uint32_t (*events)(const struct engine *e, struct profile_event *ret);
	int (*drain)(struct engine *e, engine_record_fn *handle, void *arg);
	/* may be NULL */
	int (*follow_again)(struct engine *e, pid_t tgid, uint64_t since_ns, struct err *err);
	int (*add_thread)(struct engine *e, pid_t tid, struct err *err);
	void (*remove_thread)(struct engine *e, int clock);
	void (*set_clocked)(struct engine *e, pid_t tgid, uint64_t before_ns);
	int (*set_cpus)(struct engine *e, const struct cpus *cpus, struct err *err);
	void (*redraw)(struct engine *e);
	void (*set_divisor)(struct engine *e, uint32_t divisor);
	int (*read_threads)(struct engine *e, pid_t tgid, struct rbpf_task **ret, size_t *n,
			    struct err *err);
	void (*stop)(struct engine *e);
	int (*fd)(const struct engine *e);
	int (*read_registers)(struct engine *e, pid_t tgid, struct rbpf_thread **ret, size_t *n,
			      struct err *err);
	void (*keep_preset)(struct engine *e, const struct rbpf_preset_key *key,
			    const struct rbpf_layout *layout);
	void (*forget_stacks)(struct engine *e);
	void (*forget_stack)(struct engine *e, uint64_t stack);
	void (*copy_names)(struct engine *e, pid_t tgid, uint64_t until_ns);
	int (*open_waits)(struct engine *e, pid_t tgid, uint64_t least_ns, struct err *err);
	void (*know_wait)(struct engine *e, pid_t tid, const struct rbpf_known_wait *known);
	void (*set_code)(struct engine *e, pid_t tgid, const struct rbpf_code *code);
	void (*set_request)(struct engine *e, pid_t tgid, uint64_t iseq,
			    const struct rbpf_request_rule *rule);
	void (*set_request_filter)(struct engine *e, pid_t tgid,
				   const struct rbpf_request_filter *filter);
	void (*set_thread_context)(struct engine *e, pid_t tgid, const struct rbpf_tls *variable);
	void (*unwind_memory)(const struct engine *e, struct unwind_memory *ret);
	void (*counters)(const struct engine *e, uint64_t *ret);
	void (*cost)(const struct engine *e, struct engine_cost *ret);
};

struct engine {
	const struct engine_ops *ops;
};

/* Stop all it does, and free it; accepts NULL. */
void engine_close(struct engine *e);

/*
 * Follow process @tgid, or, with @layout, tell that of the Ruby in one that is followed already:
 * nothing is done if it has ended. NULL: no Ruby is known in it (yet), or not any more.
 * @since_ns: when it was forked or executed, CLOCK_MONOTONIC; 0: before it was met. Returns 0,
 * -E2BIG if RBPF_MAX_PROCS are followed, or another error; @err is set.
 */
int engine_follow(struct engine *e, pid_t tgid, const struct rbpf_layout *layout, uint64_t since_ns,
		  struct err *err);
/*
 * Follow process @tgid again, which the engine has begun to follow by itself, if it was told to
 * forget it meanwhile. Otherwise all stays as it is, with the layout that was kept for it.
 */
int engine_follow_again(struct engine *e, pid_t tgid, uint64_t since_ns, struct err *err);
/* Follow it no more; nor is its code known, nor its requests. */
void engine_forget(struct engine *e, pid_t tgid);

/*
 * What it takes samples of: @ret, which has room for PROFILE_MAX_EVENTS, by the number that its
 * records give. Returns how many, 0 if it takes no samples.
 */
uint32_t engine_events(const struct engine *e, struct profile_event *ret);

/*
 * Keep @layout, without addresses of the process that it is of, for the next process with the same
 * executable and user (see struct rbpf_preset_key): that one is walked from its first tick.
 */
void engine_keep_preset(struct engine *e, const struct rbpf_preset_key *key,
			const struct rbpf_layout *layout);

/*
 * The stacks that were defined are not known any more: let each be defined in full when it is next
 * sampled.
 */
void engine_forget_stacks(struct engine *e);

/* The same of one stack, whose fingerprint is @stack; and perhaps of another one with it. */
void engine_forget_stack(struct engine *e, uint64_t stack);

/*
 * Up to @until_ns (CLOCK_MONOTONIC), send copies of what names need with the stacks of process
 * @tgid, as of a young one: its objects do not live long enough to be read later. (A few other
 * processes may be treated so, too.)
 */
void engine_copy_names(struct engine *e, pid_t tgid, uint64_t until_ns);

/*
 * Have the waits of process @tgid (0: of all) that go on for @least_ns already sent, as far as they
 * have come, and those of threads begun that wait since before they were followed. Does nothing
 * without engine_options.waits.
 */
int engine_open_waits(struct engine *e, pid_t tgid, uint64_t least_ns, struct err *err);

/*
 * Tell the BPF programs of a wait of thread @tid that was sent (RBPF_RING_WAIT) what they could not
 * read, so that who holds a Mutex is charged with it. @known->counted is 0. It counts from the end
 * of engine_drain() on.
 */
struct rbpf_known_wait;
void engine_know_wait(struct engine *e, pid_t tid, const struct rbpf_known_wait *known);

/*
 * What is read of frames of @iseq in process @tgid, to tell which request it serves; NULL: nothing
 * any more. Only iseqs whose bits are in the filter of the process, which is set after them, are
 * looked for; NULL: none.
 */
void engine_set_request(struct engine *e, pid_t tgid, uint64_t iseq,
			const struct rbpf_request_rule *rule);
void engine_set_request_filter(struct engine *e, pid_t tgid,
			       const struct rbpf_request_filter *filter);

/*
 * Where threads of process @tgid, which is followed, have the variable that leads to their context
 * (struct rbpf_otel_record): it is read with each sample. A child has it where its parent does;
 * engine_follow() forgets it.
 */
void engine_set_thread_context(struct engine *e, pid_t tgid, const struct rbpf_tls *variable);

/* The memory that native stacks are walked by, valid as long as the engine. */
void engine_unwind_memory(const struct engine *e, struct unwind_memory *ret);

/* Where in it the code of process @tgid is; NULL: not known any more. */
void engine_set_code(struct engine *e, pid_t tgid, const struct rbpf_code *code);

/*
 * Give thread @tid a clock of its own, which ticks exactly once for each period of CPU time that it
 * has: see engine_set_clocked(). An engine that samples all threads of the processes that it
 * follows has nothing to do here.
 *
 * Returns the number of that clock, which is positive, or 0 if nothing is to be done; -ESRCH if the
 * thread is gone, -ETIMEDOUT if it cannot be waited for, -EMFILE if too many files are open; or
 * another error with @err set.
 */
int engine_add_thread(struct engine *e, pid_t tid, struct err *err);

/* Close that clock. */
void engine_remove_thread(struct engine *e, int clock);

/*
 * Threads of process @tgid, which is followed, that began before @before_ns (CLOCK_MONOTONIC) are
 * sampled by their own clocks, each from one of its first ticks on. Up to then, and those that
 * began later, and all of its children, are sampled by the clocks of the CPUs. 0: none has its own,
 * as before the first call.
 */
void engine_set_clocked(struct engine *e, pid_t tgid, uint64_t before_ns);

/*
 * Have clocks of these CPUs and of no others: to be called again when some came or went. They see
 * threads that have no clocks of their own.
 */
int engine_set_cpus(struct engine *e, const struct cpus *cpus, struct err *err);

/*
 * To be called ten times a second or more: periods of the clocks of CPUs are drawn anew, of those
 * for which it is due.
 */
void engine_redraw(struct engine *e);

/*
 * Sample so many times less often than engine_options.frequency says from now on; 1: as often. Each
 * sample carries the time that it stands for.
 */
void engine_set_divisor(struct engine *e, uint32_t divisor);

/*
 * The threads of process @tgid, or if 0 of all that are followed, with their thread pointers: of
 * very many those that come first. *@ret is malloc'ed, or NULL if there are none. Without their
 * thread pointers no Ruby can be found in a process.
 */
int engine_read_threads(struct engine *e, pid_t tgid, struct rbpf_task **ret, size_t *n,
			struct err *err);

/*
 * The same with the registers of each thread. Each thread is read at another time; if its runtime
 * is unchanged later, its registers are still those.
 */
int engine_read_registers(struct engine *e, pid_t tgid, struct rbpf_thread **ret, size_t *n,
			  struct err *err);

/* A descriptor to poll: readable when engine_drain() should be called soon. -1: there is none. */
int engine_fd(const struct engine *e);

/*
 * Pass the records there are to @handle, for ENGINE_DRAIN_NS at most: targets can make new ones
 * faster than they are handled. Returns 0 when there are no more, 1 if there may be, or what
 * @handle returned if that was negative.
 */
#define ENGINE_DRAIN_NS 100000000ull
int engine_drain(struct engine *e, engine_record_fn *handle, void *arg);

/* Stop sampling; the records that were made can still be drained. */
void engine_stop(struct engine *e);

/* What was counted where samples are taken; @ret has RBPF_COUNTERS. */
void engine_counters(const struct engine *e, uint64_t *ret);

/*
 * What it costs, also in what is not followed. The counters TICKS and SAMPLE_NS tell how many of
 * the ticks made samples, and how long.
 */
void engine_cost(const struct engine *e, struct engine_cost *ret);

#endif
