/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/memory.h"

/*
 * The shim under which the BPF walker compiles as host C: its state is found by CPU number, so
 * here the number is a slot of a table with one entry, set for the time of a call.
 */
struct walk;

struct walk_host {
	const struct memory *mem;
	struct walk *walk;
};

static _Thread_local struct walk_host host;

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define __noinline		   static __attribute__((noinline))
#define walk_state(walk_id)	   ((void)(walk_id), host.walk)
#define walk_read(dst, size, addr) memory_read(host.mem, (addr), (dst), (size))
#define walk_count(counter)	   ((void)(counter))
#define walk_request_rule(w, iseq) ((void)(w), (void)(iseq), NULL)

#include "../../bpf/ruby_complete.bpf.h"

int ruby_walk(const struct memory *mem, const struct rbpf_layout *layout, uint64_t ec,
	      uint32_t max_frames, struct ruby_stack *ret)
{
	struct ruby_stack stack = { 0 };
	struct walk *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->layout = *layout;
	w->max_frames = max_frames;
	w->seed = 1;
	host = (struct walk_host) { .mem = mem, .walk = w };
	stack.status = walk_ec(w, 0, ec);
	walk_complete(0);
	host = (struct walk_host) { 0 };

	stack.frames = malloc(w->n_frames * sizeof(*stack.frames) + 1);
	if (!stack.frames) {
		free(w);
		return -ENOMEM;
	}
	stack.n_frames = w->n_frames;
	stack.hash = w->hash;
	memcpy(stack.frames, w->frames, w->n_frames * sizeof(*stack.frames));
	free(w);
	*ret = stack;
	return 0;
}

void ruby_stack_deinit(struct ruby_stack *stack)
{
	free(stack->frames);
	*stack = (struct ruby_stack) { 0 };
}
