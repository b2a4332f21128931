/* SPDX-License-Identifier: GPL-2.0-only */
/* The maps, and the tunables that user space sets before loading. */
#ifndef RBPF_MAPS_BPF_H
#define RBPF_MAPS_BPF_H

#include "gvl_sum.bpf.h"

const volatile __u32 max_frames = RBPF_MAX_FRAMES;
const volatile bool follow_children = true;
const volatile bool system_wide = false; /* each exec of the machine is reported */
const volatile bool native_stacks = true;
const volatile bool kernel_stacks = false;
const volatile bool waits_too = false; /* samples of time off the CPU, too: wait.bpf.h */
const volatile bool wakers = false;    /* and of who ends it: waker.bpf.h */
/* x86_64: from the run queue of a CPU, in bytes; 0: not known */
const volatile __s64 preempt_count_from_rq = 0;

const volatile __u32 n_cpus = 1;
const volatile __u64 longest_period = 0; /* ns: no thread's clock has a longer one at first */

/* Another number each time that user space has forgotten what stacks were sent; nobody knows it. */
__u64 forgotten = 0;
/*
 * Processes whose names get lost, by the low bits of the pid: they are copied until then,
 * CLOCK_MONOTONIC.
 */
__u64 copy_until[RBPF_COPY_SLOTS] = {};
/* The scheduler's clock less CLOCK_MONOTONIC, and when that was seen: on_new(). */
__u64 scheduler_ahead = 0;
__u64 scheduler_seen_ns = 0;
bool waits_begun = false;      /* waits are seen from now on */
__u64 open_wait_ns = 0;	       /* open_waits() leaves out waits that are shorter */
bool only_take_known = false;  /* it begins and sends none: lock_known.bpf.h */
bool any_known = false;	       /* there is something in known_waits[] */
bool cpus_have_clocks = false; /* and not only threads */
/* How many times less often than at first threads' clocks tick; 0: as often. */
__u32 clock_divisor = 0;
bool any_carried = false; /* there was something in carried[] */
__u64 woken_ns = 0;	  /* when the ring last woke user space because it fills */
__u32 iter_tgid = 0;	  /* iterators: of this process only; 0: of all that are followed */

struct gvl_key {
	__u64 at; /* its ractor; in a Ruby without them, the head of its queue; of a Mutex, its
		     rb_mutex_t */
	__u32 tgid;
	__u32 pad; /* zero */
};

/* Who holds a Mutex that others wait for, or did: the last one that it was seen to hold. */
struct lock_holder_key {
	__u64 th; /* rb_thread_t */
	__u32 tgid;
	__u32 pad; /* zero */
};

struct lock_holder {
	__u64 mutex; /* rb_mutex_t */
	__u64 at;    /* ns, CLOCK_MONOTONIC: when it was seen */
};

/*
 * Whether a thread whose key mixes to this index was ever noted in lock_holders[]: it is asked at
 * each switch, and most never are.
 */
#define LOCK_MARKS 4096
__u8 lock_marks[LOCK_MARKS] = {};

/* The record that the iterator program registers() fills in: the BPF stack is too small for it. */
struct rbpf_thread thread = {};

/* Processes that are followed. tls_model RBPF_TLS_NONE: no Ruby is known in them (yet). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RBPF_MAX_PROCS);
	__type(key, __u32); /* tgid */
	__type(value, struct rbpf_proc);
} procs SEC(".maps");

/*
 * Presets: the layout that was found in an earlier process of this executable and user, without the
 * addresses, which differ between processes. The next such process is walked with it from its first
 * tick; if it does not fit, the checks of the walk fail.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RBPF_MAX_PRESETS);
	__type(key, struct rbpf_preset_key);
	__type(value, struct rbpf_layout);
} presets SEC(".maps");

/*
 * One struct walk for each context and CPU, by context * n_cpus + CPU: per-CPU values are limited
 * to 32 KiB. Sized at load.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk);
} scratch SEC(".maps");

/*
 * RBPF_TLS_GLOBAL: for each sampled thread its rb_thread_t; or, if none was found, epoch << 1 | 1
 * of the search, which is repeated in another epoch only.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64); /* tgid, tid */
	__type(value, __u64);
} gvl_threads SEC(".maps");

/*
 * Fingerprints that were sent, and hashes of the pages that were asked about
 * (native_report_miss()), by their low bits. A collision only costs sending again, so no entry is
 * removed, and storing never fails.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RBPF_SENT_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} sent SEC(".maps");

/* ---- request_frame.bpf.h ---- */

/* What is read of frames of an iseq that a rule names. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RBPF_MAX_REQUEST_FRAMES);
	__type(key, struct rbpf_request_key);
	__type(value, struct rbpf_request_rule);
} request_rules SEC(".maps");

/* By process: which iseqs to look for there. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RBPF_MAX_REQUEST_PROCS);
	__type(key, __u32); /* tgid */
	__type(value, struct rbpf_request_filter);
} request_filters SEC(".maps");

/*
 * Iseqs and method entries whose names were copied and sent (name_capture.bpf.h). A collision costs
 * copying one again.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536); /* CAPTURE_SLOTS */
	__type(key, __u32);
	__type(value, __u64);
} captured SEC(".maps");

/* ---- native_walk.bpf.h; user space writes to these three through mappings of its own ---- */

/* Words of unwind tables (rbpf_cfi.h). Sized at load. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, RBPF_POOL_CHUNK * sizeof(__u32));
} pool SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rbpf_cfi_rule);
} rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rbpf_range);
} ranges SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RBPF_MAX_PROCS);
	__type(key, __u32); /* tgid */
	__type(value, struct rbpf_code);
} code SEC(".maps");

/* By CPU. Sized at load. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rbpf_cpu_clock);
} cpu_clocks SEC(".maps");

/* Threads whose own clocks have taken over: a bit for each tid. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RBPF_PID_LIMIT / 64);
	__type(key, __u32); /* tid / 64 */
	__type(value, __u64);
} taken_over SEC(".maps");

/*
 * By how much more (or less) than its period the next tick of a thread's clock stands for, in ns,
 * after that began anew with another one: src/engine/clock_events.c.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RBPF_MAX_CARRIED);
	__type(key, __u32); /* tid */
	__type(value, __s64);
} carried SEC(".maps");

/* Threads of followed processes that have been off the CPU, until they end. Sized at load. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32); /* tid */
	__type(value, struct wait);
} waits SEC(".maps");

/* Sized at load, as waits[]. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct lock_holder_key);
	__type(value, struct lock_holder);
} lock_holders SEC(".maps");

/* Sized at load. What user space knows of waits in waits[] of which the programs know less. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, __u32); /* tid */
	__type(value, struct rbpf_known_wait);
} known_waits SEC(".maps");

/* Sized at load. Which thread of the kernel an rb_thread_t is that has waited for a lock. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct lock_holder_key);
	__type(value, __u32); /* tid */
} gvl_tids SEC(".maps");

/* Sized at load, as waits[]: of GVLs and of Mutexes. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct gvl_key);
	__type(value, struct gvl);
} gvls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20); /* set at load: --ring */
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RBPF_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

static __always_inline void count_add(__u32 counter, __u64 more)
{
	__u64 *n = bpf_map_lookup_elem(&counters, &counter);

	if (n)
		*n += more;
}

static __always_inline void count(__u32 counter)
{
	count_add(counter, 1);
}

/*
 * User space is woken by what it must look at soon (a new stack, the life of a process) and looks
 * 4 to 20 times a second by itself (collector_pause_ms()); samples of known stacks wake it only
 * when the ring fills.
 */
#define WAKEUP_BYTES	(256 << 10)
#define WAKEUP_PAUSE_NS 1000000 /* it may be looking already */

static __always_inline __u64 wakeup_flags(void)
{
	__u64 now;

	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) < WAKEUP_BYTES)
		return BPF_RB_NO_WAKEUP;
	now = bpf_ktime_get_ns();
	if (now - woken_ns < WAKEUP_PAUSE_NS)
		return BPF_RB_NO_WAKEUP;
	woken_ns = now;
	return BPF_RB_FORCE_WAKEUP;
}

#endif
