/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Callgrind's profile format: https://valgrind.org/docs/manual/cl-format.html
 *
 * It has no stacks, but the costs of functions and of calls: for each line of a function what it
 * costs itself, and for each line and callee what the callee costs with all that it calls. Readers
 * take for the inclusive cost of a function either that of the calls of it, or its own cost and
 * that of its calls. So that both are its total time,
 *
 *   - each thread is a function that calls the outermost ones of its stacks, and
 *   - a function that is in a stack again stands there as another one, "Tree#walk'2", then
 *     "Tree#walk'3", as callgrind's --separate-recs has it. Its own cost is a part of the
 *     function's. Up to a depth of MAX_DEPTH, a stack has none of them twice, so that none has more
 *     than the total. The last one may call itself; but of one sample no call is counted twice.
 *
 * The number of calls is that of samples. A function is a name in a file, as readers have it; the
 * object is the module, gem or library that it is from.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/intern.h"
#include "base/prefix_tree.h"
#include "export/callgrind_file.h"
#include "export/export.h"
#include "export/exporters.h"
#include "export/function.h"
#include "export/shown.h"
#include "profile/aggregate.h"
#include "profile/replay.h"
#include "view/filter.h"
#include "view/label.h"
#include "view/owner.h"

/*
 * What ends a shown stack: its innermost function, and the call of it. They are the same in all
 * stacks that go on from that one, which may be hundreds of frames deep and have thousands of
 * those.
 */
struct call_step {
	uint32_t fn;   /* + 1; 0: not known yet */
	uint32_t call; /* in calls; 0: the same */
	uint32_t cost; /* its key; 0: the same */
};

/* A function as readers have it, which may be in several objects: ids in callgrind_file.names. */
struct method {
	uint32_t file;
	uint32_t name;
};

struct frame_method {
	uint32_t method; /* + 1; 0: not known yet */
	uint32_t object; /* in callgrind_file.names */
};

/* Where a method was met last, from the outermost frame on. */
struct seen_method {
	uint32_t stack; /* + 1 */
	uint32_t depth; /* how often in this stack; MAX_DEPTH if more often */
};

/*
 * More would be many rows for one function. Recursion through methods of Ruby on Rails is about 10
 * deep; what is deeper is that of algorithms, whose levels are alike.
 */
#define MAX_DEPTH 32u

struct callgrind {
	const struct profile *profile;
	struct callgrind_file file;
	const struct replay *from;
	struct shown shown;
	/* Calls from whatever line: pairs of a function and the one that it calls. */
	struct prefix_tree calls;
	size_t cap_costs;
	uint32_t *last_stack; /* by call: the last stack that it was in, + 1 */
	size_t cap_calls;
	struct intern methods;	       /* struct method */
	struct frame_method *of_frame; /* by frame */
	uint32_t *of_thread;	       /* by thread: its fn + 1; 0: not known yet */
	bool *has_samples;	       /* by thread */
	uint32_t *outermost;	  /* by shown stack: that of its outermost frame alone; 0 of 0 */
	struct seen_method *seen; /* by method */
	size_t cap_seen;
	uint32_t *weight_of;	  /* by shown stack: its place in weights + 1; 0: no samples */
	struct cost_sum *weights; /* of those stacks that samples have, which are far fewer */
	size_t n_weights, cap_weights;
	struct profile threads;	      /* samples by thread and outermost stack: only aggregates */
	struct aggregate_index index; /* of these */
	struct profile_sample batch[AGGREGATE_BATCH]; /* not added up yet */
	size_t n_batch;
	struct call_step *steps; /* by shown stack */
	uint32_t *path;		 /* scratch: a shown stack and those of its callers */
	size_t cap_path;
	struct buf *out;
};

static void callgrind_deinit(struct callgrind *c)
{
	shown_deinit(&c->shown);
	intern_deinit(&c->file.names);
	intern_deinit(&c->file.fns);
	prefix_tree_deinit(&c->file.places);
	prefix_tree_deinit(&c->file.keys);
	prefix_tree_deinit(&c->calls);
	profile_deinit(&c->threads);
	aggregate_index_deinit(&c->index);
	free(c->last_stack);
	free(c->file.costs);
	intern_deinit(&c->methods);
	free(c->of_frame);
	free(c->of_thread);
	free(c->has_samples);
	free(c->outermost);
	free(c->seen);
	free(c->weight_of);
	free(c->weights);
	free(c->steps);
	free(c->path);
}

/* ---- functions ---- */

/* Readers drop blanks at the start of a name, and cannot do without one. */
static int add_name(struct callgrind *c, const char *name, uint32_t *ret)
{
	name += strspn(name, " \t");
	return intern_str(&c->file.names, *name ? name : "???", ret);
}

static int add_method(struct callgrind *c, const char *object, const char *file, const char *name,
		      struct frame_method *ret)
{
	struct frame_method found = { 0 };
	struct method method;
	int r = add_name(c, object, &found.object);

	if (!r)
		r = add_name(c, file, &method.file);
	if (!r)
		r = add_name(c, name, &method.name);
	if (!r)
		r = intern_add(&c->methods, &method, sizeof(method), &found.method, NULL);
	if (r)
		return r;
	found.method++;
	*ret = found;
	return 0;
}

static int add_fn(struct callgrind *c, const struct frame_method *m, uint32_t depth, uint32_t *ret)
{
	const struct method *method = intern_get(&c->methods, m->method - 1, NULL);
	const struct callgrind_fn fn = {
		.object = m->object,
		.file = method->file,
		.name = method->name,
		.depth = depth,
	};

	return intern_add(&c->file.fns, &fn, sizeof(fn), ret, NULL);
}

static int find_method(struct callgrind *c, uint32_t frame)
{
	_cleanup_buf_ struct buf package = BUF_INIT;
	struct function f;

	if (c->of_frame[frame].method)
		return 0;
	function_of_frame(c->profile, frame, &f);
	label_package(c->profile, frame, &package);
	return buf_failed(&package)
		       ? -ENOMEM
		       : add_method(c, buf_str(&package), f.file, f.name, &c->of_frame[frame]);
}

/* The line of execution; a method in C has none of its own. */
static uint32_t line_of(const struct callgrind *c, uint32_t frame)
{
	const struct profile_frame *f = &c->profile->frames[frame];

	return f->kind == FRAME_CFUNC ? 0 : f->line;
}

/* ---- costs ---- */

/* Of a shown stack that samples have; valid until add_weight(). */
static struct cost_sum *weight(const struct callgrind *c, uint32_t stack)
{
	return &c->weights[c->weight_of[stack] - 1];
}

/* The id of @key, made if there is none yet; not 0. */
static int find_cost(struct callgrind *c, const struct cost_key *key, uint32_t *ret)
{
	uint32_t place, called = 0;
	int r;

	r = prefix_tree_pair(&c->file.places, key->fn, key->line, &place);
	if (!r && key->callee != NO_CALLEE)
		r = prefix_tree_pair(&c->file.places, key->callee, key->callee_line, &called);
	if (!r)
		r = prefix_tree_pair(&c->file.keys, place, called, ret);
	return r ? r : array_reserve(c->file.costs, c->cap_costs, (size_t)*ret + 1);
}

static void add_sum(struct callgrind *c, uint32_t id, const struct cost_sum *sum)
{
	profile_add(&c->file.costs[id].value, sum->value);
	profile_add(&c->file.costs[id].samples, sum->samples);
}

static int add_cost(struct callgrind *c, const struct cost_key *key, const struct cost_sum *sum)
{
	uint32_t id;
	int r = find_cost(c, key, &id);

	if (!r)
		add_sum(c, id, sum);
	return r;
}

/* The cost in @stack of the call that ends @at, which is a caller's stack of it or itself: once. */
static int add_call(struct callgrind *c, uint32_t at, uint32_t stack)
{
	const uint32_t callers = shown_callers(&c->shown, at);
	const struct profile *p = c->profile;
	struct call_step *step = &c->steps[at];
	const struct cost_key key = {
		.fn = c->steps[callers].fn - 1,
		.line = line_of(c, p->stacks[callers].frame),
		.callee = step->fn - 1,
		.callee_line = p->frames[p->stacks[at].frame].func_line,
	};
	int r = 0;

	if (!step->call)
		r = prefix_tree_pair(&c->calls, key.fn, key.callee, &step->call);
	if (!r)
		r = array_reserve(c->last_stack, c->cap_calls, (size_t)step->call + 1);
	if (r || c->last_stack[step->call] == stack + 1)
		return r;
	c->last_stack[step->call] = stack + 1;
	if (!step->cost)
		r = find_cost(c, &key, &step->cost);
	if (!r)
		add_sum(c, step->cost, weight(c, stack));
	return r;
}

/* Find the function that ends @at as it stands in @stack, whose outer frames were seen before. */
static int find_fn(struct callgrind *c, uint32_t at, uint32_t stack)
{
	const uint32_t frame = c->profile->stacks[at].frame;
	const struct frame_method *m = &c->of_frame[frame];
	struct call_step *step = &c->steps[at];
	const bool is_new = !step->fn;
	struct seen_method *seen;
	uint32_t depth = 1;
	int r = find_method(c, frame);

	if (!r)
		r = array_reserve(c->seen, c->cap_seen, m->method);
	if (r)
		return r;
	seen = &c->seen[m->method - 1];
	if (seen->stack == stack + 1)
		depth = seen->depth < MAX_DEPTH ? seen->depth + 1 : MAX_DEPTH;
	*seen = (struct seen_method) { stack + 1, depth };
	if (is_new)
		r = add_fn(c, m, depth, &step->fn);
	step->fn += is_new;
	return r;
}

static int add_stack(struct callgrind *c, uint32_t stack)
{
	struct cost_key own = { .callee = NO_CALLEE };
	size_t n = 0;
	int r = 0;

	for (uint32_t at = stack; at; at = shown_callers(&c->shown, at)) {
		if (array_reserve(c->path, c->cap_path, n + 1))
			return -ENOMEM;
		c->path[n++] = at;
	}
	for (size_t i = n; !r && i--;) {
		r = find_fn(c, c->path[i], stack);
		if (!r && i + 1 < n)
			r = add_call(c, c->path[i], stack);
	}
	if (r)
		return r;
	own.fn = c->steps[stack].fn - 1;
	own.line = line_of(c, c->profile->stacks[stack].frame);
	return add_cost(c, &own, weight(c, stack));
}

/* The function that is a thread. */
static int fn_of_thread(struct callgrind *c, uint32_t thread, uint32_t *ret)
{
	uint32_t *known = &c->of_thread[thread];
	_cleanup_buf_ struct buf title = BUF_INIT;
	struct frame_method m;
	int r = 0;

	if (!*known) {
		function_thread_title(c->profile, thread, &title);
		if (buf_failed(&title))
			return -ENOMEM;
		r = add_method(c, "threads", "[threads]", buf_str(&title), &m);
		if (!r)
			r = add_fn(c, &m, 1, known);
		if (r)
			return r;
		++*known;
	}
	*ret = *known - 1;
	return 0;
}

/* What the function that is a thread calls, or costs itself: @a is of the outermost stack. */
static int add_thread(struct callgrind *c, const struct profile_aggregate *a)
{
	const uint32_t frame = c->profile->stacks[a->stack].frame;
	const struct cost_sum sum = { a->value, a->samples };
	struct cost_key key = { .callee = NO_CALLEE };
	int r = fn_of_thread(c, owner_of_aggregate(c->profile, OWNER_THREAD, a), &key.fn);

	if (!r && frame != PROFILE_NONE) {
		key.callee_line = c->profile->frames[frame].func_line;
		r = find_method(c, frame);
		if (!r)
			r = add_fn(c, &c->of_frame[frame], 1, &key.callee);
	}
	return r ? r : add_cost(c, &key, &sum);
}

/* Add up the samples of the batch by thread and outermost stack. */
static int add_batch(struct callgrind *c)
{
	const size_t n = c->n_batch;

	for (size_t i = 0; i < n; i++) {
		struct profile_sample *s = &c->batch[i];

		s->stack = c->outermost[shown_stack(&c->shown, s->stack)];
		s->flags = 0;
		s->request = 0;
	}
	c->n_batch = 0;
	return aggregate_add_batch(&c->index, &c->threads, c->batch, n);
}

static int take_sample(void *arg, const struct profile_sample *s)
{
	struct callgrind *c = arg;

	if (!shown_sample(&c->shown, s))
		return 0;
	__builtin_prefetch(&c->outermost[s->stack]);
	c->batch[c->n_batch++] = *s;
	return c->n_batch == AGGREGATE_BATCH ? add_batch(c) : 0;
}

/*
 * Of pairs of a thread and a stack there may be far more than of either, and only what the threads
 * call is wanted of them. So the profile need not have them: samples are read once more, and added
 * up by thread and outermost stack.
 */
static int add_threads(struct callgrind *c, struct err *err)
{
	const struct profile *p = c->profile;
	int r;

	c->threads = (struct profile) { .event = p->event, .by_thread = true };
	if (array_reserve(c->threads.threads, c->threads.cap_threads, p->n_threads))
		return -ENOMEM;
	c->threads.n_threads = p->n_threads;
	r = profile_each_sample(p, c->from, take_sample, c, err);
	if (!r)
		r = add_batch(c);
	for (size_t i = 0; i < c->threads.n_aggregates && !r; i++)
		r = add_thread(c, &c->threads.aggregates[i]);
	profile_deinit(&c->threads);
	aggregate_index_deinit(&c->index);
	return r;
}

static void find_outermost(struct callgrind *c)
{
	const struct profile *p = c->profile;

	for (uint32_t i = 1; i < p->n_stacks; i++) {
		const uint32_t callers = shown_callers(&c->shown, i);

		c->outermost[i] = callers ? c->outermost[callers] : i;
	}
}

static int add_weight(struct callgrind *c, uint32_t stack, const struct profile_aggregate *a)
{
	struct cost_sum *sum;

	if (!c->weight_of[stack]) {
		if (array_reserve(c->weights, c->cap_weights, c->n_weights + 1))
			return -ENOMEM;
		c->weights[c->n_weights++] = (struct cost_sum) { 0 };
		c->weight_of[stack] = (uint32_t)c->n_weights;
	}
	sum = weight(c, stack);
	profile_add(&sum->value, a->value);
	profile_add(&sum->samples, a->samples);
	profile_add(&c->file.all.value, a->value);
	profile_add(&c->file.all.samples, a->samples);
	return 0;
}

static int add_costs(struct callgrind *c, struct err *err)
{
	const struct profile *p = c->profile;
	int r = 0;

	for (size_t i = 0; i < p->n_aggregates && !r; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];

		if (!view_selected(c->shown.selection, a))
			continue;
		r = add_weight(c, shown_stack(&c->shown, a->stack), a);
	}
	if (!r)
		r = add_threads(c, err);
	for (size_t i = 1; i < p->n_stacks && !r; i++)
		if (c->weight_of[i])
			r = add_stack(c, (uint32_t)i);
	/* The file is made of the costs alone. */
	prefix_tree_deinit(&c->calls);
	free(c->last_stack);
	c->last_stack = NULL;
	return r;
}

/* ---- the whole ---- */

static int add_all(struct callgrind *c, struct err *err)
{
	size_t n = c->profile->n_frames + 1;
	int r;

	c->of_frame = calloc(n, sizeof(*c->of_frame));
	c->weight_of = calloc(c->profile->n_stacks + 1, sizeof(*c->weight_of));
	c->of_thread = calloc(c->profile->n_threads + 1, sizeof(*c->of_thread));
	c->has_samples = calloc(c->profile->n_threads + 1, sizeof(*c->has_samples));
	c->outermost = calloc(c->profile->n_stacks + 1, sizeof(*c->outermost));
	c->steps = calloc(c->profile->n_stacks + 1, sizeof(*c->steps));
	if (!c->steps || !c->of_frame || !c->weight_of || !c->of_thread || !c->has_samples ||
	    !c->outermost)
		return -ENOMEM;
	if (prefix_tree_init(&c->file.places) || prefix_tree_init(&c->file.keys) ||
	    prefix_tree_init(&c->calls))
		return -ENOMEM;
	find_outermost(c);
	r = add_costs(c, err);
	if (r)
		return r;
	for (size_t i = 0; i < c->profile->n_threads; i++)
		c->has_samples[i] = c->of_thread[i];
	c->file.threads = c->has_samples;
	return callgrind_write(&c->file, c->out);
}

int export_callgrind(const struct profile *p, const struct export_options *opts, struct buf *out,
		     struct err *err)
{
	struct callgrind c = {
		.profile = p,
		.file = { .profile = p },
		.from = &opts->replay,
		.out = out,
	};
	int r = shown_init(p, opts->filter, &c.shown);

	if (!r)
		r = add_all(&c, err);
	callgrind_deinit(&c);
	if (!r && buf_failed(out))
		r = -ENOMEM;
	return export_error(r, err);
}
