/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many values are how large, for percentiles of any number of them in 15 KB.
 *
 * Values of all sizes are counted in steps of a logarithmic scale: 32 of the same width between a
 * power of two and the next one; below 64 a step is one value. What stands for a step is its
 * middle, which is within 1/64 (1.6 %) of each value in it. Not thread-safe.
 */
#ifndef RBPF_BASE_HISTOGRAM_H
#define RBPF_BASE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_PARTS 32u
#define HISTOGRAM_STEPS 1920u /* the last one has UINT64_MAX */

/* All 0: empty. */
struct histogram {
	uint64_t *counts; /* by step; NULL if there are no values; owned */
	uint64_t n;
	uint64_t smallest, largest; /* 0 if there are none */
};

/* Returns 0 or -ENOMEM. */
int histogram_add(struct histogram *h, uint64_t v);

/*
 * The smallest value that @percent (1 to 100) of 100 do not exceed, within 1.6 %; never below the
 * smallest one or above the largest one, and exact if it is that. 0 if there are none.
 */
uint64_t histogram_percentile(const struct histogram *h, unsigned int percent);

void histogram_deinit(struct histogram *h);

/* The step with @v, and the value that stands for a step: for tests. */
uint32_t histogram_step(uint64_t v);
uint64_t histogram_middle(uint32_t step);

#endif
