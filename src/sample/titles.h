/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What processes say of themselves: their command lines, and the attributes that Rubies publish
 * (target/otel_context.h). A process may change both at any time, as the workers of a server do
 * right after they were forked; recorded are those it has a second after fork or exec, or when it
 * is first seen if that was before the recording, those after pauses that get longer, up to a
 * minute, and those at the end of the recording. Once its threads' contexts are found
 * (thread_context.h), only those at the end. Of what may not live for a second also the command
 * line that it has when its first sample is taken from the ring.
 */
#ifndef RBPF_SAMPLE_TITLES_H
#define RBPF_SAMPLE_TITLES_H

#include <stdint.h>

struct collector;
struct tracked_process;

/* There is a sample of @p. Returns 0 or -errno. */
int titles_note_sample(struct collector *c, struct tracked_process *p);

/*
 * Record those of processes that are due; to be called about twice a second. Returns 0 or -errno.
 */
int titles_poll(struct collector *c, uint64_t now);

/* Record those of all processes in the recording that live. Returns 0 or -errno. */
int titles_at_end(struct collector *c);

#endif
