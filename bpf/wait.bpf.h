/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Time off the CPU. When the scheduler takes a thread of a followed process from its CPU, its
 * stacks are walked and kept with the time and with what it waits for; when it runs again, that is
 * sent with the exact length of the wait. So that a wait of a minute is known before it ends, user
 * space has those that go on sent about once a second (open_waits()).
 *
 * The programs of the scheduler run with interrupts off, so they can use the scratch of a clock's
 * interrupt, which cannot come meanwhile. open_waits() can be interrupted, and uses none.
 */
#ifndef RBPF_WAIT_BPF_H
#define RBPF_WAIT_BPF_H

#include "lock_known.bpf.h"
#include "syscall.bpf.h"
#include "task_state.bpf.h"
#include "waits_on.bpf.h"
#include "waker.bpf.h"

#define WAIT_COPIED offsetof(struct wait, on) /* of each; the rest by waits_on_copy() */

/* Where @task, of an iterator, entered the kernel. No part of its caller, whose stack is short. */
static __noinline int task_syscall(struct syscall *ret, struct task_struct *task)
{
	if (has_task_pt_regs())
		return syscall_at(ret, (const void *)bpf_task_pt_regs(task));
	return syscall_at(ret, end_of_stack(task));
}

/*
 * What @task waits for, which is not on a CPU, or about to leave it, and has the given @state and
 * @flags. @s: where it entered the kernel, if @known; what it waits for there is stored in it.
 */
static __noinline __u32 wait_of(const struct task_struct *task, __u32 state, __u32 flags,
				struct syscall *s, bool known)
{
	bool counted;

	if (!state)
		return is_throttled(task) ? RBPF_WAIT_THROTTLED : RBPF_WAIT_CPU;
	counted = counts_as_frozen(task);
	if (state & (TASK_STOPPED | TASK_TRACED) || is_frozen(task, state, flags, counted))
		return RBPF_WAIT_STOPPED;
	if (!known || flags & (PF_EXITING | PF_KTHREAD | PF_IO_WORKER))
		return RBPF_WAIT_OTHER;
	if (counted)
		return RBPF_WAIT_CHILD;
	return s->number < 0 ? RBPF_WAIT_FAULT : wait_in_syscall(task, s);
}

/*
 * Note in @wait, of thread @tid, for what it waits in the system call @s, if it does. One that was
 * interrupted, as by a stop, goes on as restart_syscall(), of which the thread's last wait tells
 * what it is.
 */
static __always_inline void wait_in_call(struct wait *wait, __u32 tid, const struct syscall *s)
{
	const __u64 mark = syscall_mark(s);
	const struct wait *old;

	if (wait->wait == RBPF_WAIT_CPU || wait->wait == RBPF_WAIT_THROTTLED ||
	    wait->wait == RBPF_WAIT_STOPPED || s->number < 0)
		return;
	old = s->number == SYS_restart_syscall ? bpf_map_lookup_elem(&waits, &tid) : NULL;
	if (old && old->args == mark) {
		wait->wait = old->in_call;
		waits_on_copy(&wait->on, &old->on);
	} else {
		waits_on_read(&wait->on, s->file, wait->wait);
	}
	wait->args = mark;
	wait->in_call = wait->wait;
}

/*
 * Whether the thread that was walked, which waits for a lock in @s, waits for the GVL to begin:
 * from 3.3 on it is put into the queue by who makes it, perhaps after it has gone to sleep
 * (native_thread_create_dedicated()). It has no frame yet, and sleeps for a condition variable,
 * which glibc does with FUTEX_WAIT_BITSET, and for a mutex without. The main thread may look the
 * same where it waits for the others to end, and never begins here; before 3.3 one that waits for a
 * child does (Process.detach).
 */
static __always_inline bool thread_begins(const struct walk *w, const struct syscall *s)
{
	return w->layout.flags & RBPF_LAYOUT_RUNS_EARLY && gvl_of(w) && !w->n_frames &&
	       s->number == SYS_futex && (s->args[1] & FUTEX_CMD) == FUTEX_WAIT_BITSET &&
	       w->sample.h.tid != w->sample.h.tgid;
}

/*
 * What the wait is, in w->wait, of the current thread, which was sampled in scratch @walk_id, has
 * run for @runtime in all, and leaves its CPU in @state. A function of its own, for the BPF stack
 * is short.
 */
__noinline int wait_note(__u32 walk_id, __u32 state, __u64 runtime)
{
	struct walk *w = walk_state(walk_id);
	const struct rbpf_ring_sample *sample;
	struct syscall call = {};
	struct wait *wait;
	bool known;

	if (!w)
		return 0;
	sample = &w->sample;
	wait = &w->wait;
	__builtin_memset(wait, 0, WAIT_COPIED);
	wait->on.kind = RBPF_ON_NOTHING;
	known = !current_syscall(&call);
	wait->wait = wait_of((const void *)bpf_get_current_task(), state,
			     current_member(flags, flags), &call, known);
	if (known)
		wait_in_call(wait, sample->h.tid, &call);
	if (wait->wait == RBPF_WAIT_LOCK &&
	    (gvl_is_waited_for(walk_id) || thread_begins(w, &call))) {
		wait->wait = RBPF_WAIT_GVL;
		wait->flags = gvl_turn_is_over(w) ? RBPF_WAIT_TURN : 0;
		gvl_wait_begin(gvl_of(w), sample->h.tgid, sample->h.ts);
	} else if (gvl_is_held(walk_id, 0)) {
		wait->flags = RBPF_WAIT_HELD;
	}
	wait->held = w->lock_held;
	wait->th = sample->status == RBPF_OK ? w->th : 0;
	wait->gvl = gvl_of(w);
	wait->since = sample->h.ts;
	wait->woken = wait->wait == RBPF_WAIT_CPU ? wait->since : 0;
	wait->tgid = sample->h.tgid;
	wait->runtime = runtime;
	wait->stack = sample->stack;
	wait->native = sample->native;
	wait->request = sample->request;
	wait->span = sample->span;
	wait->status = sample->status;
	wait->flags |= sample->flags & ~RBPF_SAMPLE_KERNEL;
	return 0;
}

/*
 * It begins: keep w->wait as the last wait of the thread. Returns 1, and keeps nothing, if the one
 * before it has not ended.
 */
__noinline int wait_keep(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	struct wait *wait, *old;
	__u64 now;
	__u32 tid;

	if (!w)
		return 0;
	wait = &w->wait;
	now = w->sample.h.ts;
	tid = w->sample.h.tid;
	old = bpf_map_lookup_elem(&waits, &tid);
	if (old && old->since)
		return 1;
	/* In place: a pointer to it that another CPU has stays one to this thread's wait. */
	if (old) {
		if (!wait->args) {
			wait->args = old->args;
			wait->in_call = old->in_call;
			waits_on_copy(&wait->on, &old->on);
		}
		/* Its time last: open_waits(), on another CPU, takes what has one. */
		wait->since = old->since = 0;
		barrier();
		__builtin_memcpy(old, wait, WAIT_COPIED);
		waits_on_copy(&old->on, &wait->on);
		barrier();
		*(volatile __u64 *)&old->since = now;
	} else if (bpf_map_update_elem(&waits, &tid, wait, BPF_ANY)) {
		count(RBPF_CNT_WAITS_FULL);
		wait_over(wait, wait->since); /* nothing else will end it */
	}
	return 0;
}

/*
 * Send @wait of @task, as far as it has come. @holder: what its thread is noted for, or NULL. No
 * part of its callers, whose stack is short.
 */
static __noinline int wait_send(const struct wait *wait, struct task_struct *task, __u64 now,
				__u32 flags, const struct lock_holder *holder)
{
	struct rbpf_ring_wait *rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);

	if (!rec) {
		count(RBPF_CNT_LOST_SAMPLE);
		return 0;
	}
	rec->h.ts = now;
	rec->h.type = RBPF_RING_WAIT;
	rec->h.tgid = wait->tgid;
	rec->h.tid = task->pid;
	rec->h.cpu = bpf_get_smp_processor_id();
	rec->since = wait->since;
	rec->woken = wait->woken;
	rec->ready = wait->ready;
	rec->stack = wait->stack;
	rec->native = wait->native;
	rec->request = wait->request;
	rec->span = wait->span;
	rec->runtime = task->se.sum_exec_runtime;
	rec->caused = wait->flags & RBPF_WAIT_HELD ? gvl_charge(wait->gvl, wait->tgid, now) : 0;
	rec->lock_caused = lock_caused(holder, wait, now);
	rec->wait = wait->wait;
	rec->status = wait->status;
	rec->flags = wait->flags | flags;
	waits_on_copy(&rec->on, &wait->on);
	rec->pad = 0;
	bpf_probe_read_kernel(rec->comm, sizeof(rec->comm), task->comm); /* ends in NUL */
	bpf_ringbuf_submit(rec, wakeup_flags());
	return 0;
}

/* @wait of @task has ended at @now. No part of its callers, as wait_send() is not. */
static __noinline int wait_end(struct wait *wait, struct task_struct *task, __u64 now)
{
	struct rbpf_known_wait *known = lock_known(wait, task->pid);
	struct lock_holder *holder;

	wait_over(wait, now);
	if (known)
		lock_known_end(known, wait, now);
	holder = lock_noted(wait->th, wait->tgid);
	wait_send(wait, task, now, 0, holder);
	if (wait->lock)
		/* It has it now, mostly. */
		lock_note(holder, wait->th, wait->tgid, wait->lock, now);
	wait->since = 0;
	return 0;
}

/*
 * @task has run, though on_switch() has not seen it come back: on a virtual machine with 6.18 now
 * and then there was no such event, in ftrace's record neither. How long it has run since, by the
 * kernel's account, tells when it came back.
 */
static __always_inline void wait_missed(struct task_struct *task)
{
	__u64 begun, end, ran, now = bpf_ktime_get_ns();
	__u32 tid = task->pid;
	struct wait *wait = bpf_map_lookup_elem(&waits, &tid);

	if (!wait || !wait->since)
		return;
	count(RBPF_CNT_WAITS_MISSED);
	begun = wait->woken ?: wait->since;
	ran = task->se.sum_exec_runtime - wait->runtime;
	end = now - begun > ran ? now - ran : begun;
	wait_end(wait, task, end);
}

/* @task, the current one, is about to leave its CPU. */
static __always_inline void wait_begin(struct task_struct *task, bool preempted)
{
	__u32 walk_id, state = preempted ? 0 : task_state(task);

	if (state & TASK_DEAD || !sample_begin(RBPF_IN_INTERRUPT, NO_CLOCK, &walk_id))
		return;
	sample_stacks(walk_id);
	gvl_send(walk_id);
	lock_send(walk_id);
	wait_note(walk_id, state, task->se.sum_exec_runtime);
	lock_wait_begin(walk_id);
	gvl_keep_tid(walk_id);
	if (wait_keep(walk_id)) {
		wait_missed(task);
		wait_keep(walk_id);
	}
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	__u32 tid = next->pid;
	struct wait *wait = bpf_map_lookup_elem(&waits, &tid);

	if (wait && wait->since)
		wait_end(wait, next, bpf_ktime_get_ns());
	wait_begin(prev, preempted);
	return 0;
}

/* @task can run. */
static __always_inline void wait_woken(const struct task_struct *task)
{
	__u32 tid = task->pid;
	struct wait *wait = bpf_map_lookup_elem(&waits, &tid);

	if (wait && wait->since && !wait->woken)
		wait->woken = bpf_ktime_get_ns();
}

/*
 * The thread that was walked wakes the one that waits as @wait says: if it had the @mutex that one
 * waits for, charge it; and if @tell, sample it. No part of its callers, whose stack is short.
 */
static __noinline int waking_note(__u32 walk_id, const struct wait *wait, __u64 mutex, bool tell)
{
	struct walk *w = walk_state(walk_id);

	if (!w)
		return 0;
	if (mutex && wait->tgid == w->sample.h.tgid)
		lock_given(walk_id, mutex);
	if (tell)
		sample_send(w, RBPF_EVENT_WAKEUP, w->sample.h.ts - wait->since);
	return 0;
}

/*
 * @task, which waits as @wait says, is woken by the current one. No clock's interrupt can come, for
 * sched_waking is called with interrupts off, but where a task wakes itself. Who wakes a thread
 * that is none of Ruby's is not told: from 3.3 on who gives the GVL away also wakes the VM's timer
 * thread, which is no wait that anybody looks for.
 */
static __always_inline void waking(const struct wait *wait, const struct task_struct *task)
{
	const bool tell = wakers && wait->status != RBPF_NO_EC;
	const bool interrupt = tell && waker_is_interrupt(wait->wait);
	struct rbpf_known_wait *known = lock_known(wait, task->pid);
	const __u64 mutex = known ? known->mutex : wait->lock;
	const bool given = mutex && wait->tgid == bpf_get_current_pid_tgid() >> 32;
	__u32 walk_id;

	if ((given || (tell && !interrupt)) &&
	    sample_begin(RBPF_IN_INTERRUPT, NO_CLOCK, &walk_id)) {
		sample_stacks(walk_id);
		waking_note(walk_id, wait, mutex, tell && !interrupt);
		if (!interrupt)
			return;
	}
	if (tell)
		waker_send_other(wait, task, interrupt);
}

/* Its CPU is told, which it may take a while to notice. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	__u32 tid = task->pid;
	struct wait *wait = bpf_map_lookup_elem(&waits, &tid);

	if (!wait || !wait->since || wait->woken || is_current(task))
		return 0;
	waking(wait, task);
	wait_woken(task);
	return 0;
}

/*
 * Its CPU has noticed. When it was told, on_switch() may not yet have come to where it notes the
 * wait.
 */
SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	wait_woken(task);
	return 0;
}

/* Whether @task runs just now, as far as that can be told: see registers(). */
static __always_inline bool is_running(const struct task_struct *task)
{
	if (bpf_core_field_exists(task->on_cpu))
		return BPF_CORE_READ(task, on_cpu);
	return !task_state(task);
}

/* @wait goes on: send what has come of it until @now. */
static __always_inline void wait_send_open(struct wait *wait, struct task_struct *task, __u64 now)
{
	struct rbpf_known_wait *known = lock_known(wait, task->pid);

	/* What has come since is told with the next piece. */
	if (wait->woken > now)
		wait->woken = 0;
	wait_send(wait, task, now, RBPF_WAIT_OPEN,
		  lock_noted(known ? known->th : wait->th, wait->tgid));
}

/*
 * Send the waits that go on, and begin those of threads that were off the CPU already when their
 * process came to be followed: of these there are no stacks. Run by reading the iterator.
 */
SEC("iter/task")
int open_waits(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct wait *wait, fresh = {};
	struct syscall call = {};
	bool known;
	__u64 now;
	__u32 tid;

	if (!task || !iter_includes(task))
		return 0;
	tid = task->pid;
	now = bpf_ktime_get_ns();
	wait = bpf_map_lookup_elem(&waits, &tid);
	if (wait) {
		/* A copy, for it may end on another CPU, and the next one begin. */
		fresh = *wait;
		barrier();
		if (any_known)
			lock_known_take(wait, tid);
		if (!only_take_known && fresh.since &&
		    fresh.since == *(volatile __u64 *)&wait->since &&
		    fresh.runtime == task->se.sum_exec_runtime && now >= fresh.since + open_wait_ns)
			wait_send_open(&fresh, task, now);
		return 0;
	}
	if (only_take_known || is_running(task) || task_state(task) & TASK_DEAD)
		return 0;
	fresh.since = now;
	fresh.tgid = task->tgid;
	fresh.runtime = task->se.sum_exec_runtime;
	known = !task_syscall(&call, task);
	fresh.wait = wait_of(task, task_state(task), task->flags, &call, known);
	if (known)
		wait_in_call(&fresh, tid, &call);
	fresh.woken = fresh.wait == RBPF_WAIT_CPU ? now : 0;
	fresh.flags = RBPF_WAIT_BEFORE;
	if (bpf_map_update_elem(&waits, &tid, &fresh, BPF_NOEXIST))
		return 0;
	/* It may have begun to run before it was in the map, unnoticed by on_switch(). */
	wait = bpf_map_lookup_elem(&waits, &tid);
	if (wait && is_running(task) && wait->since == now)
		wait->since = 0;
	return 0;
}

#endif
