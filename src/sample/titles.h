/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What processes say of themselves: their command lines, and the attributes that Rubies publish
 * (target/otel_context.h). A process may change both at any time, as the workers of a server do
 * right after they were forked; recorded are those it has a second after fork or exec, or when it is first
 * seen if that was before the recording, and those at the end of the recording.
 */
#ifndef RBPF_SAMPLE_TITLES_H
#define RBPF_SAMPLE_TITLES_H

#include <stdint.h>

struct collector;

/* Record those of processes that forked or executed a second or more before @now. Returns 0 or -errno. */
int titles_of_new(struct collector *c, uint64_t now);

/* Record those of all processes in the recording that live. Returns 0 or -errno. */
int titles_at_end(struct collector *c);

#endif
