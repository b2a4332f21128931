/* SPDX-License-Identifier: GPL-2.0-only */
/* Strings and stacks that a test defines in a sink; a test whose sink refuses one fails. */
#ifndef RBPF_TESTS_SINK_DEFINE_H
#define RBPF_TESTS_SINK_DEFINE_H

#include <criterion/criterion.h>
#include <string.h>

#include "profile/reason.h"
#include "profile/sink.h"

static inline uint32_t string_of(struct sink *s, const char *text)
{
	uint32_t id = 0;

	cr_assert_eq(sink_string(s, text, strlen(text), &id), 0);
	return id;
}

/* A stack of one frame, the wait for @reason. */
static inline uint32_t wait_of(struct sink *s, enum frame_reason reason)
{
	const struct profile_frame frame = { .kind = FRAME_WAIT,
					     .name = string_of(s, "wait"),
					     .module = PROFILE_NONE,
					     .reason = reason };
	uint32_t id, stack = 0;

	cr_assert_eq(sink_frame(s, &frame, &id), 0);
	cr_assert_eq(sink_stack(s, 0, id, &stack), 0);
	return stack;
}

#endif
