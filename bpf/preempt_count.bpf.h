/* SPDX-License-Identifier: GPL-2.0-only */
/* How deep in interrupts a CPU is, and so whether what it runs is the current task's own work. */
#ifndef RBPF_PREEMPT_COUNT_BPF_H
#define RBPF_PREEMPT_COUNT_BPF_H

/*
 * Of a preempt count, linux/preempt.h: it serves a soft interrupt (with those off it has 0x200); an
 * interrupt.
 */
#define COUNT_SOFTIRQ 0x000100u
#define COUNT_HARD    0xff0000u
#define COUNT_UNKNOWN 0xffffffffu

#if defined(__TARGET_ARCH_x86)
struct cfs_rq___rq {
	void *rq;
} __attribute__((preserve_access_index));

struct sched_entity___rq {
	struct cfs_rq___rq *cfs_rq;
} __attribute__((preserve_access_index));

struct task_struct___rq {
	struct sched_entity___rq se;
} __attribute__((preserve_access_index));

/* src/engine/preempt_count.h tells how it is found. */
static __always_inline __u32 preempt_count(void)
{
	const struct task_struct___rq *task = (const void *)bpf_get_current_task();
	__u32 ret = COUNT_UNKNOWN;
	const char *rq;

	if (!preempt_count_from_rq || !bpf_core_field_exists(task->se.cfs_rq))
		return ret;
	rq = BPF_CORE_READ(task, se.cfs_rq, rq);
	if (bpf_probe_read_kernel(&ret, sizeof(ret), rq + preempt_count_from_rq))
		return COUNT_UNKNOWN;
	return ret;
}
#else
struct thread_info___count {
	__u64 preempt_count; /* in its upper half: whether to reschedule */
} __attribute__((preserve_access_index));

struct task_struct___count {
	struct thread_info___count thread_info;
} __attribute__((preserve_access_index));

static __always_inline __u32 preempt_count(void)
{
	const struct task_struct___count *task = (const void *)bpf_get_current_task();

	return (__u32)BPF_CORE_READ(task, thread_info.preempt_count);
}
#endif

#endif
