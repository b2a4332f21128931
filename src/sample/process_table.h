/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The processes and threads that a collector has met, by the kernel's ids.
 *
 * A pid is used again after its process has ended; an entry is of one process only, and
 * process_table_end() makes the pid free for the next. Entries stay where they are in their arrays,
 * so that indices last.
 */
#ifndef RBPF_SAMPLE_PROCESS_TABLE_H
#define RBPF_SAMPLE_PROCESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/intern.h"
#include "rbpf_abi.h"
#include "ruby/vm.h"
#include "target/process.h"

struct resolver;

struct tracked_process {
	pid_t pid;
	struct process info; /* as it was when it was met */
	uint32_t id;	     /* in the recording */
	uint32_t parent;     /* the parent's, PROFILE_NONE if it is not in it */
	bool ended;
	bool missing;	    /* was gone from /proc at the last look */
	bool uncovered;	    /* forked by a thread that had no clock yet: its threads need one */
	struct ruby_vm *vm; /* owned; its address is the resolver's */
	struct resolver *resolver; /* owned; NULL without vm */
	uint32_t *frame_ids;	   /* by symbol of the resolver: id in the recording + 1; owned */
	size_t cap_frame_ids;
	uint64_t next_try; /* ns, CLOCK_MONOTONIC: when to look for a Ruby again; 0: now */
	uint64_t backoff;  /* ns */
};

struct tracked_thread {
	uint32_t process; /* index */
	pid_t tid;
	uint32_t id;	     /* in the recording; PROFILE_NONE before its first sample */
	uint64_t cpu_base;   /* ns of CPU time it had when sampling began */
	uint64_t covered_ns; /* since when it is sampled, CLOCK_MONOTONIC; 0: it is not */
	bool ended;
	char comm[RBPF_COMM_LEN];
};

struct process_table {
	struct tracked_process *processes; /* owned */
	size_t n_processes, cap_processes;
	struct tracked_thread *threads; /* owned */
	size_t n_threads, cap_threads;
	struct intern pids; /* pid_t */
	uint32_t *by_pid;   /* by id of pids: index + 1 of the live process, 0 if none; owned */
	size_t cap_by_pid;
	struct intern threads_by_id; /* {process index, tid}: ids are indices of threads */
};

void process_table_deinit(struct process_table *t);

/* The live process @pid, or NULL. Pointers are valid until the next process_table_add(). */
struct tracked_process *process_table_find(struct process_table *t, pid_t pid);
int process_table_add(struct process_table *t, pid_t pid, struct tracked_process **ret);

/* Forget the Ruby of @p: after exec, or at its end. */
void tracked_process_drop_vm(struct tracked_process *p);
void process_table_end(struct process_table *t, struct tracked_process *p);

/* Thread @tid of @p; *@is_new tells whether it was met before. */
int process_table_thread(struct process_table *t, const struct tracked_process *p, pid_t tid,
			 struct tracked_thread **ret, bool *is_new);

#endif
