/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Compares the methods of two sets of recordings, or the requests that they served, and tells
 * differences from chance.
 *
 * A method is the same on both sides if its kind and name are: files move, lines do, and versions
 * of gems and libraries are in paths. Where a name alone says little ("<main>", "block in <main>")
 * the name of the file counts, too. Names are labels (frame_label.h), which are the same in all
 * processes.
 *
 * Two samplings of the same program differ. The interval of a difference covers that: it is made of
 * the intervals of both sides, as compare.c says. It does not cover that a program does not do the
 * same twice.
 */
#ifndef RBPF_VIEW_COMPARE_H
#define RBPF_VIEW_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "profile/profile.h"

struct view_filter;

enum compare_side { COMPARE_BEFORE, COMPARE_AFTER, COMPARE_SIDES };

enum compare_normalize {
	COMPARE_TOTAL, /* shares of the side's time: a slower machine makes no difference */
	COMPARE_TIME,  /* per second of the recordings: 1 is one core */
	COMPARE_NONE,  /* as recorded, in the unit of the event */
};

struct compare_sum {
	uint64_t samples;
	uint64_t value;
	uint64_t exact_samples; /* of these, those that tell exact lengths (sum.h) … */
	uint64_t exact_value;	/* … and theirs of the value */
	double variance;	/* of the rest of value: the sum of the squares of its samples */
};

struct compare_row {
	uint32_t kind; /* enum frame_kind; 0 of a request */
	/*
	 * Strings of comparison.texts, of the side that has it first; name and framework of a
	 * request.
	 */
	uint32_t label, path;
	uint32_t line; /* of the definition; 0 if unknown */
	struct compare_sum self[COMPARE_SIDES], total[COMPARE_SIDES];
	/* Of what was asked for, in the unit of the normalisation: */
	double value[COMPARE_SIDES];
	double delta;
	double low, high; /* interval of delta */
	bool significant; /* it does not hold 0 */
};

struct comparison {
	struct intern keys;  /* by row: what makes two methods the same */
	struct intern texts; /* id 0 is "" */
	struct compare_row *rows;
	size_t n_rows, cap_rows;
	struct compare_sum all[COMPARE_SIDES];
	uint64_t duration_ns[COMPARE_SIDES];
	struct profile_event event; /* of all recordings */
	bool has_event;
	bool by_request; /* rows are kinds of requests; to be set before anything is added */
};

#define COMPARISON_INIT                                                                            \
	{                                                                                          \
		0                                                                                  \
	}

void comparison_deinit(struct comparison *c);
#define _cleanup_comparison_ _cleanup_(comparison_deinit)

/*
 * Add the samples of @p that @f selects to a side; they add up. @p is needed no longer afterwards.
 * Returns 0, -ENOMEM, -EINVAL (as view_selection_new(), or @c is by_request and @p is not), or
 * -EMEDIUMTYPE if its event is another than that of the recordings before.
 */
int comparison_add(struct comparison *c, enum compare_side side, const struct profile *p,
		   const struct view_filter *f, uint64_t duration_ns);

/* What makes a frame's method the same on both sides, as text: replaces what is in @key. */
struct buf;
void compare_key(const struct profile *p, uint32_t frame, struct buf *key);

struct compare_share {
	double before, after;
	double low, high; /* 95 % interval of the difference */
};

/* Shares of two sums, each out of the whole of its side; where both are exact, so is the
 * difference. */
struct compare_share compare_shares(const struct compare_sum *before,
				    const struct compare_sum *all_before,
				    const struct compare_sum *after,
				    const struct compare_sum *all_after);

struct compare_options {
	enum compare_normalize normalize;
	bool self;     /* compare self times, not totals */
	bool by_delta; /* the greatest growth first, not the greatest difference */
	double z;      /* half widths of intervals in standard deviations: COMPARE_Z */
};

#define COMPARE_Z 1.959964 /* 95 % */

/*
 * The z of intervals that are so wide that of @n true ones with 95 % at least, none is missed with
 * that probability (Bonferroni): COMPARE_Z of 1.
 */
double compare_z_of_many(size_t n);

/* When all is added: compute and sort the rows, significant ones first. */
void comparison_finish(struct comparison *c, const struct compare_options *opts);

#endif
