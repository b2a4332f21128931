/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state that a thread was in when a sample was taken of it: on a CPU, or off it and waiting for
 * something. All time of a thread is in one of them.
 */
#ifndef RBPF_VIEW_STATE_H
#define RBPF_VIEW_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "profile/wakeups.h"

struct err;

enum thread_state {
	STATE_USER,	   /* on a CPU, in user mode … */
	STATE_SYSTEM,	   /* … in the kernel … */
	STATE_MINOR_FAULT, /* … and there in a page fault */
	STATE_WAIT_CPU,	   /* the first of those off the CPU */
	STATE_THROTTLED,
	STATE_GVL,
	STATE_LOCK,
	STATE_FAULT,
	STATE_DISK,
	STATE_NETWORK,
	STATE_PIPE,
	STATE_TIMER,
	STATE_JOIN,
	STATE_CHILD,
	STATE_STOPPED,
	STATE_OTHER,
	STATE_IDLE,
	STATES,
};

/* The word of options and machine output, "gvl"; NULL past the last. */
const char *state_word(size_t state);

/* In words for people: "waits for the GVL". */
const char *state_text(enum thread_state state);

/* That of a wait whose frame has @reason (profile/reason.h). */
enum thread_state state_of_reason(uint32_t reason);

/*
 * Whether a thread in this state is off the CPU, so that the value of its sample is how long it has
 * waited.
 */
static inline bool state_waits(enum thread_state state)
{
	return state >= STATE_WAIT_CPU;
}

/*
 * Of a stack: enum thread_state, and whether the thread held the GVL meanwhile, or waits for it as
 * its turn was over.
 */
#define STATE_MASK 0x3fu
#define STATE_HELD 0x40u
#define STATE_TURN 0x80u
#define STATE_SETS 0x100u /* of a state and these */

/*
 * By stack id: what samples with it waited for, with STATE_HELD or STATE_TURN; STATE_USER of those
 * that did not wait. @ret: free(). Returns 0 or -ENOMEM.
 */
int state_of_stacks(const struct profile *p, uint8_t **ret);

/* The state of samples of CPU time with @flags, SAMPLE_*. */
static inline enum thread_state state_of_cpu(unsigned int flags)
{
	if (!(flags & SAMPLE_KERNEL))
		return STATE_USER;
	return flags & SAMPLE_PAGE_FAULT ? STATE_MINOR_FAULT : STATE_SYSTEM;
}

/*
 * The state of samples with @stack and @flags, SAMPLE_*; with STATE_HELD or STATE_TURN. @states: of
 * state_of_stacks().
 */
static inline unsigned int state_of(const uint8_t *states, uint32_t stack, unsigned int flags)
{
	return states[stack] == STATE_USER ? state_of_cpu(flags) : states[stack];
}

/* In words, what STATE_HELD or STATE_TURN in @state adds to that: "and holds the GVL"; or "". */
const char *state_and_gvl(unsigned int state);

/*
 * What pictures divide all time into: the states, but all waits with the GVL are a part of their
 * own, whatever they are for.
 */
#define STATE_PART_HELD STATES
#define STATE_PARTS	(STATES + 1)

/* The part of samples of a state with STATE_HELD, as state_of() returns it. */
static inline unsigned int state_part(unsigned int state)
{
	return state & STATE_HELD ? (unsigned int)STATE_PART_HELD : state & STATE_MASK;
}

/* As state_word() and state_text(). */
const char *state_part_word(size_t part);
const char *state_part_text(size_t part);

/*
 * Sets of states have two bits for each: for samples in which the thread did not hold the GVL,
 * 1 << enum thread_state, and for waits in which it did.
 */
#define STATE_SET_HELD_SHIFT 32
#define STATE_SET_FREE	     ((1ull << STATES) - 1)
#define STATE_SET_HELD	     (STATE_SET_FREE << STATE_SET_HELD_SHIFT)
#define STATE_SET_ALL	     (STATE_SET_FREE | STATE_SET_HELD)
_Static_assert(STATES <= STATE_SET_HELD_SHIFT, "a set has 64 bits");

/* The number of the bit for samples of a state with STATE_HELD, as state_of() returns it. */
static inline unsigned int state_set_bit(unsigned int state)
{
	return (state & STATE_MASK) + (state & STATE_HELD ? STATE_SET_HELD_SHIFT : 0);
}

/* Both bits of a state. */
static inline uint64_t state_set_of(enum thread_state state)
{
	return 1ull << state | 1ull << (state + STATE_SET_HELD_SHIFT);
}

/* Both bits of all states of CPU time. */
#define STATE_SET_CPU (((1ull << STATE_WAIT_CPU) - 1) * (1 | 1ull << STATE_SET_HELD_SHIFT))

/* The waits in @states, a set. */
struct wait_set state_reasons(uint64_t states);

/* The word for waits in which the thread held the GVL, whatever they are for. */
#define STATE_WORD_HELD "gvl-held"

/* All words of sets, for messages. */
#define STATE_SET_WORDS                                                                            \
	"user, system, minor-fault, wait-cpu, throttled, gvl, lock, fault, disk, network, pipe, "  \
	"timer, join, child, stopped, other, idle, wait, " STATE_WORD_HELD

/*
 * "gvl,lock" as a set; "wait" is all but user, system and minor-fault, "gvl-held" all waits in
 * which the thread held the GVL. Returns 0, or -EINVAL (ERR_USAGE).
 */
int state_set_parse(const char *words, uint64_t *ret, struct err *err);

#endif
