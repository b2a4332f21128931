/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The seconds of a recording, to find when the time was spent.
 */
#ifndef RBPF_VIEW_SECONDS_H
#define RBPF_VIEW_SECONDS_H

#include <stdint.h>

#include "profile/profile.h"

struct err;
struct flat;
struct replay;
struct view_selection;

/* The second that @sample is in, counted from the start of the recording. */
uint32_t second_of(const struct profile *p, const struct profile_sample *sample);

/*
 * Add a row for each second with selected samples, in the order of time, to @flat, which has none;
 * their ids are the seconds. Returns 0, or -ENOMEM or what profile_each_sample() returns, with @err
 * set.
 */
int seconds_rows(const struct profile *p, const struct replay *from,
		 const struct view_selection *sel, struct flat *flat, struct err *err);

#endif
