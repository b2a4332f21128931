/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether the kernel handles a page fault of a thread that a tick found in kernel mode. */
#ifndef RBPF_PAGE_FAULT_BPF_H
#define RBPF_PAGE_FAULT_BPF_H

#include "preempt_count.bpf.h"
#include "syscall.bpf.h"

/*
 * What a thread does in the kernel without a system call is nearly always a page fault. Other ways
 * into it are interrupts: the tick is one itself and comes in the middle of no other, but it may
 * come in a soft interrupt, which the kernel serves at the end of one. Where the preempt count is
 * not known these cannot be told from page faults. A thread that a signal ends gives its memory
 * back after an interrupt, too. What is left over is little: to deliver a signal, and to make room
 * for another thread.
 *
 * A function of its own, for the BPF stack of tick() is short.
 */
static __noinline int in_page_fault(void)
{
	const __u32 count = preempt_count();
	struct syscall call = {};

	if (current_syscall(&call) || call.number >= 0)
		return 0;
	if (current_member(flags, flags) & PF_EXITING)
		return 0;
	return count == COUNT_UNKNOWN || !(count & COUNT_SOFTIRQ);
}

#endif
