/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who had the GVL when. Each sample of EVENT_GVL says who is charged with all waiting in a process
 * since the one before: so a time in which a thread of it waited is divided among those who were
 * charged with it.
 *
 * Ractors have a GVL each, and a recording does not say which one a wait is for: with several of
 * them in a process this is wrong in part. Not thread-safe.
 */
#ifndef RBPF_VIEW_GVL_CHARGES_H
#define RBPF_VIEW_GVL_CHARGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct profile;
struct profile_sample;

/* All waiting in a process from the charge before it, exclusive, to @ts is charged to @to. */
struct gvl_charge {
	uint64_t ts; /* ns, CLOCK_MONOTONIC */
	uint32_t process;
	uint32_t to; /* what the caller tells apart: a thread, or a kind of request */
};

struct gvl_charges {
	struct gvl_charge *v; /* owned */
	size_t n, cap;
};

#define GVL_CHARGES_INIT                                                                           \
	{                                                                                          \
		0                                                                                  \
	}

/* Add @s, a sample of EVENT_GVL of @p. Returns 0 or -ENOMEM. */
int gvl_charges_add(struct gvl_charges *c, const struct profile *p, const struct profile_sample *s,
		    uint32_t to);

/* There are no more. */
void gvl_charges_sort(struct gvl_charges *c);

/* Takes a part of a time: @ns of it are charged to @to. Returns 0, or -errno, which ends it. */
typedef int gvl_part_fn(void *arg, uint32_t to, uint64_t ns);

/*
 * Give @fn the parts of the time from @since to @until, ns of CLOCK_MONOTONIC, in which a thread of
 * @process waited. What nobody was charged with any more is left out. Returns what @fn does.
 */
int gvl_charges_divide(const struct gvl_charges *c, uint32_t process, uint64_t since,
		       uint64_t until, gvl_part_fn *fn, void *arg);

void gvl_charges_deinit(struct gvl_charges *c);
#define _cleanup_gvl_charges_ _cleanup_(gvl_charges_deinit)

#endif
