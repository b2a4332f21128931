/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stacks of a recording as a tree that is walked from callers to callees, with the weight of
 * the selected samples.
 *
 * What is asked of "all samples with X anywhere in the stack" needs no look at each sample: below
 * one of X' stacks are all of them, and on the way there it is known whether X was met before.
 */
#ifndef RBPF_VIEW_STACK_FOREST_H
#define RBPF_VIEW_STACK_FOREST_H

#include <stdint.h>

#include "base/cleanup.h"
#include "view/filter.h"

struct profile;
struct profile_aggregate;

/* By stack id, of which there may be millions; owned. */
struct stack_forest {
	const struct profile *profile;
	struct plain_sum *self;
	struct plain_sum *below; /* its own and of all stacks that it is a prefix of */
	struct wait_sum *self_waits, *below_waits; /* NULL if the profile is not with_lengths */
	uint32_t *first_child;			   /* 0 if none */
	uint32_t *next_sibling;
};

#define STACK_FOREST_INIT                                                                          \
	{                                                                                          \
		0                                                                                  \
	}

/* Returns 0 or -ENOMEM. @ret: stack_forest_deinit(); @p and @sel must live as long. */
int stack_forest_init(const struct profile *p, const struct view_selection *sel,
		      struct stack_forest *ret);
void stack_forest_deinit(struct stack_forest *f);
#define _cleanup_stack_forest_ _cleanup_(stack_forest_deinit)

/* Of the samples with @stack, and of those and of all that go on from it. */
struct view_sum stack_forest_self(const struct stack_forest *f, uint32_t stack);
struct view_sum stack_forest_below(const struct stack_forest *f, uint32_t stack);

/*
 * Call @enter of each stack but the empty one, before those that go on from it, and @leave after
 * them. However deep they are, it does not recurse.
 */
typedef void stack_fn(void *arg, uint32_t stack);
void stack_forest_walk(const struct stack_forest *f, stack_fn *enter, stack_fn *leave, void *arg);

/*
 * By stack id: the stack, itself or of its callers, whose innermost frame is the nearest that @sel
 * shows; 0 if there is none. Returns 0 or -ENOMEM. *@ret: free().
 */
int stacks_shown(const struct profile *p, const struct view_selection *sel, uint32_t **ret);

#endif
