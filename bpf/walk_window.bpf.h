/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the Ruby walk reads of a process: the window of copied values, in which most environments
 * are, and single reads, of which it may make so many.
 *
 * Compiled and called like ruby_walk.bpf.h.
 */
#ifndef RBPF_WALK_WINDOW_BPF_H
#define RBPF_WALK_WINDOW_BPF_H

#include "walk_state.bpf.h"

/* At the start of a walk. */
static __always_inline void walk_may_read(struct walk *w)
{
	w->reads_left = WALK_MAX_READS;
	w->windows_left = WALK_MAX_WINDOWS;
	w->chunks_left = WALK_MAX_CHUNKS;
	w->zjit_left = WALK_MAX_ZJIT;
}

/*
 * Copy the values below and up to @ep, as many as there are and fit. Downwards, because older
 * frames' environments lie below; and never above ep, where the stack may never have been touched.
 * A target could have each frame's ep so that the window has to be moved: after WALK_MAX_WINDOWS
 * times its environments are read one by one, as far as read_allowed() allows that.
 */
static __always_inline int window_move(struct walk *w, __u64 ep)
{
	__u64 hi = ep + 8, lo = w->stack_lo;
	__u64 size = hi - lo;

	if (!w->windows_left)
		return -1;
	w->windows_left--;
	w->win_hi = 0;
	if (size > sizeof(w->win)) {
		lo = hi - sizeof(w->win);
		size = sizeof(w->win);
	}
	if (walk_read(w->win, size, lo))
		return -1;
	w->win_lo = lo;
	w->win_hi = hi;
	return 0;
}

/* Whether ep[-2] to ep[0] are in the window. */
static __always_inline bool window_has(const struct walk *w, __u64 ep)
{
	return ep >= w->win_lo + 16 && ep < w->win_hi;
}

/* Word @i of the environment at @ep, which must be in the window: 0 for ep[0], 1 for ep[-1], … */
static __always_inline __u64 window_word(const struct walk *w, __u64 ep, __u32 i)
{
	return w->win[((ep - w->win_lo) / 8 - i) & (WINDOW_WORDS - 1)];
}

/*
 * A target could make a walk expensive with many single reads. So their number is limited, and no
 * stack, however deep or hostile, keeps a CPU busy for long. Frames beyond the limit have no class
 * in their name.
 */
static __always_inline bool read_allowed(struct walk *w)
{
	if (w->reads_left) {
		w->reads_left--;
		return true;
	}
	walk_count(RBPF_CNT_READ_LIMIT);
	return false;
}

/*
 * Fetch the environment at @ep into w->env: from the window, which is moved there if ep lies in the
 * VM stack, or by a read of its own if it is in the heap. Returns 0, or -1 if it cannot be read.
 */
__noinline int walk_env_read(__u32 walk_id, __u64 ep)
{
	struct walk *w = walk_state(walk_id);

	if (!w)
		return -1;
	if (ep >= w->stack_lo + 16 && ep < w->stack_hi &&
	    (window_has(w, ep) || !window_move(w, ep))) {
		w->env.flags = window_word(w, ep, 0);
		w->env.specval = window_word(w, ep, 1);
		w->env.me_cref = window_word(w, ep, 2);
		return 0;
	}
	if (!read_allowed(w) || walk_read(&w->env, sizeof(w->env), ep - 16)) {
		w->env.flags = w->env.specval = w->env.me_cref = 0;
		walk_count(RBPF_CNT_ENV_FAULT);
		return -1;
	}
	return 0;
}

#endif
