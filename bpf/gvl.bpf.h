/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The GVL: who waits for it, who holds it, and how long others have waited meanwhile. What a thread
 * has caused is charged to it when it is sampled, when it leaves the CPU, and when it comes back
 * and has held the GVL all the time. So all waiting is charged once, and to whoever had the GVL
 * then.
 */
#ifndef RBPF_GVL_BPF_H
#define RBPF_GVL_BPF_H

#include "sample.bpf.h"

#define GVL_QUEUE_STEPS 64 /* nodes of the queue that are followed to its head */

/*
 * Whether the thread that was walked stands in the queue of those that wait for the GVL. A node
 * that was removed keeps its pointers, but its neighbours do not point to it. A thread comes in at
 * the end: so mostly the head is next.
 */
__noinline int gvl_is_waited_for(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	struct ruby_list_node at, next;
	__u64 head, node, addr;
	int i;

	if (!w || !w->layout.th_ready || w->sample.status != RBPF_OK)
		return 0;
	head = w->th_ractor ? w->th_ractor + w->layout.ractor_gvl_queue : w->layout.gvl_queue;
	if (!head || head == w->th_ractor)
		return 0;
	addr = node = w->th + w->layout.th_ready;
	if (walk_read(&at, sizeof(at), node))
		return 0;
	for (i = 0; i < GVL_QUEUE_STEPS; i++) {
		if (at.next == node || walk_read(&next, sizeof(next), at.next) || next.prev != addr)
			return 0;
		if (at.next == head)
			return 1;
		addr = at.next;
		at = next;
	}
	return 0;
}

/* The GVL of the thread that was walked; 0 if it is not known. */
static __always_inline __u64 gvl_of(const struct walk *w)
{
	if (!w->layout.th_ready || w->sample.status != RBPF_OK)
		return 0;
	return w->th_ractor ?: w->layout.gvl_queue;
}

/*
 * Whether a word of the thread's ractor, or without one a word of the VM, says @mine. 0: it is not
 * known.
 */
static __always_inline bool gvl_word_is(const struct walk *w, __u32 of_ractor, __u64 of_vm,
					__u64 mine)
{
	__u64 at = of_vm, word = 0;

	if (w->th_ractor)
		at = of_ractor ? w->th_ractor + of_ractor : 0;
	return at && !walk_read(&word, sizeof(word), at) && word == mine;
}

/*
 * Whether the thread that was walked holds the GVL; or if @or_had, was the last that did, for it
 * may have given it away on its way to where it leaves the CPU.
 */
__noinline int gvl_is_held(__u32 walk_id, __u32 or_had)
{
	struct walk *w = walk_state(walk_id);

	if (!w || !gvl_of(w))
		return 0;
	if (gvl_word_is(w, w->layout.ractor_gvl_owner, w->layout.gvl_owner, w->th))
		return 1;
	return or_had && gvl_word_is(w, w->layout.ractor_running_ec, w->layout.ec_global, w->th_ec);
}

/*
 * Whether the thread that was walked, which waits for the GVL, had it until its turn was over: it
 * is runnable for the VM, as few are that come back from something else, and has run for a turn.
 * The next word says how long, in µs; it begins anew when the thread gets the GVL after another
 * one.
 */
static __always_inline bool gvl_turn_is_over(const struct walk *w)
{
	__u32 words[2];

	return w->layout.th_status && w->n_frames &&
	       !walk_read(words, sizeof(words), w->th + w->layout.th_status) &&
	       (words[0] & RUBY_TH_STATUS_MASK) == RUBY_TH_RUNNABLE && words[1] >= RUBY_TURN_US;
}

static __always_inline struct gvl *gvl_find(__u64 at, __u32 tgid)
{
	struct gvl_key key = { .at = at, .tgid = tgid };

	return at ? bpf_map_lookup_elem(&gvls, &key) : NULL;
}

/* A thread began to wait for GVL @at of process @tgid at @now. */
static __always_inline void gvl_wait_begin(__u64 at, __u32 tgid, __u64 now)
{
	struct gvl_key key = { .at = at, .tgid = tgid };
	struct gvl *g = gvl_find(at, tgid), fresh = { .base = now };

	if (!g) {
		bpf_map_update_elem(&gvls, &key, &fresh, BPF_NOEXIST);
		g = gvl_find(at, tgid);
	}
	/* Another CPU may have made it a moment later: gvl_wait_end() leaves that out, too. */
	if (g && now >= g->base)
		__sync_fetch_and_add(&g->waiting, (1ull << GVL_N_SHIFT) + gvl_us(g, now));
}

/* A thread has waited for it from @since, as gvl_wait_begin() was told, to @until. */
static __always_inline void gvl_wait_end(__u64 at, __u32 tgid, __u64 since, __u64 until)
{
	struct gvl *g = gvl_find(at, tgid);

	/* It may have been forgotten, and made anew. */
	if (!g || since < g->base)
		return;
	__sync_fetch_and_add(&g->waiting, -((1ull << GVL_N_SHIFT) + gvl_us(g, since)));
	/* Adding nothing would compile to an operation that 5.10 does not know. */
	if (until > since)
		__sync_fetch_and_add(&g->ended, gvl_us(g, until) - gvl_us(g, since));
}

/*
 * @wait is over, or is forgotten: if it was for the GVL or a Mutex, that is added up. @now: when,
 * unless its thread was woken before.
 */
static __always_inline void wait_over(const struct wait *wait, __u64 now)
{
	__u64 at = wait->wait == RBPF_WAIT_GVL ? wait->gvl : wait->lock;

	if (at)
		gvl_wait_end(at, wait->tgid, wait->since, wait->woken ?: now);
}

/*
 * How long threads have waited for GVL @at of process @tgid, in ns, that nobody was charged with:
 * the caller charges who has it.
 */
static __always_inline __u64 gvl_charge(__u64 at, __u32 tgid, __u64 now)
{
	struct gvl *g = gvl_find(at, tgid);

	return g ? gvl_take(g, now) : 0;
}

/*
 * Charge the thread of the sample in @w, and send that as @event. If there is no room in the ring
 * the next one to be charged gets it.
 */
static __always_inline void gvl_charge_sample(struct walk *w, __u64 at, __u32 event)
{
	const struct rbpf_ring_hdr *h = &w->sample.h;
	struct gvl *g = gvl_find(at, h->tgid);
	const __u64 caused = g ? gvl_take(g, h->ts) : 0;

	if (caused && sample_send(w, event, caused))
		__sync_fetch_and_add(&g->charged, -(caused / 1000));
}

/* Charge the thread of the sample in scratch @walk_id, if it has or had the GVL, and send that. */
__noinline int gvl_send(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	const struct rbpf_ring_hdr *h;
	const struct gvl *g;

	if (!w)
		return 0;
	h = &w->sample.h;
	/* Mostly nobody waits. To ask that first spares reading who has the GVL. */
	g = gvl_find(gvl_of(w), h->tgid);
	if (!g || gvl_waited(g, h->ts) == g->charged || !gvl_is_held(walk_id, 1))
		return 0;
	/*
	 * One that begins says that it was the last that had it (see gc_whose()), and has never had
	 * it.
	 */
	if (!w->n_frames && gvl_is_waited_for(walk_id))
		return 0;
	gvl_charge_sample(w, gvl_of(w), RBPF_EVENT_GVL);
	return 0;
}

/* Thread @tid is forgotten, whatever it waits for. */
static __always_inline void wait_forget(__u32 tid)
{
	struct wait *wait = bpf_map_lookup_elem(&waits, &tid);

	if (!wait)
		return;
	if (wait->since)
		wait_over(wait, bpf_ktime_get_ns());
	bpf_map_delete_elem(&waits, &tid);
}

#endif
