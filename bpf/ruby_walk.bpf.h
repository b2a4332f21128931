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
 *     stack must be sent (walk_complete()).
 *   - If it lies in the heap (a captured block, a thread's block), its method may not be on the
 *     stack, so it is looked up at once.
 *
 * A method's ep[-2] may hold an imemo_svar that wraps the method entry ($~ and $_ of that frame).
 * To tell them apart takes a read, so method entries that were seen under this seed are remembered,
 * per CPU.
 *
 * Versions: what differs is in struct rbpf_layout. The first words of the EC (vm_stack,
 * vm_stack_size, cfp), of a control frame (pc, sp, iseq, self, ep), the frame flags and the imemo
 * types have been the same from 2.7 to 4.1-dev (ruby_abi.h).
 *
 * Fibers. Each has an EC, a VM stack and a native stack of its own. The walk begins with the one
 * that runs and goes on with the fiber that resumed it, and so on, with a mark between them.
 *
 * Compiled code. YJIT and ZJIT save a frame's pc only before calls that may need it: that of the
 * innermost frame may be older (RBPF_PC_STALE), or be what an earlier frame left in that slot.
 * 4.0's ZJIT leaves jit_return as it is, so where it is in use that holds for any innermost frame.
 * 4.1's writes neither pc nor iseq: they are found through cfp->jit_return.
 *
 * The file also compiles as host C (src/ruby/walk.c, tests) against a shim that defines
 * walk_state(), walk_read(), walk_count() and walk_request_rule(). Functions that the verifier
 * should look at once, and not once for each call, are global and so take only scalars (5.10 knows
 * no other arguments), finding their state by CPU.
 */
#ifndef RBPF_RUBY_WALK_BPF_H
#define RBPF_RUBY_WALK_BPF_H

#include "request_frame.bpf.h"
#include "walk_window.bpf.h"
#include "zjit_frame.bpf.h"

/*
 * Whether an object with these flags is old, and so not freed until the next major collection: what
 * is remembered of it holds until then.
 */
static __always_inline bool is_old(const struct walk *w, __u64 flags)
{
	__u64 old = w->layout.flags & RBPF_LAYOUT_NO_AGE ? RUBY_FL_PROMOTED_BOTH : RUBY_FL_PROMOTED;

	return w->old_seed && (flags & old) == old;
}

/*
 * Whether old objects are known, and none of them is about to be freed: what a major collection
 * looks for as it marks.
 */
static __always_inline bool old_ones_stay(const struct walk *w)
{
	return w->old_seed && (w->gc.flags & RUBY_GC_MODE_MASK) != RUBY_GC_MARKING;
}

/* Whether @seen, of a table of what is remembered, is of @addr, and that is old. */
static __always_inline bool was_old(const struct walk *w, __u64 seen, __u64 addr)
{
	return w->old_seed && seen == (addr ^ w->old_seed);
}

/* Whether @seen, of such a table, is of @addr as long as this seed lasts, or of the old one. */
static __always_inline bool is_seen(const struct walk *w, __u64 seen, __u64 addr)
{
	return seen == (addr ^ w->seed) || was_old(w, seen, addr);
}

static __always_inline __u32 me_slot(const struct walk *w, __u64 me)
{
	return (me >> 3 ^ me >> 13 ^ w->spread) & (ME_SLOTS - 1);
}

/*
 * @x is the ep[-2] of a method's frame: a method entry that is not remembered, or an svar that
 * points to one. Returns the method entry, or 0 if there is none.
 */
__noinline __u64 walk_me_read(__u32 walk_id, __u64 x)
{
	struct walk *w = walk_state(walk_id);
	__u64 imemo[2] = { 0, 0 }; /* flags, first member (an svar's cref_or_me) */
	__u64 type;

	if (!w || !x || !read_allowed(w))
		return 0;
	if (walk_read(imemo, sizeof(imemo), x))
		return 0;
	type = imemo[0] & RUBY_IMEMO_MASK;
	if (type == RUBY_IMEMO_MENT) {
		w->mes[me_slot(w, x)].seen = x ^ (is_old(w, imemo[0]) ? w->old_seed : w->seed);
		return x;
	}
	if (type != RUBY_IMEMO_SVAR)
		return 0;
	/*
	 * It may be a cref instead. User space finds out, for it reads each method entry that it
	 * names.
	 */
	return imemo[1] & ~ME_TAG_MASK;
}

/* The method entry behind a method frame's ep[-2]. */
static __always_inline __u64 me_unwrap(struct walk *w, __u32 walk_id, __u64 x)
{
	return is_seen(w, w->mes[me_slot(w, x)].seen, x) ? x : walk_me_read(walk_id, x);
}

/*
 * The same for the control frame at @cfp. What is remembered of its place is looked at first: the
 * outer frames of a program's threads are mostly the same, and at the same distance from where the
 * stack begins, so that this is one part of memory for all of them; the table is far away.
 */
static __always_inline __u64 me_unwrap_near(struct walk *w, __u32 walk_id, __u64 x, __u64 cfp)
{
	__u64 *near = &w->me_near[(w->cf_end - cfp) >> ME_NEAR_SHIFT & (ME_NEAR - 1)], me;

	if (is_seen(w, *near, x))
		return x;
	me = me_unwrap(w, walk_id, x);
	if (me == x)
		*near = w->mes[me_slot(w, x)].seen;
	return me;
}

/*
 * The method entry of the frame or block whose environment is at @ep, 0 if it belongs to no method
 * (vm_insnhelper.c rb_vm_frame_method_entry, all versions): the innermost define_method block or
 * method on the way out.
 */
__noinline __u64 walk_me_lookup(__u32 walk_id, __u64 ep)
{
	struct walk *w = walk_state(walk_id);
	__u64 flags;
	int i;

	if (!w)
		return 0;
	for (i = 0; i < ENV_MAX_DEPTH; i++) {
		if (walk_env_read(walk_id, ep))
			return 0;
		flags = w->env.flags;
		if (flags & VM_ENV_FLAG_LOCAL) {
			if ((flags & VM_FRAME_MAGIC_MASK) != VM_FRAME_MAGIC_METHOD)
				return 0;
			return me_unwrap(w, walk_id, w->env.me_cref);
		}
		if (flags & VM_FRAME_FLAG_BMETHOD)
			return w->env.me_cref & ~ME_TAG_MASK;
		ep = w->env.specval & ~GC_GUARDED_PTR_BITS;
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

/*
 * The frame is not shown. If it is the outermost one that an activation of rb_vm_exec() runs
 * (FINISH), the frame that was taken last now is.
 */
static __always_inline void frame_skip(struct walk *w, __u64 flags)
{
	struct rbpf_frame *last = &w->frames[(w->n_frames - 1) & (RBPF_MAX_FRAMES - 1)];

	if (!(flags & VM_FRAME_FLAG_FINISH) || w->n_frames == w->first_frame ||
	    (flags & VM_FRAME_MAGIC_MASK) == VM_FRAME_MAGIC_DUMMY || (!last->iseq && !last->me))
		return;
	last->pc |= RBPF_PC_FINISH;
	w->hash = rbpf_mix(w->hash, RBPF_PC_FINISH);
}

/* A frame of code in C: only that of a method is shown, as Ruby does it; no IFUNC, a block in C. */
static __always_inline void walk_c_frame(struct walk *w, __u64 flags, __u64 me)
{
	if ((flags & VM_FRAME_MAGIC_MASK) != VM_FRAME_MAGIC_CFUNC || !me) {
		frame_skip(w, flags);
		return;
	}
	w->hash = rbpf_mix(w->hash, me);
	frame_push(w, 0, 0, me);
}

/*
 * Take the frame at @cf, which is @off bytes into cf[] and whose environment, with these @flags and
 * @me_cref, is in the window or in w->env.
 */
static __always_inline void walk_ruby_frame(struct walk *w, __u32 walk_id, __u32 off,
					    const struct ruby_control_frame *cf, __u64 iseq,
					    __u64 pc, __u64 flags, __u64 me_cref)
{
	__u64 parent, me = 0;

	if (flags & VM_ENV_FLAG_LOCAL) {
		if ((flags & VM_FRAME_MAGIC_MASK) == VM_FRAME_MAGIC_METHOD)
			me = me_unwrap_near(w, walk_id, me_cref, w->cfp + off);
	} else if (flags & VM_FRAME_FLAG_BMETHOD) {
		me = me_cref & ~ME_TAG_MASK;
	} else {
		parent = window_has(w, cf->ep) ? window_word(w, cf->ep, 1) : w->env.specval;
		parent &= ~3ull;
		if (parent >= w->stack_lo && parent < w->stack_hi) {
			w->hash = rbpf_mix(rbpf_mix(w->hash, iseq), pc);
			frame_push(w, iseq, pc, parent | ME_PENDING);
			return;
		}
		me = parent ? walk_me_lookup(walk_id, parent) : 0;
	}
	w->hash = rbpf_mix(rbpf_mix(w->hash, iseq ^ me << 1), pc);
	frame_push(w, iseq, pc, me);
}

/* One control frame, @off bytes into cf[]; @jit is the offset of jit_return in it, 0 if none. */
static __always_inline void walk_frame(struct walk *w, __u32 walk_id, __u32 off, __u32 jit)
{
	__u64 flags, me_cref, pc, iseq, jit_return = 0;
	const struct ruby_control_frame *cf;

	if (off > sizeof(w->cf) - RUBY_CF_SIZE_MAX)
		return;
	cf = (const struct ruby_control_frame *)&w->cf[off];
	if (window_has(w, cf->ep)) {
		flags = window_word(w, cf->ep, 0);
		me_cref = window_word(w, cf->ep, 2);
	} else {
		walk_env_read(walk_id, cf->ep);
		flags = w->env.flags;
		me_cref = w->env.me_cref;
	}
	if (flags & VM_FRAME_FLAG_CFRAME) {
		walk_c_frame(w, flags, me_cref);
		return;
	}
	pc = cf->pc;
	iseq = cf->iseq;
	if (jit)
		jit_return = *(const __u64 *)&w->cf[(off + jit) & (sizeof(w->cf) - 8)];
	if (jit_return && w->layout.zjit_entry && walk_zjit_frame(walk_id, jit_return)) {
		pc = w->zjit_frame[0];
		iseq = w->zjit_frame[1];
	}
	pc &= ~RBPF_PC_FLAGS;
	if (jit_return && w->n_frames == w->first_frame)
		pc |= RBPF_PC_STALE;
	/* Ruby itself shows no frame without pc: dummies, and methods not begun. */
	if (!iseq || !pc || (flags & VM_FRAME_MAGIC_MASK) == VM_FRAME_MAGIC_DUMMY) {
		frame_skip(w, flags);
		return;
	}
	if (flags & VM_FRAME_FLAG_FINISH)
		pc |= RBPF_PC_FINISH;
	if (jit_return > ZJIT_RETURN_C_FRAME)
		pc |= RBPF_PC_JIT;
	if (w->request_wanted && request_may_be(w, iseq))
		request_note(walk_id, iseq, off);
	walk_ruby_frame(w, walk_id, off, cf, iseq, pc, flags, me_cref);
}

/*
 * The next CF_RUN control frames of cf[], of which @size bytes are filled, from byte @off on. A
 * global function, which the verifier looks at once: all of cf[] in one loop takes it ten times as
 * long, and a call for each frame costs the walk.
 */
__noinline int walk_run(__u32 walk_id, __u32 off, __u32 size)
{
	struct walk *w = walk_state(walk_id);
	__u32 i, jit, stride;

	if (!w)
		return -1;
	stride = w->layout.cf_size;
	jit = w->layout.cf_jit_return;
	for (i = 0; i < CF_RUN && off < size; i++, off += stride)
		walk_frame(w, walk_id, off, jit);
	return 0;
}

/*
 * Read the next control frames and take them. Returns 1 if there may be more, 0 at the end, or -1
 * if they cannot be read.
 *
 * When the part of frames[] for the innermost frames is full, the walk skips the middle of the
 * stack. It does not read the skipped frames: their number follows from their size in memory, and
 * one marker stands for them.
 */
__noinline int walk_chunk(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	__u32 i, off, stride, room, head, tail;
	__u64 left, size, n;

	if (!w)
		return -1;
	stride = w->layout.cf_size;
	if (w->cfp >= w->cf_end || !stride || stride > RUBY_CF_SIZE_MAX)
		return 0;
	left = (w->cf_end - w->cfp) / stride;
	room = w->max_frames - w->first_frame;
	tail = room / 4 - 1;
	head = w->max_frames - tail - 1;
	n = CF_CHUNK;
	if (!w->n_cut && left > tail + 1) {
		if (w->n_frames >= head) {
			w->n_cut = left - tail;
			w->cfp += (__u64)w->n_cut * stride;
			w->hash = rbpf_mix(w->hash, w->n_cut);
			frame_push(w, 0, w->n_cut, 0);
			left = tail;
		} else if (n > head - w->n_frames) {
			n = head - w->n_frames;
		}
	}
	if (n > left)
		n = left;
	size = n * stride;
	barrier_var(size);
	if (size > sizeof(w->cf) || walk_read(w->cf, size, w->cfp))
		return -1;
	walk_zjit_innermost(walk_id, size);
	for (i = 0, off = 0; i < CF_CHUNK / CF_RUN && off < size; i++, off += CF_RUN * stride)
		walk_run(walk_id, off, size);
	w->cfp += size;
	return w->cfp < w->cf_end;
}

/* Read the EC at @ec into w->ec_words and find its VM stack. Returns enum rbpf_status. */
static __always_inline int ec_read(struct walk *w, __u64 ec)
{
	__u64 bytes;

	w->ec = ec;
	if (walk_read(w->ec_words, sizeof(w->ec_words), ec))
		return RBPF_FAULT_EC;
	w->stack_lo = w->ec_words[RUBY_EC_VM_STACK];
	bytes = w->ec_words[RUBY_EC_VM_STACK_SIZE] * 8;
	w->stack_hi = w->stack_lo + bytes;
	w->cfp = w->ec_words[RUBY_EC_CFP];
	w->win_hi = 0;
	/* A thread that ended leaves its EC behind with these cleared (rb_ec_clear_vm_stack). */
	if (!w->stack_lo || !w->cfp)
		return RBPF_EC_STALE;
	if (w->ec_words[RUBY_EC_VM_STACK_SIZE] > RUBY_STACK_WORDS_MAX || w->stack_hi < w->stack_lo)
		return RBPF_EC_RANGE;
	if (!w->layout.cf_size || bytes < w->layout.cf_size)
		return RBPF_EC_RANGE;
	w->cf_end = w->stack_hi - w->layout.cf_size;
	if (w->cfp < w->stack_lo || w->cfp > w->cf_end)
		return RBPF_EC_RANGE;
	if ((w->cf_end - w->cfp) % w->layout.cf_size)
		return RBPF_EC_RANGE;
	return RBPF_OK;
}

/* The thread of the EC that was read, whose current EC it must be. Returns enum rbpf_status. */
static __always_inline int thread_read(struct walk *w)
{
	__u32 ec = w->layout.th_ec, ractor = w->layout.th_ractor;
	__u32 first = ractor && ractor < ec ? ractor : ec;

	w->th = ec_word(w, w->layout.ec_thread_ptr);
	if (walk_read(w->th_words, sizeof(w->th_words), w->th + first))
		return RBPF_FAULT_EC;
	w->th_ec = w->th_words[(ec - first) / 8 & (RUBY_TH_WORDS - 1)];
	w->th_ractor = ractor ? w->th_words[(ractor - first) / 8 & (RUBY_TH_WORDS - 1)] : 0;
	return w->th_ec == w->ec ? RBPF_OK : RBPF_EC_STALE;
}

/*
 * RBPF_LAYOUT_CFP_FIRST: whether the innermost frame has been written. If not, its slot still holds
 * an earlier frame, whose ep does not lie above the values of the caller. A function of its own, so
 * that these two frames are not on the BPF stack during the whole walk.
 */
__noinline int walk_frame_begun(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	struct ruby_control_frame own, caller;
	__u64 flags;

	if (!w || walk_read(&own, sizeof(own), w->cfp) ||
	    walk_read(&flags, sizeof(flags), own.ep) ||
	    walk_read(&caller, sizeof(caller), w->cfp + w->layout.cf_size))
		return 0;
	if ((flags & (VM_FRAME_MAGIC_UNUSED | RUBY_FIXNUM_FLAG)) != RUBY_FIXNUM_FLAG ||
	    !(flags & VM_FRAME_MAGIC_MASK & ~RUBY_FIXNUM_FLAG))
		return 0;
	if (own.ep < w->stack_lo || own.ep >= w->stack_hi)
		return !!(flags & VM_ENV_FLAG_ESCAPED);
	return own.ep >= caller.sp + 16 && own.ep < w->cfp;
}

/* Walk the control frames of the EC that was read. Returns enum rbpf_status. */
__noinline int walk_frames(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	int i, r;

	if (!w)
		return RBPF_FAULT_STACK;
	w->first_frame = w->n_frames;
	w->n_cut = 0;
	if (w->layout.flags & RBPF_LAYOUT_CFP_FIRST && w->cfp < w->cf_end &&
	    !walk_frame_begun(walk_id))
		w->cfp += w->layout.cf_size;
	w->cf_top = w->cfp;
	for (i = 0; i < WALK_MAX_CHUNKS && w->chunks_left; i++) {
		w->chunks_left--;
		r = walk_chunk(walk_id);
		if (r < 0)
			return RBPF_FAULT_STACK;
		if (!r)
			return RBPF_OK;
	}
	walk_count(RBPF_CNT_READ_LIMIT);
	return RBPF_FAULT_STACK; /* no end in sight: not a VM stack */
}

/*
 * Walk the fiber that resumed the one just walked. Returns 1 if it was walked, and 0 if there is
 * none or if it is left out: because it is the @last that is looked at, or because frames[] is
 * full. If there is room for it, a marker then stands for its frames.
 */
__noinline int walk_resumer(__u32 walk_id, __u32 last)
{
	struct walk *w = walk_state(walk_id);
	__u64 fiber, prev = 0;

	if (!w || !w->layout.fiber_prev || !w->layout.fiber_ec)
		return 0;
	fiber = ec_word(w, w->layout.ec_fiber_ptr);
	if (!fiber || walk_read(&prev, sizeof(prev), fiber + w->layout.fiber_prev) || !prev)
		return 0;
	if (ec_read(w, prev + w->layout.fiber_ec) || ec_word(w, w->layout.ec_thread_ptr) != w->th)
		return 0;
	if (w->n_frames + 2 > w->max_frames) {
		walk_count(RBPF_CNT_FIBER_DEPTH);
		return 0;
	}
	w->hash = rbpf_mix(w->hash, 1);
	frame_push(w, 0, 0, 0);
	if (last || w->n_frames + RBPF_MIN_FRAMES > w->max_frames) {
		walk_count(RBPF_CNT_FIBER_DEPTH);
		frame_push(w, 0, (w->cf_end - w->cfp) / w->layout.cf_size ?: 1, 0);
		return 0;
	}
	w->sp = 0;
	walk_frames(walk_id);
	return 1;
}

/*
 * Walk the stack of the EC that was read into w->frames, from the innermost frame. The caller has
 * set w->layout, seed, old_seed, max_frames and sp, and called ec_read() and thread_read(). Returns
 * enum rbpf_status.
 */
static __always_inline int walk_stack(struct walk *w, __u32 walk_id)
{
	int i, r;

	w->n_frames = w->checkpoints.n_outer = 0;
	walk_may_read(w);
	w->zjit_on = ZJIT_UNKNOWN;
	w->hash = w->seed;
	w->cf_own = w->cfp;
	r = walk_frames(walk_id);
	if (r)
		return r;
	for (i = 0; i <= FIBER_MAX_DEPTH; i++)
		if (walk_resumer(walk_id, i == FIBER_MAX_DEPTH) <= 0)
			break;
	return RBPF_OK;
}

/* Read the EC at @ec and walk its stack. */
static __always_inline int walk_ec(struct walk *w, __u32 walk_id, __u64 ec)
{
	int r;

	w->n_frames = 0;
	r = ec_read(w, ec);
	if (!r)
		r = thread_read(w);
	return r ? r : walk_stack(w, walk_id);
}

#endif
