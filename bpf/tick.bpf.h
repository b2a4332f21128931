/* SPDX-License-Identifier: GPL-2.0-only */
/* A tick of a clock of CPU time. */
#ifndef RBPF_TICK_BPF_H
#define RBPF_TICK_BPF_H

#include "sample.bpf.h"

/* On a clock of a thread, or of a CPU: then most ticks are of processes that are not followed. */
SEC("perf_event")
int tick(struct bpf_perf_event_data *ctx)
{
	struct walk *w;
	__u32 walk_id;

	w = sample_begin(RBPF_IN_INTERRUPT, &walk_id);
	if (!w)
		return 0;
	count(RBPF_CNT_TICKS);
	if (regs_user_mode(&ctx->regs))
		sample_registers(w, &ctx->regs);
	else
		sample_kernel_stack(w, ctx);
	return sample_thread(walk_id, RBPF_EVENT_CPU, ctx->sample_period);
}

/* What a program costs that does nothing: the yardstick of make bench. */
SEC("perf_event")
int empty(struct bpf_perf_event_data *ctx)
{
	return 0;
}

#endif
