/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What waits are, from the methods that wait: the kernel side sees that a thread is in futex(2),
 * but not that Kernel#sleep put it there; that it waits for a connection, but not that it is one of
 * a pool and has nothing to do. Recordings hold what was seen, so what is made of it can become
 * better.
 */
#ifndef RBPF_PROFILE_WAIT_CAUSE_H
#define RBPF_PROFILE_WAIT_CAUSE_H

#include <regex.h>

#include "profile/profile.h"
#include "profile/reason.h"

/*
 * The right reason for each stack of @p that has a FRAME_WAIT, by stack id; 0 for the others. What
 * @idle says is idle (idle_pattern.h; NULL: nothing) is so, too, if a thread can wait in this way
 * for something to do. Returns 0 or -ENOMEM; *@ret is the caller's to free.
 */
int wait_causes_find(const struct profile *p, const regex_t *idle, uint8_t **ret);

/* The FRAME_WAIT for @reason, whose label is the string @name. */
struct profile_frame wait_cause_frame(uint32_t name, enum frame_reason reason);

/* Put that FRAME_WAIT upon each stack that has one. Returns 0, -ENOMEM or -E2BIG. */
int wait_causes(struct profile *p, const regex_t *idle);

#endif
