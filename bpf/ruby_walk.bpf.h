/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The Ruby stack walk.
 *
 * A Ruby thread's VM stack is one allocation: values grow up from its low end, control frames grow
 * down from its high end. Reading it one field at a time costs a helper call (about 0.1 µs) a
 * field; so both ends are copied in large pieces, control frames CF_CHUNK at a time and values in a
 * window of up to 32 KiB, and the copy is walked. A usual stack costs two reads, whatever its
 * depth.
 *
 *   vm_stack                                                       vm_stack + size * 8
 *   | values, environments  ...  ep ->|      free      |<- cfp ... control frames | dummy |
 *
 * Each frame is identified by (iseq, pc, method entry), hashed into the fingerprint of the stack as
 * it is collected. The method entry tells the class a method belongs to (an iseq can belong to
 * several), and for a C function it is all there is. It stands in the environment (ep[-2]) of the
 * method's frame, and blocks find it by following ep[-1] outwards:
 *
 *   - For a block whose enclosing environment lies on this same VM stack, the method's own frame is
 *     further down the stack and already part of the fingerprint; the lookup is put off until the
 *     stack must be sent in full (walk_complete).
 *   - If it lies in the heap (a captured block, a thread's block), its method may not be on the
 *     stack, so it is looked up at once.
 *
 * A method's ep[-2] may hold an imemo_svar that wraps the method entry ($~ and $_ of that frame).
 * To tell them apart takes a read, so method entries that were seen in this epoch are remembered,
 * per CPU.
 *
 * Versions: what differs is in struct rbpf_layout. The first words of the EC (vm_stack,
 * vm_stack_size, cfp), of a control frame (pc, sp, iseq, self, ep), the frame flags and the imemo
 * types have been the same from 2.7 to 4.1-dev (vm_core.h of each).
 *
 * The file also compiles as host C (src/ruby/walk.c, tests) against a shim that defines
 * walk_state(), walk_read() and walk_count(). Functions that the verifier should look at once, and
 * not once for each call, are global and so take only scalars (5.10 knows no other arguments),
 * finding their state by CPU.
 */
#ifndef RBPF_RUBY_WALK_BPF_H
#define RBPF_RUBY_WALK_BPF_H

#include "walk_state.bpf.h"

/* A frame of frames[] whose me is still the ep to look it up from. Both are multiples of 8. */
#define ME_PENDING  1ul
#define ME_TAG_MASK 7ul

static __always_inline __u64 hash_mix(__u64 h, __u64 v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 29);
}

/*
 * Copy the values below and up to @ep, as many as there are and fit. Downwards, because older
 * frames' environments lie below; and never above ep, where the stack may never have been touched.
 */
static __always_inline int window_move(struct walk *w, __u64 ep)
{
	__u64 hi = ep + 8, lo = w->stack_lo;
	__u64 size = hi - lo;

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
 * Single reads are what a stack can be made expensive with: they are limited, so that no target, however
 * deep or hostile, holds up a CPU for long. Frames beyond the limit have no class in their name.
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
__noinline int walk_env_read(__u32 cpu, __u64 ep)
{
	struct walk *w = walk_state(cpu);

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

static __always_inline __u64 *me_slot(struct walk *w, __u64 me)
{
	return &w->me_seen[(me >> 3 ^ me >> 13) & (ME_SLOTS - 1)];
}

/* The method entry in @x, which is one that was not seen before, or an svar around one; 0 if none.
 */
__noinline __u64 walk_me_read(__u32 cpu, __u64 x)
{
	struct walk *w = walk_state(cpu);
	__u64 imemo[2] = { 0, 0 }; /* flags, first member (an svar's cref_or_me) */
	__u64 type;

	if (!w || !x || !read_allowed(w))
		return 0;
	if (walk_read(imemo, sizeof(imemo), x))
		return 0;
	if ((imemo[0] & T_MASK) != T_IMEMO)
		return 0;
	type = imemo[0] >> IMEMO_TYPE_SHIFT & IMEMO_TYPE_MASK;
	if (type == IMEMO_MENT) {
		*me_slot(w, x) = x ^ w->epoch;
		return x;
	}
	if (type != IMEMO_SVAR)
		return 0;
	/* A cref in there is told apart by the user side, which reads what it names anyway. */
	return imemo[1] & ~ME_TAG_MASK;
}

/* The method entry behind a method frame's ep[-2]. */
static __always_inline __u64 me_unwrap(struct walk *w, __u32 cpu, __u64 x)
{
	return *me_slot(w, x) == (x ^ w->epoch) ? x : walk_me_read(cpu, x);
}

/*
 * The method entry of the frame or block whose environment is at @ep, 0 if it belongs to no method
 * (vm_insnhelper.c rb_vm_frame_method_entry, all versions): the innermost define_method block or
 * method on the way out.
 */
__noinline __u64 walk_me_lookup(__u32 cpu, __u64 ep)
{
	struct walk *w = walk_state(cpu);
	__u64 flags;
	int i;

	if (!w)
		return 0;
	for (i = 0; i < ENV_MAX_DEPTH; i++) {
		if (walk_env_read(cpu, ep))
			return 0;
		flags = w->env.flags;
		if (flags & VM_ENV_FLAG_LOCAL) {
			if ((flags & VM_FRAME_MAGIC_MASK) != VM_FRAME_MAGIC_METHOD)
				return 0;
			return me_unwrap(w, cpu, w->env.me_cref);
		}
		if (flags & VM_FRAME_FLAG_BMETHOD)
			return w->env.me_cref & ~ME_TAG_MASK;
		ep = w->env.specval & ~3ull;
	}
	walk_count(RBPF_CNT_ENV_DEPTH);
	return 0;
}

/* frames[] cannot overflow: walk_chunk() leaves out what is too much. */
static __always_inline void frame_push(struct walk *w, __u64 iseq, __u64 pc, __u64 me)
{
	struct rbpf_frame *f = &w->frames[w->n_frames & (RBPF_MAX_FRAMES - 1)];

	f->iseq = iseq;
	f->pc = pc;
	f->me = me;
	w->n_frames++;
}

/* One control frame, @off bytes into cf[]. */
static __always_inline void walk_frame(struct walk *w, __u32 cpu, __u32 off)
{
	const struct walk_cf *cf;
	__u64 me, flags, me_cref, parent;

	if (off > sizeof(w->cf) - sizeof(*cf))
		return;
	cf = (const struct walk_cf *)&w->cf[off];
	if (window_has(w, cf->ep)) {
		flags = window_word(w, cf->ep, 0);
		me_cref = window_word(w, cf->ep, 2);
	} else {
		walk_env_read(cpu, cf->ep);
		flags = w->env.flags;
		me_cref = w->env.me_cref;
	}

	if (flags & VM_FRAME_FLAG_CFRAME) {
		/* The other C frames (IFUNC: a block written in C) are not shown by Ruby either. */
		if ((flags & VM_FRAME_MAGIC_MASK) != VM_FRAME_MAGIC_CFUNC)
			return;
		if (!me_cref)
			return;
		w->hash = hash_mix(w->hash, me_cref);
		frame_push(w, 0, 0, me_cref);
		return;
	}
	/* Ruby itself shows no frame without pc: dummies, and methods not begun. */
	if (!cf->iseq || !cf->pc || (flags & VM_FRAME_MAGIC_MASK) == VM_FRAME_MAGIC_DUMMY)
		return;

	me = 0;
	if (flags & VM_ENV_FLAG_LOCAL) {
		if ((flags & VM_FRAME_MAGIC_MASK) == VM_FRAME_MAGIC_METHOD)
			me = me_unwrap(w, cpu, me_cref);
	} else if (flags & VM_FRAME_FLAG_BMETHOD) {
		me = me_cref & ~ME_TAG_MASK;
	} else {
		parent = window_has(w, cf->ep) ? window_word(w, cf->ep, 1) : w->env.specval;
		parent &= ~3ull;
		if (parent >= w->stack_lo && parent < w->stack_hi) {
			w->hash = hash_mix(hash_mix(w->hash, cf->iseq), cf->pc);
			frame_push(w, cf->iseq, cf->pc, parent | ME_PENDING);
			return;
		}
		me = parent ? walk_me_lookup(cpu, parent) : 0;
	}
	w->hash = hash_mix(hash_mix(w->hash, cf->iseq ^ me << 1), cf->pc);
	frame_push(w, cf->iseq, cf->pc, me);
}

/*
 * Read the next control frames and take them. Returns 1 if there may be more, 0 at the end, or -1
 * if they cannot be read.
 *
 * When the innermost part of frames[] is full, the middle of the stack is left out: its frames
 * are counted from the distance alone, unread, and one marker stands for them.
 */
__noinline int walk_chunk(__u32 cpu)
{
	struct walk *w = walk_state(cpu);
	__u32 i, off, stride, head, tail;
	__u64 left, size, n;

	if (!w)
		return -1;
	stride = w->layout.cf_size;
	if (w->cfp >= w->cf_end || !stride || stride > CF_MAX_SIZE)
		return 0;
	left = (w->cf_end - w->cfp) / stride;
	tail = w->max_frames / 4 - 1;
	head = w->max_frames - tail - 1;
	n = CF_CHUNK;
	if (!w->n_cut && left > tail + 1) {
		if (w->n_frames >= head) {
			w->n_cut = left - tail;
			w->cfp += (__u64)w->n_cut * stride;
			w->hash = hash_mix(w->hash, w->n_cut);
			frame_push(w, 0, w->n_cut, 0);
			left = tail;
		} else if (n > head - w->n_frames) {
			n = head - w->n_frames;
		}
	}
	if (n > left)
		n = left;
	size = n * stride;
	if (size > sizeof(w->cf) || walk_read(w->cf, size, w->cfp))
		return -1;
	for (i = 0, off = 0; i < CF_CHUNK; i++, off += stride) {
		if (i >= n)
			break;
		walk_frame(w, cpu, off);
	}
	w->cfp += size;
	return w->cfp < w->cf_end;
}

/*
 * Walk the stack of the EC at @ec into w->frames, from the innermost frame. w->layout, epoch and
 * max_frames are set by the caller. Returns enum rbpf_status.
 */
static __always_inline int walk_ec(struct walk *w, __u32 cpu, __u64 ec)
{
	__u64 words[8]; /* vm_stack, vm_stack_size, cfp, …, thread_ptr */
	__u64 th, th_ec, bytes;
	int i, r;

	w->n_frames = w->n_cut = 0;
	w->reads_left = WALK_MAX_READS;
	w->win_hi = 0;
	w->hash = w->epoch;
	if (walk_read(words, sizeof(words), ec))
		return RBPF_FAULT_EC;
	w->stack_lo = words[0];
	bytes = words[1] * 8;
	w->stack_hi = words[0] + bytes;
	w->cfp = words[2];
	/* A thread that ended leaves its EC behind with these cleared (rb_ec_clear_vm_stack). */
	if (!w->stack_lo || !w->cfp)
		return RBPF_EC_STALE;
	if (words[1] > (1ull << 32) || w->stack_hi < w->stack_lo)
		return RBPF_EC_RANGE;

	th = words[w->layout.ec_thread_ptr / 8 & 7];
	if (walk_read(&th_ec, sizeof(th_ec), th + w->layout.th_ec))
		return RBPF_FAULT_EC;
	if (th_ec != ec)
		return RBPF_EC_STALE;

	if (!w->layout.cf_size || bytes < w->layout.cf_size)
		return RBPF_EC_RANGE;
	w->cf_end = w->stack_hi - w->layout.cf_size;
	if (w->cfp < w->stack_lo || w->cfp > w->cf_end)
		return RBPF_EC_RANGE;
	if ((w->cf_end - w->cfp) % w->layout.cf_size)
		return RBPF_EC_RANGE;

	for (i = 0; i < CF_MAX_CHUNKS; i++) {
		r = walk_chunk(cpu);
		if (r < 0)
			return RBPF_FAULT_STACK;
		if (!r)
			return RBPF_OK;
	}
	return RBPF_FAULT_STACK; /* no end in sight: not a VM stack */
}

/* Look up what was put off, before frames[] is sent. */
__noinline int walk_complete(__u32 cpu, __u32 i)
{
	struct walk *w = walk_state(cpu);
	struct rbpf_frame *f;

	if (!w)
		return -1;
	f = &w->frames[i & (RBPF_MAX_FRAMES - 1)];
	if (f->iseq && f->me & ME_PENDING)
		f->me = walk_me_lookup(cpu, f->me & ~ME_PENDING);
	return 0;
}

#endif
