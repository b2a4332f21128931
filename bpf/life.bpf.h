/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The life of processes that are followed: a forked child has its parent's memory, so it is walked
 * the same way from its first tick; after exec nothing is known until user space has looked again.
 */
#ifndef RBPF_LIFE_BPF_H
#define RBPF_LIFE_BPF_H

#include "lock_known.bpf.h"
#include "task_state.bpf.h"

/* ns, in which the two clocks drift apart by no more than some 10 µs. */
#define SCHEDULER_SEEN_NS 100000000ull

/*
 * The CPU time of @task, the current one. The kernel's account ends where it was added up last, at
 * a switch or at one of 100 to 1000 ticks a second: most of what a child does before it executes a
 * program would be missing. What passed since then is known if a thread has just begun.
 */
static __always_inline __u64 runtime_until_now(const struct task_struct *task)
{
	__u64 sum = task->se.sum_exec_runtime, now = bpf_ktime_get_ns(), since;
	const struct rq *rq;

	if (!bpf_core_field_exists(task->se.cfs_rq) || now - scheduler_seen_ns > SCHEDULER_SEEN_NS)
		return sum;
	rq = BPF_CORE_READ(task, se.cfs_rq, rq);
	since = now + scheduler_ahead - BPF_CORE_READ(task, se.exec_start);
	since -= BPF_CORE_READ(rq, clock) - BPF_CORE_READ(rq, clock_task);
	return since < SCHEDULER_SEEN_NS ? sum + since : sum; /* it is not below 0, either */
}

/*
 * User space examines a process that is born or executes a program, while it lives: these wake it
 * at once. It is woken on this CPU, perhaps before this program ends.
 *
 * Not reserved and submitted: where a kernel takes the CPU from a thread in between, all records
 * after that would have to wait for it.
 */
static __always_inline void send_life(const struct rbpf_ring_life *rec, __u64 flags)
{
	if (bpf_ringbuf_output(&ring, (void *)rec, sizeof(*rec), flags))
		count(RBPF_CNT_LOST_LIFE);
}

/* Something of @type happens at @ts to @task, which has had @runtime of CPU time. */
static __always_inline void life_of(struct rbpf_ring_life *rec, __u32 type, __u64 ts,
				    struct task_struct *task, __u64 runtime)
{
	rec->h.ts = ts;
	rec->h.type = type;
	rec->h.tgid = task->tgid;
	rec->h.tid = task->pid;
	rec->h.cpu = bpf_get_smp_processor_id();
	rec->runtime = runtime;
	rec->exit_code = task->exit_code;
	bpf_probe_read_kernel_str(rec->comm, sizeof(rec->comm), task->comm);
}

/* It ends: user space has time to take note of that. */
static __always_inline void send_end(__u32 type, struct task_struct *task, __u32 flags)
{
	struct rbpf_ring_life rec = { .flags = flags };

	life_of(&rec, type, bpf_ktime_get_ns(), task, task->se.sum_exec_runtime);
	send_life(&rec, wakeup_flags());
}

/*
 * The current thread has made @child. No part of its caller, whose stack is short; nor are the next
 * two.
 */
static __noinline int send_birth(__u32 type, const struct task_struct *child)
{
	__u64 creator = bpf_get_current_pid_tgid();
	struct rbpf_ring_life rec = {
		.h = {
			.ts = child->start_time,
			.type = type,
			.tgid = creator >> 32,
			.tid = (__u32)creator,
			.cpu = bpf_get_smp_processor_id(),
		},
		.child = child->pid,
	};

	send_life(&rec, BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* A thread that has just been created waits for a CPU. Of one from before there is open_waits(). */
static __noinline int wait_of_new(const struct task_struct *child)
{
	struct wait wait = { .tgid = child->tgid, .status = RBPF_NO_EC };
	__u32 tid = child->pid;

	if (!waits_begun)
		return 0;
	wait.since = wait.woken = bpf_ktime_get_ns();
	wait.runtime = child->se.sum_exec_runtime;
	if (bpf_map_update_elem(&waits, &tid, &wait, BPF_ANY))
		count(RBPF_CNT_WAITS_FULL);
	return 0;
}

static __always_inline struct rbpf_file file_of(const struct file *file)
{
	const struct inode *inode = BPF_CORE_READ(file, f_inode);

	return (struct rbpf_file) {
		.inode = BPF_CORE_READ(inode, i_ino),
		.device = BPF_CORE_READ(inode, i_sb, s_dev),
		.generation = BPF_CORE_READ(inode, i_generation),
	};
}

/* What is known of the memory of @tgid is so of that of @child, which is a copy. */
static __always_inline void inherit(__u32 tgid, __u32 child)
{
	struct rbpf_code *known_code = bpf_map_lookup_elem(&code, &tgid);
	struct rbpf_request_filter *filter = bpf_map_lookup_elem(&request_filters, &tgid);

	if (known_code)
		bpf_map_update_elem(&code, &child, known_code, BPF_ANY);
	if (filter)
		bpf_map_update_elem(&request_filters, &child, filter, BPF_ANY);
}

/* @tgid has that memory no more. */
static __always_inline void forget_memory(__u32 tgid)
{
	bpf_map_delete_elem(&code, &tgid);
	bpf_map_delete_elem(&request_filters, &tgid);
}

/* Follow @child, a process, as its parent @tgid is followed. Returns 1, or 0: there is no room. */
static __noinline int follow_child(__u32 tgid, const struct task_struct *child)
{
	struct rbpf_proc *known = bpf_map_lookup_elem(&procs, &tgid), proc;
	__u32 child_tgid = child->tgid;

	if (!known)
		return 0;
	proc = *known;
	proc.since = child->start_time;
	if (bpf_map_update_elem(&procs, &child_tgid, &proc, BPF_ANY)) {
		count(RBPF_CNT_PROCS_FULL);
		return 0;
	}
	inherit(tgid, child_tgid);
	return 1;
}

/* The current thread has created @child, a thread or the first one of a process. */
static __always_inline void born(const struct task_struct *child)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, child_tgid = child->tgid;

	if (!bpf_map_lookup_elem(&procs, &tgid))
		return;
	if (tgid == child_tgid) {
		wait_of_new(child);
		/* User space needs each new thread only if some have clocks of their own. */
		if (!system_wide)
			send_birth(RBPF_RING_THREAD, child);
	} else if (follow_children && follow_child(tgid, child)) {
		wait_of_new(child);
		send_birth(RBPF_RING_FORK, child);
	}
}

/*
 * A new thread is put into the queue of a CPU, whose clock the scheduler has just read. On the way
 * from one thread to the next it does that, too, but there are many more of these.
 *
 * Births are seen here, and not at sched_process_fork: the queue is locked, so nothing preempts
 * this. Newer kernels (Linux 7.2 does) preempt others, and while one waits for its CPU the kernel
 * leaves out what the same program should do there for other threads.
 */
SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_new, struct task_struct *task)
{
	__u64 now = bpf_ktime_get_ns();

	if (bpf_core_field_exists(task->se.cfs_rq)) {
		scheduler_ahead = BPF_CORE_READ(task, se.cfs_rq, rq, clock) - now;
		scheduler_seen_ns = now;
	}
	born(task);
	return 0;
}

/*
 * A process that is followed stays so. With system_wide each exec is reported, and a process that
 * executes what is known to be a Ruby (a preset) is followed from here on.
 */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	struct rbpf_file exe = file_of(bprm->file);
	struct rbpf_preset_key key = { .exe = exe, .uid = (__u32)bpf_get_current_uid_gid() };
	struct rbpf_proc proc = { .since = bpf_ktime_get_ns() };
	struct rbpf_layout *preset;
	struct rbpf_proc *followed;
	struct rbpf_ring_life rec = { .child = old_pid, .exe = exe };
	__u32 tgid = task->tgid;

	followed = bpf_map_lookup_elem(&procs, &tgid);
	if (!followed && !system_wide)
		return 0;
	if (followed)
		forget_memory(tgid);
	/*
	 * Its own clock, if it is left one (clocks_note_exec() in user space), is of another
	 * program. And another thread may be the main one now, with the start time of that of
	 * before.
	 */
	set_taken_over(task->pid, false);
	preset = bpf_map_lookup_elem(&presets, &key);
	if (!preset) {
		key.uid = 0;
		preset = bpf_map_lookup_elem(&presets, &key);
	}
	if (preset) {
		proc.layout = *preset;
		rec.flags = RBPF_LIFE_PRESET;
	}
	if ((followed || preset) && bpf_map_update_elem(&procs, &tgid, &proc, BPF_ANY)) {
		count(RBPF_CNT_PROCS_FULL);
		return 0;
	}
	life_of(&rec, RBPF_RING_EXEC, proc.since, task, runtime_until_now(task));
	send_life(&rec, BPF_RB_FORCE_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	__u32 tgid = task->tgid;

	if (bpf_map_lookup_elem(&procs, &tgid))
		send_end(RBPF_RING_EXIT, task,
			 task->signal->live.counter == 0 ? RBPF_LIFE_LAST : 0);
	return 0;
}

/*
 * Freeing its memory is CPU time of the process, too: it is followed until its last task is freed.
 */
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *task)
{
	__u32 tgid = task->tgid, tid = task->pid;

	/* Also of a process that is followed no more: user space may have told its code late. */
	if (waits_too) {
		wait_forget(tid);
		lock_known_forget(tid, tgid);
	}
	set_taken_over(tid, false);
	if (tid == tgid)
		forget_memory(tgid);
	if (!bpf_map_lookup_elem(&procs, &tgid))
		return 0;
	send_end(RBPF_RING_FREE, task, 0);
	if (tid == tgid)
		bpf_map_delete_elem(&procs, &tgid);
	return 0;
}

static __always_inline bool iter_includes(const struct task_struct *task)
{
	__u32 tgid = task->tgid;

	return (!iter_tgid || iter_tgid == tgid) && bpf_map_lookup_elem(&procs, &tgid);
}

static __always_inline struct rbpf_task task_of(struct task_struct *task)
{
	return (struct rbpf_task) {
		.tgid = task->tgid,
		.tid = task->pid,
		/* Of a worker of io_uring it is that of the thread that made it. */
		.thread_pointer = task->flags & PF_IO_WORKER ? 0 : task->THREAD_POINTER,
		.runtime = task->se.sum_exec_runtime,
		.exe = file_of(BPF_CORE_READ(task, mm, exe_file)),
	};
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

	if (!task || !iter_includes(task))
		return 0;
	rec = task_of(task);
	bpf_seq_write(ctx->meta->seq, &rec, sizeof(rec));
	return 0;
}

static __always_inline bool is_real_time(const struct task_struct *task)
{
	__u32 policy = BPF_CORE_READ(task, policy);

	return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
}

/*
 * How long @rec, which is of @task, has been on its CPU, queued or off both, by the clock of the
 * scheduler, which is at most a tick behind. When it left its CPU is not kept: that is when it came
 * there and what it has run since. What interrupts and a hypervisor took meanwhile is counted, too,
 * as having left it.
 */
static __always_inline void take_time_in_state(struct rbpf_thread *rec,
					       const struct task_struct *task)
{
	const struct task_struct *self = (const void *)bpf_get_current_task();
	__u64 now, since;

	rec->for_ns = rec->queued = 0;
	if (!bpf_core_field_exists(task->sched_info.last_queued) ||
	    !bpf_core_field_exists(task->se.cfs_rq))
		return;
	now = BPF_CORE_READ(self, se.cfs_rq, rq, clock);
	since = BPF_CORE_READ(task, sched_info.last_queued);
	rec->queued = since && !rec->on_cpu;
	if (!rec->queued)
		since = BPF_CORE_READ(task, sched_info.last_arrival);
	if (!rec->queued && !rec->on_cpu) {
		if (is_real_time(task))
			return;
		since += BPF_CORE_READ(task, se.sum_exec_runtime) -
			 BPF_CORE_READ(task, se.prev_sum_exec_runtime);
	}
	rec->for_ns = now > since ? now - since : 1; /* 0: not known */
}

/*
 * The same, with registers and what it does how long: user space walks the native stacks of threads
 * that do not run.
 */
SEC("iter/task")
int registers(struct bpf_iter__task *ctx)
{
	struct rbpf_thread *rec = &thread;
	struct task_struct *task = ctx->task;
	bpf_user_pt_regs_t room;
	int r;

	if (!task || !iter_includes(task))
		return 0;
	rec->task = task_of(task);
	/* Linux 7.2 has no on_cpu: there a task that could run counts as running. */
	if (bpf_core_field_exists(task->on_cpu))
		rec->on_cpu = BPF_CORE_READ(task, on_cpu);
	else
		rec->on_cpu = !BPF_CORE_READ(task, __state);
	if (has_task_pt_regs())
		r = entry_registers(&rec->regs, (const void *)bpf_task_pt_regs(task), &room);
	else
		r = entry_registers(&rec->regs, end_of_stack(task), &room);
	rec->has_regs = !r && !(task->flags & (PF_EXITING | PF_KTHREAD | PF_IO_WORKER));
	rec->switches = BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw);
	rec->kept = is_frozen(task, task_state(task), task->flags, counts_as_frozen(task))
			    ? RBPF_KEPT_FROZEN
		    : is_throttled(task) ? RBPF_KEPT_THROTTLED
					 : RBPF_KEPT_NOT;
	take_time_in_state(rec, task);
	bpf_seq_write(ctx->meta->seq, rec, sizeof(*rec));
	return 0;
}

#endif
