/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parts of an array that the BPF programs read while it changes: which are free, which
 * are allocated, and which are retired but may be in use by a program that has begun before
 * that was so. Those become free after EXTENTS_GRACE_NS: a program runs for microseconds.
 *
 * It knows where the parts are, not what they hold. All units are elements of the array. The
 * first free part that is large enough is allocated (first fit). Not thread-safe.
 */
#ifndef RBPF_NATIVE_EXTENTS_H
#define RBPF_NATIVE_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXTENTS_GRACE_NS 1000000000ull

struct extent {
	uint32_t first, n;
};

struct retired_extent {
	struct extent extent;
	uint64_t since; /* ns, CLOCK_MONOTONIC */
};

struct extents {
	struct extent *v; /* free parts, ascending; neighbours are merged; owned */
	size_t n, cap;
	struct retired_extent *retired; /* in that order; owned */
	size_t n_retired, cap_retired;
	size_t allocated;      /* parts that are not free */
	uint32_t retired_size; /* of all that are retired */
};

/* An array of @size elements, all free. Returns 0 or -ENOMEM. */
int extents_init(struct extents *e, uint32_t size);
void extents_deinit(struct extents *e);

/* Allocate @n elements, at least one; they begin at *@ret. Returns 0, -ENOSPC or -ENOMEM. */
int extents_alloc(struct extents *e, uint32_t n, uint32_t *ret);

/* Whether @n elements could be allocated. */
bool extents_fit(const struct extents *e, uint32_t n);

/* Retire all of a part that was allocated, at @now (ns, CLOCK_MONOTONIC). */
void extents_retire(struct extents *e, uint32_t first, uint32_t n, uint64_t now);

/* Free what was retired long enough before @now. Returns whether there was any. */
bool extents_reclaim(struct extents *e, uint64_t now);

#endif
