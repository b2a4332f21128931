/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a thread waits for in its system call (target/waits_on.h), for people. Which thread has the
 * lock that it waits for is in locks.h.
 */
#ifndef RBPF_DUMP_WAITS_ON_H
#define RBPF_DUMP_WAITS_ON_H

#include <stdbool.h>

struct buf;
struct dump_doing;
struct waits_on;

/*
 * Whether what its system call tells is what @doing waits for: not if it waits for what the VM
 * keeps itself, such as a Queue. The VM may do so in poll() with a descriptor of its own, by which
 * it is told of signals.
 */
bool dump_waits_on_counts(const struct dump_doing *doing);

/* Append who is at the other end of a socket, "10.0.0.5:5432"; nothing if it is not known. */
void dump_peer_add(struct buf *out, const struct waits_on *w);

/* Append it in words: "descriptor 7, a pipe", "child 4711"; nothing if it is not known. */
void dump_waits_on_add(struct buf *out, const struct waits_on *w);

#endif
