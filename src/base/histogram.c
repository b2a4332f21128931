/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/histogram.h"

#include <errno.h>
#include <stdlib.h>

#define PART_BITS 5u
_Static_assert(HISTOGRAM_PARTS == 1u << PART_BITS, "parts of an octave");

uint32_t histogram_step(uint64_t v)
{
	unsigned int shift;

	if (v < 2 * HISTOGRAM_PARTS)
		return (uint32_t)v;
	shift = 63u - (unsigned int)__builtin_clzll(v) - PART_BITS;
	return shift * HISTOGRAM_PARTS + (uint32_t)(v >> shift);
}

uint64_t histogram_middle(uint32_t step)
{
	unsigned int shift;

	if (step < 2 * HISTOGRAM_PARTS)
		return step;
	shift = step / HISTOGRAM_PARTS - 1;
	return ((uint64_t)(step - shift * HISTOGRAM_PARTS) << shift) + (1ull << shift) / 2;
}

int histogram_add(struct histogram *h, uint64_t v)
{
	if (!h->counts)
		h->counts = calloc(HISTOGRAM_STEPS, sizeof(*h->counts));
	if (!h->counts)
		return -ENOMEM;
	h->counts[histogram_step(v)]++;
	if (!h->n++ || v < h->smallest)
		h->smallest = v;
	if (v > h->largest)
		h->largest = v;
	return 0;
}

uint64_t histogram_percentile(const struct histogram *h, unsigned int percent)
{
	/* Its place among the values in their order: n * percent / 100, rounded up. */
	const uint64_t rank = h->n / 100 * percent + (h->n % 100 * percent + 99) / 100;
	uint64_t up_to = 0, middle;
	uint32_t step = 0;

	if (rank == h->n) /* also 0 */
		return h->largest;
	while ((up_to += h->counts[step]) < rank)
		step++;
	middle = histogram_middle(step);
	if (middle < h->smallest)
		return h->smallest;
	return middle < h->largest ? middle : h->largest;
}

void histogram_deinit(struct histogram *h)
{
	free(h->counts);
	*h = (struct histogram) { 0 };
}
