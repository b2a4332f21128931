/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The same walk in the plainest way: one word at a time, no window, no chunks, nothing remembered
 * and nothing put off. What bpf/ruby_walk.bpf.h says of any memory must agree with it.
 *
 * It does not cut: it gives the innermost frames. Include walk_host.h before.
 */
#ifndef RBPF_TESTS_WALK_NAIVE_H
#define RBPF_TESTS_WALK_NAIVE_H

#include "support/ruby_image.h"

struct naive {
	const struct memory *mem;
	const struct rbpf_layout *layout;
	struct rbpf_frame *frames;
	uint32_t n_frames, room;
	/*
	 * Met: addresses that no Ruby has, which the windowed walk may round, or frames that cannot
	 * be read, which cost it the others of their chunk.
	 */
	bool odd;

	/* of the fiber that is walked */
	uint64_t lo, hi, cfp, end;
	uint32_t first_frame;
};

static inline bool naive_word(struct naive *n, uint64_t addr, uint64_t *ret)
{
	n->odd |= addr % 8 != 0;
	*ret = 0;
	return !memory_read_u64(n->mem, addr, ret);
}

/* ep[-2], ep[-1] and ep[0]: all, or zeroes. */
static inline bool naive_env(struct naive *n, uint64_t ep, uint64_t *me, uint64_t *spec,
			     uint64_t *flags)
{
	if (naive_word(n, ep - 16, me) && naive_word(n, ep - 8, spec) && naive_word(n, ep, flags))
		return true;
	*me = *spec = *flags = 0;
	return false;
}

static inline uint64_t naive_unwrap(struct naive *n, uint64_t x)
{
	uint64_t head[2] = { 0 };

	if (!x || memory_read(n->mem, x, head, sizeof(head)) || (head[0] & 0x1f) != IMAGE_T_IMEMO)
		return 0;
	if ((head[0] >> 12 & 0xf) == IMAGE_MENT)
		return x;
	return (head[0] >> 12 & 0xf) == IMAGE_SVAR ? head[1] & ~7ull : 0;
}

static inline uint64_t naive_me(struct naive *n, uint64_t ep, int depth)
{
	uint64_t me, spec, flags;

	if (depth == ENV_MAX_DEPTH || !naive_env(n, ep, &me, &spec, &flags))
		return 0;
	if (flags & IMAGE_LOCAL)
		return (flags & 0x7fff0001) == IMAGE_METHOD ? naive_unwrap(n, me) : 0;
	if (flags & IMAGE_BMETHOD_FRAME)
		return me & ~7ull;
	return naive_me(n, spec & ~3ull, depth + 1);
}

static inline bool naive_zjit_on(struct naive *n)
{
	uint64_t on;

	return n->layout->zjit_entry && naive_word(n, n->layout->zjit_entry, &on) && on;
}

static inline bool naive_bare(const struct naive *n)
{
	return n->layout->flags & RBPF_LAYOUT_ZJIT_BARE;
}

/* Of a frame that says where ZJIT keeps its pc and iseq, these. */
static inline void naive_zjit(struct naive *n, uint64_t jit_return, uint64_t *pc, uint64_t *iseq)
{
	uint64_t frame, words[2] = { 0 };

	if (jit_return == 1 || naive_bare(n) || !naive_zjit_on(n))
		return;
	*pc = *iseq = 0;
	if (memory_read_u64(n->mem, jit_return - 8, &frame) ||
	    memory_read(n->mem, frame, words, sizeof(words)))
		return;
	*pc = words[0];
	*iseq = words[1];
}

/* 2.7: whether the frame at @cfp, an innermost one, is one that fits where it stands. */
static inline bool naive_begun(struct naive *n, uint64_t cfp)
{
	uint64_t own[5], caller[5], flags;

	if (memory_read(n->mem, cfp, own, sizeof(own)) || memory_read_u64(n->mem, own[4], &flags) ||
	    memory_read(n->mem, cfp + n->layout->cf_size, caller, sizeof(caller)))
		return false;
	if (!(flags & 1) || flags >> 31 & 1 || !(flags & 0x7fff0000))
		return false;
	if (own[4] < n->lo || own[4] >= n->hi)
		return flags & IMAGE_ESCAPED;
	return own[4] >= caller[1] + 16 && own[4] < cfp;
}

/* 4.1: whether the innermost frame, at @cfp, is of a block that ZJIT is only calling. */
static inline bool naive_late(struct naive *n, uint64_t cfp)
{
	uint64_t at = cfp + n->layout->cf_jit_return, own, caller, ep, flags;

	return !naive_bare(n) && naive_zjit_on(n) && naive_word(n, at, &own) &&
	       naive_word(n, at + n->layout->cf_size, &caller) && caller > 1 && own > 1 &&
	       own >= caller && naive_word(n, cfp + 32, &ep) && naive_word(n, ep, &flags) &&
	       flags == IMAGE_BLOCK;
}

/* The frame that is left out says where an activation begins; the one inside of it must, then. */
static inline void naive_left_out(struct naive *n, uint64_t flags)
{
	if (flags & IMAGE_FINISH && (flags & 0x7fff0001) != IMAGE_DUMMY &&
	    n->n_frames > n->first_frame)
		n->frames[n->n_frames - 1].pc |= RBPF_PC_FINISH;
}

static inline void naive_frame(struct naive *n, bool innermost)
{
	uint64_t pc, iseq, ep, me, spec, flags, jit_return = 0;
	struct rbpf_frame *f = &n->frames[n->n_frames];
	bool stale, jit;

	if (!naive_word(n, n->cfp, &pc) || !naive_word(n, n->cfp + 16, &iseq) ||
	    !naive_word(n, n->cfp + 32, &ep) ||
	    (n->layout->cf_jit_return &&
	     !naive_word(n, n->cfp + n->layout->cf_jit_return, &jit_return))) {
		n->odd = true;
		return;
	}
	naive_env(n, ep, &me, &spec, &flags);
	if (flags & IMAGE_CFRAME) {
		if ((flags & 0x7fff0001) != IMAGE_CFUNC_FRAME || !me) {
			naive_left_out(n, flags);
			return;
		}
		*f = (struct rbpf_frame) { .me = me };
	} else {
		stale = jit_return && n->n_frames == n->first_frame;
		jit = jit_return > 1;
		/* 4.0's ZJIT tells of no frame whether it is one of its own. */
		if (innermost && naive_bare(n) && naive_zjit_on(n) && iseq) {
			stale = true;
			jit = false;
		}
		if (jit_return)
			naive_zjit(n, jit_return, &pc, &iseq);
		pc &= ~7ull;
		if (stale)
			pc |= RBPF_PC_STALE;
		if (!iseq || !pc || (flags & 0x7fff0001) == IMAGE_DUMMY) {
			naive_left_out(n, flags);
			return;
		}
		if (flags & IMAGE_FINISH)
			pc |= RBPF_PC_FINISH;
		if (jit)
			pc |= RBPF_PC_JIT;
		*f = (struct rbpf_frame) { .iseq = iseq, .pc = pc };
		if (flags & (IMAGE_LOCAL | IMAGE_BMETHOD_FRAME))
			f->me = naive_me(n, ep, 0);
		else if (spec & ~3ull)
			f->me = naive_me(n, spec & ~3ull, 0);
	}
	n->odd |= f->me & 1;
	n->n_frames++;
}

/* Find the control frames of the EC at @ec. Returns false if it is none. */
static inline bool naive_ec(struct naive *n, uint64_t ec)
{
	uint64_t words, size = n->layout->cf_size;
	uint8_t bytes[RUBY_EC_BYTES];

	if (memory_read(n->mem, ec, bytes, RUBY_EC_BYTES) || !naive_word(n, ec, &n->lo) ||
	    !naive_word(n, ec + 8, &words) || !naive_word(n, ec + 16, &n->cfp))
		return false;
	n->hi = n->lo + words * 8;
	n->end = n->hi - size;
	return n->lo && words <= 1ull << 32 && n->hi >= n->lo && words * 8 >= size &&
	       n->cfp >= n->lo && n->cfp <= n->end && (n->end - n->cfp) % size == 0;
}

static inline void naive_frames(struct naive *n)
{
	uint64_t size = n->layout->cf_size, innermost;

	n->first_frame = n->n_frames;
	if (n->layout->flags & RBPF_LAYOUT_CFP_FIRST && n->cfp < n->end && !naive_begun(n, n->cfp))
		n->cfp += size;
	if (n->cfp + size < n->end && naive_late(n, n->cfp))
		n->cfp += size;
	for (innermost = n->cfp; n->cfp < n->end && n->n_frames < n->room; n->cfp += size)
		naive_frame(n, n->cfp == innermost);
}

/* The EC of the fiber that resumed that of @ec; false if there is none. */
static inline bool naive_resumer(struct naive *n, uint64_t ec, uint64_t th, uint64_t *ret)
{
	uint64_t fiber, prev, other;

	if (!n->layout->fiber_prev || !n->layout->fiber_ec ||
	    !naive_word(n, ec + n->layout->ec_fiber_ptr, &fiber) || !fiber ||
	    !naive_word(n, fiber + n->layout->fiber_prev, &prev) || !prev)
		return false;
	*ret = prev + n->layout->fiber_ec;
	return naive_ec(n, *ret) && naive_word(n, *ret + n->layout->ec_thread_ptr, &other) &&
	       other == th;
}

/*
 * Walk an EC that walk_ec() has accepted, and the fibers that resumed it; of those for which there
 * is no room up to @max_frames, only the number of frames. @frames has room for @room, which is
 * more.
 */
static inline struct naive naive_walk(const struct memory *mem, const struct rbpf_layout *layout,
				      uint64_t ec, uint32_t max_frames, struct rbpf_frame *frames,
				      uint32_t room)
{
	struct naive n = { .mem = mem, .layout = layout, .frames = frames, .room = room };
	uint64_t th, left;

	naive_word(&n, ec + layout->ec_thread_ptr, &th);
	if (!naive_ec(&n, ec))
		return n;
	naive_frames(&n);
	for (int i = 0; naive_resumer(&n, ec, th, &ec) && n.n_frames + 2 <= max_frames; i++) {
		frames[n.n_frames++] = (struct rbpf_frame) { 0 };
		if (i == FIBER_MAX_DEPTH || n.n_frames + RBPF_MIN_FRAMES > max_frames) {
			left = (n.end - n.cfp) / layout->cf_size;
			frames[n.n_frames++] = (struct rbpf_frame) { .pc = left ? left : 1 };
			break;
		}
		naive_frames(&n);
	}
	return n;
}

/* The end of the text of the String at @value, if it is not in its first words. */
static inline bool naive_text(const struct memory *mem, const struct rbpf_layout *layout,
			      uint64_t value, const __u64 label[5], __u64 text[RBPF_LABEL_WORDS])
{
	uint64_t len = label[2], max = RBPF_LABEL_WORDS * 8, at = value + 24;

	memset(text, 0, max);
	if (label[0] & IMAGE_NOEMBED)
		at = label[3];
	else if (!(layout->flags & RBPF_LAYOUT_LONG_EMBED))
		return true;
	return !memory_read(mem, len > max ? at + len - max : at, text, len > max ? max : len);
}

/*
 * What the walk must have sent as the check of @f when it sent its iseq for the first time: none if
 * it is old, and its pc tells that it is the same.
 */
static inline uint64_t naive_check(const struct memory *mem, const struct rbpf_layout *layout,
				   const struct rbpf_frame *f)
{
	__u64 location[4], label[5], text[RBPF_LABEL_WORDS];
	uint64_t check = 0, head[3], me[5];

	if (f->iseq) {
		if (memory_read(mem, f->iseq, head, sizeof(head)) ||
		    (head[0] & 1 << 5 && !(f->pc & RBPF_PC_STALE) &&
		     !(layout->flags & RBPF_LAYOUT_NO_AGE)) ||
		    memory_read(mem, head[2] + layout->naming.iseq_location, location,
				sizeof(location)) ||
		    memory_read(mem, location[2], label, sizeof(label)) ||
		    !naive_text(mem, layout, location[2], label, text))
			return 0;
		check = rbpf_check_iseq(0, head[2], location[0], location[3], label + 2, text);
	}
	if (f->me && memory_read(mem, f->me, me, sizeof(me)))
		return 0;
	return f->me ? rbpf_check_me(check, me[2], me[3], me[4]) : check;
}

/* Whether frame @i has the check it must have, or none if a frame outside of it has its iseq. */
static inline bool naive_same_check(const struct walk *w, const struct memory *mem, uint32_t i)
{
	const struct rbpf_frame *f = &w->frames[i];

	if (f->check == naive_check(mem, &w->layout, f))
		return true;
	if (f->check || f->pc & RBPF_PC_STALE)
		return false;
	for (uint32_t k = i + 1; k < w->n_frames && f->iseq; k++)
		if (w->frames[k].iseq == f->iseq)
			return true;
	return false;
}

/* NULL, or what @w, whose first walk it was, and the plain walk disagree about. */
static inline const char *naive_compare(const struct walk *w, const struct memory *mem, uint64_t ec)
{
	/* One more than a whole stack can have, and the marks of a fiber that is left out. */
	struct rbpf_frame *frames = calloc(RBPF_MAX_FRAMES + 3, sizeof(*frames));
	const char *problem = NULL;
	uint32_t whole = 0;
	struct naive n;

	if (!frames)
		abort();
	while (whole < w->n_frames &&
	       (w->frames[whole].iseq || w->frames[whole].me || !w->frames[whole].pc))
		whole++; /* as far as the first cut */
	/* What is cut tells nothing of the frame inside of it, either. */
	n = naive_walk(mem, &w->layout, ec, w->max_frames, frames,
		       whole < w->n_frames ? whole : w->max_frames + 1);
	/* A walk that has used up its reads knows less, and says so in a counter. */
	if (n.odd || !w->reads_left || !w->chunks_left || !w->zjit_left)
		goto out;
	if (whole < w->n_frames ? n.n_frames < whole : n.n_frames != w->n_frames)
		problem = "the number of frames";
	for (uint32_t i = 0; i < whole && !problem; i++)
		if (frames[i].iseq != w->frames[i].iseq || frames[i].pc != w->frames[i].pc ||
		    frames[i].me != w->frames[i].me)
			problem = "a frame";
	for (uint32_t i = 0; i < w->n_frames && !problem; i++)
		if (!naive_same_check(w, mem, i))
			problem = "a check";
out:
	free(frames);
	return problem;
}

#endif
