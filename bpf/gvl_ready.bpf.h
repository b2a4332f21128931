/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From 3.3 on, who gives something to a thread that waits for it (in a Queue, a ConditionVariable,
 * a Mutex, Thread#join) puts that thread into the queue for the GVL itself. The thread sleeps on
 * until it has the GVL: no switch tells when it came to wait for that. A tick of who has the GVL
 * meanwhile finds it in the queue.
 */
#ifndef RBPF_GVL_READY_BPF_H
#define RBPF_GVL_READY_BPF_H

#include "gvl.bpf.h"

#define GVL_READY_STEPS 16 /* threads of the queue that are looked at */

/*
 * The thread that was walked, which begins to wait as w->wait says, may be put into that queue:
 * note which thread it is for the kernel.
 */
__noinline int gvl_keep_tid(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	struct lock_holder_key key = {};
	__u32 *known;

	if (!w || w->wait.wait != RBPF_WAIT_LOCK || !w->wait.th ||
	    !(w->layout.flags & RBPF_LAYOUT_RUNS_EARLY))
		return 0;
	key.th = w->wait.th;
	key.tgid = w->sample.h.tgid;
	known = bpf_map_lookup_elem(&gvl_tids, &key);
	if (!known || *known != w->sample.h.tid)
		bpf_map_update_elem(&gvl_tids, &key, &w->sample.h.tid, BPF_ANY);
	return 0;
}

/* @ns before @now, but not before @since. */
static __always_inline __u64 gvl_before(__u64 now, __u64 ns, __u64 since)
{
	return now > since + ns ? now - ns : since;
}

/*
 * The thread @th is in the queue at @now, and the one that was walked has the GVL: for how long
 * that one is to be charged, in ns. When it is found first it came there at any time since the tick
 * before, @period ago: half of that, on average. And who has the GVL when it gets it may not tick
 * again before that: so all of it is charged.
 */
static __always_inline __u64 gvl_ready(const struct walk *w, __u64 th, __u64 now, __u64 period)
{
	struct lock_holder_key key = { .th = th, .tgid = w->sample.h.tgid };
	__u32 *tid = bpf_map_lookup_elem(&gvl_tids, &key);
	struct wait *wait = tid ? bpf_map_lookup_elem(&waits, tid) : NULL;
	__u64 since, from;

	if (!wait || wait->th != th || wait->tgid != key.tgid || wait->wait != RBPF_WAIT_LOCK)
		return 0;
	since = wait->since;
	if (!since || wait->woken)
		return 0;
	if (!wait->ready) {
		wait->ready = gvl_before(now, period / 2, since);
		wait->charged = gvl_before(now, period, since);
	}
	from = wait->charged;
	wait->charged = now;
	return now > from ? now - from : 0;
}

/*
 * The thread of the sample in scratch @walk_id, which is charged with @period ns of CPU time, has
 * ticked.
 */
__noinline int gvl_note_ready(__u32 walk_id, __u64 period)
{
	struct walk *w = walk_state(walk_id);
	__u64 head, at, caused = 0;
	struct ruby_list_node node;
	int i;

	if (!w || !(w->layout.flags & RBPF_LAYOUT_RUNS_EARLY) || !gvl_of(w) || !w->th_ractor)
		return 0;
	at = head = w->th_ractor + w->layout.ractor_gvl_queue;
	if (walk_read(&node, sizeof(node), head) || node.next == head || !gvl_is_held(walk_id, 0))
		return 0;
	for (i = 0; i < GVL_READY_STEPS; i++) {
		if (walk_read(&node, sizeof(node), at) || node.next == head)
			break;
		at = node.next;
		caused += gvl_ready(w, at - w->layout.th_ready, w->sample.h.ts, period);
	}
	if (caused)
		sample_send(w, RBPF_EVENT_GVL, caused);
	return 0;
}

#endif
