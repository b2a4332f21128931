/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "target/memory.h"

/*
 * The shim under which the BPF walker compiles as host C: its state is found by CPU number, so
 * here the number is a slot of a table with one entry, set for the time of a call.
 */
struct walk;

struct walk_host {
	const struct memory *mem;
	struct walk *walk;
	const struct ruby_walk_rules *rules; /* NULL: none */
};

static _Thread_local struct walk_host host;

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define __noinline		   static __attribute__((noinline))
#define walk_state(walk_id)	   ((void)(walk_id), host.walk)
#define walk_read(dst, size, addr) memory_read(host.mem, (addr), (dst), (size))
#define walk_count(counter)	   ((void)(counter))
#define walk_request_rule(w, iseq) ((void)(w), host.rules->find(host.rules->arg, (iseq)))

#include "../../bpf/request_read.bpf.h"

/* Walk the EC at @ec, and finish its frames. */
static enum rbpf_status walk_whole(struct walk *w, uint64_t ec)
{
	enum rbpf_status status = walk_ec(w, 0, ec);

	walk_complete(0);
	/* Frames whose environment or method entry was not read any more are not what they seem. */
	return status == RBPF_OK && host.mem->budget->used_up ? RBPF_FAULT_STACK : status;
}

/* The frames of @w. */
static int take_stack(const struct walk *w, enum rbpf_status status, struct ruby_stack *ret)
{
	struct ruby_stack stack = { .status = status, .n_frames = w->n_frames, .hash = w->hash };

	stack.frames = malloc(w->n_frames * sizeof(*stack.frames) + 1);
	if (!stack.frames)
		return -ENOMEM;
	memcpy(stack.frames, w->frames, w->n_frames * sizeof(*stack.frames));
	*ret = stack;
	return 0;
}

int ruby_walk_request(const struct memory *mem, const struct rbpf_layout *layout, uint64_t ec,
		      uint32_t max_frames, const struct ruby_walk_rules *rules,
		      struct ruby_stack *ret, struct rbpf_ring_request *request, bool *found)
{
	_cleanup_free_ struct walk *w = calloc(1, sizeof(*w));
	struct memory_budget budget = { .left = RUBY_WALK_BYTES };
	struct memory within = *mem;
	enum rbpf_status status;

	if (!w)
		return -ENOMEM;
	w->layout = *layout;
	w->max_frames = max_frames;
	w->seed = 1;
	w->request_wanted = rules != NULL;
	memset(&w->request_filter, 0xff, sizeof(w->request_filter)); /* ask for each iseq */
	if (!within.budget)
		within.budget = &budget;
	host = (struct walk_host) { .mem = &within, .walk = w, .rules = rules };
	status = walk_whole(w, ec);
	if (rules)
		*found = status == RBPF_OK && w->request_found;
	if (rules && *found) {
		request_keep_frame(w);
		request_read(0);
		request_take_checks(0);
		*request = w->request;
	}
	host = (struct walk_host) { 0 };
	return take_stack(w, status, ret);
}

int ruby_walk(const struct memory *mem, const struct rbpf_layout *layout, uint64_t ec,
	      uint32_t max_frames, struct ruby_stack *ret)
{
	return ruby_walk_request(mem, layout, ec, max_frames, NULL, ret, NULL, NULL);
}

void ruby_stack_deinit(struct ruby_stack *stack)
{
	free(stack->frames);
	*stack = (struct ruby_stack) { 0 };
}
