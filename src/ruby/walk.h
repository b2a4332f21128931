/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The walk of the BPF side (bpf/ruby_walk.bpf.h), run in user space over another process' memory:
 * for the self-check, for rbpf dump, and for tests over memory images.
 *
 * The target runs on meanwhile: a stack read this way is consistent only if its thread stands
 * still.
 */
#ifndef RBPF_RUBY_WALK_H
#define RBPF_RUBY_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "rbpf_abi.h"

struct memory;

/*
 * At most so much is read for one stack (struct memory_budget), or 14,000 reads, since a process
 * decides how many it takes. The deepest stack of compiled code takes 8,000 (ZJIT), and one of 4096
 * frames that are all of other methods would take 16,000.
 */
#define RUBY_WALK_BYTES (32u << 20)

struct ruby_stack {
	struct rbpf_frame *frames; /* innermost first, with the mark of those left out; owned */
	uint32_t n_frames;
	uint64_t hash; /* equal for stacks of the same frames, of one process */
	enum rbpf_status status;
};

/*
 * Walk the stack of the EC at @ec, at most @max_frames frames of it. Returns 0 with @ret->status
 * telling what was found, or -ENOMEM. RBPF_FAULT_STACK also if more than RUBY_WALK_BYTES, or than
 * the budget of @mem if it has one, would have to be read. @ret: ruby_stack_deinit().
 */
int ruby_walk(const struct memory *mem, const struct rbpf_layout *layout, uint64_t ec,
	      uint32_t max_frames, struct ruby_stack *ret);
void ruby_stack_deinit(struct ruby_stack *stack);

/* Which iseqs have a rule, whose frames tell the request of a stack. */
struct ruby_walk_rules {
	const struct rbpf_request_rule *(*find)(const void *arg, uint64_t iseq); /* or NULL */
	const void *arg;
};

/*
 * The same, and read what names the request, of the innermost frame that has one of @rules, into
 * *@request: all but its header and eras. *@found: there is such a frame; else *@request is
 * untouched.
 */
int ruby_walk_request(const struct memory *mem, const struct rbpf_layout *layout, uint64_t ec,
		      uint32_t max_frames, const struct ruby_walk_rules *rules,
		      struct ruby_stack *ret, struct rbpf_ring_request *request, bool *found);

#endif
