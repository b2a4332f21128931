/* SPDX-License-Identifier: GPL-2.0-only */
/* The state of a task, as the scheduler keeps it. */
#ifndef RBPF_TASK_STATE_BPF_H
#define RBPF_TASK_STATE_BPF_H

static __always_inline __u32 task_state(const struct task_struct *task)
{
	const struct task_struct___old *old = (const void *)task;

	if (bpf_core_field_exists(task->__state))
		return task->__state;
	return old->state;
}

/*
 * Whether the kernel counts @task among the frozen ones of its control group, of version 2: it is
 * frozen, or waits for a child of vfork(), which may run meanwhile (wait_for_vfork_done()).
 */
static __always_inline bool counts_as_frozen(const struct task_struct *task)
{
	return BPF_CORE_READ_BITFIELD_PROBED(task, frozen);
}

/*
 * Whether @task, in @state and with @flags, is frozen with its control group: before 6.1 and with
 * version 1 it has PF_FROZEN. With version 2 it sleeps as others do, on the way back to the
 * program, and keeps JOBCTL_TRAP_FREEZE until it is thawed. @counted: counts_as_frozen().
 */
static __always_inline bool is_frozen(const struct task_struct *task, __u32 state, __u32 flags,
				      bool counted)
{
	return state & TASK_FROZEN || flags & PF_FROZEN ||
	       (counted && BPF_CORE_READ(task, jobctl) & JOBCTL_TRAP_FREEZE);
}

/*
 * Whether @task, which could run, is kept from it as its control group has used the CPU time that
 * it may in this period (cpu.max). Since 6.18 each task is taken from its CPU where it returns to
 * the program; before, all of the group's on a CPU at once, also those that had not run there.
 */
static __always_inline bool is_throttled(const struct task_struct *task)
{
	if (bpf_core_field_exists(task->throttled))
		return BPF_CORE_READ(task, throttled);
	if (!bpf_core_field_exists(task->se.cfs_rq) ||
	    !bpf_core_field_exists(task->se.cfs_rq->throttle_count))
		return false;
	return BPF_CORE_READ(task, se.cfs_rq, throttle_count) > 0;
}

#endif
