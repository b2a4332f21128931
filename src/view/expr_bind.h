/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A filter expression applied to one profile: which of its terms hold for each thread, stack, kind
 * of request and state, as bits, so that for a sample these are combined and the expression is
 * evaluated once.
 */
#ifndef RBPF_VIEW_EXPR_BIND_H
#define RBPF_VIEW_EXPR_BIND_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/time_cut.h"
#include "view/state.h"

struct profile;
struct profile_aggregate;
struct view_expr;
struct view_selection;

struct expr_binding {
	const struct view_expr *expr; /* not owned, as is … */
	const struct profile *profile;
	/*
	 * A bit for each term that holds; all but the last ones owned, NULL if it has no such term.
	 */
	uint64_t *threads;		  /* by thread id */
	uint64_t *stacks;		  /* by stack id */
	uint64_t *requests;		  /* by kind of request */
	uint64_t states[64];		  /* by bit of a set of states */
	uint64_t marks[PROFILE_MAX_CUTS]; /* by bit of profile_aggregate.marks */
	uint64_t gc;
	uint64_t of_requests;	  /* the terms that are for requests */
	uint8_t *states_of_stack; /* state.h; owned; NULL if not needed */
	uint8_t *gc_phases;	  /* gc_phase.h; the same */
};

/*
 * @shown says which frames are shown: the leaf is the innermost of these. The profile must be
 * by_thread, by_request if
 * @e has terms for requests, and read with the cuts and marks of @e. Returns 0, -ENOMEM, or
 * -EINVAL. @ret, which is zeroed before, is to be released with expr_binding_deinit() in either
 * case.
 */
int expr_bind(const struct view_expr *e, const struct profile *p,
	      const struct view_selection *shown, struct expr_binding *ret);
void expr_binding_deinit(struct expr_binding *b);

/* Whether it is true of the samples of @a. */
bool expr_holds(const struct expr_binding *b, const struct profile_aggregate *a);

/* Whether it can be true of samples of requests of this kind. */
bool expr_can_hold_for_request(const struct expr_binding *b, uint32_t kind);

#endif
