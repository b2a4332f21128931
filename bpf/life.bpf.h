/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The life of processes that are followed: a forked child has its parent's memory, so it is walked
 * the same way from its first tick; after exec nothing is known until user space has looked again.
 */
#ifndef RBPF_LIFE_BPF_H
#define RBPF_LIFE_BPF_H

/* User space acts on these at once (it must look while the process lives), so they wake it. */
static __always_inline void send_life(__u32 type, struct task_struct *task, __u32 child, __u32 last)
{
	struct rbpf_rec_life *rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);

	if (!rec) {
		count(RBPF_CNT_LOST_LIFE);
		return;
	}
	rec->h.ts = bpf_ktime_get_ns();
	rec->h.type = type;
	rec->h.tgid = task->tgid;
	rec->h.tid = task->pid;
	rec->h.cpu = bpf_get_smp_processor_id();
	rec->runtime = task->se.sum_exec_runtime;
	rec->child = child;
	rec->exit_code = task->exit_code;
	rec->last = last;
	rec->pad = 0;
	bpf_probe_read_kernel_str(rec->comm, sizeof(rec->comm), task->comm);
	bpf_ringbuf_submit(rec, BPF_RB_FORCE_WAKEUP);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct rbpf_layout *layout;
	__u32 tgid = parent->tgid;
	__u32 child_tgid = child->tgid;

	layout = bpf_map_lookup_elem(&procs, &tgid);
	if (!layout)
		return 0;
	if (tgid == child_tgid) {
		send_life(RBPF_REC_THREAD, parent, child->pid, 0);
		return 0;
	}
	if (!follow_children)
		return 0;
	if (bpf_map_update_elem(&procs, &child_tgid, layout, BPF_ANY)) {
		count(RBPF_CNT_PROCS_FULL);
		return 0;
	}
	send_life(RBPF_REC_FORK, parent, child_tgid, 0);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	struct rbpf_layout none = {};
	__u32 tgid = task->tgid;

	if (!bpf_map_lookup_elem(&procs, &tgid))
		return 0;
	bpf_map_update_elem(&procs, &tgid, &none, BPF_ANY);
	send_life(RBPF_REC_EXEC, task, 0, 0);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	__u32 tgid = task->tgid;
	bool last;

	if (!bpf_map_lookup_elem(&procs, &tgid))
		return 0;
	last = task->signal->live.counter == 0;
	send_life(RBPF_REC_EXIT, task, 0, last);
	if (last)
		bpf_map_delete_elem(&procs, &tgid);
	return 0;
}

/*
 * The thread pointers of all threads of followed processes, also of those that sleep: user space
 * finds the EC slot from them. Run by reading the iterator.
 */
SEC("iter/task")
int tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct rbpf_task rec;
	__u32 tgid;

	if (!task)
		return 0;
	tgid = task->tgid;
	if (!bpf_map_lookup_elem(&procs, &tgid))
		return 0;
	rec.tgid = tgid;
	rec.tid = task->pid;
	rec.thread_pointer = task_thread_pointer(task);
	bpf_seq_write(ctx->meta->seq, &rec, sizeof(rec));
	return 0;
}

#endif
