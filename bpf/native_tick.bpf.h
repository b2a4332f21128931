/* SPDX-License-Identifier: GPL-2.0-only */
/* The native stack of a tick: the kernel's part, the thread's registers, and what is sent of it. */
#ifndef RBPF_NATIVE_TICK_BPF_H
#define RBPF_NATIVE_TICK_BPF_H

#define native_range(i) ((const struct rbpf_range *)native_lookup(&ranges, i))
#define native_rule(i)	((const struct rbpf_cfi_rule *)native_lookup(&rules, i))
#define native_chunk(i) ((const __u32 *)native_lookup(&pool, i))

/* Map @map at @i; a macro because a function would not be told which map it is. */
#define native_lookup(map, i)                                                                      \
	({                                                                                         \
		__u32 _i = (i);                                                                    \
		bpf_map_lookup_elem((map), &_i);                                                   \
	})

/* Whether @value was not sent yet, by the low bits of itself; then *@slot is where to note it. */
static __always_inline bool is_unsent(__u64 value, __u64 **slot)
{
	__u32 i = value & (RBPF_SEEN_SLOTS - 1);

	*slot = bpf_map_lookup_elem(&seen, &i);
	return *slot && **slot != value;
}

/*
 * Tell user space of code that it does not know, or of which it has not read the table yet: once an
 * epoch for each page, and at once, since until it has answered stacks have gaps.
 */
static __always_inline void native_ask(struct walk *w, __u32 cpu, __u32 end)
{
	const struct rbpf_ring_sample *sample = &w->sample;
	__u64 page = w->native.pc >> 12, *slot;
	struct rbpf_ring_wanted rec = {
		.h.ts = sample->h.ts,
		.h.type = RBPF_RING_WANTED,
		.h.tgid = sample->h.tgid,
		.h.tid = sample->h.tid,
		.h.cpu = cpu,
		.addr = w->native.pc,
		.end = end,
	};

	page = rbpf_mix(rbpf_mix(w->native.seed, page), end);
	if (is_unsent(page, &slot) &&
	    !bpf_ringbuf_output(&ring, &rec, sizeof(rec), BPF_RB_FORCE_WAKEUP))
		*slot = page;
}

#include "native_walk.bpf.h"

/* ---- registers ---- */

#if defined(__TARGET_ARCH_x86)
static __always_inline void take_registers(struct rbpf_regs *ret, const struct pt_regs *regs)
{
	ret->pc = regs->ip;
	ret->sp = regs->sp;
	ret->fp = regs->bp;
	ret->by_dwarf[0] = regs->ax;
	ret->by_dwarf[1] = regs->dx;
	ret->by_dwarf[2] = regs->cx;
	ret->by_dwarf[3] = regs->bx;
	ret->by_dwarf[4] = regs->si;
	ret->by_dwarf[5] = regs->di;
	ret->by_dwarf[6] = regs->bp;
	ret->by_dwarf[7] = regs->sp;
	ret->by_dwarf[8] = regs->r8;
	ret->by_dwarf[9] = regs->r9;
	ret->by_dwarf[10] = regs->r10;
	ret->by_dwarf[11] = regs->r11;
	ret->by_dwarf[12] = regs->r12;
	ret->by_dwarf[13] = regs->r13;
	ret->by_dwarf[14] = regs->r14;
	ret->by_dwarf[15] = regs->r15;
}
#else
static __always_inline void take_registers(struct rbpf_regs *ret, const struct user_pt_regs *regs)
{
	int i;

	ret->pc = regs->pc;
	ret->sp = regs->sp;
	ret->fp = regs->regs[29];
	ret->lr = regs->regs[30];
	/* Of a context kernels allow no address that is not constant. */
#pragma unroll
	for (i = 0; i < 31; i++)
		ret->by_dwarf[i] = regs->regs[i];
	ret->by_dwarf[31] = regs->sp;
}
#endif

/* The kernel's struct pt_regs, of which arm64's bpf_user_pt_regs_t is the beginning. */
struct pt_regs___kernel {
} __attribute__((preserve_access_index));

/* Before bpf_task_pt_regs() (5.15): the registers are at the end of the task's kernel stack. */
static __always_inline const void *end_of_stack(const struct task_struct *task)
{
	return BPF_CORE_READ(task, stack) + KERNEL_STACK_SIZE -
	       bpf_core_type_size(struct pt_regs___kernel);
}

#define has_task_pt_regs() bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)

/*
 * The registers at @at, where the kernel keeps those that a thread had when it entered the kernel, by
 * way of @room, for they take up half of a program's stack. Returns 0, or -1 if that was not from
 * user mode.
 */
static __always_inline int entry_registers(struct rbpf_regs *ret, const void *at,
					   bpf_user_pt_regs_t *room)
{
	if (bpf_probe_read_kernel(room, sizeof(*room), at))
		return -1;
	if (!regs_user_mode(room))
		return -1;
	take_registers(ret, room);
	return 0;
}

/*
 * Those of the running thread, which is in the kernel. A function of its own: compilers would make one
 * of its loads and those of tick_registers(), and kernels refuse to load from either of two places.
 */
__noinline int native_entry_registers(__u32 cpu)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct walk *w = walk_state(cpu);
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

/* Those of the running thread, where the tick hit. */
static __always_inline int tick_registers(struct walk_native *n, __u32 cpu,
					  const struct bpf_perf_event_data *ctx)
{
	if (!regs_user_mode(&ctx->regs))
		return native_entry_registers(cpu);
	take_registers(&n->regs, &ctx->regs);
	return 0;
}

/* ---- the stack ---- */

static __always_inline void kernel_frames(struct walk_native *n, struct bpf_perf_event_data *ctx)
{
	long size = bpf_get_stack(ctx, n->frames, RBPF_MAX_KERNEL * sizeof(n->frames[0]), 0);
	__u32 i;

	if (size <= 0)
		return;
	n->n_frames = n->n_kernel = size / sizeof(n->frames[0]);
	for (i = 0; i < RBPF_MAX_KERNEL && i < n->n_frames; i++) {
		n->frames[i] -= i > 0; /* a call may be a function's last instruction */
		n->hash = rbpf_mix(n->hash, n->frames[i]);
	}
}

static __always_inline void user_frames(struct walk *w, __u32 cpu, struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct walk_native *n = &w->native;
	struct rbpf_code *known;
	__u32 tgid = w->sample.h.tgid;

	if (BPF_CORE_READ(task, flags) & (PF_EXITING | PF_KTHREAD))
		return;
	if (tick_registers(n, cpu, ctx))
		return;
	known = bpf_map_lookup_elem(&code, &tgid);
	if (!known) {
		n->end = RBPF_NATIVE_NO_MAP;
		walk_count(RBPF_CNT_NATIVE_CUT + RBPF_NATIVE_NO_MAP);
		native_push(n, n->regs.pc | RBPF_NATIVE_EXACT);
		native_ask(w, cpu, RBPF_NATIVE_NO_MAP);
		return;
	}
	n->code = *known;
	walk_native(w, cpu);
}

/* What is sent of native stacks leaves room for names, which can be had at that moment only. */
static __always_inline bool native_has_room(void)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) <
	       bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / 8;
}

/* Send the frames unless this fingerprint was sent; see send_stack(). */
static __always_inline void send_native(struct walk_native *n, const struct rbpf_ring_hdr *h)
{
	struct rbpf_ring_native *rec = &n->record;
	__u64 size, *slot;

	if (!is_unsent(n->hash, &slot))
		return;
	rec->h = *h;
	rec->h.type = RBPF_RING_NATIVE;
	rec->stack = n->hash;
	rec->n_frames = n->n_frames;
	rec->end = n->end;
	size = sizeof(*rec) + (__u64)n->n_frames * sizeof(n->frames[0]);
	barrier_var(size);
	if (size > sizeof(*rec) + sizeof(n->frames))
		return;
	if (!native_has_room() || bpf_ringbuf_output(&ring, rec, size, wakeup_flags()))
		count(RBPF_CNT_LOST_NATIVE);
	else
		*slot = n->hash;
}

/* The native stack of the running thread; its fingerprint is stored in w->sample. */
static __always_inline void native_stack(struct walk *w, __u32 cpu, __u64 epoch,
					 struct bpf_perf_event_data *ctx)
{
	struct walk_native *n = &w->native;

	n->hash = n->seed = rbpf_mix(rbpf_mix(rbpf_mix(1, w->sample.h.tgid), epoch), 0);
	if (kernel_stacks && !regs_user_mode(&ctx->regs))
		kernel_frames(n, ctx);
	if (native_stacks)
		user_frames(w, cpu, ctx);
	if (!n->n_frames)
		return;
	count(RBPF_CNT_NATIVE);
	n->hash = rbpf_mix(n->hash, n->end);
	n->hash |= !n->hash; /* 0 means none */
	w->sample.native = n->hash;
	send_native(n, &w->sample.h);
}

#endif
