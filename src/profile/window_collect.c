/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Dropping what the window no longer needs.
 *
 * What the entries of its seconds and the holder name is copied, with all that this names in turn,
 * into definitions made anew; then the ids in both are changed to those of the copies. Parents have
 * lower ids than what is below them, and keep their order, so that one pass over each kind is
 * enough: downwards to mark, upwards to copy.
 *
 * All that can fail comes before the first id is changed.
 */
#include "profile/window_state.h"

#include <errno.h>
#include <stdlib.h>

#include "profile/copy.h"
#include "profile/sink.h"

/*
 * By old id of each kind: PROFILE_NONE: not used; while marking, anything else: used; then the new
 * id.
 */
struct collection {
	struct profile *old;
	uint32_t *map[ID_KINDS]; /* owned */
	size_t n[ID_KINDS];
	struct profile_sink defs; /* the copies; owned */
	struct intern newest;	  /* of the window, with new ids; owned */
};

static void mark(struct collection *c, enum id_kind kind, uint32_t id)
{
	if (id < c->n[kind])
		c->map[kind][id] = 0;
}

static bool is_marked(const struct collection *c, enum id_kind kind, size_t id)
{
	return c->map[kind][id] != PROFILE_NONE;
}

static void mark_held(void *arg, enum id_kind kind, uint32_t *id)
{
	mark(arg, kind, *id);
}

static void mark_entries(struct collection *c, const struct window *w)
{
	for (uint64_t number = w->first; number < w->end; number++) {
		const struct window_second *s = window_second(w, number);

		for (size_t i = 0; i < s->n; i++) {
			mark(c, ID_THREAD, s->v[i].thread);
			mark(c, ID_STACK, s->v[i].stack);
			mark(c, ID_REQUEST, s->v[i].request);
		}
	}
}

/* What marked ones refer to, but for strings. */
static void mark_referenced(struct collection *c)
{
	const struct profile *p = c->old;
	size_t i;

	for (i = 0; i < p->n_threads; i++)
		if (is_marked(c, ID_THREAD, i))
			mark(c, ID_PROCESS, p->threads[i].process);
	for (i = p->n_processes; i--;)
		if (is_marked(c, ID_PROCESS, i))
			mark(c, ID_PROCESS, p->processes[i].parent);
	for (i = p->n_stacks; i-- > 1;)
		if (is_marked(c, ID_STACK, i)) {
			mark(c, ID_STACK, p->stacks[i].parent);
			mark(c, ID_FRAME, p->stacks[i].frame);
		}
}

/* ---- copies ---- */

/* Those that the holder has. */
static int copy_strings(struct collection *c)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < c->n[ID_STRING] && !r; i++) {
		if (!is_marked(c, ID_STRING, i))
			continue;
		c->map[ID_STRING][i] = i;
		r = copy_string(c->old, &c->defs.sink, &c->map[ID_STRING][i]);
	}
	return r;
}

static int copy_processes(struct collection *c)
{
	int r = 0;

	for (size_t i = 0; i < c->old->n_processes && !r; i++) {
		uint32_t parent = c->old->processes[i].parent;

		if (!is_marked(c, ID_PROCESS, i))
			continue;
		if (parent != PROFILE_NONE)
			parent = c->map[ID_PROCESS][parent];
		r = copy_process(c->old, (uint32_t)i, parent, &c->defs.sink,
				 &c->map[ID_PROCESS][i]);
	}
	return r;
}

static int copy_threads(struct collection *c)
{
	int r = 0;

	for (size_t i = 0; i < c->old->n_threads && !r; i++) {
		struct profile_thread t = c->old->threads[i];

		if (!is_marked(c, ID_THREAD, i))
			continue;
		r = copy_string(c->old, &c->defs.sink, &t.name);
		if (!r)
			r = sink_thread(&c->defs.sink, c->map[ID_PROCESS][t.process], t.tid, t.name,
					&c->map[ID_THREAD][i]);
		if (!r && t.cpu_known)
			r = sink_thread_cpu(&c->defs.sink, c->map[ID_THREAD][i], t.cpu_ns);
	}
	return r;
}

static int copy_stacks(struct collection *c)
{
	int r = 0;

	for (size_t i = 0; i < c->old->n_frames && !r; i++)
		if (is_marked(c, ID_FRAME, i))
			r = copy_frame(c->old, (uint32_t)i, &c->defs.sink, &c->map[ID_FRAME][i]);
	c->map[ID_STACK][0] = 0;
	for (size_t i = 1; i < c->old->n_stacks && !r; i++)
		if (is_marked(c, ID_STACK, i))
			r = sink_stack(&c->defs.sink, c->map[ID_STACK][c->old->stacks[i].parent],
				       c->map[ID_FRAME][c->old->stacks[i].frame],
				       &c->map[ID_STACK][i]);
	return r;
}

/* Of which thread a request is means nothing here: there is one for each kind. */
static int copy_requests(struct collection *c)
{
	int r = 0;

	if (c->n[ID_REQUEST])
		c->map[ID_REQUEST][0] = 0;
	for (size_t i = 1; i < c->n[ID_REQUEST] && !r; i++) {
		struct profile_request_kind kind;

		if (!is_marked(c, ID_REQUEST, i))
			continue;
		kind = *profile_request_kind(c->old, (uint32_t)i);
		r = copy_string(c->old, &c->defs.sink, &kind.framework);
		if (!r)
			r = copy_string(c->old, &c->defs.sink, &kind.name);
		if (!r)
			r = profile_add_request(&c->defs.profile, 0, &kind, &c->map[ID_REQUEST][i]);
	}
	return r;
}

static struct window_entry with_new_ids(const struct collection *c, const struct window_entry *e)
{
	struct window_entry ret = *e;

	ret.thread = c->map[ID_THREAD][e->thread];
	ret.stack = c->map[ID_STACK][e->stack];
	if (e->request)
		ret.request = c->map[ID_REQUEST][e->request];
	return ret;
}

/* Entries of the newest second stay told apart, so that each keeps its index. */
static int copy_newest(struct collection *c, const struct window *w)
{
	const struct window_second *s = window_second(w, w->end - 1);
	uint32_t id;
	int r = 0;

	for (size_t i = 0; i < s->n && !r; i++) {
		const struct window_entry e = with_new_ids(c, &s->v[i]);
		const struct entry_key key = window_key(&e);

		r = intern_add(&c->newest, &key, sizeof(key), &id, NULL);
	}
	return r;
}

/* ---- the whole ---- */

static void change_held(void *arg, enum id_kind kind, uint32_t *id)
{
	const struct collection *c = arg;

	if (*id < c->n[kind])
		*id = c->map[kind][*id];
}

static void change_entries(const struct collection *c, const struct window *w)
{
	for (uint64_t number = w->first; number < w->end; number++) {
		struct window_second *s = window_second(w, number);

		for (size_t i = 0; i < s->n; i++)
			s->v[i] = with_new_ids(c, &s->v[i]);
	}
}

static int begin(struct collection *c, struct window *w)
{
	const struct profile_sink_options opts = { .by_thread = true, .by_request = true };
	const struct profile *p = &w->defs.profile;
	size_t i;
	int k;

	c->old = &w->defs.profile;
	c->n[ID_STRING] = p->strings.count;
	c->n[ID_PROCESS] = p->n_processes;
	c->n[ID_THREAD] = p->n_threads;
	c->n[ID_FRAME] = p->n_frames;
	c->n[ID_STACK] = p->n_stacks;
	c->n[ID_REQUEST] = p->n_requests;
	for (k = 0; k < ID_KINDS; k++) {
		c->map[k] = malloc((c->n[k] + 1) * sizeof(*c->map[k]));
		if (!c->map[k])
			return -ENOMEM;
		for (i = 0; i <= c->n[k]; i++)
			c->map[k][i] = PROFILE_NONE;
	}
	return profile_sink_init(&c->defs, &opts);
}

static void deinit(struct collection *c)
{
	for (int k = 0; k < ID_KINDS; k++)
		free(c->map[k]);
	profile_sink_deinit(&c->defs);
	intern_deinit(&c->newest);
}

static int collect(struct window *w, const struct id_holder *holder)
{
	struct collection c = { 0 };
	struct profile_sink unused;
	int r = begin(&c, w);

	if (!r) {
		mark_entries(&c, w);
		holder->each(holder->holder, mark_held, &c);
		mark_referenced(&c);
		r = copy_strings(&c);
	}
	if (!r)
		r = copy_processes(&c);
	if (!r)
		r = copy_threads(&c);
	if (!r)
		r = copy_stacks(&c);
	if (!r)
		r = copy_requests(&c);
	if (!r)
		r = copy_newest(&c, w);
	if (!r) {
		change_entries(&c, w);
		holder->each(holder->holder, change_held, &c);
		c.defs.profile.meta = w->defs.profile.meta;
		w->defs.profile.meta = (struct profile_meta) { 0 };
		unused = w->defs;
		w->defs = c.defs;
		c.defs = unused;
		intern_deinit(&w->newest);
		w->newest = c.newest;
		c.newest = (struct intern)INTERN_INIT;
	}
	deinit(&c);
	return r;
}

int window_collect(struct window *w, const struct id_holder *holder)
{
	int r = collect(w, holder);

	/* Half of what there is goes each time, so that this ends after a few turns. */
	while (!r && window_bytes(w) > w->max_bytes && w->end - w->first > 1) {
		for (uint64_t n = (w->end - w->first) / 2; n; n--)
			window_drop_oldest(w);
		r = collect(w, holder);
	}
	w->asked = false;
	w->collected = window_definition_bytes(w);
	return r;
}
