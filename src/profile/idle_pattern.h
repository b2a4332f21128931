/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a thread waits for something to do by a pattern of the user's: in the loop of a job runner
 * or a poller of their own, which the lists of wait_cause.c cannot know.
 *
 * Such a loop waits in whatever a gem waits in, and it also calls the jobs, which wait, too. So of
 * a stack the methods count from the wait outwards up to the nearest one of the program's own code:
 * a wait that the loop is in by itself, or through gems, is idle; one of a method that the loop
 * calls is not, unless that method matches.
 */
#ifndef RBPF_PROFILE_IDLE_PATTERN_H
#define RBPF_PROFILE_IDLE_PATTERN_H

#include <regex.h>
#include <stdbool.h>

#include "profile/profile.h"

/*
 * For each stack of @p, by id, whether what waits upon it is idle by @pattern. Returns 0 or
 * -ENOMEM; *@ret is the caller's to free.
 */
int idle_pattern_stacks(const struct profile *p, const regex_t *pattern, bool **ret);

#endif
