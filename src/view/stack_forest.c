/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/stack_forest.h"

#include <errno.h>
#include <stdlib.h>

#include "profile/profile.h"

static void add_samples(struct stack_forest *f, const struct view_selection *sel)
{
	const struct profile *p = f->profile;

	for (size_t i = 0; i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];
		const struct view_sum sum = view_sum_at(p, i);

		if (!view_selected(sel, a))
			continue;
		plain_sum_add(&f->self[a->stack], &sum.plain);
		if (f->self_waits)
			wait_sum_add(&f->self_waits[a->stack], &sum.waits);
	}
}

/* @stack has its children's already: add its own, and all to @parent, PROFILE_NONE if it has none.
 */
static void add_below(struct stack_forest *f, uint32_t stack, uint32_t parent)
{
	plain_sum_add(&f->below[stack], &f->self[stack]);
	if (f->self_waits)
		wait_sum_add(&f->below_waits[stack], &f->self_waits[stack]);
	if (parent == PROFILE_NONE)
		return;
	plain_sum_add(&f->below[parent], &f->below[stack]);
	if (f->self_waits)
		wait_sum_add(&f->below_waits[parent], &f->below_waits[stack]);
}

/*
 * A stack's id is above its callers': from the last to the first, each is complete when it is met.
 */
static void link_stacks(struct stack_forest *f)
{
	const struct profile *p = f->profile;

	for (uint32_t i = (uint32_t)p->n_stacks; i-- > 1;) {
		uint32_t parent = p->stacks[i].parent;

		add_below(f, i, parent);
		f->next_sibling[i] = f->first_child[parent];
		f->first_child[parent] = i;
	}
	add_below(f, 0, PROFILE_NONE);
}

/* Room for lengths of waits, if they are known. */
static int init_waits(struct stack_forest *f, size_t n)
{
	if (!f->profile->with_lengths)
		return 0;
	f->self_waits = calloc(n, sizeof(*f->self_waits));
	f->below_waits = calloc(n, sizeof(*f->below_waits));
	return f->self_waits && f->below_waits ? 0 : -ENOMEM;
}

int stack_forest_init(const struct profile *p, const struct view_selection *sel,
		      struct stack_forest *ret)
{
	_cleanup_stack_forest_ struct stack_forest f = { .profile = p };
	size_t n = p->n_stacks + 1;

	f.self = calloc(n, sizeof(*f.self));
	f.below = calloc(n, sizeof(*f.below));
	f.first_child = calloc(n, sizeof(*f.first_child));
	f.next_sibling = calloc(n, sizeof(*f.next_sibling));
	if (!f.self || !f.below || !f.first_child || !f.next_sibling || init_waits(&f, n))
		return -ENOMEM;
	add_samples(&f, sel);
	link_stacks(&f);
	*ret = f;
	f = (struct stack_forest)STACK_FOREST_INIT; /* owned by *ret now */
	return 0;
}

void stack_forest_deinit(struct stack_forest *f)
{
	if (!f)
		return;
	free(f->self);
	free(f->below);
	free(f->self_waits);
	free(f->below_waits);
	free(f->first_child);
	free(f->next_sibling);
	*f = (struct stack_forest)STACK_FOREST_INIT;
}

static struct view_sum with_waits(const struct plain_sum *s, const struct wait_sum *waits)
{
	struct view_sum sum = { .plain = *s };

	if (waits)
		sum.waits = *waits;
	return sum;
}

struct view_sum stack_forest_self(const struct stack_forest *f, uint32_t stack)
{
	return with_waits(&f->self[stack], f->self_waits ? &f->self_waits[stack] : NULL);
}

struct view_sum stack_forest_below(const struct stack_forest *f, uint32_t stack)
{
	return with_waits(&f->below[stack], f->below_waits ? &f->below_waits[stack] : NULL);
}

void stack_forest_walk(const struct stack_forest *f, stack_fn *enter, stack_fn *leave, void *arg)
{
	uint32_t stack = f->first_child[0];

	while (stack) {
		enter(arg, stack);
		if (f->first_child[stack]) {
			stack = f->first_child[stack];
			continue;
		}
		leave(arg, stack);
		while (stack && !f->next_sibling[stack]) {
			stack = f->profile->stacks[stack].parent;
			if (stack)
				leave(arg, stack);
		}
		stack = f->next_sibling[stack];
	}
}

int stacks_shown(const struct profile *p, const struct view_selection *sel, uint32_t **ret)
{
	uint32_t *shown = calloc(p->n_stacks + 1, sizeof(*shown));

	if (!shown)
		return -ENOMEM;
	for (size_t i = 1; i < p->n_stacks; i++)
		shown[i] = view_frame_shown(sel, p->stacks[i].frame) ? (uint32_t)i
								     : shown[p->stacks[i].parent];
	*ret = shown;
	return 0;
}
