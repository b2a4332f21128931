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
 *   - a function that is in a stack again stands there as another one, "Tree#walk'2", as
 * callgrind's
 *     --separate-recs=2 has it. Its own cost is a part of the function's. Its inclusive cost is of
 *     less use, for it may call itself; but of one sample no call is counted twice.
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
#include "base/json.h"
#include "base/prefix_tree.h"
#include "export/export.h"
#include "export/exporters.h"
#include "export/function.h"
#include "export/origin.h"
#include "export/shown.h"
#include "profile/aggregate.h"
#include "profile/replay.h"
#include "view/filter.h"
#include "view/label.h"

struct cost_sum {
	uint64_t value;
	uint64_t samples;
};

/* A function of callgrind's. Members are ids in callgrind.names. */
struct fn {
	uint32_t file;
	uint32_t name;
};

/* What is a line of the file: the own cost of a line, or a call from it. */
struct cost_key {
	uint32_t fn;
	uint32_t line;
	uint32_t callee; /* fn; NO_CALLEE: own cost */
	uint32_t callee_line;
};

#define NO_CALLEE UINT32_MAX

/*
 * What ends a shown stack: its innermost function, and the call of it. They are the same in all
 * stacks that go on from that one, which may be hundreds of frames deep and have thousands of
 * those.
 */
struct call_step {
	uint32_t fn;   /* + 1; 0: not known yet */
	uint32_t call; /* in calls; 0: the same */
	uint32_t cost; /* its key; 0: the same */
	bool again;    /* the function is one that the callers' stack has, too */
};

struct callgrind {
	const struct profile *profile;
	const struct replay *from;
	struct shown shown;
	struct intern names; /* of objects, files and functions, as they are written */
	struct intern fns;   /* struct fn */
	uint32_t *objects;   /* by fn, in names */
	size_t cap_objects;
	/*
	 * There may be millions of calls, so they are kept as pairs: a place is a line of a
	 * function, a key (struct cost_key) is a place and that which is called, 0 of an own cost,
	 * and a call from whatever line is a function and the one that it calls.
	 */
	struct prefix_tree places, keys, calls;
	struct cost_sum *costs; /* by key */
	size_t cap_costs;
	uint32_t *last_stack; /* by call: the last stack that it was in, + 1 */
	size_t cap_calls;
	uint32_t *
		of_frame[2]; /* by frame: its fn + 1, and that of its recursion; 0: not known yet */
	uint32_t *of_thread; /* by thread: its fn + 1; 0: not known yet */
	uint32_t *outermost; /* by shown stack: that of its outermost frame alone; 0 of 0 */
	uint32_t *seen;	     /* by fn: the last stack that it was in, + 1 */
	size_t cap_seen;
	uint32_t *weight_of;	  /* by shown stack: its place in weights + 1; 0: no samples */
	struct cost_sum *weights; /* of those stacks that samples have, which are far fewer */
	size_t n_weights, cap_weights;
	struct cost_sum all;
	struct profile threads;	      /* samples by thread and outermost stack: only aggregates */
	struct aggregate_index index; /* of these */
	struct profile_sample batch[AGGREGATE_BATCH]; /* not added up yet */
	size_t n_batch;
	struct call_step *steps; /* by shown stack */
	uint32_t *path;		 /* scratch: a shown stack and those of its callers */
	size_t cap_path;
	bool *named[3]; /* by name, of each kind: it was written with its number */
	struct buf scratch;
	struct buf *out;
};

static void callgrind_deinit(struct callgrind *c)
{
	shown_deinit(&c->shown);
	intern_deinit(&c->names);
	intern_deinit(&c->fns);
	prefix_tree_deinit(&c->places);
	prefix_tree_deinit(&c->keys);
	prefix_tree_deinit(&c->calls);
	profile_deinit(&c->threads);
	aggregate_index_deinit(&c->index);
	free(c->last_stack);
	free(c->objects);
	free(c->costs);
	free(c->of_frame[0]);
	free(c->of_frame[1]);
	free(c->of_thread);
	free(c->outermost);
	free(c->seen);
	free(c->weight_of);
	free(c->weights);
	free(c->steps);
	free(c->path);
	for (size_t i = 0; i < ARRAY_SIZE(c->named); i++)
		free(c->named[i]);
	buf_deinit(&c->scratch);
}

/* ---- functions ---- */

/* Readers drop blanks at the start of a name, and cannot do without one. */
static int add_name(struct callgrind *c, const char *name, const char *suffix, uint32_t *ret)
{
	buf_reset(&c->scratch);
	name += strspn(name, " \t");
	buf_addstr(&c->scratch, *name ? name : "???");
	buf_addstr(&c->scratch, suffix);
	if (buf_failed(&c->scratch))
		return -ENOMEM;
	return intern_add(&c->names, c->scratch.data, c->scratch.len, ret, NULL);
}

static int add_fn(struct callgrind *c, const char *object, const char *file, const char *name,
		  const char *suffix, uint32_t *ret)
{
	struct fn fn;
	bool is_new;
	int r;

	r = add_name(c, file, "", &fn.file);
	if (!r)
		r = add_name(c, name, suffix, &fn.name);
	if (!r)
		r = intern_add(&c->fns, &fn, sizeof(fn), ret, &is_new);
	if (!r)
		r = array_reserve(c->objects, c->cap_objects, c->fns.count);
	return r || !is_new ? r : add_name(c, object, "", &c->objects[*ret]);
}

static int fn_of_frame(struct callgrind *c, uint32_t frame, bool recursion, uint32_t *ret)
{
	uint32_t *known = &c->of_frame[recursion][frame];
	_cleanup_buf_ struct buf package = BUF_INIT;
	struct function f;
	int r;

	if (!*known) {
		function_of_frame(c->profile, frame, &f);
		label_package(c->profile, frame, &package);
		r = buf_failed(&package) ? -ENOMEM
					 : add_fn(c, buf_str(&package), f.file, f.name,
						  recursion ? "'2" : "", known);
		if (r)
			return r;
		++*known;
	}
	*ret = *known - 1;
	return 0;
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

	r = prefix_tree_pair(&c->places, key->fn, key->line, &place);
	if (!r && key->callee != NO_CALLEE)
		r = prefix_tree_pair(&c->places, key->callee, key->callee_line, &called);
	if (!r)
		r = prefix_tree_pair(&c->keys, place, called, ret);
	return r ? r : array_reserve(c->costs, c->cap_costs, (size_t)*ret + 1);
}

static void add_sum(struct callgrind *c, uint32_t id, const struct cost_sum *sum)
{
	profile_add(&c->costs[id].value, sum->value);
	profile_add(&c->costs[id].samples, sum->samples);
}

static int add_cost(struct callgrind *c, const struct cost_key *key, const struct cost_sum *sum)
{
	uint32_t id;
	int r = find_cost(c, key, &id);

	if (!r)
		add_sum(c, id, sum);
	return r;
}

static struct cost_key key_of(const struct callgrind *c, uint32_t id)
{
	const struct prefix_node *key = &c->keys.nodes[id];
	const struct prefix_node *place = &c->places.nodes[key->parent];
	const struct prefix_node *called = &c->places.nodes[key->what];

	return (struct cost_key) {
		.fn = place->parent,
		.line = place->what,
		.callee = key->what ? called->parent : NO_CALLEE,
		.callee_line = key->what ? called->what : 0,
	};
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
	struct call_step *step = &c->steps[at];
	uint32_t fn;
	int r;

	if (!step->fn) {
		r = fn_of_frame(c, frame, false, &fn);
		if (!r)
			r = array_reserve(c->seen, c->cap_seen, (size_t)fn + 1);
		if (r)
			return r;
		step->again = c->seen[fn] == stack + 1;
		r = step->again ? fn_of_frame(c, frame, true, &fn) : 0;
		if (r)
			return r;
		step->fn = fn + 1;
	}
	if (!step->again)
		c->seen[step->fn - 1] = stack + 1;
	return 0;
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
	int r;

	if (!*known) {
		function_thread_title(c->profile, thread, &title);
		r = buf_failed(&title)
			    ? -ENOMEM
			    : add_fn(c, "threads", "[threads]", buf_str(&title), "", known);
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
	int r = fn_of_thread(c, a->thread, &key.fn);

	if (!r && frame != PROFILE_NONE) {
		key.callee_line = c->profile->frames[frame].func_line;
		r = fn_of_frame(c, frame, false, &key.callee);
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
	profile_add(&c->all.value, a->value);
	profile_add(&c->all.samples, a->samples);
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

/* ---- the file ---- */

/* "fn=(3) Foo#bar", and from the second time on "fn=(3)". */
static void write_name(struct callgrind *c, const char *key, bool *named, uint32_t name)
{
	buf_addstr(c->out, key);
	buf_addstr(c->out, "=(");
	buf_add_u64(c->out, (uint64_t)name + 1);
	buf_addch(c->out, ')');
	if (!named[name]) {
		buf_addch(c->out, ' ');
		buf_addstr(c->out, intern_get(&c->names, name, NULL));
	}
	named[name] = true;
	buf_addch(c->out, '\n');
}

static void write_fn(struct callgrind *c, uint32_t id, bool called)
{
	const struct fn *fn = intern_get(&c->fns, id, NULL);

	write_name(c, called ? "cob" : "ob", c->named[0], c->objects[id]);
	write_name(c, called ? "cfi" : "fl", c->named[1], fn->file);
	write_name(c, called ? "cfn" : "fn", c->named[2], fn->name);
}

static void write_sum(struct callgrind *c, uint64_t line, const struct cost_sum *sum)
{
	buf_add_u64(c->out, line);
	buf_addch(c->out, ' ');
	buf_add_u64(c->out, json_clamp(sum->value));
	buf_addch(c->out, ' ');
	buf_add_u64(c->out, json_clamp(sum->samples));
	buf_addch(c->out, '\n');
}

static int compare_keys(const void *a, const void *b, void *arg)
{
	const struct cost_key x = key_of(arg, *(const uint32_t *)a);
	const struct cost_key y = key_of(arg, *(const uint32_t *)b);

	if (x.fn != y.fn)
		return x.fn < y.fn ? -1 : 1;
	/* Own costs first. */
	if ((x.callee == NO_CALLEE) != (y.callee == NO_CALLEE))
		return x.callee == NO_CALLEE ? -1 : 1;
	if (x.line != y.line)
		return x.line < y.line ? -1 : 1;
	if (x.callee != y.callee)
		return x.callee < y.callee ? -1 : 1;
	return (x.callee_line > y.callee_line) - (x.callee_line < y.callee_line);
}

static void write_cost(struct callgrind *c, const struct cost_key *key, const struct cost_sum *sum)
{
	if (key->callee != NO_CALLEE) {
		write_fn(c, key->callee, true);
		buf_addstr(c->out, "calls=");
		buf_add_u64(c->out, json_clamp(sum->samples));
		buf_addch(c->out, ' ');
		buf_add_u64(c->out, key->callee_line);
		buf_addch(c->out, '\n');
	}
	write_sum(c, key->line, sum);
}

static int write_costs(struct callgrind *c)
{
	const size_t n = c->keys.n_nodes - 1; /* without the root */
	_cleanup_free_ uint32_t *order = calloc(n + 1, sizeof(*order));
	uint32_t fn = UINT32_MAX;

	for (size_t i = 0; i < ARRAY_SIZE(c->named); i++) {
		c->named[i] = calloc(c->names.count + 1, sizeof(*c->named[i]));
		if (!c->named[i])
			return -ENOMEM;
	}
	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i + 1;
	if (n)
		qsort_r(order, n, sizeof(*order), compare_keys, c);
	for (size_t i = 0; i < n && !buf_failed(c->out); i++) {
		const struct cost_key key = key_of(c, order[i]);

		if (key.fn != fn) {
			fn = key.fn;
			buf_addch(c->out, '\n');
			write_fn(c, fn, false);
		}
		write_cost(c, &key, &c->costs[order[i]]);
	}
	return 0;
}

/* What callgrind calls the program. */
static const char *command(const struct profile *p)
{
	return p->n_processes ? profile_str(p, p->processes[0].cmdline) : "";
}

static void write_header(struct callgrind *c)
{
	const struct profile_event *event = profile_event(c->profile);

	buf_addstr(c->out, "# callgrind format\nversion: 1\ncreator: rbpf " RBPF_VERSION "\n");
	if (c->profile->n_processes)
		buf_addf(c->out, "pid: %u\n", c->profile->processes[0].pid);
	buf_addf(c->out, "cmd: %s\n", command(c->profile));
	buf_addstr(c->out, "desc: recording: ");
	origin_add(c->profile, c->out);
	buf_addstr(c->out, "\ndesc: calls are counted in samples\npositions: line\nevents: ");
	for (const char *s = event->name; *s; s++)
		buf_addch(c->out, *s == '-' ? '_' : *s);
	buf_addf(c->out, "_%s samples\n", value_unit_name(event->unit));
}

static int write_file(struct callgrind *c, struct err *err)
{
	size_t n = c->profile->n_frames + 1;
	int r;

	c->of_frame[0] = calloc(n, sizeof(*c->of_frame[0]));
	c->of_frame[1] = calloc(n, sizeof(*c->of_frame[1]));
	c->weight_of = calloc(c->profile->n_stacks + 1, sizeof(*c->weight_of));
	c->of_thread = calloc(c->profile->n_threads + 1, sizeof(*c->of_thread));
	c->outermost = calloc(c->profile->n_stacks + 1, sizeof(*c->outermost));
	c->steps = calloc(c->profile->n_stacks + 1, sizeof(*c->steps));
	if (!c->steps || !c->of_frame[0] || !c->of_frame[1] || !c->weight_of || !c->of_thread ||
	    !c->outermost)
		return -ENOMEM;
	if (prefix_tree_init(&c->places) || prefix_tree_init(&c->keys) ||
	    prefix_tree_init(&c->calls))
		return -ENOMEM;
	find_outermost(c);
	r = add_costs(c, err);
	if (r)
		return r;
	write_header(c);
	r = write_costs(c);
	buf_addstr(c->out, "\ntotals:");
	buf_addf(c->out, " %llu %llu\n", (unsigned long long)json_clamp(c->all.value),
		 (unsigned long long)json_clamp(c->all.samples));
	return r;
}

int export_callgrind(const struct profile *p, const struct export_options *opts, struct buf *out,
		     struct err *err)
{
	struct callgrind c = { .profile = p, .from = &opts->replay, .out = out };
	int r = shown_init(p, opts->filter, &c.shown);

	if (!r)
		r = write_file(&c, err);
	callgrind_deinit(&c);
	if (!r && buf_failed(out))
		r = -ENOMEM;
	return export_error(r, err);
}
