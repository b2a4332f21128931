/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/thinning.h"

/* From so much of its CPU time in use on, percent, a machine is busy. */
#define BUSY_PERCENT   80
/* After so many intervals with room for them there are more samples again … */
#define CALM_INTERVALS 6
/* … with so much of the limit to spare, percent. */
#define SPARE_PERCENT  10
/*
 * What the program that takes samples costs is a third to a half of what they cost in all, with
 * what rbpf itself does for them: it is taken for a third.
 */
#define SAMPLE_COST    3
/*
 * If that program took a smaller part of all than this, it is something else that costs, such as
 * waits, or processes that begin and end: then fewer samples would hardly help. (Where a Rails
 * application takes all CPUs, and its waits are recorded, too, it is a ninth.)
 */
#define TICKS_PART     12

static bool is_busy(const struct thinning_cost *cost)
{
	return cost->busy >= cost->machine / 100 * BUSY_PERCENT;
}

/* What becomes less with the number of samples. */
static uint64_t of_samples(const struct thinning_cost *cost)
{
	const uint64_t ns = cost->ticks * SAMPLE_COST;

	return ns < cost->all ? ns : cost->all;
}

static uint32_t needed(uint32_t divisor, const struct thinning_cost *cost)
{
	const uint64_t samples = of_samples(cost), others = cost->all - samples;
	uint64_t n;

	if (others >= cost->limit)
		return THINNING_MAX;
	n = (divisor * samples + cost->limit - others - 1) / (cost->limit - others);
	return n < THINNING_MAX ? (uint32_t)n : THINNING_MAX;
}

/* Whether there is room for the samples that a divisor of one less would give. */
static bool has_room(uint32_t divisor, const struct thinning_cost *cost)
{
	const uint64_t all = cost->all + of_samples(cost) / (divisor - 1);

	return !is_busy(cost) || all + all / 100 * SPARE_PERCENT <= cost->limit;
}

bool thinning_note(struct thinning *t, const struct thinning_cost *cost)
{
	const uint32_t before = t->divisor ? t->divisor : 1;

	t->divisor = before;
	if (is_busy(cost) && cost->all > cost->limit && cost->ticks >= cost->all / TICKS_PART)
		t->divisor = needed(before, cost);
	if (before == 1 || !has_room(before, cost)) {
		t->calm = 0;
	} else if (++t->calm == CALM_INTERVALS) {
		t->calm = 0;
		t->divisor = before - 1;
	}
	return t->divisor != before;
}
