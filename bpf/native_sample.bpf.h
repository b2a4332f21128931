/* SPDX-License-Identifier: GPL-2.0-only */
/* The native stack of a sample: the kernel's part, the thread's own, and what is sent of it. */
#ifndef RBPF_NATIVE_SAMPLE_BPF_H
#define RBPF_NATIVE_SAMPLE_BPF_H

#define native_range(i)	  ((const struct rbpf_range *)native_lookup(&ranges, i))
#define native_rule(i)	  ((const struct rbpf_cfi_rule *)native_lookup(&rules, i))
#define native_chunk(i)	  ((const __u32 *)native_lookup(&pool, i))

#define native_main_top() current_member(mm->start_stack, mm, start_stack)

/* Look up element @i of @map. A macro, because the verifier must see which map it is. */
#define native_lookup(map, i)                                                                      \
	({                                                                                         \
		__u32 _i = (i);                                                                    \
		bpf_map_lookup_elem((map), &_i);                                                   \
	})

/* Whether @value is not in sent[], in the slot that its low bits give; *@slot is that slot. */
static __always_inline bool is_unsent(__u64 value, __u64 **slot)
{
	__u32 i = value & (RBPF_SENT_SLOTS - 1);

	*slot = bpf_map_lookup_elem(&sent, &i);
	return *slot && **slot != value;
}

/*
 * Tell user space of code that it does not know, or of which it has not read the table yet: once an
 * epoch for each page, and at once, since until it has answered stacks have gaps.
 */
__noinline int native_report_miss(__u32 walk_id, __u32 end)
{
	const struct walk *w = walk_state(walk_id);
	struct rbpf_ring_code_miss rec = { .end = end };
	__u64 page, *slot;

	if (!w)
		return 0;
	rec.h = w->sample.h;
	rec.h.type = RBPF_RING_CODE_MISS;
	rec.addr = w->native.pc;
	page = rbpf_mix(rbpf_mix(w->native.seed, rec.addr >> 12), end);
	if (is_unsent(page, &slot) &&
	    !bpf_ringbuf_output(&ring, &rec, sizeof(rec), BPF_RB_FORCE_WAKEUP))
		*slot = page;
	return 0;
}

#include "native_walk.bpf.h"

/* Whether the sample was taken in user mode: then w->native.regs are what the thread had. */
static __always_inline bool in_user_mode(const struct walk *w)
{
	return !(w->sample.flags & RBPF_SAMPLE_KERNEL);
}

/*
 * The registers that the running thread had when it entered the kernel. A function of its own, as
 * entry_registers() is large.
 */
__noinline int native_entry_registers(__u32 walk_id)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct walk *w = walk_state(walk_id);
	bpf_user_pt_regs_t *room;

	if (!w)
		return -1;
	room = (bpf_user_pt_regs_t *)w->native.win; /* nothing is in it yet */
	if (has_task_pt_regs())
		return entry_registers(&w->native.regs,
				       (const void *)bpf_task_pt_regs(bpf_get_current_task_btf()),
				       room);
	return entry_registers(&w->native.regs, end_of_stack(task), room);
}

/* The kernel's frames are part of the fingerprint, too. */
static __always_inline void hash_kernel_frames(struct walk_native *n)
{
	__u32 i;

	for (i = 0; i < RBPF_MAX_KERNEL && i < n->n_kernel; i++) {
		n->frames[i] -= i > 0; /* a call may be a function's last instruction */
		n->hash = rbpf_mix(n->hash, n->frames[i]);
	}
}

static __always_inline void user_frames(struct walk *w, __u32 walk_id)
{
	struct walk_native *n = &w->native;
	struct rbpf_code *known;
	__u32 tgid = w->sample.h.tgid;

	if (current_member(flags, flags) & (PF_EXITING | PF_KTHREAD | PF_IO_WORKER))
		return;
	if (!in_user_mode(w) && native_entry_registers(walk_id))
		return;
	known = bpf_map_lookup_elem(&code, &tgid);
	if (!known) {
		n->end = RBPF_NATIVE_NO_MAP;
		walk_count(RBPF_CNT_NATIVE_CUT + RBPF_NATIVE_NO_MAP);
		native_push(n, n->regs.pc | RBPF_NATIVE_EXACT);
		native_report_miss(walk_id, RBPF_NATIVE_NO_MAP);
		return;
	}
	n->code = *known;
	walk_native(w, walk_id);
}

/*
 * A native stack is sent only while an eighth of the ring is used: copies for names cannot be made
 * later.
 */
static __always_inline bool native_has_room(void)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) <
	       bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / 8;
}

/* How long checkpoints hold: see checkpoints.bpf.h. */
static __always_inline __u64 native_checkpoint_seed(const struct walk *w)
{
	const struct rbpf_ring_hdr *h = &w->sample.h;

	return rbpf_mix(
		rbpf_mix(process_key(h->tgid), staggered(h->ts, h->tgid) >> RBPF_NATIVE_SHIFT),
		forgotten);
}

/* Send the frames unless this fingerprint was sent; see send_stack(). */
static __always_inline void send_native(struct walk *w, __u32 walk_id)
{
	struct walk_native *n = &w->native;
	struct rbpf_ring_native *rec = &n->record;
	__u64 size, *slot;

	if (!is_unsent(n->hash, &slot))
		return;
	checkpoint_begin_native(w, walk_id, native_checkpoint_seed(w));
	rec->h = w->sample.h;
	rec->h.type = RBPF_RING_NATIVE;
	rec->stack = n->hash;
	rec->outer = w->checkpoints.outer;
	rec->n_frames = n->n_frames - w->checkpoints.n_outer;
	rec->n_outer = w->checkpoints.n_outer;
	rec->n_checkpoints = checkpoint_append_native(walk_id);
	rec->end = n->end;
	size = sizeof(*rec) + ((__u64)rec->n_frames + rec->n_checkpoints) * sizeof(n->frames[0]);
	barrier_var(size);
	if (size > sizeof(*rec) + sizeof(n->frames))
		return;
	if (!native_has_room() || bpf_ringbuf_output(&ring, rec, size, wakeup_flags())) {
		count(RBPF_CNT_LOST_NATIVE);
		return;
	}
	*slot = n->hash;
	if (rec->n_checkpoints)
		checkpoint_note(walk_id);
}

/* The native stack of the running thread; its fingerprint is stored in w->sample. */
static __always_inline void native_stack(struct walk *w, __u32 walk_id, __u64 epoch)
{
	struct walk_native *n = &w->native;

	n->hash = n->seed = rbpf_mix(rbpf_mix(rbpf_mix(1, w->sample.h.tgid), epoch), forgotten);
	hash_kernel_frames(n);
	if (native_stacks && w->sample.status != RBPF_EXECUTING)
		user_frames(w, walk_id);
	if (!n->n_frames)
		return;
	count(RBPF_CNT_NATIVE);
	n->hash = rbpf_mix(n->hash, n->end);
	n->hash |= !n->hash; /* 0 means none */
	w->sample.native = n->hash;
	send_native(w, walk_id);
}

#endif
