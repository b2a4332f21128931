/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As filter.c: a name is compared once, however many stacks it is in, and a stack inherits what its
 * callers have.
 */
#include "view/expr_bind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/attributes.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "profile/profile.h"
#include "view/expr.h"
#include "view/filter.h"
#include "view/gc_phase.h"
#include "view/gem.h"
#include "view/group.h"
#include "view/label.h"
#include "view/request.h"

/* The terms of each of these fields, as bits. */
#define FIELD(f) (1u << (f))

static uint64_t terms_of(const struct view_expr *e, uint32_t fields)
{
	uint64_t terms = 0;

	for (size_t i = 0; i < e->n_terms; i++)
		if (fields & FIELD(e->terms[i].field))
			terms |= 1ull << i;
	return terms;
}

static bool name_fits(const struct expr_term *t, const char *name)
{
	return t->op == EXPR_MATCHES ? !regexec(&t->pattern, name, 0, NULL, 0)
				     : !strcmp(t->text, name);
}

static bool number_fits(const struct expr_term *t, uint64_t n)
{
	return t->op == EXPR_LESS      ? n < t->number
	       : t->op == EXPR_GREATER ? n > t->number
				       : n == t->number;
}

/*
 * By the name that the process publishes for OpenTelemetry. Returns 1, 0 or -ENOMEM, as the next
 * ones do.
 */
static int service_fits(const struct expr_term *t, const char *attributes)
{
	_cleanup_buf_ struct buf name = BUF_INIT;

	attributes_get(attributes, "service.name", &name);
	return buf_failed(&name) ? -ENOMEM : name_fits(t, buf_str(&name));
}

static int process_fits(const struct profile *p, const struct expr_term *t,
			const struct profile_process *process)
{
	switch (t->field) {
	case EXPR_PID:
		return number_fits(t, process->pid);
	case EXPR_COMM:
		return name_fits(t, profile_str(p, process->cmdline));
	case EXPR_SERVICE:
		return service_fits(t, profile_str(p, process->attributes));
	default: /* EXPR_CONTAINER */
		return name_fits(t, profile_str(p, process->container)) ||
		       name_fits(t, profile_str(p, process->cgroup));
	}
}

static int thread_fits(const struct profile *p, const struct expr_term *t,
		       const struct profile_thread *thread)
{
	switch (t->field) {
	case EXPR_TID:
		return number_fits(t, thread->tid);
	case EXPR_THREAD:
		return name_fits(t, profile_str(p, thread->name));
	default:
		return process_fits(p, t, &p->processes[thread->process]);
	}
}

static int bind_threads(struct expr_binding *b)
{
	const uint64_t terms = terms_of(
		b->expr, FIELD(EXPR_PID) | FIELD(EXPR_TID) | FIELD(EXPR_THREAD) | FIELD(EXPR_COMM) |
				 FIELD(EXPR_CONTAINER) | FIELD(EXPR_SERVICE));
	const struct profile *p = b->profile;

	if (!terms)
		return 0;
	b->threads = calloc(p->n_threads + 1, sizeof(*b->threads));
	if (!b->threads)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_threads; i++)
		for (size_t t = 0; t < b->expr->n_terms; t++) {
			int fits = terms >> t & 1
					   ? thread_fits(p, &b->expr->terms[t], &p->threads[i])
					   : 0;

			if (fits < 0)
				return fits;
			b->threads[i] |= (uint64_t)fits << t;
		}
	return 0;
}

static int bind_requests(struct expr_binding *b)
{
	const struct profile *p = b->profile;
	const size_t n = request_kinds(p) + 1;

	b->of_requests = terms_of(b->expr, FIELD(EXPR_REQUEST));
	if (!b->of_requests)
		return 0;
	b->requests = calloc(n, sizeof(*b->requests));
	if (!b->requests)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		for (size_t t = 0; t < b->expr->n_terms; t++)
			if (b->of_requests >> t & 1 &&
			    name_fits(&b->expr->terms[t], request_label(p, (uint32_t)i)))
				b->requests[i] |= 1ull << t;
	return 0;
}

/*
 * Of the name of @frame; @names has them, and a bit that is never a term's of those that are known.
 */
struct frame_names {
	uint64_t *bits; /* by string */
	bool *known;
	uint64_t terms;
};

static uint64_t bits_of_frame(const struct expr_binding *b, struct frame_names *names,
			      uint32_t frame)
{
	const struct profile *p = b->profile;
	uint32_t name = p->frames[frame].name;

	if (names->known[name])
		return names->bits[name];
	names->known[name] = true;
	for (size_t t = 0; t < b->expr->n_terms; t++)
		if (names->terms >> t & 1 && name_fits(&b->expr->terms[t], label_frame(p, frame)))
			names->bits[name] |= 1ull << t;
	return names->bits[name];
}

/*
 * What the frames of a stack are: any of them for "frame", the innermost shown one for "leaf" and,
 * of a wait, also the one that waits; any outside of the innermost one for "caller".
 */
static void bind_stack_tree(struct expr_binding *b, struct frame_names *names,
			    const struct view_selection *shown, uint64_t *any)
{
	const uint64_t leaf = terms_of(b->expr, FIELD(EXPR_LEAF));
	const uint64_t caller = terms_of(b->expr, FIELD(EXPR_CALLER));
	const uint64_t frame = terms_of(b->expr, FIELD(EXPR_FRAME));

	for (size_t i = 1; i < b->profile->n_stacks; i++) {
		const struct profile_stack *s = &b->profile->stacks[i];
		uint64_t own = bits_of_frame(b, names, s->frame);

		any[i] = any[s->parent] | own;
		b->stacks[i] = any[i] & frame;
		if (view_frame_shown(shown, s->frame))
			b->stacks[i] |= (own & leaf) | (any[s->parent] & caller);
		else
			b->stacks[i] |= b->stacks[s->parent] & (leaf | caller);
		if (b->profile->frames[s->frame].kind == FRAME_WAIT)
			b->stacks[i] |= b->stacks[s->parent] & leaf;
	}
}

static int bind_stacks(struct expr_binding *b, const struct view_selection *shown)
{
	const struct profile *p = b->profile;
	_cleanup_free_ uint64_t *any = NULL, *bits = NULL;
	_cleanup_free_ bool *known = NULL;
	struct frame_names names = {
		.terms = terms_of(b->expr,
				  FIELD(EXPR_FRAME) | FIELD(EXPR_LEAF) | FIELD(EXPR_CALLER)),
	};

	if (!names.terms)
		return 0;
	any = calloc(p->n_stacks + 1, sizeof(*any));
	names.bits = bits = calloc(p->strings.count + 1, sizeof(*bits));
	names.known = known = calloc(p->strings.count + 1, sizeof(*known));
	b->stacks = calloc(p->n_stacks + 1, sizeof(*b->stacks));
	if (!any || !bits || !known || !b->stacks)
		return -ENOMEM;
	bind_stack_tree(b, &names, shown, any);
	return 0;
}

/* The terms of @terms for @gem: its name, or that and its version, are as asked for. */
static int bits_of_gem(const struct expr_binding *b, uint64_t terms, const struct gem *gem,
		       uint64_t *ret)
{
	_cleanup_buf_ struct buf name = BUF_INIT, label = BUF_INIT;

	gem_name(gem, &name);
	gem_label(gem, &label);
	if (buf_failed(&name) || buf_failed(&label))
		return -ENOMEM;
	*ret = 0;
	for (size_t t = 0; t < b->expr->n_terms; t++) {
		const struct expr_term *term = &b->expr->terms[t];

		if (terms >> t & 1 && (name_fits(term, buf_str(&label)) ||
				       (name.len && name_fits(term, buf_str(&name)))))
			*ret |= 1ull << t;
	}
	return 0;
}

/* The same by frame. *@ret: free(). */
static int find_bits_of_gems(const struct expr_binding *b, uint64_t terms, uint64_t **ret)
{
	const struct profile *p = b->profile;
	_cleanup_free_ uint64_t *bits = calloc(p->n_frames + 1, sizeof(*bits));
	_cleanup_groups_ struct groups gems = GROUPS_INIT;
	struct gem gem;

	if (!bits || groups_init(p, GROUP_BY_GEM, &gems))
		return -ENOMEM;
	for (size_t i = 0; i < p->n_frames; i++) {
		const uint32_t first = gems.frame[gems.of_frame[i]];

		gem_of_frame(p, first, &gem);
		if (first < i)
			bits[i] = bits[first];
		else if (bits_of_gem(b, terms, &gem, &bits[i]))
			return -ENOMEM;
	}
	*ret = take_ptr(bits);
	return 0;
}

/* Stacks are of the gems that 'report --by gem' gives their time to. */
static int bind_gems(struct expr_binding *b)
{
	const uint64_t terms = terms_of(b->expr, FIELD(EXPR_GEM));
	const struct profile *p = b->profile;
	_cleanup_free_ uint32_t *frames = NULL;
	_cleanup_free_ uint64_t *bits = NULL;

	if (!terms)
		return 0;
	if (!b->stacks)
		b->stacks = calloc(p->n_stacks + 1, sizeof(*b->stacks));
	if (!b->stacks || gem_frames(p, &frames) || find_bits_of_gems(b, terms, &bits))
		return -ENOMEM;
	for (size_t i = 1; i < p->n_stacks; i++)
		b->stacks[i] |= bits[frames[i]];
	return 0;
}

static int bind_states(struct expr_binding *b)
{
	const uint64_t of_states = terms_of(b->expr, FIELD(EXPR_STATE));

	for (size_t t = 0; t < b->expr->n_terms; t++)
		for (size_t s = 0; s < ARRAY_SIZE(b->states); s++)
			if (of_states >> t & 1 && b->expr->terms[t].states >> s & 1)
				b->states[s] |= 1ull << t;
	return of_states ? state_of_stacks(b->profile, &b->states_of_stack) : 0;
}

/* Those for times, traces and spans, which samples are already marked for. */
static int bind_marks(struct expr_binding *b)
{
	const struct view_expr *e = b->expr;
	const uint64_t of_spans = terms_of(e, FIELD(EXPR_TRACE) | FIELD(EXPR_SPAN));

	for (size_t t = 0; t < e->n_terms; t++) {
		const struct expr_term *term = &e->terms[t];

		if (term->field == EXPR_TIME)
			b->marks[term->cut] |= 1ull << t;
		else if (of_spans >> t & 1)
			b->marks[e->n_cuts + term->span_mark] |= 1ull << t;
	}
	return b->profile->n_cuts == e->n_cuts && b->profile->n_span_marks == e->n_span_marks
		       ? 0
		       : -EINVAL;
}

int expr_bind(const struct view_expr *e, const struct profile *p,
	      const struct view_selection *shown, struct expr_binding *ret)
{
	int r;

	ret->expr = e;
	ret->profile = p;
	ret->gc = terms_of(e, FIELD(EXPR_GC));
	r = bind_marks(ret);
	if (!r)
		r = bind_threads(ret);
	if (!r)
		r = bind_requests(ret);
	if (!r)
		r = bind_stacks(ret, shown);
	if (!r)
		r = bind_gems(ret);
	if (!r)
		r = bind_states(ret);
	if (!r && ret->gc)
		r = gc_phases_of_stacks(p, &ret->gc_phases);
	return r;
}

void expr_binding_deinit(struct expr_binding *b)
{
	free(b->threads);
	free(b->stacks);
	free(b->requests);
	free(b->states_of_stack);
	free(b->gc_phases);
	*b = (struct expr_binding) { 0 };
}

bool expr_holds(const struct expr_binding *b, const struct profile_aggregate *a)
{
	uint64_t terms = 0;

	if (b->threads)
		terms |= b->threads[a->thread];
	if (b->stacks)
		terms |= b->stacks[a->stack];
	if (b->requests)
		terms |= b->requests[request_shown_of(b->profile, a)];
	if (b->states_of_stack)
		terms |= b->states[state_set_bit(state_of(b->states_of_stack, a->stack, a->flags))];
	if (b->gc_phases && gc_phase_of(b->gc_phases, a) != GC_NONE)
		terms |= b->gc;
	for (unsigned int marks = a->marks; marks; marks &= marks - 1)
		terms |= b->marks[__builtin_ctz(marks)];
	return view_expr_can_hold(b->expr, terms, ~terms);
}

bool expr_can_hold_for_request(const struct expr_binding *b, uint32_t kind)
{
	uint64_t terms = b->requests ? b->requests[kind] : 0;

	return view_expr_can_hold(b->expr, terms | ~b->of_requests, ~terms);
}
