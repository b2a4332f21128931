/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the collector holds only because to read it again would take time: names, what the sink was
 * told, stacks.
 */
#ifndef RBPF_SAMPLE_FORGET_H
#define RBPF_SAMPLE_FORGET_H

#include <stdint.h>

struct collector;

/*
 * Near the limit of memory, forget as much of it as is needed; if all of it does not help, note
 * that no more processes are to be followed.
 */
void forget_over_limit(struct collector *c);

/*
 * Have the sink forget the stacks that it was told, if they are many and not all new. A program
 * that does ever different things makes thousands of them a second; one that still comes after that
 * is told again.
 */
void forget_many_stacks(struct collector *c);

/*
 * Forget the names of processes that have too many old ones (names_age.h), those of native frames,
 * and what the sink was told, if they have.
 */
void forget_old_names(struct collector *c, uint64_t now);

#endif
