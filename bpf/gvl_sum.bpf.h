/* SPDX-License-Identifier: GPL-2.0-only */
/* How long threads have waited for a GVL or a Mutex, and how much of that was charged. */
#ifndef RBPF_GVL_SUM_BPF_H
#define RBPF_GVL_SUM_BPF_H

/*
 * A GVL: how long threads have waited for it, added up, is
 *
 *	ended + n * now - since,   @since being the sum of the times when those n that wait began to
 *
 * in µs. Both change at once, since they are one word; @charged is how much of that sum was
 * charged to holders already: the next one is charged with the rest.
 */
#define GVL_N_SHIFT 54
struct gvl {
	__u64 waiting; /* n << GVL_N_SHIFT | since */
	__u64 ended;   /* of waits that have ended */
	__u64 charged;
	__u64 base; /* ns, CLOCK_MONOTONIC: from which on times count */
};

static __always_inline __u64 gvl_us(const struct gvl *g, __u64 ns)
{
	return ns > g->base ? (ns - g->base) / 1000 : 0;
}

/* How long threads have waited for GVL @g, in all, in µs. */
static __always_inline __u64 gvl_waited(const struct gvl *g, __u64 now)
{
	__u64 waiting = g->waiting;

	return g->ended + (waiting >> GVL_N_SHIFT) * gvl_us(g, now) -
	       (waiting & ((1ull << GVL_N_SHIFT) - 1));
}

/* Charge what nobody was charged with of the waiting for @g until @now; returns it, in ns. */
static __always_inline __u64 gvl_take(struct gvl *g, __u64 now)
{
	const __u64 more = gvl_waited(g, now) - g->charged;

	/* Negative, for a moment, while a wait ends on another CPU. */
	if ((__s64)more <= 0)
		return 0;
	/*
	 * Added, not stored: what another CPU has charged at the same moment makes the next charge
	 * smaller.
	 */
	__sync_fetch_and_add(&g->charged, more);
	return more * 1000;
}

#endif
