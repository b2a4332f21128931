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

struct err;
struct profile;

enum thread_state {
	STATE_USER,   /* on a CPU, in user mode … */
	STATE_SYSTEM, /* … and in the kernel */
	STATE_WAIT_CPU,
	STATE_THROTTLED,
	STATE_GVL,
	STATE_LOCK,
	STATE_FAULT,
	STATE_DISK,
	STATE_NETWORK,
	STATE_PIPE,
	STATE_TIMER,
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

/*
 * Whether a thread in this state is off the CPU, so that the value of its sample is how long it has
 * waited.
 */
static inline bool state_waits(enum thread_state state)
{
	return state != STATE_USER && state != STATE_SYSTEM;
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

/*
 * The state of samples with @stack, with STATE_HELD or STATE_TURN; @in_kernel: they have
 * SAMPLE_KERNEL. @states: of state_of_stacks().
 */
static inline unsigned int state_of(const uint8_t *states, uint32_t stack, bool in_kernel)
{
	return states[stack] == STATE_USER && in_kernel ? STATE_SYSTEM : states[stack];
}

/* In words, what STATE_HELD or STATE_TURN in @state adds to that: "and holds the GVL"; or "". */
const char *state_and_gvl(unsigned int state);

/* The reasons of waits in @states, a set as that of state_set_parse(): 1 << enum frame_reason. */
uint64_t state_reasons(uint32_t states);

/*
 * "gvl,lock" as a set of 1 << enum thread_state; "wait" is all but user and system. Returns 0, or
 * -EINVAL (ERR_USAGE).
 */
int state_set_parse(const char *words, uint32_t *ret, struct err *err);

#endif
