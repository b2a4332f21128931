/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The same walk in the plainest way: one word at a time, no window, no chunks, nothing remembered
 * and nothing put off. What bpf/ruby_walk.bpf.h says of any memory must agree with it.
 *
 * It does not cut: it gives at most @max frames, from the innermost one. Include walk_host.h
 * before.
 */
#ifndef RBPF_TESTS_WALK_NAIVE_H
#define RBPF_TESTS_WALK_NAIVE_H

#include "support/ruby_image.h"

struct naive {
	const struct memory *mem;
	const struct rbpf_layout *layout;
	struct rbpf_frame *frames;
	uint32_t n_frames, max;
	bool odd; /* addresses that no Ruby has were met: the windowed walk may round them */
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

static inline void naive_frame(struct naive *n, uint64_t cfp)
{
	uint64_t pc, iseq, ep, me, spec, flags;
	struct rbpf_frame *f = &n->frames[n->n_frames];

	if (!naive_word(n, cfp, &pc) || !naive_word(n, cfp + 16, &iseq) ||
	    !naive_word(n, cfp + 32, &ep))
		return;
	naive_env(n, ep, &me, &spec, &flags);
	if (flags & IMAGE_CFRAME) {
		if ((flags & 0x7fff0001) != IMAGE_CFUNC_FRAME || !me)
			return;
		*f = (struct rbpf_frame) { .me = me };
	} else {
		if (!iseq || !pc || (flags & 0x7fff0001) == IMAGE_DUMMY)
			return;
		*f = (struct rbpf_frame) { .iseq = iseq, .pc = pc };
		if (flags & (IMAGE_LOCAL | IMAGE_BMETHOD_FRAME))
			f->me = naive_me(n, ep, 0);
		else if (spec & ~3ull)
			f->me = naive_me(n, spec & ~3ull, 0);
	}
	n->odd |= f->me & 1;
	n->n_frames++;
}

/* Walk an EC that walk_ec() has accepted. @frames has room for @max. */
static inline struct naive naive_walk(const struct memory *mem, const struct rbpf_layout *layout,
				      uint64_t ec, struct rbpf_frame *frames, uint32_t max)
{
	struct naive n = { .mem = mem, .layout = layout, .frames = frames, .max = max };
	uint64_t lo, words, cfp, end;

	if (naive_word(&n, ec, &lo) && naive_word(&n, ec + 8, &words) &&
	    naive_word(&n, ec + 16, &cfp)) {
		end = lo + words * 8 - layout->cf_size;
		for (; cfp < end && n.n_frames < max; cfp += layout->cf_size)
			naive_frame(&n, cfp);
	}
	return n;
}

/* NULL, or what @w and the plain walk disagree about. */
static inline const char *naive_compare(const struct walk *w, const struct memory *mem, uint64_t ec)
{
	uint32_t head = w->n_cut ? w->max_frames - w->max_frames / 4 : w->max_frames;
	struct rbpf_frame *frames = calloc(head + 1, sizeof(*frames));
	const char *problem = NULL;
	struct naive n;

	if (!frames)
		abort();
	n = naive_walk(mem, &w->layout, ec, frames, head + !w->n_cut);
	/* A walk that has used up its reads knows less, and says so in a counter. */
	if (n.odd || !w->reads_left)
		goto out;
	if (w->n_cut ? n.n_frames < head : n.n_frames != w->n_frames)
		problem = "the number of frames";
	for (uint32_t i = 0; i < n.n_frames && !problem; i++)
		if (memcmp(&frames[i], &w->frames[i], sizeof(*frames)))
			problem = "a frame";
out:
	free(frames);
	return problem;
}

#endif
