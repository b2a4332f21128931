/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The seconds of a recording, to find when the time was spent.
 */
#ifndef RBPF_VIEW_SECONDS_H
#define RBPF_VIEW_SECONDS_H

#include <stdint.h>

#include "profile/profile.h"

struct flat;
struct view_selection;

/* The second that @sample is in, counted from the start of the recording. */
uint32_t second_of(const struct profile *p, const struct profile_sample *sample);

/*
 * Add a row for each second with selected samples, in the order of time, to @flat, which has none;
 * their ids are the seconds. @p has kept its samples. Returns 0 or -ENOMEM.
 */
int seconds_rows(const struct profile *p, const struct view_selection *sel, struct flat *flat);

#endif
