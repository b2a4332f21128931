/* SPDX-License-Identifier: GPL-2.0-only */
/* A clock tick: find the thread's EC, walk its Ruby stack, send what is new, send the sample. */
#ifndef RBPF_TICK_BPF_H
#define RBPF_TICK_BPF_H

/* The scratch of this CPU and the reads of the walker. */
#define walk_state(cpu)		   ((struct walk *)bpf_map_lookup_elem(&scratch, &(cpu)))
#define walk_read(dst, size, addr) bpf_probe_read_user((dst), (size), (const void *)(addr))
#define walk_count(counter)	   count(counter)

#include "ruby_walk.bpf.h"

static __always_inline __u64 task_thread_pointer(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(task, thread.fsbase);
#else
	return BPF_CORE_READ(task, thread.uw.tp_value);
#endif
}

/* The running thread's EC slot; see enum rbpf_tls_model. Returns enum rbpf_status. */
static __always_inline int find_ec(const struct rbpf_layout *layout, __u64 tp, __u64 *ec)
{
	__u64 base = tp;

	if (layout->tls_model == RBPF_TLS_DTV) {
		if (bpf_probe_read_user(&base, sizeof(base), (void *)(tp + layout->dtv_offset)))
			return RBPF_FAULT_TLS;
		base += (__u64)layout->tls_module * layout->dtv_entry;
		if (bpf_probe_read_user(&base, sizeof(base), (void *)base))
			return RBPF_FAULT_TLS;
		/* Not allocated until the thread first touches it: such a thread runs no Ruby. */
		if (base == ~0ull || !base)
			return RBPF_NO_EC;
	}
	if (bpf_probe_read_user(ec, sizeof(*ec), (void *)(base + layout->tls_offset)))
		return RBPF_FAULT_TLS;
	return *ec ? RBPF_OK : RBPF_NO_EC;
}

/*
 * Send w->frames unless this fingerprint was sent. It counts as sent only when it is in the ring,
 * so a lost definition is sent again with the next sample of that stack.
 */
static __always_inline int send_stack(struct walk *w, __u32 cpu, __u64 now, __u64 id)
{
	__u32 slot = w->hash & (RBPF_SEEN_SLOTS - 1);
	__u64 *known = bpf_map_lookup_elem(&seen, &slot);
	struct rbpf_rec_stack *rec = &w->record;
	__u64 size;
	__u32 i;

	if (!known || *known == w->hash)
		return 0;
	for (i = 0; i < RBPF_MAX_FRAMES; i++) {
		if (i >= w->n_frames)
			break;
		walk_complete(cpu, i);
	}
	rec->h.ts = now;
	rec->h.type = RBPF_REC_STACK;
	rec->h.tgid = id >> 32;
	rec->h.tid = (__u32)id;
	rec->h.cpu = cpu;
	rec->stack = w->hash;
	rec->n_frames = w->n_frames;
	size = sizeof(*rec) + (__u64)w->n_frames * sizeof(struct rbpf_frame);
	if (size > sizeof(*rec) + sizeof(w->frames))
		return -1;
	/* Named at once, while what it points to still lives. */
	if (bpf_ringbuf_output(&ring, rec, size, BPF_RB_FORCE_WAKEUP)) {
		count(RBPF_CNT_LOST_STACK);
		return -1;
	}
	*known = w->hash;
	count(RBPF_CNT_STACKS);
	return 0;
}

/*
 * The Ruby stack of the running thread; *@hash is its fingerprint if there is one.
 * Returns enum rbpf_status.
 */
static __always_inline int ruby_stack(const struct rbpf_layout *layout, struct task_struct *task,
				      __u64 now, __u64 id, __u64 *hash)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct walk *w;
	__u64 ec;
	int r;

	if (layout->tls_model == RBPF_TLS_NONE)
		return RBPF_NO_RUBY;
	if (BPF_CORE_READ(task, flags) & PF_EXITING)
		return RBPF_EXITING;
	w = walk_state(cpu);
	if (!w)
		return RBPF_FAULT_STACK;
	r = find_ec(layout, task_thread_pointer(task), &ec);
	if (r)
		return r;
	w->layout = *layout;
	w->max_frames = max_frames;
	/* Processes enter a new epoch at different moments, so that they do not all resend at once.
	 */
	w->epoch = hash_mix(id >> 32, (now + (id >> 32) * 0x9e3779b9ull) >> RBPF_EPOCH_SHIFT);
	r = walk_ec(w, cpu, ec);
	if (r)
		return r;
	if (!w->n_frames)
		return RBPF_OK;
	w->hash |= !w->hash; /* 0 means none */
	*hash = w->hash;
	send_stack(w, cpu, now, id);
	return RBPF_OK;
}

SEC("perf_event")
int tick(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 id = bpf_get_current_pid_tgid();
	__u64 now = bpf_ktime_get_ns();
	struct rbpf_rec_sample *rec;
	struct rbpf_layout *layout;
	__u32 tgid = id >> 32;
	__u64 hash = 0;
	int status;

	layout = bpf_map_lookup_elem(&procs, &tgid);
	if (!layout)
		return 0;
	count(RBPF_CNT_TICKS);
	status = ruby_stack(layout, task, now, id, &hash);

	rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);
	if (!rec) {
		count(RBPF_CNT_LOST_SAMPLE);
		return 0;
	}
	rec->h.ts = now;
	rec->h.type = RBPF_REC_SAMPLE;
	rec->h.tgid = tgid;
	rec->h.tid = (__u32)id;
	rec->h.cpu = bpf_get_smp_processor_id();
	rec->stack = hash;
	rec->weight = ctx->sample_period;
	rec->status = status;
	rec->flags = regs_user_mode(&ctx->regs) ? 0 : RBPF_SAMPLE_KERNEL;
	rec->pad = 0;
	bpf_get_current_comm(rec->comm, sizeof(rec->comm));
	bpf_ringbuf_submit(rec, wakeup_flags());
	return 0;
}

/* What a program costs that does nothing: the yardstick of make bench and of doctor's trial load.
 */
SEC("perf_event")
int empty(struct bpf_perf_event_data *ctx)
{
	return 0;
}

#endif
