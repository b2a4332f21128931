/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "profile/reason.h"

static const struct {
	const char *word, *text;
	enum frame_reason reason;
} states[STATES] = {
	[STATE_USER] = { "user", "runs Ruby and native code", REASON_NONE },
	[STATE_SYSTEM] = { "system", "runs in the kernel", REASON_NONE },
	[STATE_MINOR_FAULT] = { "minor-fault", "handles a page fault in the kernel", REASON_NONE },
	[STATE_WAIT_CPU] = { "wait-cpu", "waits for a CPU", REASON_WAIT_CPU },
	[STATE_THROTTLED] = { "throttled", "is kept from a CPU by its control group",
			      REASON_WAIT_THROTTLED },
	[STATE_GVL] = { "gvl", "waits for the GVL", REASON_WAIT_GVL },
	[STATE_LOCK] = { "lock", "waits for a lock", REASON_WAIT_LOCK },
	[STATE_FAULT] = { "fault", "waits for a page of memory", REASON_WAIT_FAULT },
	[STATE_DISK] = { "disk", "waits for a file", REASON_WAIT_DISK },
	[STATE_NETWORK] = { "network", "waits for the network", REASON_WAIT_NETWORK },
	[STATE_PIPE] = { "pipe", "waits for a pipe", REASON_WAIT_PIPE },
	[STATE_TIMER] = { "timer", "sleeps", REASON_WAIT_TIMER },
	[STATE_JOIN] = { "join", "waits for a thread to end", REASON_WAIT_JOIN },
	[STATE_CHILD] = { "child", "waits for a child process", REASON_WAIT_CHILD },
	[STATE_STOPPED] = { "stopped", "is stopped", REASON_WAIT_STOPPED },
	[STATE_OTHER] = { "other", "waits for something else", REASON_WAIT_OTHER },
	[STATE_IDLE] = { "idle", "waits for something to do", REASON_WAIT_IDLE },
};

const char *state_word(size_t state)
{
	return state < STATES ? states[state].word : NULL;
}

const char *state_text(enum thread_state state)
{
	return states[state].text;
}

const char *state_and_gvl(unsigned int state)
{
	if (state & STATE_HELD)
		return "and holds the GVL";
	return state & STATE_TURN ? "as its turn was over" : "";
}

const char *state_part_word(size_t part)
{
	return part == STATE_PART_HELD ? STATE_WORD_HELD : state_word(part);
}

const char *state_part_text(size_t part)
{
	return part == STATE_PART_HELD ? "waits, but holds the GVL" : states[part].text;
}

enum thread_state state_of_reason(uint32_t reason)
{
	for (size_t i = STATE_WAIT_CPU; i < STATES; i++)
		if (states[i].reason == reason)
			return (enum thread_state)i;
	return STATE_OTHER; /* known to a newer rbpf alone */
}

/* What a frame with @reason says of a wait upon it. */
static uint8_t gvl_bit(uint32_t reason)
{
	if (reason == REASON_GVL_HELD)
		return STATE_HELD;
	return reason == REASON_GVL_TURN ? STATE_TURN : 0;
}

int state_of_stacks(const struct profile *p, uint8_t **ret)
{
	uint8_t *of = calloc(p->n_stacks + 1, sizeof(*of));

	if (!of)
		return -ENOMEM;
	for (size_t i = 1; i < p->n_stacks; i++) {
		const struct profile_frame *f = &p->frames[p->stacks[i].frame];
		uint32_t parent = p->stacks[i].parent;

		if (f->kind != FRAME_WAIT || reason_is_of_gvl(f->reason))
			continue;
		of[i] = (uint8_t)state_of_reason(f->reason);
		if (parent)
			of[i] |= gvl_bit(p->frames[p->stacks[parent].frame].reason);
	}
	*ret = of;
	return 0;
}

struct wait_set state_reasons(uint64_t states_wanted)
{
	struct wait_set reasons = { 0 };

	for (size_t i = STATE_WAIT_CPU; i < STATES; i++) {
		if (states_wanted >> i & 1)
			reasons.free |= 1ull << states[i].reason;
		if (states_wanted >> i >> STATE_SET_HELD_SHIFT & 1)
			reasons.held |= 1ull << states[i].reason;
	}
	return reasons;
}

/* The set that one word means; 0: none. */
static uint64_t set_of(const char *word)
{
	if (!strcmp(word, "wait"))
		return STATE_SET_ALL & ~STATE_SET_CPU;
	if (!strcmp(word, STATE_WORD_HELD))
		return STATE_SET_HELD;
	for (size_t i = 0; i < STATES; i++)
		if (!strcmp(word, states[i].word))
			return state_set_of((enum thread_state)i);
	return 0;
}

int state_set_parse(const char *words, uint64_t *ret, struct err *err)
{
	_cleanup_free_ char *copy = strdup(words);
	char *rest = copy, *word;
	uint64_t all = 0;

	if (!copy)
		return err_oom(err);
	while ((word = strsep(&rest, ","))) {
		uint64_t set = set_of(word);

		if (!set) {
			err_set(err, -EINVAL, ERR_USAGE, "unknown state '%s'", word);
			err_hint(err, STATE_SET_WORDS "; wait is all but the first three");
			return -EINVAL;
		}
		all |= set;
	}
	*ret = all;
	return 0;
}
