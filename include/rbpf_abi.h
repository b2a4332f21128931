/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What crosses the boundary between the BPF side and the user side: the layout row a process is
 * walked with, and the records of the ring buffer. Compiled by both, so: fixed-width __u* types
 * only (from vmlinux.h there, <linux/types.h> here), explicit padding, no pointers.
 */
#ifndef RBPF_ABI_H
#define RBPF_ABI_H

#ifndef __bpf__
#include <linux/types.h>
#endif

/*
 * Limits of a walk. A stack of more than max_frames frames keeps its innermost frames and, so that
 * it still merges with others at its root, a quarter of max_frames at the root end.
 */
#define RBPF_MAX_FRAMES	 4096 /* frames kept of one stack, at most; a power of two */
#define RBPF_MIN_FRAMES	 16
#define RBPF_MAX_PROCS	 16384 /* processes followed at once */
#define RBPF_COMM_LEN	 16    /* TASK_COMM_LEN */
#define RBPF_SEEN_SLOTS	 65536 /* remembered stacks; a power of two */
#define RBPF_EPOCH_SHIFT 30    /* an epoch is 2^30 ns, about 1.07 s */

/* How a thread finds its execution context (EC). */
enum rbpf_tls_model {
	RBPF_TLS_NONE = 0,   /* no Ruby known in this process (yet) */
	RBPF_TLS_STATIC = 1, /* EC slot = thread pointer + tls_offset */
	RBPF_TLS_DTV = 2, /* EC slot = dtv[tls_module] + tls_offset (a libruby that was dlopened) */
};

/* Everything the walker needs to know of one Ruby. Offsets in bytes. */
struct rbpf_layout {
	__s64 tls_offset;    /* see enum rbpf_tls_model */
	__u32 tls_model;     /* enum rbpf_tls_model */
	__s32 dtv_offset;    /* of the DTV pointer, from the thread pointer */
	__u32 tls_module;    /* index of the module in the DTV */
	__u16 dtv_entry;     /* size of a DTV entry: 16 glibc, 8 musl */
	__u16 ec_thread_ptr; /* rb_execution_context_t.thread_ptr; below 64 */
	__u16 th_ec;	     /* rb_thread_t.ec */
	__u16 cf_size;	     /* sizeof(rb_control_frame_t): 56 or 64 */
	__u32 pad;
};

_Static_assert(sizeof(struct rbpf_layout) == 32, "map ABI");

/* Why a sample has the Ruby stack it has, or none. Stored in a __u16. */
enum rbpf_status {
	RBPF_OK = 0,
	RBPF_NO_RUBY = 1,     /* no Ruby is known in the process: not attached yet, or none there */
	RBPF_NO_EC = 2,	      /* the thread has no EC: not a Ruby thread, or not one yet */
	RBPF_EC_STALE = 3,    /* its EC is not (any more) the EC of a running thread */
	RBPF_EC_RANGE = 4,    /* cfp does not point into the VM stack, or is misaligned */
	RBPF_FAULT_TLS = 5,   /* could not read the thread's TLS */
	RBPF_FAULT_EC = 6,    /* could not read the EC or its thread */
	RBPF_FAULT_STACK = 7, /* could not read the control frames */
	RBPF_EXITING = 8,     /* the thread is exiting: its memory is gone */
	RBPF_STATUS_COUNT,
};

/* What the kernel side counts, per CPU; summed and shown by the user side. */
enum rbpf_counter {
	RBPF_CNT_TICKS = 0,	  /* ticks that fired in a followed process */
	RBPF_CNT_STACKS = 1,	  /* stacks sent in full */
	RBPF_CNT_LOST_SAMPLE = 2, /* samples that found the ring buffer full */
	RBPF_CNT_LOST_STACK = 3,  /* stacks that found the ring buffer full */
	RBPF_CNT_LOST_LIFE = 4,	  /* fork, exec and exit records that found it full */
	RBPF_CNT_PROCS_FULL = 5,  /* children not followed: RBPF_MAX_PROCS reached */
	RBPF_CNT_ENV_FAULT = 6,	  /* environments of a frame that could not be read */
	RBPF_CNT_ENV_DEPTH = 7,	  /* blocks nested deeper than the walker follows */
	RBPF_CNT_READ_LIMIT = 8,  /* reads not made: see WALK_MAX_READS */
	RBPF_COUNTERS,
};

/*
 * One frame as the kernel side sees it; the user side names it.
 *
 *   Ruby frame       iseq != 0: pc as in the control frame, me the method entry or 0
 *   C function       iseq == 0, me != 0: pc 0
 *   cut frames       iseq == 0, me == 0: pc is their number
 */
struct rbpf_frame {
	__u64 iseq; /* rb_iseq_t * */
	__u64 pc;
	__u64 me; /* rb_callable_method_entry_t * */
};

/* Stored in a __u32. */
enum rbpf_record_type {
	RBPF_REC_SAMPLE = 1,
	RBPF_REC_STACK = 2,
	RBPF_REC_FORK = 3,
	RBPF_REC_EXEC = 4,
	RBPF_REC_EXIT = 5,
	RBPF_REC_THREAD = 6,
};

struct rbpf_rec_hdr {
	__u64 ts;   /* ns, CLOCK_MONOTONIC */
	__u32 type; /* enum rbpf_record_type */
	__u32 tgid; /* in the initial pid namespace, as all ids here */
	__u32 tid;
	__u32 cpu;
};

#define RBPF_SAMPLE_KERNEL (1u << 0) /* the tick hit kernel mode */

/*
 * A tick. The stack it names was sent before it, in this epoch: the definition is sent when a stack
 * is first seen in an epoch, and counts as seen only once it is in the ring.
 */
struct rbpf_rec_sample {
	struct rbpf_rec_hdr h;
	__u64 stack;  /* fingerprint; 0 if there is no Ruby stack */
	__u64 weight; /* ns of CPU time */
	__u32 pad;
	__u16 status; /* enum rbpf_status */
	__u16 flags;  /* RBPF_SAMPLE_* */
	char comm[RBPF_COMM_LEN];
};

/* A stack: n_frames frames follow, innermost first. */
struct rbpf_rec_stack {
	struct rbpf_rec_hdr h;
	__u64 stack; /* fingerprint */
	__u32 n_frames;
	__u32 pad;
};

/*
 * RBPF_REC_FORK, RBPF_REC_THREAD: h is the parent; RBPF_REC_EXEC, RBPF_REC_EXIT: the process or thread
 * itself.
 */
struct rbpf_rec_life {
	struct rbpf_rec_hdr h;
	__u64 runtime;	 /* EXIT: ns of CPU time the thread had in its life */
	__u32 child;	 /* FORK: tgid of the new process; THREAD: tid of the new thread */
	__u32 exit_code; /* EXIT: as wait(2) gives it */
	__u32 last;	 /* EXIT: 1 if it was the last thread of the process */
	__u32 pad;
	char comm[RBPF_COMM_LEN];
};

/* What the task iterator writes for each thread of a followed process. */
struct rbpf_task {
	__u32 tgid;
	__u32 tid;
	__u64 thread_pointer; /* fsbase, tpidr_el0 */
};

_Static_assert(sizeof(struct rbpf_frame) == 24, "wire ABI");
_Static_assert(sizeof(struct rbpf_rec_hdr) == 24, "wire ABI");
_Static_assert(sizeof(struct rbpf_rec_sample) == 64, "wire ABI");
_Static_assert(sizeof(struct rbpf_rec_stack) == 40, "wire ABI");
_Static_assert(sizeof(struct rbpf_rec_life) == 64, "wire ABI");
_Static_assert(sizeof(struct rbpf_task) == 16, "wire ABI");

#endif
