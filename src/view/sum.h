/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sums of samples, and how far they may be off by chance.
 *
 * A sample of CPU time stands for what happened between two ticks of a clock: its sums are
 * estimates. A wait is recorded with its exact length, and so is all of an event without a period.
 * Where the event is "wall", one sum has both, and only its CPU time may be off.
 */
#ifndef RBPF_VIEW_SUM_H
#define RBPF_VIEW_SUM_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"

/* Without the waits, for what there may be millions of. */
struct plain_sum {
	uint64_t samples;
	uint64_t value;
	uint64_t exact_samples; /* of these, those that tell exact lengths … */
	uint64_t exact_value;	/* … and theirs of the value */
};

struct view_sum {
	union {
		struct plain_sum plain;
		struct { /* the same */
			uint64_t samples, value, exact_samples, exact_value;
		};
	};
	struct wait_sum waits; /* in these, if the profile is with_lengths */
	bool unequal;	       /* of all that is selected: profile_samples_differ() */
};

/* Of the samples of @a, an aggregate of @p or like one, without its waits. */
struct view_sum view_sum_of(const struct profile *p, const struct profile_aggregate *a);

/* Of aggregate @i of @p, with its waits. */
struct view_sum view_sum_at(const struct profile *p, size_t i);

static inline void plain_sum_add(struct plain_sum *to, const struct plain_sum *s)
{
	to->samples += s->samples;
	profile_add(&to->value, s->value);
	to->exact_samples += s->exact_samples;
	profile_add(&to->exact_value, s->exact_value);
}

static inline void view_sum_add(struct view_sum *to, const struct view_sum *s)
{
	plain_sum_add(&to->plain, &s->plain);
	wait_sum_add(&to->waits, &s->waits);
}

/* By how much bounds are wider where samples are not equal: sum.c. */
#define VIEW_UNEQUAL 1.25

/* Whether there are samples in @s, all of which are exact. */
static inline bool view_sum_is_exact(const struct view_sum *s)
{
	return s->samples && s->samples == s->exact_samples;
}

/*
 * Half width of the 95 % interval (sum.c) of the value of @s, which is part of @all; 0 if it is
 * exact. Without a sample it is that of what can have been missed.
 */
uint64_t view_sum_error(const struct view_sum *s, const struct view_sum *all);

/* The same of the self time of what has @total; where that is exact, so is @self, though empty. */
uint64_t view_self_error(const struct view_sum *self, const struct view_sum *total,
			 const struct view_sum *all);

/* Whether most of the value of @s is that of less than @n samples that are not exact. */
bool view_sum_is_few(const struct view_sum *s, uint64_t n);

#endif
