/* SPDX-License-Identifier: GPL-2.0-only */
/* The request of a sample: which frames tell it in this process, and sending it. */
#ifndef RBPF_REQUEST_SAMPLE_BPF_H
#define RBPF_REQUEST_SAMPLE_BPF_H

#include "request_read.bpf.h"

/*
 * To wake rbpf takes an interrupt of this CPU's own, which is dear on a virtual machine: what it is
 * woken for may wait so long, ns. It is the name of a class, which hardly goes away so soon: of
 * classes that lived for 25 ms, 4 % of the samples had no name, and with a pause of 25 ms 10 %.
 */
#define WAKE_PAUSE_NS 10000000

/* As wakeup_flags(); rbpf is woken also if that is owed, now or with a later sample of this CPU. */
static __always_inline __u64 owed_wakeup_flags(struct walk *w)
{
	if (!w->wake_owed || w->sample.h.ts - w->woken_ns < WAKE_PAUSE_NS)
		return wakeup_flags();
	w->wake_owed = 0;
	w->woken_ns = w->sample.h.ts;
	return BPF_RB_FORCE_WAKEUP;
}

/* To be called before the walk. */
static __always_inline void request_begin(struct walk *w)
{
	__u32 tgid = w->sample.h.tgid;
	const struct rbpf_request_filter *filter = bpf_map_lookup_elem(&request_filters, &tgid);

	w->request_found = 0;
	w->request_wanted = filter != NULL;
	if (filter)
		w->request_filter = *filter;
}

/*
 * Whether rbpf is to be woken soon, so that it reads the name of the class while that exists: once
 * an era and epoch for each CPU, as the stacks that hold it keep it for that long. An old class
 * exists until the next major collection has marked.
 */
static __always_inline bool class_is_urgent(struct walk *w)
{
	if (!w->request.klass)
		return false;
	if (is_old(w, w->request_class_flags)) {
		w->request.flags |= RBPF_REQUEST_OLD_CLASS;
		if (old_ones_stay(w))
			return false;
	}
	return w->request_class_new;
}

/*
 * Where the fingerprint @request is if it was sent from this CPU. Not in sent[], of which one more
 * page would be touched: of all that was done for a request, that took a third of the time.
 */
static __always_inline __u64 *request_sent(struct walk *w, __u64 request)
{
	return &w->request_sent[request >> 1 & (REQUEST_SENT - 1)]; /* bit 0 is always set */
}

/*
 * Read the request that the walk found, let the sample name it, and send it unless that was done
 * from this CPU in this epoch. After send_stack(), which proves the name of its frame.
 */
static __always_inline void send_request(struct walk *w, __u32 walk_id, const struct walk_gc *gc)
{
	struct rbpf_ring_request *rec = &w->request;
	__u64 *sent;

	request_read(walk_id);
	w->sample.request = rec->request;
	sent = request_sent(w, rec->request);
	if (*sent == rec->request)
		return;
	rec->h = w->sample.h;
	rec->h.type = RBPF_RING_REQUEST;
	rec->gc_era = gc->era;
	rec->gc_major = w->old_seed ? gc->major : 0;
	if (gc->in_transition)
		rec->flags |= RBPF_STACK_GC_TRANSITION;
	request_take_checks(walk_id);
	w->wake_owed |= class_is_urgent(w);
	if (bpf_ringbuf_output(&ring, rec, sizeof(*rec), owed_wakeup_flags(w))) {
		count(RBPF_CNT_LOST_REQUEST);
		return;
	}
	*sent = rec->request;
}

#endif
