/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The native walk of the BPF programs (bpf/native_walk.bpf.h) in a test's hands: its maps are
 * arrays that the test fills, and each read is checked to go to a buffer that has room for it. With
 * __TARGET_ARCH_arm64 defined before, it is that of arm64, on any machine.
 */
#ifndef RBPF_TESTS_NATIVE_HOST_H
#define RBPF_TESTS_NATIVE_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rbpf_abi.h"
#include "rbpf_cfi.h"
#include "target/memory.h"

#define NATIVE_HOST_RANGES 8
#define NATIVE_HOST_RULES  64
#define NATIVE_HOST_WORDS  (4 * RBPF_POOL_CHUNK)

struct walk;

static struct {
	const struct memory *mem;
	struct walk *walk;
	struct rbpf_range ranges[NATIVE_HOST_RANGES];
	struct rbpf_cfi_rule rules[NATIVE_HOST_RULES];
	uint32_t words[NATIVE_HOST_WORDS];
	uint64_t counters[RBPF_COUNTERS];
	size_t reads;
	size_t asked[RBPF_NATIVE_END_COUNT]; /* how often, by reason */
	uint64_t start, main_top;	     /* what an EC and native_main_top() tell */
} native_host;

static inline int native_host_read(void *dst, size_t size, uint64_t addr);

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define __noinline		   static __attribute__((noinline))
#define walk_state(walk_id)	   ((void)(walk_id), native_host.walk)
#define walk_read(dst, size, addr) native_host_read((dst), (size), (addr))
#define walk_count(counter)	   (native_host.counters[(counter)]++)
#define native_range(i)		   ((i) < NATIVE_HOST_RANGES ? &native_host.ranges[(i)] : NULL)
#define native_rule(i)		   ((i) < NATIVE_HOST_RULES ? &native_host.rules[(i)] : NULL)
#define native_chunk(i)                                                                            \
	((i) < NATIVE_HOST_WORDS / RBPF_POOL_CHUNK ? &native_host.words[(i)*RBPF_POOL_CHUNK] : NULL)
#define native_report_miss(walk_id, end) (native_host.asked[(end)]++)
#define native_main_top()		 (native_host.main_top)

#include "native_walk.bpf.h"

static inline int native_host_read(void *dst, size_t size, uint64_t addr)
{
	const struct walk *w = native_host.walk;
	const uint8_t *at = dst, *win = (const uint8_t *)w->native.win;
	const bool in_scratch = at >= (const uint8_t *)w && at < (const uint8_t *)(w + 1);

	/* What is not in the scratch is on the stack, which ASan looks after. */
	if (in_scratch && (at < win || at >= win + sizeof(w->native.win) ||
			   size > (size_t)(win + sizeof(w->native.win) - at))) {
		fprintf(stderr, "a read of %zu bytes leaves its buffer\n", size);
		abort();
	}
	native_host.reads++;
	return memory_read(native_host.mem, addr, dst, size);
}

/* A scratch as the BPF programs have it: zeroed once, then used by walk after walk. */
static inline struct walk *native_host_new(void)
{
	struct walk *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	return w;
}

/*
 * Walk from w->native.regs, in all of the ranges that come before an empty one. @tag and @top are
 * what an EC would have told.
 */
static inline void native_host_run(struct walk *w, const struct memory *mem, uint64_t tag,
				   uint64_t top)
{
	struct walk_native *n = &w->native;

	native_host.mem = mem;
	native_host.walk = w;
	native_host.reads = 0;
	memset(native_host.counters, 0, sizeof(native_host.counters));
	memset(native_host.asked, 0, sizeof(native_host.asked));
	native_init(w);
	n->tag = tag;
	n->top = top;
	n->start = native_host.start;
	n->hash = n->seed;
	n->code = (struct rbpf_code) { .id = n->code.id };
	while (n->code.n < NATIVE_HOST_RANGES && native_host.ranges[n->code.n].end)
		n->code.n++;
	walk_native(w, 0);
}

#endif
