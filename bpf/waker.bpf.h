/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who ends a wait. When a thread is woken (sched_waking) whoever wakes it is the current task: of a
 * followed process it is sampled there, with its stacks, and the value is how long the wait was. Of
 * others there is only the name.
 *
 * An interrupt wakes threads, too: a timer, a disk, the network. Then the current task is one that
 * happened to be interrupted, and is not blamed. The CPU's preempt count tells; where that cannot
 * be found, what the current task does: it must be in a system call that can end such a wait.
 */
#ifndef RBPF_WAKER_BPF_H
#define RBPF_WAKER_BPF_H

#include "preempt_count.bpf.h"
#include "syscall.bpf.h"

/* System calls that wake others, beside those that wait themselves. */
enum {
	SYS_close = SYSCALL(3, 57),
	SYS_shutdown = SYSCALL(48, 210),
	SYS_exit = SYSCALL(60, 93),
	SYS_exit_group = SYSCALL(231, 94),
	SYS_futex_wake = SYSCALL(454, 454),
	SYS_kill = SYSCALL(62, 129),
	SYS_tkill = SYSCALL(200, 130),
	SYS_tgkill = SYSCALL(234, 131),
	SYS_rt_sigqueueinfo = SYSCALL(129, 138),
	SYS_rt_tgsigqueueinfo = SYSCALL(297, 240),
	SYS_pidfd_send_signal = SYSCALL(424, 424),
};

/* Whether a thread in @s may end a wait for @wait. */
static __always_inline bool can_wake(const struct syscall *s, __u32 wait)
{
	switch (s->number) {
	case SYS_kill:
	case SYS_tkill:
	case SYS_tgkill:
	case SYS_rt_sigqueueinfo:
	case SYS_rt_tgsigqueueinfo:
	case SYS_pidfd_send_signal:
		return true;
	case SYS_futex:
	case SYS_futex_wake:
	case SYS_exit:
	case SYS_exit_group:
	case SYS_flock:
	case SYS_fcntl:
	case SYS_close:
		return wait != RBPF_WAIT_TIMER;
	}
	/* Not by a system call: an interrupt, or a page fault, which wakes nobody. */
	return s->number >= 0 && wait != RBPF_WAIT_TIMER && wait != RBPF_WAIT_LOCK &&
	       wait != RBPF_WAIT_GVL;
}

/*
 * Whether the current task sends to a socket, or closes it: what is for one of this machine is
 * delivered by a soft interrupt in its name.
 */
static __always_inline bool is_sending(const struct syscall *s)
{
	switch (s->number) {
	case SYS_close:
	case SYS_shutdown:
		return true;
	case SYS_write:
	case SYS_writev:
	case SYS_sendfile:
	case SYS_connect:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
		return wait_for_file(file_behind((const void *)bpf_get_current_task(),
						 s->args[0])) == RBPF_WAIT_NETWORK;
	}
	return false;
}

/* Whether an interrupt, and not the current task, ends a wait for @wait. */
static __noinline int waker_is_interrupt(__u32 wait)
{
	const __u32 count = preempt_count();
	struct syscall call = {};

	/* The idle task wakes nobody. */
	if (!(__u32)bpf_get_current_pid_tgid() || (count != COUNT_UNKNOWN && count & COUNT_HARD))
		return 1;
	/* One that sends something may be taken for an interrupt; that is rarer. */
	if (current_member(flags, flags) & PF_KTHREAD)
		return count != COUNT_UNKNOWN && count & COUNT_SOFTIRQ;
	if (count == COUNT_UNKNOWN)
		return current_syscall(&call) || !can_wake(&call, wait);
	return count & COUNT_SOFTIRQ && (current_syscall(&call) || !is_sending(&call));
}

/*
 * @task, whose @wait ends now, was woken by a task that is not followed, or if @interrupt by none.
 * No part of its callers, whose stack is short.
 */
static __noinline int waker_send_other(const struct wait *wait, const struct task_struct *task,
				       bool interrupt)
{
	struct rbpf_ring_waker *rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);
	const __u64 now = bpf_ktime_get_ns();

	if (!rec) {
		count(RBPF_CNT_LOST_SAMPLE);
		return 0;
	}
	rec->h.ts = now;
	rec->h.type = RBPF_RING_WAKER;
	rec->h.tgid = wait->tgid;
	rec->h.tid = task->pid;
	rec->h.cpu = bpf_get_smp_processor_id();
	rec->value = now - wait->since;
	rec->pid = interrupt ? 0 : bpf_get_current_pid_tgid() >> 32;
	rec->pad = 0;
	bpf_probe_read_kernel(rec->comm, sizeof(rec->comm), task->comm);
	bpf_get_current_comm(rec->waker, sizeof(rec->waker));
	bpf_ringbuf_submit(rec, wakeup_flags());
	return 0;
}

#endif
