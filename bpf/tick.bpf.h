/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A tick of a clock of CPU time. Each moment of a thread is seen by one clock: its own, if it has
 * one, or that of the CPU that it is on.
 */
#ifndef RBPF_TICK_BPF_H
#define RBPF_TICK_BPF_H

#include "lock.bpf.h"

/*
 * Take a sample if it is for clocks of this kind to do so. Most ticks of a CPU find processes that
 * are not followed: how long samples take is measured here, because the kernel's statistics do not
 * tell them from those ticks.
 */
static __always_inline int take(struct bpf_perf_event_data *ctx, bool of_thread)
{
	struct walk *w;
	__u32 walk_id;

	w = sample_begin(RBPF_IN_INTERRUPT, &walk_id);
	if (!w || w->has_clock != of_thread)
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

SEC("perf_event")
int thread_tick(struct bpf_perf_event_data *ctx)
{
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
