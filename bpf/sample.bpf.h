/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sampling the running thread: find its EC, walk its stacks, send what is new of them, send the
 * sample. A BPF program starts it, as that of the clock does (tick.bpf.h): it calls sample_begin(),
 * then sample_registers() or sample_kernel_stack() if it can, sample_stacks(), and sample_send().
 */
#ifndef RBPF_SAMPLE_BPF_H
#define RBPF_SAMPLE_BPF_H

/*
 * How the walkers find their state and read memory. A BPF program in a task's context can be
 * interrupted by a clock tick, which walks, too: so each context has a scratch of its own on each
 * CPU.
 */
#define walk_state(walk_id)	   ((struct walk *)bpf_map_lookup_elem(&scratch, &(walk_id)))
#define walk_read(dst, size, addr) bpf_probe_read_user((dst), (size), (const void *)(addr))
#define walk_count(counter)	   count(counter)
/* The rule of an iseq of the process that is sampled; NULL if it has none. */
#define walk_request_rule(w, of)                                                                   \
	({                                                                                         \
		struct rbpf_request_key _key = { .iseq = (of), .tgid = (w)->request_filter.tgid }; \
		(const struct rbpf_request_rule *)bpf_map_lookup_elem(&request_rules, &_key);      \
	})

#define checkpoint_slot(i)                                                                         \
	({                                                                                         \
		__u32 _slot = (i);                                                                 \
		(__u64 *)bpf_map_lookup_elem(&sent, &_slot);                                       \
	})

#include "frame_words.bpf.h"
#include "gc.bpf.h"

/*
 * A process is young for so long after fork or exec, in ns: names are copied, because it may end
 * before user space has read them.
 */
#define YOUNG_NS		10000000000ull

#define capture_slot(slot)	((__u64 *)bpf_map_lookup_elem(&captured, &(slot)))
#define capture_send(rec, size) bpf_ringbuf_output(&ring, (rec), (size), BPF_RB_NO_WAKEUP)
#define capture_has_room()                                                                         \
	(bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) <                                             \
	 bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / 2)

#include "name_capture.bpf.h"
#include "registers.bpf.h"
#include "clock.bpf.h"

/* From tgid, start time and mm: another one when the pid is used again, and after exec. */
static __always_inline __u64 process_key(__u64 tgid)
{
	const struct task_struct *task = (const void *)bpf_get_current_task();
	__u64 born = current_member(group_leader->start_time, group_leader, start_time);

	/* A pointer that was not read by a helper cannot be mixed. */
	return rbpf_mix(rbpf_mix(rbpf_mix(0, tgid), born), (__u64)BPF_CORE_READ(task, mm));
}

/* The time, moved by process: not all are to begin something at once. */
static __always_inline __u64 staggered(__u64 now, __u64 tgid)
{
	return now + tgid * 0x9e3779b9ull;
}

#include "native_sample.bpf.h"
#include "request_sample.bpf.h"
#include "thread_context.bpf.h"

/*
 * The running thread's EC through its TLS: a thread without such a block runs no Ruby. Returns enum
 * rbpf_status.
 */
static __always_inline int tls_ec(const struct rbpf_layout *layout, __u64 tp, __u64 *ec)
{
	__u64 slot;
	int r = tls_address(&layout->tls, tp, false, &slot);

	if (r)
		return r;
	if (bpf_probe_read_user(ec, sizeof(*ec), (void *)slot))
		return RBPF_FAULT_TLS;
	return *ec ? RBPF_OK : RBPF_NO_EC;
}

#include "gvl_thread.bpf.h"

/* Returns enum rbpf_status. */
static __always_inline int find_ec(struct walk *w, __u32 walk_id, __u64 tp, __u64 id, __u64 epoch,
				   __u64 *ec)
{
	if (w->layout.tls.model != RBPF_TLS_GLOBAL)
		return tls_ec(&w->layout, tp, ec);
	return gvl_thread_ec(walk_id, tp + w->layout.thread_id_bias, id, epoch, ec);
}

static __always_inline bool in_vm_text(const struct walk *w)
{
	__u64 pc = w->native.regs.pc;

	return pc >= w->layout.text_lo && pc < w->layout.text_hi;
}

/*
 * Whether the thread is in the middle of a switch between fibers, or between Ruby threads that
 * share a native thread. The VM sets the EC some instructions before it switches the native stack:
 * in between, its own code runs with a stack pointer outside the native stack of the EC. (Code
 * outside the VM does not count: an extension may run coroutines of its own.) To be called after
 * ec_read().
 */
static __always_inline bool between_stacks(const struct walk *w)
{
	__u64 sp = w->native.regs.sp;
	__u64 start = ec_word(w, w->layout.ec_stack_start);
	__u64 size = ec_word(w, w->layout.ec_stack_start + 16);

	if (!in_user_mode(w) || !in_vm_text(w))
		return false;
	return w->layout.ec_stack_start && start && size && (sp > start || start - sp > size);
}

/*
 * The seed of what is remembered of old objects. Of a process whose names are copied nothing is, as
 * it may end before user space has read anything: checks are all that proves its names then.
 */
static __always_inline __u64 old_seed(const struct walk *w, const struct walk_gc *gc)
{
	if (!gc->major || w->layout.flags & RBPF_LAYOUT_COPY)
		return 0;
	return rbpf_mix(rbpf_mix(process_key(w->sample.h.tgid), gc->major), forgotten) | 1;
}

/*
 * Whether the collector is not known: an address may mean another object at any time, and the check
 * of each frame has to prove its name. (A process with a preset is about to be examined.)
 */
static __always_inline bool eras_are_unknown(const struct walk *w, const struct walk_gc *gc)
{
	return !gc->era && w->layout.naming.symbols;
}

/* How long checkpoints hold: see checkpoints.bpf.h. */
static __always_inline __u64 checkpoint_seed(struct walk *w, const struct walk_gc *gc)
{
	w->lasting = stack_lasts(w);
	if (w->layout.flags & RBPF_LAYOUT_COPY || gc->in_transition || eras_are_unknown(w, gc))
		return 0;
	if (!w->lasting)
		return rbpf_mix(w->seed, process_key(w->sample.h.tgid));
	return rbpf_mix(w->old_seed,
			staggered(w->sample.h.ts, w->sample.h.tgid) >> RBPF_CHECKPOINT_SHIFT) |
	       1;
}

/*
 * Whether rbpf is to be woken, so that it reads the names of w->record while the objects exist. Not
 * if all of them were sent in this era, for it was woken then, or are old, for those stay, unless a
 * major collection is just looking for what to free; nor if capture_stack() copied all that naming
 * reads. (If naming.symbols is 0 the layout is only a preset, and user space must attach first.)
 * What is woken runs right after a tick, so the next tick does not see what it costs.
 */
static __always_inline bool is_urgent(struct walk *w, __u32 walk_id)
{
	w->capture.again = 0;
	if (!w->layout.naming.symbols)
		return true;
	if (w->lasting && old_ones_stay(w) && w->n_durable == w->n_frames)
		return false;
	return !capture_stack(w, walk_id, process_key(w->record.h.tgid)) && w->n_new;
}

#define LARGE_STACK 256u /* frames */

/*
 * A process can have another stack at each tick, and each as deep as it likes: a hundred of them
 * would fill the ring, and others lose their samples and what tells that processes begin and end.
 * So what is large is sent only while less than half of the ring is used. To be called after
 * checkpoint_begin().
 */
static __always_inline bool stack_has_room(const struct walk *w)
{
	return w->n_frames - w->checkpoints.n_outer <= LARGE_STACK ||
	       bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) <
		       bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / 2;
}

/*
 * Send w->frames, which are none any more then, unless this fingerprint was sent. It counts as sent
 * only when it is in the ring, so a lost definition is sent again with the next sample of that
 * stack; as is one of which names could not be copied, but may be then.
 */
static __always_inline int send_stack(struct walk *w, __u32 walk_id, const struct walk_gc *gc)
{
	struct rbpf_ring_stack *rec = &w->record;
	__u64 size, wakeup, *known;

	if (!is_unsent(w->hash, &known)) {
		request_keep_frame(w);
		return 0;
	}
	checkpoint_begin(w, walk_id, checkpoint_seed(w, gc));
	if (!stack_has_room(w)) {
		request_keep_frame(w);
		count(RBPF_CNT_LOST_STACK);
		return -1;
	}
	walk_complete(walk_id);
	rec->h = w->sample.h;
	rec->h.type = RBPF_RING_STACK;
	rec->stack = w->hash;
	rec->outer = w->checkpoints.outer;
	rec->gc_era = gc->era;
	rec->gc_major = w->old_seed ? gc->major : 0;
	rec->n_frames = w->n_frames - w->checkpoints.n_outer;
	rec->n_outer = w->checkpoints.n_outer;
	rec->flags = gc->in_transition ? RBPF_STACK_GC_TRANSITION : 0;
	wakeup = is_urgent(w, walk_id) ? BPF_RB_FORCE_WAKEUP : wakeup_flags();
	rec->n_checkpoints = stack_pack(w, walk_id);
	/* Last, and at once: the verifier of 5.10 forgets the bounds of what it saves. */
	size = sizeof(*rec) + (__u64)w->n_words * sizeof(__u64);
	barrier_var(size);
	if (size > sizeof(*rec) + sizeof(w->frames))
		return -1;
	if (bpf_ringbuf_output(&ring, rec, size, wakeup)) {
		count(RBPF_CNT_LOST_STACK);
		return -1;
	}
	if (!w->capture.again)
		*known = w->hash;
	if (rec->n_checkpoints)
		checkpoint_note(walk_id);
	count(RBPF_CNT_STACKS);
	return 0;
}

/*
 * The seed of the fingerprint. While an era lasts no object that was on a stack is freed, so within
 * one epoch and era an address means one object. Whether a collection is running is in the seed,
 * too, because compaction moves objects within an era. Each process enters an epoch at a time of
 * its own, so that they do not all send their stacks again at once.
 *
 * Without eras each sample has a seed of its own, so that its stack is sent, with all checks.
 */
static __always_inline __u64 stack_seed(const struct walk *w, __u64 epoch, const struct walk_gc *gc)
{
	/* Mixed one after the other: tgid ^ epoch would be the same for many processes. */
	__u64 seed = rbpf_mix(rbpf_mix(forgotten, w->sample.h.tgid), epoch);

	if (eras_are_unknown(w, gc))
		return rbpf_mix(seed, w->sample.h.ts);
	return rbpf_mix(seed, gc->era << 1 | !!(gc->flags & RUBY_GC_DURING_GC));
}

/*
 * Read what the collector does, of which the seeds are made; and note in the flags of the sample
 * whether this thread collects.
 */
static __always_inline void read_collector(struct walk *w, __u64 epoch)
{
	struct rbpf_ring_sample *rec = &w->sample;
	struct walk_gc *gc = &w->gc;
	enum gc_whose whose;

	gc_read(gc, &w->layout, w->th_ractor, w->gc_words);
	if (gc->of_several)
		w->layout.flags |= RBPF_LAYOUT_NO_AGE;
	w->seed = stack_seed(w, epoch, gc);
	w->old_seed = old_seed(w, gc);
	w->spread = rbpf_mix(0, rec->h.tgid) >> 32;
	whose = gc->flags & RUBY_GC_DURING_GC ? gc_whose(w) : GC_OF_ANOTHER;
	if (gc->unknown || whose == GC_OF_ANY)
		rec->flags |= RBPF_SAMPLE_GC_UNKNOWN;
	if (whose != GC_OF_THIS)
		return;
	rec->flags |= RBPF_SAMPLE_GC | (gc->flags & RUBY_GC_MODE_MASK)
					       << RBPF_SAMPLE_GC_PHASE_SHIFT;
	/*
	 * Nobody changed the words while they were read, so its era is known: see rbpf_gc_begins().
	 * As it exits a Ruby is in this state for long.
	 */
	if (!(gc->flags & RUBY_GC_DURING_COMPACTING))
		gc->in_transition = 0;
}

/* Find the running thread's EC and read it. Returns enum rbpf_status. */
static __always_inline int read_thread(struct walk *w, __u32 walk_id, __u64 epoch)
{
	const __u64 id = (__u64)w->sample.h.tgid << 32 | w->sample.h.tid;
	const __u32 flags = current_member(flags, flags);
	__u64 ec;
	int r;

	if (flags & PF_EXITING)
		return RBPF_EXITING;
	/* It never runs the program, but has the thread pointer of the thread that made it. */
	if (flags & PF_IO_WORKER)
		return RBPF_NO_EC;
	r = find_ec(w, walk_id, current_member(THREAD_POINTER, THREAD_POINTER), id, epoch, &ec);
	if (!r)
		r = ec_read(w, ec);
	if (!r)
		r = thread_read(w);
	if (!r && between_stacks(w))
		r = RBPF_SWITCHING;
	return r;
}

/*
 * The Ruby stack of the running thread; the fingerprint is stored in w->sample if there is one, and
 * what the collector does in its flags. Returns enum rbpf_status.
 */
static __always_inline int ruby_stack(struct walk *w, __u32 walk_id, __u64 epoch)
{
	int r;

	if (w->layout.tls.model == RBPF_TLS_NONE)
		return RBPF_NO_RUBY;
	r = read_thread(w, walk_id, epoch);
	if (r)
		return r;
	if (native_stacks)
		native_note_ec(w);
	read_collector(w, epoch);
	request_begin(w);
	w->max_frames = max_frames;
	w->sp = in_user_mode(w) && !in_vm_text(w) ? w->native.regs.sp : 0;
	r = walk_stack(w, walk_id);
	if (r)
		return r;
	if (!w->n_frames)
		return RBPF_OK;
	w->hash |= !w->hash; /* 0 means none */
	w->sample.stack = w->hash;
	send_stack(w, walk_id, &w->gc);
	if (w->request_found)
		send_request(w, walk_id, &w->gc);
	return RBPF_OK;
}

/* ---- for programs that take samples ---- */

/*
 * Begin a sample of the running thread. @context: where the calling BPF program runs, and @clock:
 * what runs it; *@walk_id: the number of its scratch. Returns NULL if the process is not followed,
 * or another clock sees the thread. Until sample_registers() is called, the thread counts as being
 * in the kernel.
 */
static __always_inline struct walk *sample_begin(enum rbpf_context context, enum clock clock,
						 __u32 *walk_id)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tgid = id >> 32, cpu;
	struct rbpf_proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	struct rbpf_ring_sample *rec;
	__u32 periods = 0;
	struct walk *w;

	if (proc)
		periods = periods_seen(clock, proc, (__u32)id);
	if (!periods)
		return NULL;
	cpu = bpf_get_smp_processor_id();
	*walk_id = context * n_cpus + cpu;
	w = walk_state(*walk_id);
	if (!w)
		return NULL;
	w->periods = periods;
	rec = &w->sample;
	rec->h.ts = bpf_ktime_get_ns();
	rec->h.type = RBPF_RING_SAMPLE;
	rec->h.tgid = tgid;
	rec->h.tid = (__u32)id;
	rec->h.cpu = cpu;
	rec->stack = rec->native = rec->request = 0;
	rec->span = (struct rbpf_span) {};
	rec->flags = RBPF_SAMPLE_KERNEL;
	if (native_stacks || kernel_stacks)
		native_init(w);
	w->context.model = proc->context.model;
	if (proc->context.model != RBPF_TLS_NONE)
		w->context = proc->context;
	w->layout.tls.model = RBPF_TLS_NONE;
	if (proc->layout.tls.model != RBPF_TLS_NONE) {
		w->layout = proc->layout;
		if ((proc->since && rec->h.ts - proc->since < YOUNG_NS) ||
		    rec->h.ts < copy_until[tgid & (RBPF_COPY_SLOTS - 1)])
			w->layout.flags |= RBPF_LAYOUT_COPY;
	}
	return w;
}

/* The thread is in user mode, with these registers. Without native stacks two of them will do. */
static __always_inline void sample_registers(struct walk *w, const bpf_user_pt_regs_t *regs)
{
	if (native_stacks) {
		take_registers(&w->native.regs, regs);
	} else {
		w->native.regs.pc = regs_ip(regs);
		w->native.regs.sp = regs_sp(regs);
	}
	w->sample.flags = 0;
}

/* With --kernel, take the kernel frames of the thread; @ctx is the context of the BPF program. */
static __always_inline void sample_kernel_stack(struct walk *w, void *ctx)
{
	struct walk_native *n = &w->native;
	long size;

	if (!kernel_stacks)
		return;
	size = bpf_get_stack(ctx, n->frames, RBPF_MAX_KERNEL * sizeof(n->frames[0]), 0);
	if (size > 0)
		n->n_frames = n->n_kernel = size / sizeof(n->frames[0]);
}

/*
 * Whether the current thread is in execve(2). Once its memory has become the new program's nothing
 * of its old stacks can be read, which is some time before on_exec() is told. Kernels that do not
 * say so report what failed.
 */
static __always_inline bool is_executing(void)
{
	const struct task_struct *task = (const void *)bpf_get_current_task();

	return bpf_core_field_exists(task->in_execve) &&
	       BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
}

/*
 * Walk the stacks of the sample that was begun in scratch @walk_id, and send what is new of them. A
 * thread that executes a program has its Ruby stack as long as it has its old memory.
 */
__noinline int sample_stacks(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	__u64 epoch;

	if (!w)
		return 0;
	epoch = staggered(w->sample.h.ts, w->sample.h.tgid) >> RBPF_EPOCH_SHIFT;
	if (w->context.model != RBPF_TLS_NONE)
		thread_context_read(walk_id);
	w->sample.status = ruby_stack(w, walk_id, epoch);
	if (w->sample.status != RBPF_OK && !in_user_mode(w) && is_executing())
		w->sample.status = RBPF_EXECUTING;
	if (native_stacks || kernel_stacks)
		native_stack(w, walk_id, epoch);
	return 0;
}

/*
 * Send w->sample, whose stacks must be in the ring before it: sample_stacks() has been called.
 * @event is the number of its event, and @value what it stands for, in the unit of the event.
 * Returns 0, or -1 if the ring is full.
 */
static __always_inline int sample_send(struct walk *w, __u32 event, __u64 value)
{
	struct rbpf_ring_sample *rec = &w->sample;

	rec->event = event;
	rec->value = value;
	bpf_get_current_comm(rec->comm, sizeof(rec->comm));
	if (!bpf_ringbuf_output(&ring, rec, sizeof(*rec), owed_wakeup_flags(w)))
		return 0;
	count(RBPF_CNT_LOST_SAMPLE);
	return -1;
}

#endif
