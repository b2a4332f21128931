/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which thread had the GVL for most of a wait for it, as far as threads were charged with that time
 * (gvl_charges.h).
 */
#ifndef RBPF_VIEW_GVL_HOLDERS_H
#define RBPF_VIEW_GVL_HOLDERS_H

#include <stddef.h>

struct err;
struct longest_wait;
struct profile;
struct replay;

/*
 * Set .holder and .held_ns of these @n waits of @p, but of those for something else. @p has kept no
 * samples; @from is the file that it was read from, which is read again if one of them is for the
 * GVL. Returns 0, or an error with @err set: -ENOMEM, or what profile_each_of_all() returns.
 */
int gvl_holders_find(const struct profile *p, const struct replay *from, struct longest_wait *waits,
		     size_t n, struct err *err);

#endif
