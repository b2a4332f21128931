/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control frames of ZJIT, which are not filled in as the interpreter's are.
 *
 * Compiled and called like ruby_walk.bpf.h.
 */
#ifndef RBPF_ZJIT_FRAME_BPF_H
#define RBPF_ZJIT_FRAME_BPF_H

#include "walk_window.bpf.h"

/* Whether ZJIT is in use. */
static __always_inline bool zjit_on(struct walk *w)
{
	__u64 entry = 0;

	if (w->zjit_on == ZJIT_UNKNOWN) {
		w->zjit_on = ZJIT_OFF;
		if (!walk_read(&entry, sizeof(entry), w->layout.zjit_entry) && entry)
			w->zjit_on = ZJIT_ON;
	}
	return w->zjit_on == ZJIT_ON;
}

/*
 * Put pc and iseq of a frame of 4.1's ZJIT into w->zjit_frame: a word below where jit_return points
 * stands the address of a JITFrame, whose first words they are (zjit.h). Returns whether it is one.
 */
__noinline int walk_zjit_frame(__u32 walk_id, __u64 jit_return)
{
	struct walk *w = walk_state(walk_id);
	__u64 frame;

	if (!w || w->layout.flags & RBPF_LAYOUT_ZJIT_BARE || jit_return == ZJIT_RETURN_C_FRAME ||
	    !zjit_on(w))
		return 0;
	w->zjit_frame[0] = w->zjit_frame[1] = 0;
	if (!w->zjit_left) {
		walk_count(RBPF_CNT_READ_LIMIT);
		return 1;
	}
	w->zjit_left--;
	if (!walk_read(&frame, sizeof(frame), jit_return - 8))
		walk_read(w->zjit_frame, sizeof(w->zjit_frame), frame);
	return 1;
}

/*
 * Correct cf[0], the innermost frame, if ZJIT has pushed it but not filled it in.
 *
 * ZJIT of 4.0 pushes frames without pc, and nothing marks them: so the pc of every innermost frame
 * counts as one of compiled code, which may be stale.
 *
 * ZJIT of 4.1 makes the frame of a block that it calls the innermost one some instructions before
 * it writes jit_return (gen_invoke_block_iseq_direct(); for methods it waits). Until then
 * jit_return, pc and iseq are those of an earlier frame in that slot. A valid jit_return points to
 * the callee's part of the native stack: below its caller's, and within the stack. If it does not,
 * the frame is removed, and the time is the caller's. (A block that the VM calls for compiled code
 * has jit_return 0 and is complete.)
 */
__noinline int walk_zjit_innermost(__u32 walk_id, __u64 size)
{
	struct walk *w = walk_state(walk_id);
	__u64 *own, caller, flags;
	struct ruby_control_frame *cf;
	__u32 jit;

	if (!w || !w->layout.zjit_entry || w->cfp != w->cf_top)
		return 0;
	jit = w->layout.cf_jit_return;
	if (!jit)
		return 0;
	cf = (struct ruby_control_frame *)w->cf;
	own = (__u64 *)&w->cf[jit & (sizeof(w->cf) - 8)];
	if (w->layout.flags & RBPF_LAYOUT_ZJIT_BARE) {
		if (cf->iseq && zjit_on(w))
			*own = ZJIT_RETURN_C_FRAME;
		return 0;
	}
	if (size < 2ul * w->layout.cf_size)
		return 0;
	caller = *(const __u64 *)&w->cf[(w->layout.cf_size + jit) & (sizeof(w->cf) - 8)];
	if (caller <= ZJIT_RETURN_C_FRAME || !zjit_on(w))
		return 0;
	if (*own > ZJIT_RETURN_C_FRAME ? *own < caller && *own - 8 >= w->sp : !w->sp)
		return 0;
	if (walk_read(&flags, sizeof(flags), cf->ep) || flags != VM_FRAME_MAGIC_BLOCK)
		return 0;
	*own = 0;
	cf->iseq = 0;
	return 0;
}

#endif
