/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libFuzzer target: whatever memory the walker finds, it ends, stays within its arrays (walk_host.h
 * checks each read, ASan the rest) and its limits, and says what the plain walk of walk_naive.h
 * says.
 *
 * The input is a few parameters, then words for three pieces of memory: ECs, threads and fibers, VM
 * stack, heap. A word whose top byte is 0xa0 to 0xa2 is an address in one of them, so that pointers
 * lead somewhere.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/walk_host.h"
#include "support/walk_naive.h"

#define MAX_READS 400000u /* far more than so small a stack can need */

struct params {
	uint8_t ruby;	    /* RUBY_*: the ways of some version */
	uint8_t max_frames; /* above the least */
	uint8_t hidden;	    /* page of the stack that cannot be read, if below its size */
	uint8_t raw_ec;	    /* 0: vm_stack, its size, cfp and thread are made plausible */
	uint8_t depth;	    /* then this is how many frames there are … */
	uint8_t pages;	    /* of the stack, less one */
	uint8_t fibers;	    /* … and how many others have resumed that fiber */
	uint8_t pad;
};

enum {
	RUBY_LONG_FRAME = 1, /* control frames of 64 bytes, else 56 */
	RUBY_CFP_FIRST = 2,
	RUBY_ZJIT = 4,
	RUBY_LONG_EMBED = 8,
	RUBY_ZJIT_BARE = 16,
};

enum { EC, STACK, HEAP, PIECES };

static const uint64_t base[PIECES] = { 0x5000000000, 0x6000000000, 0x7000000000 };
static uint64_t words[PIECES][16 * 512];
static size_t size[PIECES] = { 128, 0, 512 }; /* words */
static uint64_t hidden;			      /* address of a page */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool read_piece(uint64_t addr, void *dst, size_t len)
{
	for (int i = 0; i < PIECES; i++) {
		if (addr < base[i] || addr - base[i] >= size[i] * 8)
			continue;
		if (len > size[i] * 8 - (addr - base[i]))
			return false;
		if (hidden && addr < hidden + 4096 && addr + len > hidden)
			return false;
		memcpy(dst, (const uint8_t *)words[i] + (addr - base[i]), len);
		return true;
	}
	return false;
}

static void read_spans(const struct memory *mem, struct memory_span *spans, size_t n)
{
	(void)mem;
	for (size_t i = 0; i < n; i++)
		spans[i].ok = !spans[i].len ||
			      read_piece(spans[i].addr, spans[i].dst, spans[i].len);
}

/*
 * Of a chain of fibers on one VM stack the ECs, each with its fiber in it, and the thread in the
 * first.
 */
static void make_ecs(const struct params *p)
{
	uint64_t cf_size = p->ruby & RUBY_LONG_FRAME ? 64 : 56, stack = size[STACK] * 8;
	unsigned int n = p->fibers % 4;

	for (unsigned int i = 0; i <= n; i++) {
		uint64_t *ec = &words[EC][24 * i], addr = base[EC] + 24 * 8 * i;

		ec[0] = base[STACK];
		ec[1] = size[STACK];
		ec[2] = base[STACK] + stack - (p->depth / (i + 1) + 1) * cf_size;
		ec[6] = base[EC];
		ec[7] = addr + 64;			/* its fiber … */
		ec[10] = i < n ? addr + 24 * 8 - 8 : 0; /* … whose prev this is */
	}
	words[EC][5] = base[EC];
}

static void fill(const uint8_t *data, size_t len, const struct params *p)
{
	size_t stack = size[STACK], at = 0, total = size[EC] + stack + size[HEAP];
	/* The frames are at the end of the stack: the input fills it from there. */
	static const int order[PIECES] = { EC, HEAP, STACK };

	memset(words, 0, sizeof(words));
	for (int k = 0; k < PIECES; k++) {
		int piece = order[k];

		for (size_t i = 0; i < size[piece] && at < total; i++, at++) {
			size_t slot = piece == STACK ? stack - 1 - i : i;
			uint64_t v = 0;

			if (len < 8)
				break;
			memcpy(&v, data, 8);
			data += 8;
			len -= 8;
			if (v >> 56 >= 0xa0 && v >> 56 <= 0xa2)
				v = base[v >> 56 & 3] + (v & 0xffff);
			words[piece][slot] = v;
		}
	}
	if (!p->raw_ec)
		make_ecs(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	/* Offsets as no Ruby has them, so that one piece of memory can be all of these structs. */
	struct rbpf_layout layout = { .ec_thread_ptr = 48,
				      .ec_fiber_ptr = 56,
				      .th_ec = 40,
				      .fiber_ec = 8,
				      .fiber_prev = 16,
				      .naming.iseq_location = 64 };
	struct memory mem = { .read_spans = read_spans };
	const char *problem = NULL;
	struct params p;
	struct walk *w;
	uint64_t hash;
	int status;

	if (len < sizeof(p))
		return 0;
	memcpy(&p, data, sizeof(p));
	layout.cf_size = p.ruby & RUBY_LONG_FRAME ? 64 : 56;
	layout.cf_jit_return = layout.cf_size - 8;
	layout.flags = (p.ruby & RUBY_CFP_FIRST ? RBPF_LAYOUT_CFP_FIRST : 0) |
		       (p.ruby & RUBY_LONG_EMBED ? RBPF_LAYOUT_LONG_EMBED : 0) |
		       (p.ruby & RUBY_ZJIT_BARE ? RBPF_LAYOUT_ZJIT_BARE : 0);
	layout.zjit_entry = p.ruby & RUBY_ZJIT ? base[HEAP] : 0;
	size[STACK] = (p.pages % 16 + 1) * 512u;
	hidden = p.hidden <= p.pages % 16 ? base[STACK] + p.hidden * 4096ull : 0;
	fill(data + sizeof(p), len - sizeof(p), &p);

	w = walk_host_new(&layout, RBPF_MIN_FRAMES + p.max_frames);
	status = walk_host_run(w, &mem, base[EC]);
	hash = w->hash;
	if (w->n_frames > w->max_frames)
		problem = "more frames than allowed";
	else if (walk_host.reads > MAX_READS)
		problem = "too many reads";
	else if (status < RBPF_OK || status >= RBPF_STATUS_COUNT)
		problem = "no status";
	else if (status == RBPF_OK)
		problem = naive_compare(w, &mem, base[EC]);
	if (!problem && (walk_host_run(w, &mem, base[EC]) != status || w->hash != hash))
		problem = "a second walk differs";
	free(w);
	if (problem) {
		fprintf(stderr, "fuzz_walk: %s\n", problem);
		abort();
	}
	return 0;
}
