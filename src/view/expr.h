/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The language of --filter: terms that compare what is known of a sample, joined by and, or and
 * not.
 *
 *	thread =~ /^puma/ and not (frame = "Cart#total" or state = gvl) and time >= 5s
 *
 *	expression: all { "or" all }
 *	all:	    one { "and" one }
 *	one:	    "not" one | "(" expression ")" | "gc" | field operator value
 *
 * rbpf-filter(5) says what the fields mean. An expression is parsed once and knows no recording;
 * which of its terms hold for threads, stacks and requests of one is found by binding it to that
 * (expr_bind.h). Not thread-safe.
 */
#ifndef RBPF_VIEW_EXPR_H
#define RBPF_VIEW_EXPR_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/span_mark.h"
#include "profile/time_cut.h"

struct err;

/* Limits of an expression; one that has more is refused. */
#define EXPR_MAX_BYTES 4096
#define EXPR_MAX_DEPTH 64 /* of parentheses and not */
#define EXPR_MAX_TERMS 64 /* a bit each */

enum expr_field {
	EXPR_PID,
	EXPR_TID,
	EXPR_THREAD,
	EXPR_COMM,
	EXPR_CONTAINER,
	EXPR_SERVICE,
	EXPR_REQUEST,
	EXPR_FRAME,
	EXPR_CALLER,
	EXPR_LEAF,
	EXPR_GEM,
	EXPR_STATE,
	EXPR_EVENT,
	EXPR_TIME,
	EXPR_TRACE,
	EXPR_SPAN,
	EXPR_GC,
	EXPR_FIELDS,
};

/* The others are made of these: a != b is not a = b, a >= b is not a < b, and so on. */
enum expr_op { EXPR_EQUAL, EXPR_MATCHES, EXPR_LESS, EXPR_GREATER };

struct expr_term {
	enum expr_field field;
	enum expr_op op;
	size_t at;	 /* byte of the expression where it begins */
	char *text;	 /* that a name is equal to; owned */
	regex_t pattern; /* that it matches, valid if … */
	bool has_pattern;
	uint64_t number;   /* of a pid or tid */
	uint64_t states;   /* a set (state.h) */
	uint8_t cut;	   /* holds for samples not before this one of .cuts … */
	uint8_t span_mark; /* … or with this one of .span_marks */
};

enum expr_kind { EXPR_TERM, EXPR_TRUE, EXPR_NOT, EXPR_AND, EXPR_OR };

struct expr_node {
	enum expr_kind kind;
	uint32_t left, right; /* nodes before this one; of EXPR_TERM, .left is the term */
};

struct view_expr {
	struct expr_node *nodes; /* operands before operators; the last is the root; owned */
	size_t n, cap;
	struct expr_term terms[EXPR_MAX_TERMS];
	size_t n_terms;
	struct time_cut cuts[PROFILE_MAX_CUTS]; /* what its terms for time compare with */
	size_t n_cuts;
	struct span_mark
		span_marks[PROFILE_MAX_CUTS]; /* that its terms for traces and spans ask for */
	size_t n_span_marks;
	const char *event; /* that it asks for, of one of its terms; NULL: none */
};

/*
 * Parse @text. Returns 0, -ENOMEM, or -EINVAL with ERR_USAGE, a message that begins with @what, and
 * the place of the fault (err_excerpt()). *@ret: view_expr_free().
 */
int view_expr_parse(const char *text, const char *what, struct view_expr **ret, struct err *err);
void view_expr_free(struct view_expr *e); /* accepts NULL */

static inline void view_expr_freep(struct view_expr **e)
{
	view_expr_free(*e);
}
#define _cleanup_view_expr_ _cleanup_(view_expr_freep)

/*
 * Take out of @e what bounds the whole range of time from below, or (@end) from above: "time >= 5s
 * and …". A reader that knows it skips the other samples. Returns whether there was such a term:
 * *@ret has its time.
 */
bool view_expr_take_bound(struct view_expr *e, bool end, struct time_cut *ret);

/*
 * Take out of @e what must hold for the whole to hold and is of states alone: "(state = gvl or
 * state = lock) and …". Returns the states in which that holds, a set; all bits if there was none.
 * What is left may have terms of states.
 */
uint64_t view_expr_take_states(struct view_expr *e);

/* Whether it has a term of @field that is evaluated. */
bool view_expr_has(const struct view_expr *e, enum expr_field field);

/* Whether samples that differ in nothing but their thread are all it tells apart. */
bool view_expr_is_of_threads(const struct view_expr *e);

/* Whether it lets all samples pass: all that it asked for was taken out. */
bool view_expr_is_empty(const struct view_expr *e);

/*
 * Whether the expression can be true of a sample of which the terms in @maybe can be true, and
 * those in @maybe_not can be false. A bit for each term; each is in one of the two at least.
 */
bool view_expr_can_hold(const struct view_expr *e, uint64_t maybe, uint64_t maybe_not);

#endif
