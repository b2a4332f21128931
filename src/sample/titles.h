/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The command lines of processes as they are now. A process may give itself another one at any time,
 * as the workers of a server do right after they were forked; recorded are the one it has a second
 * after fork or exec, and the one it has at the end of the recording.
 */
#ifndef RBPF_SAMPLE_TITLES_H
#define RBPF_SAMPLE_TITLES_H

#include <stdint.h>

struct collector;

/* Record those of processes that forked or executed a second before @now. Returns 0 or -errno. */
int titles_of_new(struct collector *c, uint64_t now);

/* Record those of all processes in the recording that live. Returns 0 or -errno. */
int titles_at_end(struct collector *c);

#endif
