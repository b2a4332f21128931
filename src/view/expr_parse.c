/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Recursive descent, an operator a function. A term that is the negation of another one (a != b, a
 * !~ b, a < b of times) is parsed to that and a not.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "base/hex.h"
#include "base/parse.h"
#include "view/expr.h"
#include "view/expr_token.h"
#include "view/state.h"

#define BIT(op)	 (1u << (op))
#define EQUALITY BIT(EXPR_EQUAL)
#define NAMES	 (EQUALITY | BIT(EXPR_MATCHES))
#define ORDER	 (BIT(EXPR_LESS) | BIT(EXPR_GREATER))

static const struct {
	const char *name;
	unsigned int operators; /* bits; a negated one is permitted if that is */
	const char *usage;
} fields[EXPR_FIELDS] = {
	[EXPR_PID] = { "pid", EQUALITY | ORDER, "pid = 42, pid < 100" },
	[EXPR_TID] = { "tid", EQUALITY | ORDER, "tid = 42, tid < 100" },
	[EXPR_THREAD] = { "thread", NAMES, "thread = worker-1, thread =~ /^puma/" },
	[EXPR_COMM] = { "comm", NAMES, "comm =~ /sidekiq/" },
	[EXPR_CONTAINER] = { "container", NAMES, "container =~ /^3f2a/, container = \"\"" },
	[EXPR_SERVICE] = { "service", NAMES, "service = shop" },
	[EXPR_REQUEST] = { "request", NAMES, "request = OrdersController#index" },
	[EXPR_FRAME] = { "frame", NAMES, "frame = Cart#total, frame =~ /^Cart#/" },
	[EXPR_CALLER] = { "caller", NAMES, "caller = Cart#total, caller =~ /^Cart#/" },
	[EXPR_LEAF] = { "leaf", NAMES, "leaf = Cart#total, leaf =~ /^Cart#/" },
	[EXPR_GEM] = { "gem", NAMES, "gem = activerecord, gem =~ /^active/" },
	[EXPR_STATE] = { "state", EQUALITY, "state = gvl" },
	[EXPR_EVENT] = { "event", EQUALITY, "event = wait" },
	[EXPR_TIME] = { "time", ORDER, "time >= 5s, time < 12:00:05" },
	[EXPR_TRACE] = { "trace", EQUALITY, "trace = 4bf92f3577b34da6a3ce929d0e0e4736" },
	[EXPR_SPAN] = { "span", EQUALITY, "span = 00f067aa0ba902b7" },
	[EXPR_GC] = { "gc", 0, "gc, not gc" },
};

struct expr_parser {
	struct expr_tokens t;
	struct view_expr *e;
	unsigned int depth;
};

static int parse_any(struct expr_parser *p, uint32_t *ret);

static int add_node(struct expr_parser *p, enum expr_kind kind, uint32_t left, uint32_t right,
		    uint32_t *ret)
{
	struct view_expr *e = p->e;

	if (array_reserve(e->nodes, e->cap, e->n + 1))
		return -ENOMEM;
	e->nodes[e->n] = (struct expr_node) { .kind = kind, .left = left, .right = right };
	*ret = (uint32_t)e->n++;
	return 0;
}

static bool is_word(const struct expr_parser *p, const char *word)
{
	return p->t.kind == TOKEN_WORD && !strcmp(buf_str(&p->t.value), word);
}

/* What stands where something else was expected. */
static int unexpected(const struct expr_parser *p, const char *wanted)
{
	if (p->t.kind == TOKEN_END)
		return expr_fault(&p->t, p->t.at, "%s is missing at the end", wanted);
	return expr_fault(&p->t, p->t.at, "%s expected, not '%.100s'", wanted,
			  buf_str(&p->t.value));
}

/* ---- fields ---- */

static int find_field(const struct expr_parser *p, enum expr_field *ret)
{
	const char *word = buf_str(&p->t.value), *names[EXPR_FIELDS], *nearest;

	if (p->t.kind != TOKEN_WORD || is_word(p, "and") || is_word(p, "or"))
		return unexpected(p, "a term");
	for (size_t i = 0; i < EXPR_FIELDS; i++) {
		names[i] = fields[i].name;
		if (!strcmp(word, names[i])) {
			*ret = (enum expr_field)i;
			return 0;
		}
	}
	nearest = parse_nearest(word, names, EXPR_FIELDS);
	expr_fault(&p->t, p->t.at, "there is no '%.100s'%s%s%s", word,
		   nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "");
	err_hint(p->t.err,
		 "a term begins with pid, tid, thread, comm, container, service, request, "
		 "frame, caller, leaf, gem, state, event, time, trace, span or gc");
	return -EINVAL;
}

/* *@negated: the operator is that of *@ret, negated. */
static int take_operator(struct expr_parser *p, enum expr_field field, enum expr_op *ret,
			 bool *negated)
{
	const char *word = buf_str(&p->t.value);

	if (p->t.kind != TOKEN_OPERATOR) {
		unexpected(p, "an operator");
		err_hint(p->t.err, "for example: %s", fields[field].usage);
		return -EINVAL;
	}
	*negated = word[0] == '!' || (word[0] != '=' && word[1] == '=');
	*ret = word[0] == '<' || word[0] == '>'
		       ? (word[0] == '<') != *negated ? EXPR_LESS : EXPR_GREATER
	       : word[1] == '~' ? EXPR_MATCHES
				: EXPR_EQUAL;
	/* What a sample is behind of is a cut: "< X" is not ">= X", "<= X" is not "> X". */
	if (field == EXPR_TIME && *ret == EXPR_LESS)
		*negated = !*negated;
	if (fields[field].operators & BIT(*ret))
		return expr_token_next(&p->t);
	expr_fault(&p->t, p->t.at, "%s cannot be compared by %s", fields[field].name, word);
	err_hint(p->t.err, "for example: %s", fields[field].usage);
	return -EINVAL;
}

/* ---- values ---- */

static int bad_value(const struct expr_parser *p, enum expr_field field, const char *why)
{
	expr_fault(&p->t, p->t.at, "'%.100s' is %s", buf_str(&p->t.value), why);
	err_hint(p->t.err, "for example: %s", fields[field].usage);
	return -EINVAL;
}

static int take_name(struct expr_parser *p, struct expr_term *term)
{
	char why[200];
	int status;

	if (p->t.kind == TOKEN_PATTERN && term->op != EXPR_MATCHES)
		return expr_fault(&p->t, p->t.at,
				  "= compares with a whole name; =~ with a pattern");
	term->text = strdup(buf_str(&p->t.value));
	if (!term->text)
		return -ENOMEM;
	if (term->op != EXPR_MATCHES)
		return 0;
	/* It would match everything, which is hardly ever what was meant. */
	if (!*term->text)
		return expr_fault(&p->t, p->t.at, "the pattern is empty");
	status = regcomp(&term->pattern, term->text, REG_EXTENDED | REG_NOSUB);
	term->has_pattern = !status;
	if (status == REG_ESPACE)
		return -ENOMEM;
	if (!status)
		return 0;
	regerror(status, &term->pattern, why, sizeof(why));
	return expr_fault(&p->t, p->t.at, "invalid pattern: %s", why);
}

static int take_time(struct expr_parser *p, struct expr_term *term)
{
	const char *text = buf_str(&p->t.value);
	struct time_cut cut = { .after = term->op == EXPR_GREATER };
	struct view_expr *e = p->e;

	if (wall_time_is_meant(text) ? wall_time_parse(text, "", &cut.clock, NULL)
				     : parse_time_since(text, "", &cut.since_start_ns, NULL))
		return bad_value(p, EXPR_TIME,
				 "no time: 5s, 500ms, 12:00:05, 2026-11-23T12:00:05Z");
	term->cut = (uint8_t)e->n_cuts;
	e->cuts[e->n_cuts++] = cut;
	return 0;
}

static int take_span(struct expr_parser *p, struct expr_term *term)
{
	struct span_mark mark = { .trace = term->field == EXPR_TRACE };
	struct view_expr *e = p->e;

	if (hex_parse_bytes(buf_str(&p->t.value), mark.id, mark.trace ? 16 : 8))
		return bad_value(p, term->field,
				 mark.trace ? "no id of a trace, which has 32 hexadecimal digits"
					    : "no id of a span, which has 16 hexadecimal digits");
	term->span_mark = (uint8_t)e->n_span_marks;
	e->span_marks[e->n_span_marks++] = mark;
	return 0;
}

/* What samples are told apart by as they are read. */
static int take_mark(struct expr_parser *p, struct expr_term *term)
{
	if (p->e->n_cuts + p->e->n_span_marks == PROFILE_MAX_CUTS)
		return expr_fault(&p->t, term->at,
				  "more than %d times, traces and spans are too many",
				  PROFILE_MAX_CUTS);
	return term->field == EXPR_TIME ? take_time(p, term) : take_span(p, term);
}

static int take_value(struct expr_parser *p, struct expr_term *term)
{
	const char *text = buf_str(&p->t.value);

	if (p->t.kind != TOKEN_WORD && p->t.kind != TOKEN_STRING && p->t.kind != TOKEN_PATTERN)
		return unexpected(p, "a value");
	switch (term->field) {
	case EXPR_PID:
	case EXPR_TID:
		return parse_u64(text, "", 0, UINT32_MAX, &term->number, NULL)
			       ? bad_value(p, term->field, "no number of a process or thread")
			       : 0;
	case EXPR_STATE:
		return state_set_parse(text, &term->states, NULL)
			       ? bad_value(p, term->field, "no state: " STATE_SET_WORDS)
			       : 0;
	case EXPR_TIME:
	case EXPR_TRACE:
	case EXPR_SPAN:
		return take_mark(p, term);
	default:
		return take_name(p, term);
	}
}

/* ---- terms and operators ---- */

/* "gc", or a field, an operator and a value. */
static int parse_term(struct expr_parser *p, uint32_t *ret)
{
	struct view_expr *e = p->e;
	struct expr_term *term;
	bool negated = false;
	int r;

	if (e->n_terms == EXPR_MAX_TERMS)
		return expr_fault(&p->t, p->t.at, "more than %d terms are too many",
				  EXPR_MAX_TERMS);
	term = &e->terms[e->n_terms++];
	term->at = p->t.at;
	r = find_field(p, &term->field);
	if (!r)
		r = expr_token_next(&p->t);
	if (!r && term->field != EXPR_GC) {
		r = take_operator(p, term->field, &term->op, &negated);
		if (!r)
			r = take_value(p, term);
		if (!r)
			r = expr_token_next(&p->t);
	}
	if (!r)
		r = add_node(p, EXPR_TERM, (uint32_t)(e->n_terms - 1), 0, ret);
	return r || !negated ? r : add_node(p, EXPR_NOT, *ret, 0, ret);
}

static int parse_one(struct expr_parser *p, uint32_t *ret)
{
	bool negated = is_word(p, "not");
	size_t open = p->t.at;
	int r;

	if (!negated && p->t.kind != TOKEN_OPEN)
		return parse_term(p, ret);
	if (p->depth == EXPR_MAX_DEPTH)
		return expr_fault(&p->t, open, "nested too deeply");
	p->depth++;
	r = expr_token_next(&p->t);
	if (!r)
		r = negated ? parse_one(p, ret) : parse_any(p, ret);
	p->depth--;
	if (r)
		return r;
	if (negated)
		return add_node(p, EXPR_NOT, *ret, 0, ret);
	if (p->t.kind == TOKEN_END)
		return expr_fault(&p->t, open, "this parenthesis is not closed");
	if (p->t.kind != TOKEN_CLOSE)
		return unexpected(p, "'and', 'or' or )");
	return expr_token_next(&p->t);
}

static int parse_all(struct expr_parser *p, uint32_t *ret)
{
	uint32_t right;
	int r = parse_one(p, ret);

	while (!r && is_word(p, "and")) {
		r = expr_token_next(&p->t);
		if (!r)
			r = parse_one(p, &right);
		if (!r)
			r = add_node(p, EXPR_AND, *ret, right, ret);
	}
	return r;
}

static int parse_any(struct expr_parser *p, uint32_t *ret)
{
	uint32_t right;
	int r = parse_all(p, ret);

	while (!r && is_word(p, "or")) {
		r = expr_token_next(&p->t);
		if (!r)
			r = parse_all(p, &right);
		if (!r)
			r = add_node(p, EXPR_OR, *ret, right, ret);
	}
	return r;
}

/* ---- the event ---- */

/* Take the terms for the event from @node, all of which must hold for the expression to hold. */
static int take_events(struct expr_parser *p, uint32_t node)
{
	struct view_expr *e = p->e;
	struct expr_node *n = &e->nodes[node];
	const struct expr_term *term;
	int r;

	if (n->kind == EXPR_AND) {
		r = take_events(p, n->left);
		return r ? r : take_events(p, n->right);
	}
	if (n->kind != EXPR_TERM || e->terms[n->left].field != EXPR_EVENT)
		return 0;
	term = &e->terms[n->left];
	if (e->event)
		return expr_fault(&p->t, term->at, "a view shows one event, not two");
	e->event = term->text;
	n->kind = EXPR_TRUE;
	return 0;
}

/* The event is chosen when a recording is read, before anything else is known. */
static int choose_event(struct expr_parser *p)
{
	struct view_expr *e = p->e;
	int r = take_events(p, (uint32_t)e->n - 1);

	for (size_t i = 0; !r && i < e->n; i++)
		if (e->nodes[i].kind == EXPR_TERM && e->terms[e->nodes[i].left].field == EXPR_EVENT)
			return expr_fault(&p->t, e->terms[e->nodes[i].left].at,
					  "a view shows one event: event = NAME can only be joined "
					  "to all else by and");
	return r;
}

static int parse(struct expr_parser *p)
{
	uint32_t root;
	int r;

	if (strlen(p->t.text) > EXPR_MAX_BYTES)
		return err_set(p->t.err, -EINVAL, ERR_USAGE, "%s: longer than %d bytes", p->t.what,
			       EXPR_MAX_BYTES);
	r = expr_token_next(&p->t);
	if (!r)
		r = parse_any(p, &root);
	if (!r && p->t.kind == TOKEN_CLOSE)
		r = expr_fault(&p->t, p->t.at, "no parenthesis is open here");
	else if (!r && p->t.kind != TOKEN_END)
		r = unexpected(p, "'and' or 'or'");
	return r ? r : choose_event(p);
}

int view_expr_parse(const char *text, const char *what, struct view_expr **ret, struct err *err)
{
	struct expr_parser p = { .t = { .text = text, .what = what, .err = err } };
	int r;

	p.e = calloc(1, sizeof(*p.e));
	if (!p.e)
		return err_oom(err);
	r = parse(&p);
	buf_deinit(&p.t.value);
	if (r) {
		view_expr_free(p.e);
		return r == -ENOMEM ? err_oom(err) : r;
	}
	*ret = p.e;
	return 0;
}
