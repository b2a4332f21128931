/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Outer frames that were sent before.
 *
 * In a program that does many different things nearly each stack is another one, but mostly in its
 * innermost frames. So a definition has only those frames of a new stack that lie inside of the
 * outermost ones that were sent before, and names these by their checkpoint: the fingerprint of the
 * RBPF_CHECKPOINT outermost frames of a stack, or of two, three times so many, and so on.
 *
 * A checkpoint counts as sent when a definition with these frames is in the ring. It holds as long
 * as each of them means what it meant then: until the next major collection begins to free, if all
 * of them are old, as those of a program that has run for a while are; where the outermost frame is young, or nothing is
 * known of that, to the end of the era. But not longer than user space remembers it
 * (RBPF_CHECKPOINT_SHIFT). Where what names frames is copied (RBPF_LAYOUT_COPY) there are none.
 *
 * Compiled and called like ruby_walk.bpf.h. The shim also defines
 *
 *   checkpoint_slot(value)	pointer to where @value is if it was sent, or NULL
 */
#ifndef RBPF_CHECKPOINTS_BPF_H
#define RBPF_CHECKPOINTS_BPF_H

#include "ruby_complete.bpf.h"

#define CHECKPOINT_RUN 64 /* frames that one call takes */

/* The checkpoints of the stack in frames[], from its @done outermost frames on. */
__noinline int checkpoint_run(__u32 walk_id, __u32 done)
{
	struct walk *w = walk_state(walk_id);
	const struct rbpf_frame *f;
	__u64 hash, me;
	__u32 i, n;

	if (!w)
		return 0;
	hash = w->outer_hash;
	for (i = 0; i < CHECKPOINT_RUN; i++) {
		n = done + i;
		if (n >= w->n_frames)
			return 0;
		f = &w->frames[(w->n_frames - 1 - n) & (RBPF_MAX_FRAMES - 1)];
		/* The frame that it is to be looked up from is further out, and so in the hash. */
		me = f->iseq && f->me & ME_PENDING ? 0 : f->me;
		hash = rbpf_mix(rbpf_mix(hash, f->iseq ^ me << 1), f->pc);
		w->outer_hash = hash;
		if (n % RBPF_CHECKPOINT == RBPF_CHECKPOINT - 1)
			w->checkpoints[n / RBPF_CHECKPOINT & (RBPF_MAX_CHECKPOINTS - 1)] = hash | 1;
	}
	return 1;
}

/* Those of w->frames that leave a frame inside of them. */
static __always_inline __u32 checkpoint_count(const struct walk *w)
{
	return w->n_frames ? (w->n_frames - 1) / RBPF_CHECKPOINT : 0;
}

/* Set w->n_outer and w->outer by the innermost checkpoint that was sent. */
__noinline int checkpoint_find(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	__u64 value, *slot;
	__u32 i, n;

	if (!w)
		return 0;
	n = checkpoint_count(w);
	for (i = 0; i < RBPF_MAX_CHECKPOINTS && i < n; i++) {
		value = w->checkpoints[(n - 1 - i) & (RBPF_MAX_CHECKPOINTS - 1)];
		slot = checkpoint_slot(value);
		if (slot && *slot == value) {
			w->outer = value;
			w->n_outer = (n - i) * RBPF_CHECKPOINT;
			return 1;
		}
	}
	return 0;
}

/*
 * Find out how many of the outermost frames of the stack that was walked need not be sent. @seed
 * differs by process and by how long checkpoints hold; 0: there are none.
 */
static __always_inline void checkpoint_begin(struct walk *w, __u32 walk_id, __u64 seed)
{
	__u32 i;

	w->n_outer = 0;
	w->outer = 0;
	w->outer_hash = seed;
	if (!seed)
		return;
	for (i = 0; i < RBPF_MAX_FRAMES; i += CHECKPOINT_RUN)
		if (checkpoint_run(walk_id, i) <= 0)
			break;
	checkpoint_find(walk_id);
}

/* How many of the checkpoints are durable; walk_complete() has been called. */
static __always_inline __u32 checkpoint_end(const struct walk *w)
{
	__u32 n = w->n_durable / RBPF_CHECKPOINT, all = checkpoint_count(w);

	return n < all ? n : all;
}

/*
 * Append those that this stack is the first to have to the frames that are sent. Returns how many
 * they are.
 */
__noinline int checkpoint_append(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	__u32 i, n, at, first;
	__u64 *words;

	if (!w)
		return 0;
	words = (__u64 *)w->frames;
	first = w->n_outer / RBPF_CHECKPOINT;
	n = checkpoint_end(w);
	at = (w->n_frames - w->n_outer) * (sizeof(struct rbpf_frame) / sizeof(__u64));
	for (i = 0; i < RBPF_MAX_CHECKPOINTS && first + i < n; i++, at++) {
		barrier_var(at);
		if (at >= sizeof(w->frames) / (sizeof(__u64)))
			break;
		words[at] = w->checkpoints[(first + i) & (RBPF_MAX_CHECKPOINTS - 1)];
	}
	return i;
}

/* The stack is in the ring, and so are the checkpoints that were appended to it. */
__noinline int checkpoint_note(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	__u64 value, *slot;
	__u32 i, n;

	if (!w)
		return 0;
	n = checkpoint_end(w);
	for (i = w->n_outer / RBPF_CHECKPOINT; i < RBPF_MAX_CHECKPOINTS && i < n; i++) {
		value = w->checkpoints[i & (RBPF_MAX_CHECKPOINTS - 1)];
		slot = checkpoint_slot(value);
		if (slot)
			*slot = value;
	}
	return 0;
}

#endif
