/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which request a stack serves: the walk asks of each Ruby frame whether its iseq has a rule, and
 * the innermost one that has is it. That costs a frame one load and a bit (a filter for each
 * process), and a look-up for about one frame in a hundred without a rule.
 *
 * Compiled and called like ruby_walk.bpf.h. The shim also defines
 *
 *   walk_request_rule(w, iseq)		the rule of an iseq, or NULL
 */
#ifndef RBPF_REQUEST_FRAME_BPF_H
#define RBPF_REQUEST_FRAME_BPF_H

#include "walk_state.bpf.h"

/* Whether @iseq may have a rule. */
static __always_inline bool request_may_be(const struct walk *w, __u64 iseq)
{
	__u32 bit = rbpf_request_bit(iseq);

	return w->request_filter.bits[bit / 64 & (RBPF_REQUEST_FILTER_WORDS - 1)] >> (bit % 64) & 1;
}

/*
 * The frame that is next in frames[], whose control frame is @off bytes into cf[], runs @iseq: if
 * that has a rule, note it.
 */
__noinline int request_note(__u32 walk_id, __u64 iseq, __u32 off)
{
	const struct rbpf_request_rule *rule;
	struct walk *w = walk_state(walk_id);
	const struct ruby_control_frame *cf;

	if (!w || off > sizeof(w->cf) - RUBY_CF_SIZE_MAX)
		return 0;
	rule = walk_request_rule(w, iseq);
	if (!rule)
		return 0;
	cf = (const struct ruby_control_frame *)&w->cf[off];
	w->request_rule = *rule;
	w->request_self = cf->self;
	w->request_ep = cf->ep;
	w->request_frame = w->n_frames;
	w->request_wanted = 0;
	w->request_found = 1;
	return 1;
}

/*
 * Keep what the frame that was noted is, if one was, for request_read(): frames[] may be packed
 * before that. Of a stack that is sent, walk_complete() has looked up its method entry by then.
 */
static __always_inline void request_keep_frame(struct walk *w)
{
	const struct rbpf_frame *frame = &w->frames[w->request_frame & (RBPF_MAX_FRAMES - 1)];
	struct rbpf_ring_request *rec = &w->request;

	if (!w->request_found)
		return;
	rec->frame.iseq = frame->iseq;
	rec->frame.pc = frame->pc;
	rec->me = frame->me & ME_TAG_MASK ? 0 : frame->me; /* 0: it was not looked up */
}

#endif
