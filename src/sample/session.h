/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The BPF side while it runs: programs loaded and attached, perf events of threads, the ring
 * buffer. The only user of libbpf. It moves raw records; it does not know what they mean.
 *
 * Everything it holds in the kernel is held by file descriptors: when rbpf dies, in whatever way,
 * the kernel takes it all down. Not thread-safe.
 */
#ifndef RBPF_SAMPLE_SESSION_H
#define RBPF_SAMPLE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rbpf_abi.h"

struct cpus;
struct err;
struct session;
struct unwind_memory;

struct session_options {
	uint32_t frequency;  /* Hz of the CPU time of each thread or CPU */
	uint32_t max_frames; /* RBPF_MIN_FRAMES to RBPF_MAX_FRAMES */
	uint64_t ring_bytes; /* a power of two, at least a page */
	bool follow;	     /* also the children of the targets */
	bool system_wide;    /* clocks of CPUs, not of threads; and each exec is reported */
	bool native;	     /* walk native stacks, too */
	bool kernel;	     /* and the kernel's part of them */
	/* Called for each record. Negative stops the poll and is returned by it. */
	int (*on_record)(void *arg, const void *data, size_t len);
	void *arg;
};

/* Where the messages of libbpf go, line by line, for --verbose; NULL drops them. Process-wide. */
void session_set_log(void (*log)(const char *line));

/* Load and attach. ERR_ENV with the reason if the kernel refuses. */
int session_open(const struct session_options *opts, struct session **ret, struct err *err);
/* The same to look at process @pid alone, sampling nothing. */
int session_open_idle(pid_t pid, struct session **ret, struct err *err);
void session_close(struct session *s); /* accepts NULL */

/*
 * Follow process @tgid; @layout NULL if no Ruby is known in it (yet). Also to change the layout.
 * @since_ns: when it was forked or executed, CLOCK_MONOTONIC; 0: before it was met.
 */
int session_follow(struct session *s, pid_t tgid, const struct rbpf_layout *layout,
		   uint64_t since_ns, struct err *err);
void session_unfollow(struct session *s, pid_t tgid);

/*
 * Keep the @layout of a process for the next that the same user executes the same file by (see struct
 * rbpf_preset_key): that one is walked from its first tick. A layout that cannot be used without its
 * addresses is not kept.
 */
void session_preset(struct session *s, const struct rbpf_preset_key *key,
		    const struct rbpf_layout *layout);

/*
 * The memory that native stacks are walked by, valid as long as the session. Without native there
 * is none: all members are 0.
 */
void session_unwind_memory(const struct session *s, struct unwind_memory *ret);

/* Where in it the code of process @tgid is; NULL: not known any more. */
void session_set_code(struct session *s, pid_t tgid, const struct rbpf_code *code);

/*
 * Sample thread @tid, and all threads and (with follow) children that it will create.
 * Returns 0, -ESRCH if the thread is gone, -EMFILE if too many files are open, or another error with
 * @err set.
 */
int session_add_thread(struct session *s, pid_t tid, struct err *err);

/* Sample these CPUs and no others (system_wide): to be called again when some came or went. */
int session_set_cpus(struct session *s, const struct cpus *cpus, struct err *err);

/*
 * The threads of process @tgid, or if 0 of all that are followed, with their thread pointers: of
 * very many those that come first. *@ret is malloc'ed.
 */
int session_tasks(struct session *s, pid_t tgid, struct rbpf_task **ret, size_t *n,
		  struct err *err);

/*
 * The same with the registers of each thread, as they were at one moment of its own. Those of one
 * that has not run since, as its runtime tells, are those it still has.
 */
int session_threads(struct session *s, pid_t tgid, struct rbpf_thread **ret, size_t *n,
		    struct err *err);

/* A descriptor to poll: readable when the ring buffer asks to be emptied. */
int session_fd(const struct session *s);

/*
 * Hand the records there are to on_record, for SESSION_DRAIN_NS at most: targets can make new ones
 * faster than they are taken. Returns 0 when there are no more, 1 if there may be, or what
 * on_record returned if that was negative.
 */
#define SESSION_DRAIN_NS 100000000ull
int session_drain(struct session *s);

/* Stop sampling; what is in the ring can still be drained. */
void session_stop(struct session *s);

/*
 * CPU time in ns of all threads sampled by clocks of their own, from the beginning of each to now:
 * the kernel's own count in the perf events, including threads that were inherited and have ended.
 */
uint64_t session_cpu_ns(const struct session *s);

/* Counters of the BPF side, summed over CPUs; @ret has RBPF_COUNTERS. */
void session_counters(const struct session *s, uint64_t *ret);

/* Runs and run time in ns of the tick program, by the kernel's BPF statistics; 0 if unavailable. */
void session_cost(const struct session *s, uint64_t *runs, uint64_t *ns);

/*
 * The threads of process @pid with their thread pointers, without sampling any; *@ret is malloc'ed.
 * Those of other processes may be among them.
 */
int session_list_threads(pid_t pid, struct rbpf_task **ret, size_t *n, struct err *err);

/*
 * Try what recording does: load, attach to this process itself, take a sample. For rbpf doctor.
 * Returns 0 or an ERR_ENV that tells what was refused.
 */
int session_trial(struct err *err);

#endif
