/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of a sample in a time, and between times. A wait is from its begin to its end: what is
 * asked for of a recording gets the part of it that was then. All other samples are of a moment,
 * for which the value of each stands, and are whole: also what others waited while a thread did.
 *
 * As samples are selected by their time, a part that ends at a limit has the time just before it.
 */
#ifndef RBPF_PROFILE_SAMPLE_PARTS_H
#define RBPF_PROFILE_SAMPLE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"

/*
 * Leave of @s what was from @from on and before @to (ns, CLOCK_MONOTONIC); its time is before @to
 * then. False: nothing was.
 */
bool sample_part_within(const struct profile *p, struct profile_sample *s, uint64_t from,
			uint64_t to);

/*
 * Whether @s is a wait that had begun before @at and ended later: then that part becomes *@before,
 * and @s is the rest.
 */
bool sample_part_before(const struct profile *p, struct profile_sample *s, uint64_t at,
			struct profile_sample *before);

/*
 * Of a recording, which may be damaged: a wait that goes on has a sample about once a second, so
 * one that is said to be longer than this is not divided further.
 */
#define SAMPLE_MAX_PARTS 64u

/* Time in cells, one after another. */
struct sample_cells {
	uint64_t (*end)(void *arg, uint64_t at); /* of the cell with @at; CLOCK_MONOTONIC */
	sample_fn *fn;				 /* called for a part in one cell */
	void *arg;				 /* of both */
};

/*
 * Call @cells->fn for each part of @s in a cell, of @max parts at most: the last one is all the
 * rest. Returns 0, or what it did if not 0.
 */
int sample_parts_in_cells(const struct profile *p, struct profile_sample s, uint32_t max,
			  const struct sample_cells *cells);

/*
 * Call @fn for each part of @s in a second, counted from the start of the recording, of @max parts
 * at most: the last one is all the rest. Returns 0, or what @fn did if not 0.
 */
int sample_parts_by_second(const struct profile *p, struct profile_sample s, uint32_t max,
			   sample_fn *fn, void *arg);

/* Call @fn for each part of @s between the cuts of @p. Returns 0, or what @fn did if not 0. */
int sample_parts_between_cuts(const struct profile *p, struct profile_sample s, sample_fn *fn,
			      void *arg);

#endif
