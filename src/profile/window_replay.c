/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The seconds of the window as a stream for another sink, such as the one that writes a recording.
 */
#include "profile/window_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "profile/copy.h"
#include "profile/recorder.h"
#include "profile/sink.h"

/* By id here: the id there + 1; 0: not defined there yet. */
struct replaying {
	const struct profile *p;
	struct sink *out;
	uint32_t *processes, *threads, *frames, *stacks;
	struct intern requests; /* thread and kind; by their ids … */
	uint32_t *request_ids;	/* … the id there; owned, as are the others */
	size_t cap_request_ids;
};

static int define_process(struct replaying *c, uint32_t process)
{
	const struct profile_process *def = &c->p->processes[process];
	uint32_t id;
	/* Its parent may be in no second: the order of processes is all that a recording needs. */
	int r = copy_process(c->p, process, PROFILE_NONE, c->out, &id);

	if (!r && def->exited)
		r = sink_process_exit(c->out, id, def->exit_ts, def->exit_status);
	if (!r)
		c->processes[process] = id + 1;
	return r;
}

static int define_thread(struct replaying *c, uint32_t thread)
{
	const struct profile_thread *t = &c->p->threads[thread];
	uint32_t name = t->name, id;
	int r = 0;

	if (c->threads[thread])
		return 0;
	if (!c->processes[t->process])
		r = define_process(c, t->process);
	if (!r)
		r = copy_string(c->p, c->out, &name);
	if (!r)
		r = sink_thread(c->out, c->processes[t->process] - 1, t->tid, name, &id);
	if (!r)
		c->threads[thread] = id + 1;
	return r;
}

static int define_frame(struct replaying *c, uint32_t frame)
{
	uint32_t id;
	int r;

	if (c->frames[frame])
		return 0;
	r = copy_frame(c->p, frame, c->out, &id);
	if (!r)
		c->frames[frame] = id + 1;
	return r;
}

/* All that @stack stands on has been defined. */
static int define_upon(struct replaying *c, uint32_t stack)
{
	const struct profile_stack *s = &c->p->stacks[stack];
	const uint32_t parent = s->parent ? c->stacks[s->parent] - 1 : 0;
	uint32_t id;
	int r = define_frame(c, s->frame);

	if (!r)
		r = sink_stack(c->out, parent, c->frames[s->frame] - 1, &id);
	if (!r)
		c->stacks[stack] = id + 1;
	return r;
}

/* From its outermost frame inwards. */
static int define_stack(struct replaying *c, uint32_t stack)
{
	const size_t depth = profile_stack_depth(c->p, stack);
	_cleanup_free_ uint32_t *path = malloc((depth + 1) * sizeof(*path));
	size_t n = 0;
	int r = 0;

	if (!path)
		return -ENOMEM;
	for (; stack && !c->stacks[stack]; stack = c->p->stacks[stack].parent)
		path[n++] = stack;
	while (n && !r)
		r = define_upon(c, path[--n]);
	return r;
}

/* A request for each thread and kind: which single one it was is not known. */
static int define_request(struct replaying *c, uint32_t thread, uint32_t kind, uint32_t *ret)
{
	const uint32_t key[2] = { thread, kind };
	struct profile_request_kind def;
	uint32_t id;
	bool is_new;
	int r;

	*ret = 0;
	if (!kind)
		return 0;
	/* A recorder knows no more than these by then. */
	if (c->requests.count == RECORDER_REQUESTS_KEPT)
		intern_deinit(&c->requests);
	r = intern_add(&c->requests, key, sizeof(key), &id, &is_new);
	if (!r)
		r = array_reserve(c->request_ids, c->cap_request_ids, (size_t)id + 1);
	if (!r && is_new) {
		def = *profile_request_kind(c->p, kind);
		r = copy_string(c->p, c->out, &def.framework);
		if (!r)
			r = copy_string(c->p, c->out, &def.name);
		if (!r)
			r = sink_request(c->out, c->threads[thread] - 1, &def, &c->request_ids[id]);
	}
	if (!r)
		*ret = c->request_ids[id];
	return r;
}

static int replay_entry(struct replaying *c, const struct window_entry *e, uint64_t begin_ns)
{
	const uint64_t each = e->value / e->samples, slot = NSEC_PER_SEC / e->samples;
	struct profile_sample s = { .event = e->event, .flags = e->flags };
	int r = define_thread(c, e->thread);

	if (!r)
		r = define_stack(c, e->stack);
	if (!r)
		r = define_request(c, e->thread, e->request, &s.request);
	if (r)
		return r;
	s.thread = c->threads[e->thread] - 1;
	s.stack = e->stack ? c->stacks[e->stack] - 1 : 0;
	/* A wait ends at its time, and must not begin before its second. */
	if (profile_is_wait(c->p,
			    &(struct profile_sample) { .stack = e->stack, .event = e->event }))
		begin_ns += slot;
	for (uint32_t i = 0; i < e->samples && !r; i++) {
		s.ts = begin_ns + slot * i;
		s.value = i < e->samples - 1 ? each : e->value - each * i;
		r = sink_sample(c->out, &s);
	}
	return r;
}

static int replay_seconds(struct replaying *c, const struct window *w, struct window_range range)
{
	uint64_t number, begin_ns;
	int r = 0;

	for (number = range.from; number < range.to && !r; number++) {
		const struct window_second *s = window_second(w, number);

		begin_ns = w->start_ns + number * NSEC_PER_SEC;
		for (size_t i = 0; i < s->n && !r; i++)
			r = replay_entry(c, &s->v[i], begin_ns);
		if (!r && s->lost)
			r = sink_lost(c->out, &(struct profile_lost) { .ts = begin_ns,
								       .count = s->lost,
								       .reason = LOST_OTHER });
	}
	return r;
}

static struct window_range that_it_has(const struct window *w, struct window_range range)
{
	return (struct window_range) { range.from < w->first ? w->first : range.from,
				       range.to > w->end ? w->end : range.to };
}

uint64_t window_samples(const struct window *w, struct window_range range)
{
	uint64_t sum = 0;

	range = that_it_has(w, range);
	for (uint64_t number = range.from; number < range.to; number++) {
		const struct window_second *s = window_second(w, number);

		for (size_t i = 0; i < s->n; i++)
			sum += s->v[i].samples;
	}
	return sum;
}

int window_replay(const struct window *w, struct window_range range, struct sink *out)
{
	const struct profile *p = &w->defs.profile;
	struct replaying c = { .p = p, .out = out };
	int r = -ENOMEM;

	range = that_it_has(w, range);
	c.processes = calloc(p->n_processes + 1, sizeof(*c.processes));
	c.threads = calloc(p->n_threads + 1, sizeof(*c.threads));
	c.frames = calloc(p->n_frames + 1, sizeof(*c.frames));
	c.stacks = calloc(p->n_stacks + 1, sizeof(*c.stacks));
	if (c.processes && c.threads && c.frames && c.stacks)
		r = replay_seconds(&c, w, range);
	free(c.processes);
	free(c.threads);
	free(c.frames);
	free(c.stacks);
	free(c.request_ids);
	intern_deinit(&c.requests);
	return r;
}
