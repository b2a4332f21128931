/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is sent of a Ruby stack: its frames that were not sent before, as rbpf_frame_words.h has
 * them, and the checkpoints behind them. They take the place of frames[].
 *
 * Compiled and called like ruby_walk.bpf.h.
 */
#ifndef RBPF_FRAME_WORDS_BPF_H
#define RBPF_FRAME_WORDS_BPF_H

#include "checkpoints.bpf.h"
#include "rbpf_frame_words.h"
#include "request_frame.bpf.h"

#define PACK_RUN    64 /* frames that one call packs */
#define STACK_WORDS (sizeof(((struct walk *)0)->frames) / (sizeof(__u64)))

/*
 * Pack frame @i behind the w->n_words words that there are. No frame is overwritten before it is
 * packed, as none has more words than before.
 */
__noinline int stack_pack_frame(__u32 walk_id, __u32 i)
{
	struct walk *w = walk_state(walk_id);
	__u64 packed[RBPF_FRAME_WORDS], *words;
	__u32 k, n, at;

	if (!w)
		return 0;
	words = (__u64 *)w->frames;
	at = w->n_words;
	n = rbpf_frame_pack(&w->frames[i & (RBPF_MAX_FRAMES - 1)], packed);
	for (k = 0; k < RBPF_FRAME_WORDS; k++, at++) {
		barrier_var(at);
		if (k >= n || at >= STACK_WORDS)
			break;
		words[at] = packed[k];
	}
	w->n_words = at;
	return 0;
}

/* From the @done-th frame that is sent outwards, the next PACK_RUN of them. */
__noinline int stack_pack_run(__u32 walk_id, __u32 done)
{
	struct walk *w = walk_state(walk_id);
	__u32 i;

	if (!w)
		return 0;
	for (i = 0; i < PACK_RUN; i++) {
		if (done + i >= w->n_frames - w->checkpoints.n_outer)
			return 0;
		stack_pack_frame(walk_id, done + i);
	}
	return 1;
}

/* Append the checkpoints that this stack is the first to have. Returns how many they are. */
__noinline int stack_append_checkpoints(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	__u32 i, n, at, first;
	__u64 *words;

	if (!w)
		return 0;
	words = (__u64 *)w->frames;
	first = checkpoint_first(&w->checkpoints);
	n = w->checkpoints.n_hold;
	at = w->n_words;
	for (i = 0; i < RBPF_MAX_CHECKPOINTS && first + i < n; i++, at++) {
		barrier_var(at);
		if (at >= STACK_WORDS)
			break;
		words[at] = w->checkpoints.v[(first + i) & (RBPF_MAX_CHECKPOINTS - 1)];
	}
	w->n_words = at;
	return i;
}

/*
 * Put what is sent into w->n_words words at frames[], which are no frames any more. walk_complete()
 * has been called. Returns how many of the last ones are checkpoints.
 */
static __always_inline __u32 stack_pack(struct walk *w, __u32 walk_id)
{
	__u32 i;

	request_keep_frame(w);
	w->n_words = 0;
	for (i = 0; i < RBPF_MAX_FRAMES; i += PACK_RUN)
		if (stack_pack_run(walk_id, i) <= 0)
			break;
	checkpoint_hold(w);
	return stack_append_checkpoints(walk_id);
}

#endif
