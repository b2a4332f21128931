/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Outer frames that were sent before.
 *
 * In a program that does many different things nearly each stack is another one, but mostly in its
 * innermost frames. So a definition has only those frames of a new stack that lie inside of the
 * outermost ones that were sent before, and names these by their checkpoint: the fingerprint of the
 * RBPF_CHECKPOINT outermost frames of a stack, or of two, three times so many, and so on. Ruby and
 * native stacks have their own, which are made one after the other in the same room.
 *
 * A checkpoint counts as sent when a definition with these frames is in the ring. Of a Ruby stack
 * it holds as long as each of them means what it meant then: until the next major collection begins
 * to free, if all of them are old, as those of a program that has run for a while are; where the
 * outermost frame is young, or nothing is known of that, to the end of the era. Where what names
 * frames is copied (RBPF_LAYOUT_COPY) there are none. Of a native stack it holds as long as the
 * process runs the same program: when its code changes, user space names the words again. No
 * checkpoint holds longer than user space remembers it (RBPF_CHECKPOINT_SHIFT,
 * RBPF_NATIVE_SHIFT).
 *
 * Compiled and called like ruby_walk.bpf.h. The shim also defines
 *
 *   checkpoint_slot(i)	pointer to number @i of RBPF_SENT_SLOTS checkpoints, or NULL
 */
#ifndef RBPF_CHECKPOINTS_BPF_H
#define RBPF_CHECKPOINTS_BPF_H

#include "ruby_complete.bpf.h"

#define CHECKPOINT_RUN	64     /* frames that one call takes */
#define CHECKPOINT_NEAR 512ull /* places for those of stacks with the same outermost frames */

/* Frame @n from the outermost one inwards comes next; @hash is that of the frames up to it. */
static __always_inline void checkpoint_take(struct walk_checkpoints *c, __u32 n, __u64 hash)
{
	c->hash = hash;
	if (n % RBPF_CHECKPOINT == RBPF_CHECKPOINT - 1)
		c->v[n / RBPF_CHECKPOINT & (RBPF_MAX_CHECKPOINTS - 1)] = hash | 1;
}

/* The checkpoints of the stack in frames[], from its @done outermost frames on. */
__noinline int checkpoint_run(__u32 walk_id, __u32 done)
{
	struct walk *w = walk_state(walk_id);
	const struct rbpf_frame *f;
	__u64 hash, me;
	__u32 i, n;

	if (!w)
		return 0;
	hash = w->checkpoints.hash;
	for (i = 0; i < CHECKPOINT_RUN; i++) {
		n = done + i;
		if (n >= w->n_frames)
			return 0;
		f = &w->frames[(w->n_frames - 1 - n) & (RBPF_MAX_FRAMES - 1)];
		/* The frame that it is to be looked up from is further out, and so in the hash. */
		me = f->iseq && f->me & ME_PENDING ? 0 : f->me;
		hash = rbpf_mix(rbpf_mix(hash, f->iseq ^ me << 1), f->pc);
		checkpoint_take(&w->checkpoints, n, hash);
	}
	return 1;
}

/* The same of the native stack. */
__noinline int checkpoint_native_run(__u32 walk_id, __u32 done)
{
	struct walk *w = walk_state(walk_id);
	__u64 hash;
	__u32 i, n;

	if (!w)
		return 0;
	hash = w->checkpoints.hash;
	for (i = 0; i < CHECKPOINT_RUN; i++) {
		n = done + i;
		if (n >= w->native.n_frames)
			return 0;
		hash = rbpf_mix(
			hash, w->native.frames[(w->native.n_frames - 1 - n) & (NATIVE_FRAMES - 1)]);
		checkpoint_take(&w->checkpoints, n, hash);
	}
	return 1;
}

/*
 * Where @value is if it was sent. The checkpoints of stacks with the same outermost frames are
 * close together in memory, as one look-up is followed by others.
 */
static __always_inline __u64 *checkpoint_at(const struct walk_checkpoints *c, __u64 value)
{
	__u64 i = c->v[0] & ~(CHECKPOINT_NEAR - 1);

	i |= value >> 1 & (CHECKPOINT_NEAR - 1); /* its lowest bit is always set */
	return checkpoint_slot(i & (RBPF_SENT_SLOTS - 1));
}

/* Set n_outer and outer by the innermost checkpoint that was sent. */
__noinline int checkpoint_find(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	struct walk_checkpoints *c;
	__u64 value, *slot;
	__u32 i;

	if (!w)
		return 0;
	c = &w->checkpoints;
	for (i = 0; i < RBPF_MAX_CHECKPOINTS && i < c->n; i++) {
		value = c->v[(c->n - 1 - i) & (RBPF_MAX_CHECKPOINTS - 1)];
		slot = checkpoint_at(c, value);
		if (slot && *slot == value) {
			c->outer = value;
			c->n_outer = (c->n - i) * RBPF_CHECKPOINT;
			return 1;
		}
	}
	return 0;
}

static __always_inline void checkpoint_none(struct walk_checkpoints *c, __u64 seed, __u32 n_frames)
{
	c->outer = 0;
	c->n_outer = 0;
	c->hash = seed;
	c->n = seed && n_frames ? (n_frames - 1) / RBPF_CHECKPOINT : 0;
	c->n_hold = 0;
}

/*
 * Find out how many of the outermost frames of the stack that was walked need not be sent. @seed
 * differs by process and by how long checkpoints hold; 0: there are none.
 */
static __always_inline void checkpoint_begin(struct walk *w, __u32 walk_id, __u64 seed)
{
	__u32 i;

	checkpoint_none(&w->checkpoints, seed, w->n_frames);
	if (!seed)
		return;
	for (i = 0; i < RBPF_MAX_FRAMES; i += CHECKPOINT_RUN)
		if (checkpoint_run(walk_id, i) <= 0)
			break;
	checkpoint_find(walk_id);
}

/*
 * The same of the native stack, of which all frames are durable. One that ends for another reason
 * has another outermost frame.
 */
static __always_inline void checkpoint_begin_native(struct walk *w, __u32 walk_id, __u64 seed)
{
	__u32 i;

	checkpoint_none(&w->checkpoints, rbpf_mix(seed, ~(__u64)w->native.end) | 1,
			w->native.n_frames);
	w->checkpoints.n_hold = w->checkpoints.n;
	for (i = 0; i < NATIVE_FRAMES; i += CHECKPOINT_RUN)
		if (checkpoint_native_run(walk_id, i) <= 0)
			break;
	checkpoint_find(walk_id);
}

/* Which checkpoints of the Ruby stack hold; walk_complete() has been called. */
static __always_inline void checkpoint_hold(struct walk *w)
{
	__u32 n = w->n_durable / RBPF_CHECKPOINT;

	w->checkpoints.n_hold = n < w->checkpoints.n ? n : w->checkpoints.n;
}

/*
 * Of v[], the first one that holds and was not sent: those up to n_hold are sent with this stack.
 */
static __always_inline __u32 checkpoint_first(const struct walk_checkpoints *c)
{
	return c->n_outer / RBPF_CHECKPOINT;
}

/*
 * Append those that this stack is the first to have to the words of the native stack that are sent.
 * Returns how many they are.
 */
__noinline int checkpoint_append_native(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	__u32 i, n, at, first;

	if (!w)
		return 0;
	first = checkpoint_first(&w->checkpoints);
	n = w->checkpoints.n_hold;
	at = w->native.n_frames - w->checkpoints.n_outer;
	for (i = 0; i < RBPF_MAX_CHECKPOINTS && first + i < n; i++, at++)
		w->native.frames[at & (NATIVE_FRAMES - 1)] =
			w->checkpoints.v[(first + i) & (RBPF_MAX_CHECKPOINTS - 1)];
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
	n = w->checkpoints.n_hold;
	for (i = checkpoint_first(&w->checkpoints); i < RBPF_MAX_CHECKPOINTS && i < n; i++) {
		value = w->checkpoints.v[i & (RBPF_MAX_CHECKPOINTS - 1)];
		slot = checkpoint_at(&w->checkpoints, value);
		if (slot)
			*slot = value;
	}
	return 0;
}

#endif
