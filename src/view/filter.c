/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A recording has far fewer names than stacks, and far fewer stacks than samples. Each question is
 * asked where it is cheapest: a pattern once for each name, whether a stack holds a matching frame
 * once for each node of the stack tree (a node inherits the answer of its callers), which leaves
 * three array reads for each aggregate.
 */
#include "view/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "profile/profile.h"
#include "view/expr.h"
#include "view/expr_bind.h"
#include "view/gc_phase.h"
#include "view/label.h"
#include "view/request.h"
#include "view/state.h"

struct view_selection {
	const struct profile *profile;
	enum stack_mode mode;
	uint32_t instead; /* stack; 0 if none */
	bool no_gc, only_gc;
	bool *hidden;	    /* by frame id; NULL if the filter hides none; owned */
	uint64_t wanted;    /* states, as in the filter; with … */
	uint8_t *states;    /* … that by stack id (state.h); NULL if all are wanted; owned */
	uint8_t *gc_phases; /* by stack id; NULL unless no_gc or only_gc; owned */
	bool *threads;	    /* by thread id: whether its samples are selected; owned */
	bool *stacks;	    /* the same by stack id; NULL when all are; owned */
	bool *requests;	    /* the same by kind of request */
	struct expr_binding expr; /* .expr NULL: all are selected */
	bool by_slowness, slow;	  /* of requests, those that are slow, or are not */
};

void view_filter_deinit(struct view_filter *f)
{
	if (!f)
		return;
	free(f->pids);
	free(f->tids);
	if (f->has_thread)
		regfree(&f->thread);
	if (f->has_comm)
		regfree(&f->comm);
	if (f->has_container)
		regfree(&f->container);
	if (f->has_request)
		regfree(&f->request);
	if (f->has_include)
		regfree(&f->include);
	if (f->has_exclude)
		regfree(&f->exclude);
	if (f->has_idle)
		regfree(&f->idle);
	view_expr_free(f->expr);
	*f = (struct view_filter)VIEW_FILTER_INIT;
}

int view_filter_regex(regex_t *re, bool *has, const char *pattern, const char *what,
		      struct err *err)
{
	char why[200];
	regex_t compiled;
	int status;

	/* It would match everything, which is hardly ever what was meant by an empty variable. */
	if (!*pattern)
		return err_set(err, -EINVAL, ERR_USAGE, "%s: the pattern is empty", what);
	status = regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB);
	if (status) {
		regerror(status, &compiled, why, sizeof(why));
		return err_set(err, status == REG_ESPACE ? -ENOMEM : -EINVAL, ERR_USAGE,
			       "invalid pattern '%.200s' for %s: %s", pattern, what, why);
	}
	if (*has)
		regfree(re);
	*re = compiled;
	*has = true;
	return 0;
}

bool view_filter_by_thread(const struct view_filter *f)
{
	return f->n_pids || f->n_tids || f->has_thread || f->has_comm || f->has_container ||
	       f->has_include || f->has_exclude || f->no_gc ||
	       (f->expr && !view_expr_is_empty(f->expr));
}

bool view_filter_by_request(const struct view_filter *f)
{
	return f->has_request || f->slower_than_ns ||
	       (f->expr && view_expr_has(f->expr, EXPR_REQUEST));
}

bool view_filter_by_state(const struct view_filter *f)
{
	return f->states || (f->expr && view_expr_has(f->expr, EXPR_STATE));
}

bool view_filter_of_samples(const struct view_filter *f)
{
	return view_filter_by_thread(f) || view_filter_by_request(f) || f->states || f->ended;
}

static bool matches(const regex_t *re, const char *s)
{
	return regexec(re, s, 0, NULL, 0) == 0;
}

static bool id_selected(const pid_t *ids, size_t n, uint32_t id)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] >= 0 && (uint32_t)ids[i] == id)
			return true;
	return n == 0;
}

static bool process_selected(const struct profile *p, const struct view_filter *f,
			     const struct profile_process *process)
{
	return id_selected(f->pids, f->n_pids, process->pid) &&
	       (!f->has_comm || matches(&f->comm, profile_str(p, process->cmdline))) &&
	       (!f->has_container || matches(&f->container, profile_str(p, process->container)) ||
		matches(&f->container, profile_str(p, process->cgroup)));
}

static bool thread_selected(const struct profile *p, const struct view_filter *f,
			    const struct profile_thread *thread)
{
	return id_selected(f->tids, f->n_tids, thread->tid) &&
	       (!f->has_thread || matches(&f->thread, profile_str(p, thread->name)));
}

static int select_threads(struct view_selection *sel, const struct view_filter *f)
{
	const struct profile *p = sel->profile;
	_cleanup_free_ bool *processes = calloc(p->n_processes + 1, sizeof(*processes));

	sel->threads = calloc(p->n_threads + 1, sizeof(*sel->threads));
	if (!processes || !sel->threads)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_processes; i++)
		processes[i] = process_selected(p, f, &p->processes[i]);
	for (size_t i = 0; i < p->n_threads; i++)
		sel->threads[i] = processes[p->threads[i].process] &&
				  thread_selected(p, f, &p->threads[i]);
	return 0;
}

/* What is known of a name, and what of a stack by its frames. */
#define KNOWN	 (1u << 0)
#define INCLUDED (1u << 1)
#define EXCLUDED (1u << 2)

static uint8_t examine_name(const struct view_filter *f, const char *name)
{
	uint8_t seen = KNOWN;

	if (f->has_include && matches(&f->include, name))
		seen |= INCLUDED;
	if (f->has_exclude && matches(&f->exclude, name))
		seen |= EXCLUDED;
	return seen;
}

static int select_stacks(struct view_selection *sel, const struct view_filter *f)
{
	const struct profile *p = sel->profile;
	_cleanup_free_ uint8_t *names = calloc(p->strings.count + 1, sizeof(*names));
	_cleanup_free_ uint8_t *seen = calloc(p->n_stacks + 1, sizeof(*seen));

	sel->stacks = calloc(p->n_stacks + 1, sizeof(*sel->stacks));
	if (!names || !seen || !sel->stacks)
		return -ENOMEM;
	sel->stacks[0] = !f->has_include;
	for (size_t i = 1; i < p->n_stacks; i++) {
		uint32_t name = p->frames[p->stacks[i].frame].name;

		if (!names[name])
			names[name] = examine_name(f, profile_str(p, name));
		seen[i] = seen[p->stacks[i].parent] | names[name];
		sel->stacks[i] = !(seen[i] & EXCLUDED) && (!f->has_include || seen[i] & INCLUDED);
	}
	return 0;
}

static int select_requests(struct view_selection *sel, const struct view_filter *f)
{
	const struct profile *p = sel->profile;
	const size_t n = request_kinds(p) + 1;

	sel->requests = calloc(n, sizeof(*sel->requests));
	if (!sel->requests)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sel->requests[i] = matches(&f->request, request_label(p, (uint32_t)i));
	return 0;
}

static int hide_frames(struct view_selection *sel, uint32_t origins)
{
	const struct profile *p = sel->profile;

	if (!origins)
		return 0;
	sel->hidden = calloc(p->n_frames + 1, sizeof(*sel->hidden));
	if (!sel->hidden)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_frames; i++)
		sel->hidden[i] = origins & 1u << label_origin(p, (uint32_t)i);
	return 0;
}

static int select_by_expr(struct view_selection *sel, const struct view_filter *f)
{
	if (!f->expr || view_expr_is_empty(f->expr))
		return 0;
	return expr_bind(f->expr, sel->profile, sel, &sel->expr);
}

static int selection_new(const struct profile *p, const struct view_filter *f, bool only_gc,
			 struct view_selection **ret)
{
	static const struct view_filter all = VIEW_FILTER_INIT;
	struct view_selection *sel;
	int r = -ENOMEM;

	if (!f)
		f = &all;
	if ((view_filter_by_thread(f) && !p->by_thread) ||
	    (view_filter_by_request(f) && !p->by_request) ||
	    (f->slower_than_ns && f->slower_than_ns != p->slow_ns))
		return -EINVAL;
	sel = calloc(1, sizeof(*sel));
	if (!sel)
		return -ENOMEM;
	sel->profile = p;
	sel->no_gc = f->no_gc;
	sel->by_slowness = f->slower_than_ns;
	sel->slow = !f->not_slower;
	if (hide_frames(sel, f->hide))
		goto fail;
	view_selection_show(sel, f->stack);
	r = select_by_expr(sel, f);
	if (r)
		goto fail;
	r = -ENOMEM;
	sel->only_gc = only_gc;
	if (select_threads(sel, f))
		goto fail;
	if ((f->has_include || f->has_exclude) && select_stacks(sel, f))
		goto fail;
	if (f->states) {
		sel->wanted = f->states;
		if (state_of_stacks(p, &sel->states))
			goto fail;
	}
	if (f->has_request && select_requests(sel, f))
		goto fail;
	if ((sel->no_gc || sel->only_gc) && gc_phases_of_stacks(p, &sel->gc_phases))
		goto fail;
	*ret = sel;
	return 0;
fail:
	view_selection_free(sel);
	return r;
}

int view_selection_new(const struct profile *p, const struct view_filter *f,
		       struct view_selection **ret)
{
	return selection_new(p, f, false, ret);
}

int view_selection_new_gc(const struct profile *p, const struct view_filter *f,
			  struct view_selection **ret)
{
	return selection_new(p, f, true, ret);
}

void view_selection_free(struct view_selection *sel)
{
	if (!sel)
		return;
	free(sel->hidden);
	free(sel->states);
	free(sel->gc_phases);
	free(sel->threads);
	free(sel->stacks);
	free(sel->requests);
	expr_binding_deinit(&sel->expr);
	free(sel);
}

static bool gc_selected(const struct view_selection *sel, const struct profile_aggregate *a)
{
	bool gc;

	if (!sel->gc_phases)
		return true;
	gc = gc_phase_of(sel->gc_phases, a) != GC_NONE;
	return gc ? !sel->no_gc : !sel->only_gc;
}

static bool state_selected(const struct view_selection *sel, const struct profile_aggregate *a)
{
	if (!sel->states)
		return true;
	return sel->wanted >> state_set_bit(state_of(sel->states, a->stack, a->flags)) & 1;
}

bool view_selected(const struct view_selection *sel, const struct profile_aggregate *a)
{
	return state_selected(sel, a) && (a->thread == PROFILE_NONE || sel->threads[a->thread]) &&
	       (!sel->stacks || sel->stacks[a->stack]) &&
	       (!sel->requests || sel->requests[request_shown_of(sel->profile, a)]) &&
	       (!sel->by_slowness || (a->request && a->slow == sel->slow)) && gc_selected(sel, a) &&
	       (!sel->expr.expr || expr_holds(&sel->expr, a));
}

bool view_request_selected(const struct view_selection *sel, uint32_t kind)
{
	return (!sel->requests || sel->requests[kind]) &&
	       (!sel->expr.expr || expr_can_hold_for_request(&sel->expr, kind));
}

bool view_one_request_selected(const struct view_selection *sel, uint32_t request)
{
	const struct profile *p = sel->profile;

	return view_request_selected(sel, p->requests[request].kind) &&
	       (!sel->by_slowness || profile_request_is_slow(p, request) == sel->slow);
}

struct view_sum view_selected_threads(const struct view_selection *sel, bool *threads)
{
	const struct profile *p = sel->profile;
	struct view_sum sum = { 0 }, of;

	for (size_t i = 0; i < p->n_threads; i++)
		threads[i] = !p->by_thread && p->threads[i].samples;
	for (size_t i = 0; i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];

		if (!view_selected(sel, a))
			continue;
		of = view_sum_of(p, a);
		view_sum_add(&sum, &of);
		if (p->by_thread)
			threads[a->thread] = true;
	}
	return sum;
}

struct view_sum view_selected_sum(const struct view_selection *sel)
{
	const struct profile *p = sel->profile;
	struct view_sum sum = { .unequal = profile_samples_differ(p) };

	for (size_t i = 0; i < p->n_aggregates; i++) {
		const struct view_sum of = view_sum_of(p, &p->aggregates[i]);

		if (view_selected(sel, &p->aggregates[i]))
			view_sum_add(&sum, &of);
	}
	return sum;
}

void view_selection_show(struct view_selection *sel, enum stack_mode mode)
{
	sel->mode = mode;
	sel->instead = sel->only_gc || sel->hidden ? 0 : stack_mode_instead(mode, sel->profile);
}

/* Methods, and what stands for them. */
static bool may_cause_gc(enum frame_kind kind)
{
	switch (kind) {
	case FRAME_RUBY:
	case FRAME_CFUNC:
	case FRAME_TRUNCATED:
	case FRAME_UNKNOWN:
	case FRAME_FIBER:
		return true;
	default:
		return false;
	}
}

bool view_frame_shown(const struct view_selection *sel, uint32_t frame)
{
	if (sel->hidden && sel->hidden[frame])
		return false;
	if (sel->only_gc)
		return may_cause_gc(sel->profile->frames[frame].kind);
	return stack_mode_shows(sel->mode, sel->profile, frame);
}

uint32_t view_stack_instead(const struct view_selection *sel)
{
	return sel->instead;
}
