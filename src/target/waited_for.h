/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is behind the descriptors that threads wait for, in words: "10.0.0.5:5432" who is at the
 * other end of a socket, "/run/redis.sock" who has a socket there, "clients of :3000" those that
 * have connected to this process, "production.log" a file.
 */
#ifndef RBPF_TARGET_WAITED_FOR_H
#define RBPF_TARGET_WAITED_FOR_H

#include <stdint.h>

#include "base/intern.h"

struct buf;
struct rbpf_waits_on;

/*
 * A crawler asks any number of hosts, and each would make stacks of its own: what comes beyond so
 * many is not told.
 */
#define WAITED_FOR_MOST 1000

/* All 0: none is known yet. */
struct waited_for {
	struct intern known; /* struct rbpf_waits_on, without what differs by connection */
	uint16_t first_port, last_port; /* of clients; 0: not read yet */
};

void waited_for_deinit(struct waited_for *w);

/* *@ret: a number for waited_for_add(), from 1 on; 0: it is not told. Returns 0 or -ENOMEM. */
int waited_for_id(struct waited_for *w, const struct rbpf_waits_on *on, uint32_t *ret);

/* Append the words for @id, valid UTF-8. */
void waited_for_add(const struct waited_for *w, uint32_t id, struct buf *out);

#endif
