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
 * Whether @task, in @state, is frozen with its control group. With version 2 it sleeps as others
 * do, on the way back to the program.
 */
static __always_inline bool is_frozen(const struct task_struct *task, __u32 state)
{
	return state & TASK_FROZEN || BPF_CORE_READ_BITFIELD_PROBED(task, frozen);
}

#endif
