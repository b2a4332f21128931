/* SPDX-License-Identifier: GPL-2.0-only */
/* A tick of a clock of CPU time. */
#ifndef RBPF_TICK_BPF_H
#define RBPF_TICK_BPF_H

#include "gvl_ready.bpf.h"
#include "lock.bpf.h"
#include "page_fault.bpf.h"

/*
 * Runs at each tick of the clock of a thread or of a CPU. Most ticks of a CPU find processes that
 * are not followed: how long samples take is measured here, because the kernel's statistics do not
 * tell them from those ticks.
 */
SEC("perf_event")
int tick(struct bpf_perf_event_data *ctx)
{
	enum clock clock = ctx->sample_period & RBPF_PERIOD_OF_CPU ? CLOCK_OF_CPU : CLOCK_OF_THREAD;
	struct walk *w;
	__u32 walk_id;
	__u64 value;

	w = sample_begin(RBPF_IN_INTERRUPT, clock, &walk_id);
	if (!w)
		return 0;
	count(RBPF_CNT_TICKS);
	if (regs_user_mode(&ctx->regs)) {
		sample_registers(w, &ctx->regs);
	} else {
		sample_kernel_stack(w, ctx);
		if (in_page_fault())
			w->sample.flags |= RBPF_SAMPLE_PAGE_FAULT;
	}
	sample_stacks(walk_id);
	value = clock == CLOCK_OF_CPU
			? period_of_cpu(w->sample.h.cpu, w->sample.h.ts)
			: period_of_thread(ctx->sample_period, w->periods, w->sample.h.tid);
	sample_send(w, RBPF_EVENT_CPU, value);
	if (waits_too) {
		gvl_send(walk_id);
		gvl_note_ready(walk_id, value);
		lock_send(walk_id);
	}
	count_add(RBPF_CNT_SAMPLE_NS, bpf_ktime_get_ns() - w->sample.h.ts);
	return 0;
}

/* Does nothing: make bench attaches it, to measure what any BPF program costs at a tick. */
SEC("perf_event")
int empty(struct bpf_perf_event_data *ctx)
{
	return 0;
}

#endif
