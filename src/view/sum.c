/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How far a sum can be trusted
 *
 * A profile is a sample, and 3 ticks in a function do not say "30 ms". Of N samples n fell on this
 * row; with independent ticks n is binomial. The half width of the 95 % interval for n is taken as
 * Wilson's,
 *
 *	z * sqrt(n * (N - n) / N + z^2 / 4) / (1 + z^2 / N),   z = 1.96
 *
 * which for large n is the familiar 1.96 * sqrt(n * (1 - n / N)), and unlike it holds at the
 * ends: with no sample at all, or with all of them, it is not 0 but about 1.9 samples (the "rule of
 * three": what was not seen in N samples can still be some 3 / N of the time), and with N = 1 it
 * covers nearly the whole range. Samples become time by the mean value of the row's samples, or of
 * all if it has none.
 *
 * Where the frequency was lowered on the way (--max-cost) some samples stand for up to four
 * times as much time as others. The root of the mean square of their values, which should stand
 * here for the mean, is then up to a quarter more: as much is added.
 *
 * What is exact has no part in this: n and N are samples that are not. What others waited meanwhile
 * is exact if the thread was off the CPU all the while; else it is charged to where the thread is
 * found, mostly at a tick, which may as well have been elsewhere. Some such charges are much larger
 * than others: then this is less than what chance does.
 *
 * The ticks' period is dithered, so that programs in step with the clock are no exception; what
 * this leaves out is bias, such as lost samples or stacks that could not be walked.
 */
#include "view/sum.h"

struct view_sum view_sum_of(const struct profile *p, const struct profile_aggregate *a)
{
	const struct profile_event *event = profile_event(p);
	const bool exact = profile_stack_waits(p, a->stack) ||
			   (event_is_exact(event) && !event_is_charged(event->name));

	return (struct view_sum) {
		.value = a->value,
		.samples = a->samples,
		.exact_value = exact ? a->value : 0,
		.exact_samples = exact ? a->samples : 0,
	};
}

struct view_sum view_sum_at(const struct profile *p, size_t i)
{
	struct view_sum sum = view_sum_of(p, &p->aggregates[i]);

	if (p->with_lengths)
		sum.waits = p->aggregate_waits[i];
	return sum;
}

static uint64_t isqrt(uint64_t v)
{
	uint64_t root = 0;

	for (uint64_t bit = 1ull << 31; bit; bit >>= 1)
		if ((root + bit) * (root + bit) <= v)
			root += bit;
	return root;
}

/* Of @row_samples with a sum of @row_value, out of @samples with a sum of @value. */
static uint64_t half_width(uint64_t row_samples, uint64_t row_value, uint64_t samples,
			   uint64_t value)
{
	/* In thousandths of a sample, so that it is the same on every machine. */
	unsigned __int128 variance, error;

	if (!samples || row_samples > samples)
		return 0;
	variance = (unsigned __int128)row_samples * (samples - row_samples) * 1000000 / samples;
	variance += 960400; /* z^2 / 4 */
	if (variance > UINT64_MAX)
		variance = UINT64_MAX;
	error = (unsigned __int128)isqrt((uint64_t)variance) * 196 * samples;
	error /= samples * 100 + 384; /* thousandths of a sample */
	if (row_samples)
		return (uint64_t)(error * row_value / row_samples / 1000);
	return (uint64_t)(error * value / samples / 1000);
}

uint64_t view_sum_error(const struct view_sum *s, const struct view_sum *all)
{
	uint64_t error;

	if (view_sum_is_exact(s))
		return 0;
	error = half_width(s->samples - s->exact_samples, s->value - s->exact_value,
			   all->samples - all->exact_samples, all->value - all->exact_value);
	return all->unequal ? (uint64_t)((double)error * VIEW_UNEQUAL) : error;
}

uint64_t view_self_error(const struct view_sum *self, const struct view_sum *total,
			 const struct view_sum *all)
{
	return view_sum_is_exact(total) ? 0 : view_sum_error(self, all);
}

bool view_sum_is_few(const struct view_sum *s, uint64_t n)
{
	if (view_sum_is_exact(s) || s->samples - s->exact_samples >= n)
		return false;
	return s->exact_value <= s->value / 2;
}
