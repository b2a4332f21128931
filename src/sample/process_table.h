/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The processes and threads that a collector follows, by the kernel's ids.
 *
 * A pid is used again after its process has ended: an entry is of one process only, and is removed
 * soon after that ends, so that what is held is bounded by what lives at once. Entries stay where
 * they are until then.
 */
#ifndef RBPF_SAMPLE_PROCESS_TABLE_H
#define RBPF_SAMPLE_PROCESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "rbpf_abi.h"
#include "ruby/vm.h"
#include "sample/held.h"
#include "sample/lost_names.h"
#include "sample/names_age.h"
#include "sample/requests.h"
#include "target/process.h"

struct native_process;
struct resolver;

struct tracked_thread {
	LIST_ENTRY(tracked_thread) link;
	pid_t tid;
	uint32_t id;	   /* in the recording; PROFILE_NONE before its first sample */
	uint64_t cpu_base; /* ns of CPU time it had when sampling began */
	bool has_base;	   /* cpu_base is known */
	int clock;	   /* of its own, as engine_add_thread() gave it; 0: none */
	bool awaits_clock; /* in a clock_queue */
	bool ran_ruby;	   /* a sample of it had a Ruby stack */
	uint64_t ended_ns; /* CLOCK_MONOTONIC; 0: it lives */
	uint64_t cpu_ns;   /* CPU time since cpu_base that was accounted for */
	/* Its waits, CLOCK_MONOTONIC: up to when they are in the recording … */
	uint64_t waits_until_ns;
	uint64_t wait_ns;	  /* … and since when the one lasts that … */
	struct wait_stacks *wait; /* … has these stacks; owned; NULL: none does */
	uint32_t request;	  /* that its last sample was of, id in the recording; 0: none */
	struct request_definition request_def; /* of it */
	char comm[RBPF_COMM_LEN];
};

/* A frame of a stack of the recording. */
struct pushed_frame {
	uint32_t parent, frame;
	uint32_t stack; /* 0: none */
};

#define INTERPRETER_TRIES 8

struct tracked_process {
	LIST_ENTRY(tracked_process) link;
	pid_t pid;
	struct process info; /* as it was when rbpf began to follow it, but for its title */
	uint32_t id;	     /* in the recording; PROFILE_NONE before it is in it */
	uint32_t parent;     /* the parent's, PROFILE_NONE if it is not in it */
	uint64_t since_ns;   /* fork or exec, CLOCK_MONOTONIC; 0: before rbpf followed it */
	uint64_t titled_ns;  /* the since_ns after which titles.h read again; UINT64_MAX: none */
	uint64_t sampled_ns; /* the since_ns after which there was a sample; 0: or none */
	char *attributes;    /* that it published when they were last read; owned; NULL: none */
	uint64_t look_ns;    /* CLOCK_MONOTONIC: when they are read again, at the earliest … */
	uint64_t look_pause; /* … which is so long after the last time, in ns */
	struct rbpf_tls
		thread_context; /* where its threads have their contexts: thread_context.h */
	struct rbpf_file exe;	/* of what it executed; inode 0: before rbpf followed it */
	uint64_t ended_ns;	/* CLOCK_MONOTONIC; 0: it lives */
	bool let_go;	   /* it ended for us: it executed what is not followed, and may go on */
	bool missing;	   /* was gone from /proc at the last sweep */
	bool ended_unseen; /* it ended before its Ruby was found, and was counted */
	/* Which clocks its threads have: see clocks.c. */
	bool newly_clocked; /* some got their own, which the engine was not told yet */
	bool left_to_cpus;  /* none get their own: too many files, or one that cannot be waited for
			     */
	uint64_t told_ns;   /* CLOCK_MONOTONIC: the engine was told something of it last */
	struct ruby_vm *vm; /* owned; the resolver points to it, so it must not move */
	struct resolver *resolver;     /* owned; made when it is needed */
	struct native_process *native; /* owned; NULL: native stacks are not walked */
	struct process_requests requests;
	struct lost_names lost_names;
	struct names_age names_age;
	struct held held;		/* native stacks and samples, until symbols are read */
	unsigned int interpreter_tries; /* to find the interpreter of its VM; INTERPRETER_TRIES: no
					   more */
	bool interpreter_pending;	/* until the symbols of its file are read */
	uint64_t resolver_drain;	/* collector.drains at its last resolver_revalidate() */
	uint32_t *frame_ids; /* by symbol of the resolver: id in the recording + 1; owned */
	size_t cap_frame_ids;
	uint32_t names_made;	     /* how often the resolver was made anew */
	struct pushed_frame *pushed; /* by depth: the last one there of a stack; owned */
	size_t cap_pushed;
	unsigned int n_sleepers; /* whose stacks were walked from here: see waits.c */
	uint64_t next_try;	 /* ns, CLOCK_MONOTONIC: when to look for a Ruby again; 0: now */
	uint64_t backoff;	 /* ns */
	uint64_t begun_ns;	 /* the since_ns for which the next is known: see begun.c */
	uint64_t begun_look_ns;	 /* CLOCK_MONOTONIC: when it is looked at; UINT64_MAX: never */
	unsigned int refusals;	 /* how often its Ruby could not be walked */
	LIST_HEAD(, tracked_thread) thread_list;
	void *threads; /* the same by tid: tsearch(3) */
};

struct process_table {
	LIST_HEAD(, tracked_process) list;
	void *by_pid; /* the same: tsearch(3) */
	size_t n_processes, n_threads;
};

void process_table_deinit(struct process_table *t);

/* Process @pid, or NULL. */
struct tracked_process *process_table_find(const struct process_table *t, pid_t pid);

/* Add process @pid, which must not be in it. Returns 0 or -ENOMEM. */
int process_table_add(struct process_table *t, pid_t pid, struct tracked_process **ret);
void process_table_remove(struct process_table *t, struct tracked_process *p);

/* Forget the Ruby of @p: after exec. */
void tracked_process_drop_vm(struct tracked_process *p);

/* The resolver of @p, made when first asked for; NULL: no Ruby is known in it, or no memory. */
struct resolver *tracked_process_names(struct tracked_process *p);
void tracked_process_forget_names(struct tracked_process *p);

/*
 * Forget which stack of the sink each frame made: those are no parents any more, or have other ids.
 */
void tracked_process_forget_pushed(struct tracked_process *p);

/* Thread @tid of @p; it is added if it is new, and *@is_new says so. Returns 0 or -ENOMEM. */
int process_table_thread(struct process_table *t, struct tracked_process *p, pid_t tid,
			 struct tracked_thread **ret, bool *is_new);
/* The same if it is there; else NULL. */
struct tracked_thread *process_table_find_thread(const struct tracked_process *p, pid_t tid);
void process_table_remove_thread(struct process_table *t, struct tracked_process *p,
				 struct tracked_thread *thread);

#endif
