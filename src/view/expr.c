/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/expr.h"

#include <stdlib.h>

/* What is known of a node: it can be true, it can be false. */
#define CAN_HOLD (1u << 0)
#define CAN_FAIL (1u << 1)

void view_expr_free(struct view_expr *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->n_terms; i++) {
		free(e->terms[i].text);
		if (e->terms[i].has_pattern)
			regfree(&e->terms[i].pattern);
	}
	free(e->nodes);
	free(e);
}

/*
 * The term of a node that must hold for the whole to hold, if it bounds time as is asked for. "time
 * < X" is parsed to not(time >= X).
 */
static struct expr_node *find_bound(struct view_expr *e, uint32_t node, bool end)
{
	struct expr_node *n = &e->nodes[node], *found = NULL;
	const struct expr_node *term = n;
	const struct time_cut *cut;

	if (n->kind == EXPR_AND) {
		found = find_bound(e, n->left, end);
		return found ? found : find_bound(e, n->right, end);
	}
	if (n->kind == EXPR_NOT && end)
		term = &e->nodes[n->left];
	else if (end)
		return NULL;
	if (term->kind != EXPR_TERM || e->terms[term->left].field != EXPR_TIME)
		return NULL;
	cut = &e->cuts[e->terms[term->left].cut];
	/*
	 * A range of time begins with its first ns and ends before its last. An end of 0 stands for
	 * that of the recording there.
	 */
	return cut->after || (end && !cut->clock.given && !cut->since_start_ns) ? NULL : n;
}

bool view_expr_take_bound(struct view_expr *e, bool end, struct time_cut *ret)
{
	struct expr_node *n = find_bound(e, (uint32_t)e->n - 1, end);
	const struct expr_node *term;

	if (!n)
		return false;
	term = n->kind == EXPR_NOT ? &e->nodes[n->left] : n;
	*ret = e->cuts[e->terms[term->left].cut];
	n->kind = EXPR_TRUE;
	/* Waits need not be divided by what is asked of no sample any more. */
	if (!view_expr_has(e, EXPR_TIME))
		e->n_cuts = 0;
	return true;
}

/* Which of its terms are still reached from its root. */
static uint64_t terms_in(const struct view_expr *e, uint32_t node)
{
	const struct expr_node *n = &e->nodes[node];

	switch (n->kind) {
	case EXPR_TERM:
		return 1ull << n->left;
	case EXPR_NOT:
		return terms_in(e, n->left);
	case EXPR_AND:
	case EXPR_OR:
		return terms_in(e, n->left) | terms_in(e, n->right);
	default:
		return 0;
	}
}

static uint32_t fields_below(const struct view_expr *e, uint32_t node)
{
	uint64_t terms = terms_in(e, node);
	uint32_t fields = 0;

	for (size_t i = 0; i < e->n_terms; i++)
		if (terms >> i & 1)
			fields |= 1u << e->terms[i].field;
	return fields;
}

static uint32_t fields_in(const struct view_expr *e)
{
	return fields_below(e, (uint32_t)e->n - 1);
}

/* The states in which @node holds, whose terms are all of states. */
static uint64_t states_of(const struct view_expr *e, uint32_t node)
{
	const struct expr_node *n = &e->nodes[node];

	switch (n->kind) {
	case EXPR_TERM:
		return e->terms[n->left].states;
	case EXPR_NOT:
		return ~states_of(e, n->left);
	case EXPR_AND:
		return states_of(e, n->left) & states_of(e, n->right);
	case EXPR_OR:
		return states_of(e, n->left) | states_of(e, n->right);
	default:
		return UINT64_MAX;
	}
}

static uint64_t take_states(struct view_expr *e, uint32_t node)
{
	struct expr_node *n = &e->nodes[node];
	uint64_t states = UINT64_MAX;

	if (fields_below(e, node) == 1u << EXPR_STATE) {
		states = states_of(e, node);
		n->kind = EXPR_TRUE;
	} else if (n->kind == EXPR_AND) {
		states = take_states(e, n->left) & take_states(e, n->right);
	}
	return states;
}

uint64_t view_expr_take_states(struct view_expr *e)
{
	return take_states(e, (uint32_t)e->n - 1);
}

bool view_expr_has(const struct view_expr *e, enum expr_field field)
{
	return fields_in(e) >> field & 1;
}

bool view_expr_is_of_threads(const struct view_expr *e)
{
	const uint32_t of_threads = 1u << EXPR_PID | 1u << EXPR_TID | 1u << EXPR_THREAD |
				    1u << EXPR_COMM | 1u << EXPR_CONTAINER | 1u << EXPR_SERVICE;

	return !(fields_in(e) & ~of_threads);
}

bool view_expr_is_empty(const struct view_expr *e)
{
	return !fields_in(e);
}

static unsigned int combine(enum expr_kind kind, unsigned int a, unsigned int b)
{
	switch (kind) {
	case EXPR_AND:
		return (a & b & CAN_HOLD) | ((a | b) & CAN_FAIL);
	case EXPR_OR:
		return ((a | b) & CAN_HOLD) | (a & b & CAN_FAIL);
	case EXPR_NOT:
		return (a & CAN_HOLD ? CAN_FAIL : 0) | (a & CAN_FAIL ? CAN_HOLD : 0);
	default:
		return CAN_HOLD;
	}
}

bool view_expr_can_hold(const struct view_expr *e, uint64_t maybe, uint64_t maybe_not)
{
	unsigned char known[EXPR_MAX_BYTES]; /* by node: each takes a byte of text at least */

	for (size_t i = 0; i < e->n; i++) {
		const struct expr_node *n = &e->nodes[i];

		if (n->kind == EXPR_TERM)
			known[i] = (maybe >> n->left & 1 ? CAN_HOLD : 0) |
				   (maybe_not >> n->left & 1 ? CAN_FAIL : 0);
		else if (n->kind == EXPR_TRUE)
			known[i] = CAN_HOLD;
		else
			known[i] = (unsigned char)combine(n->kind, known[n->left], known[n->right]);
	}
	return known[e->n - 1] & CAN_HOLD;
}
