/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What waits are, from the methods that wait: the kernel side sees that a thread is in futex(2), but not
 * that Kernel#sleep put it there; that it waits for a connection, but not that it is one of a pool
 * and has nothing to do. Recordings hold what was seen, so what is made of it can become better.
 */
#ifndef RBPF_PROFILE_WAIT_CAUSE_H
#define RBPF_PROFILE_WAIT_CAUSE_H

struct profile;

/* Put the right FRAME_WAIT upon each stack that has one. Returns 0, -ENOMEM or -E2BIG. */
int wait_causes(struct profile *p);

#endif
