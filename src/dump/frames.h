/* SPDX-License-Identifier: GPL-2.0-only */
/* The frames of a thread: its Ruby frames alone, or both stacks merged. */
#ifndef RBPF_DUMP_FRAMES_H
#define RBPF_DUMP_FRAMES_H

#include <stddef.h>
#include <stdint.h>

struct dump_frame;
struct native_user_walk;
struct native_stack;
struct resolver;

/* A thread's Ruby frames as resolver_stack() has named them last, innermost first. */
struct dump_ruby {
	struct resolver *resolver;
	const uint32_t *symbols;
	size_t n;
};

/*
 * Make a struct dump_frame of each frame, innermost first: of the Ruby frames, and of those of
 * @native, whose missing outer end is a frame, too. @here NULL: Ruby frames only. *@ret is the
 * caller's to free; what its frames point to lives as long as @here and the resolver. Returns 0 or
 * -ENOMEM.
 */
int dump_frames(struct native_user_walk *here, const struct dump_ruby *ruby,
		const struct native_stack *native, struct dump_frame **ret, size_t *n);

#endif
