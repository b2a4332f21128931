/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A tick of a clock of CPU time. Each moment of a thread is seen by one clock: that of the CPU that
 * it is on until its own one has ticked, if it has one, and by that from then on.
 */
#ifndef RBPF_TICK_BPF_H
#define RBPF_TICK_BPF_H

#include "lock.bpf.h"

static __always_inline bool is_ticking(__u32 tid)
{
	__u32 i = tid / 64;
	const __u64 *word = bpf_map_lookup_elem(&ticking, &i);

	return word && *word >> tid % 64 & 1;
}

/*
 * Nobody else changes the bit of a thread meanwhile, so it can be added and taken away: 5.10 has no
 * other atomic operation.
 */
static __always_inline void set_ticking(__u32 tid, bool is)
{
	__u32 i = tid / 64;
	__u64 *word = bpf_map_lookup_elem(&ticking, &i);
	const __u64 bit = 1ull << tid % 64;

	if (word && is_ticking(tid) != is)
		__sync_fetch_and_add(word, is ? bit : -bit);
}

/* Whether the clock that ticks, which counts from 0, has done so before. */
static __always_inline bool has_ticked(struct bpf_perf_event_data *ctx)
{
	struct bpf_perf_event_value counted;

	return bpf_perf_prog_read_value(ctx, &counted, sizeof(counted)) ||
	       counted.counter > ctx->sample_period + ctx->sample_period / 2;
}

/* Whether it is for the clock of the thread, or of its CPU, to take a sample now. */
static __always_inline bool is_for(const struct walk *w, bool of_thread)
{
	if (of_thread)
		return w->has_clock;
	return !w->has_clock || !is_ticking(w->sample.h.tid);
}

/*
 * Take a sample, if it is for a clock of this kind. Most ticks of a CPU find processes that are not
 * followed: how long samples take is measured here, because the kernel's statistics do not
 * tell them from those ticks.
 */
static __always_inline int take(struct bpf_perf_event_data *ctx, bool of_thread)
{
	struct walk *w;
	__u32 walk_id;

	w = sample_begin(RBPF_IN_INTERRUPT, &walk_id);
	if (!w || !is_for(w, of_thread))
		return 0;
	count(RBPF_CNT_TICKS);
	if (regs_user_mode(&ctx->regs))
		sample_registers(w, &ctx->regs);
	else
		sample_kernel_stack(w, ctx);
	sample_stacks(walk_id);
	sample_send(w, RBPF_EVENT_CPU, ctx->sample_period);
	if (waits_too) {
		gvl_send(walk_id);
		lock_send(walk_id);
	}
	count_add(RBPF_CNT_SAMPLE_NS, bpf_ktime_get_ns() - w->sample.h.ts);
	return 0;
}

/*
 * What a thread uses after the last tick of its clock is half a period on average, and nothing else
 * sees it: so every other first tick counts, which stands for the time before it, that the clocks
 * of the CPUs have seen.
 */
SEC("perf_event")
int thread_tick(struct bpf_perf_event_data *ctx)
{
	if (!has_ticked(ctx)) {
		set_ticking((__u32)bpf_get_current_pid_tgid(), true);
		if (bpf_get_prandom_u32() & 1)
			return 0;
	}
	return take(ctx, true);
}

SEC("perf_event")
int cpu_tick(struct bpf_perf_event_data *ctx)
{
	return take(ctx, false);
}

/* Does nothing: make bench attaches it, to measure what any BPF program costs at a tick. */
SEC("perf_event")
int empty(struct bpf_perf_event_data *ctx)
{
	return 0;
}

#endif
