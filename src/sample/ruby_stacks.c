/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/ruby_stacks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/array.h"
#include "native/native_stacks.h"
#include "profile/sink.h"
#include "rbpf_frame_words.h"
#include "sample/process_table.h"

void ruby_stacks_buffers_deinit(struct ruby_stacks_buffers *b)
{
	free(b->frames);
	free(b->points);
	free(b->fingerprints);
	*b = (struct ruby_stacks_buffers) { 0 };
}

void ruby_generation_deinit(struct ruby_generation *g)
{
	u64_map_deinit(&g->stacks);
	u64_map_deinit(&g->outer);
	free(g->definitions);
	free(g->checkpoints);
	free(g->raw);
	free(g->named);
	*g = (struct ruby_generation) { 0 };
}

void ruby_generation_recycle(struct ruby_generation *g)
{
	array_recycle(g->definitions, g->cap_definitions, g->n_definitions);
	array_recycle(g->checkpoints, g->cap_checkpoints, g->n_checkpoints);
	array_recycle(g->raw, g->cap_raw, g->n_raw);
	array_recycle(g->named, g->cap_named, g->n_named);
	u64_map_recycle(&g->stacks);
	u64_map_recycle(&g->outer);
	g->n_definitions = g->n_checkpoints = g->n_raw = g->n_named = 0;
}

void ruby_generation_ids(struct ruby_generation *g, id_fn *fn, void *arg)
{
	for (size_t i = 0; i < g->n_named; i++)
		fn(arg, ID_FRAME, &g->named[i].frame);
}

size_t ruby_generation_bytes(const struct ruby_generation *g)
{
	return g->n_raw * sizeof(*g->raw) + g->n_named * sizeof(*g->named) +
	       g->n_definitions * sizeof(*g->definitions) +
	       g->n_checkpoints * sizeof(*g->checkpoints);
}

/* ---- looking up ---- */

const struct ruby_definition *ruby_stacks_find(const struct ruby_generation *g,
					       uint64_t fingerprint)
{
	uint32_t i;

	return u64_map_get(&g->stacks, fingerprint, &i) ? &g->definitions[i] : NULL;
}

static const struct ruby_checkpoint *find_checkpoint(const struct ruby_generation *g,
						     uint64_t fingerprint)
{
	uint32_t i;

	return u64_map_get(&g->outer, fingerprint, &i) ? &g->checkpoints[i] : NULL;
}

void ruby_stacks_frames(const struct ruby_generation *g, const struct ruby_definition *def,
			struct ruby_frame *ret)
{
	uint32_t skip = 0, n;

	for (;;) {
		n = def->n_named - skip;
		if (n)
			memcpy(ret, &g->named[def->named + skip], n * sizeof(*ret));
		ret += n;
		if (!def->outer)
			break;
		n = g->checkpoints[def->outer - 1].n_named;
		def = &g->definitions[g->checkpoints[def->outer - 1].definition];
		skip = def->n_named - n;
	}
}

/* Append the frames of @c, as they came, to @b. */
static int add_raw(struct ruby_stacks_buffers *b, const struct ruby_generation *g,
		   const struct ruby_checkpoint *c)
{
	for (;;) {
		const struct ruby_definition *def = &g->definitions[c->definition];
		int r = array_room(b->frames, b->cap_frames, b->n_frames + c->n_raw);

		if (r)
			return r;
		memcpy(&b->frames[b->n_frames], &g->raw[def->raw + def->n_raw - c->n_raw],
		       c->n_raw * sizeof(*b->frames));
		b->n_frames += c->n_raw;
		if (!def->outer)
			return 0;
		c = &g->checkpoints[def->outer - 1];
	}
}

/* ---- adding ---- */

static int record_frame(struct sink *out, struct tracked_process *p, uint32_t symbol, uint32_t *ret)
{
	const struct named_frame *s;
	struct profile_frame def;
	uint32_t id;
	int r;

	if (symbol < p->cap_frame_ids && p->frame_ids[symbol]) {
		*ret = p->frame_ids[symbol] - 1;
		return 0;
	}
	s = resolver_symbol(p->resolver, symbol);
	def = (struct profile_frame) {
		.kind = s->kind,
		.line = s->line,
		.func_line = s->func_line,
		.module = PROFILE_NONE,
		.flags = s->flags,
	};
	r = array_reserve(p->frame_ids, p->cap_frame_ids, symbol + 1);
	if (!r)
		r = sink_string(out, s->name, strlen(s->name), &def.name);
	if (!r)
		r = sink_string(out, s->file, strlen(s->file), &def.file);
	if (!r)
		r = sink_frame(out, &def, &id);
	if (r)
		return r;
	p->frame_ids[symbol] = id + 1;
	*ret = id;
	return 0;
}

/* What a frame of this kind says of the samples that it is in. */
static uint16_t flags_of_kind(enum frame_kind kind)
{
	switch (kind) {
	case FRAME_TRUNCATED:
		return SAMPLE_TRUNCATED;
	case FRAME_UNKNOWN:
		return SAMPLE_UNRESOLVED;
	default:
		return 0;
	}
}

/* The same of all of the symbols @ids from @begin on and before @end. */
static uint16_t flags_of(const struct tracked_process *p, const uint32_t *ids, size_t begin,
			 size_t end)
{
	uint16_t flags = 0;

	for (; begin < end; begin++)
		flags |= flags_of_kind(resolver_symbol(p->resolver, ids[begin])->kind);
	return flags;
}

/* The rule of the innermost of them that has one; of the frames outside of them it is @outer. */
static uint16_t rule_of(const struct tracked_process *p, size_t begin, size_t end, uint16_t outer)
{
	const struct frame_origin *origins = resolver_origins(p->resolver);

	for (; begin < end; begin++)
		if (origins[begin].rule)
			return origins[begin].rule;
	return outer;
}

static int add_checkpoint(struct ruby_generation *g, const struct ruby_checkpoint *c,
			  uint64_t fingerprint)
{
	int r = array_room(g->checkpoints, g->cap_checkpoints, g->n_checkpoints + 1);

	if (!r)
		r = u64_map_set(&g->outer, fingerprint, (uint32_t)g->n_checkpoints);
	if (!r)
		g->checkpoints[g->n_checkpoints++] = *c;
	return r;
}

/* The checkpoints of the definition that is added last, @def, which has the symbols @ids. */
static int add_checkpoints(struct ruby_generation *g, const struct ruby_stacks_buffers *b,
			   const struct tracked_process *p, const struct ruby_definition *def,
			   const uint32_t *ids)
{
	const struct ruby_checkpoint *outer = def->outer ? &g->checkpoints[def->outer - 1] : NULL;
	struct ruby_checkpoint c = { .definition = (uint32_t)g->n_definitions - 1,
				     .names = p->names_made,
				     .flags = outer ? outer->flags : 0,
				     .rule = outer ? outer->rule : 0 };
	const uint32_t n = outer ? outer->n : 0, n_all = outer ? outer->n_all : 0;
	size_t i, end = def->n_named;
	int r = 0;

	for (i = 0; i < b->n_points && !r; i++) {
		const struct naming_point *point = &b->points[i];

		c.n_raw = def->n_raw - (uint32_t)point->frame;
		c.n_named = (uint32_t)point->n_outside;
		c.n = n + c.n_named;
		c.n_all = n_all + c.n_raw;
		c.state = point->state;
		c.flags |= flags_of(p, ids, def->n_named - c.n_named, end);
		c.rule = rule_of(p, def->n_named - c.n_named, end, c.rule);
		end = def->n_named - c.n_named;
		r = add_checkpoint(g, &c, b->fingerprints[i]);
	}
	return r;
}

/* Store the symbols @ids as the named frames of @def, its own. */
static int add_named(struct ruby_generation *g, struct sink *out, struct tracked_process *p,
		     const uint32_t *ids, size_t n, struct ruby_definition *def)
{
	const struct frame_origin *origins = resolver_origins(p->resolver);
	size_t i;
	int r;

	r = array_room(g->named, g->cap_named, g->n_named + n);
	def->named = g->n_named;
	def->n_named = (uint32_t)n;
	def->n += def->n_named;
	def->flags |= flags_of(p, ids, 0, n);
	def->rule = rule_of(p, 0, n, def->rule);
	for (i = 0; i < n && !r; i++) {
		struct ruby_frame *f = &g->named[g->n_named + i];

		f->merge = native_merge_ruby(resolver_symbol(p->resolver, ids[i])->kind,
					     &origins[i]);
		r = record_frame(out, p, ids[i], &f->frame);
	}
	if (!r)
		g->n_named += n;
	return r;
}

/* Store the first @n of @frames as the frames of @def as they came. */
static int add_own(struct ruby_generation *g, const struct rbpf_frame *frames, size_t n,
		   struct ruby_definition *def)
{
	int r = array_room(g->raw, g->cap_raw, g->n_raw + n);

	if (r)
		return r;
	def->raw = g->n_raw;
	def->n_raw = (uint32_t)n;
	memcpy(&g->raw[g->n_raw], frames, n * sizeof(*frames));
	g->n_raw += n;
	return 0;
}

/* ---- definitions ---- */

/* Whether what is inside of @c can go on from the names that it has. */
static bool is_usable(const struct ruby_checkpoint *c, const struct tracked_process *p)
{
	return c->names == p->names_made && !(c->flags & SAMPLE_UNRESOLVED);
}

static int add_point(struct ruby_stacks_buffers *b, size_t frame, uint64_t fingerprint)
{
	int r = array_reserve(b->points, b->cap_points, b->n_points + 1);

	if (!r)
		r = array_reserve(b->fingerprints, b->cap_fingerprints, b->n_points + 1);
	if (r)
		return r;
	b->points[b->n_points] = (struct naming_point) { .frame = frame };
	b->fingerprints[b->n_points++] = fingerprint;
	return 0;
}

/* The frames of @rec, which are all of the @n words that follow it, into @b. */
static int unpack(struct ruby_stacks_buffers *b, const struct rbpf_ring_stack *rec, size_t n)
{
	const __u64 *words = (const __u64 *)(rec + 1);
	uint32_t used;
	int r;

	if (rec->n_frames > n)
		return -EPROTO;
	r = array_room(b->frames, b->cap_frames, rec->n_frames + 1);
	for (; !r && b->n_frames < rec->n_frames; b->n_frames++, words += used, n -= used) {
		used = rbpf_frame_unpack(words, n, &b->frames[b->n_frames]);
		if (!used)
			return -EPROTO;
	}
	return r || !n ? r : -EPROTO;
}

/*
 * Put what is to be named into @b: the frames of @rec, and those outside of them that are not named
 * yet, or not for good. *@ret is the checkpoint, in @g, whose names are used; NULL: none.
 */
static int take_frames(const struct ruby_generation *g, const struct ruby_generation *previous,
		       struct ruby_stacks_buffers *b, const struct tracked_process *p,
		       const struct rbpf_ring_stack *rec, size_t n_words,
		       const struct ruby_checkpoint **ret)
{
	const struct ruby_generation *of = g;
	const struct ruby_checkpoint *c;
	int r;

	*ret = NULL;
	b->n_frames = b->n_points = 0;
	r = unpack(b, rec, n_words);
	if (r || !rec->outer)
		return r;
	c = find_checkpoint(g, rec->outer);
	if (!c)
		c = find_checkpoint(of = previous, rec->outer);
	if (!c || c->n_all != rec->n_outer)
		return -ENOENT;
	if (of == g && is_usable(c, p)) {
		const struct ruby_definition *def = &g->definitions[c->definition];

		b->frames[b->n_frames++] = g->raw[def->raw + def->n_raw - c->n_raw];
		*ret = c;
		return 0;
	}
	r = add_point(b, rec->n_frames, rec->outer);
	return r ? r : add_raw(b, of, c);
}

/*
 * The checkpoints that @rec is the first to have, from the outermost one on, which are at @words.
 */
static int take_points(struct ruby_stacks_buffers *b, const struct rbpf_ring_stack *rec,
		       const uint64_t *words)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < rec->n_checkpoints && !r; i++)
		r = add_point(b, rec->n_frames - (i + 1) * (size_t)RBPF_CHECKPOINT, words[i]);
	return r;
}

/*
 * How many words of frames follow @rec, of @len bytes in all; -1: it is not of the form that it
 * should be.
 */
static ssize_t words_of(const struct rbpf_ring_stack *rec, size_t len)
{
	const size_t n = len < sizeof(*rec) ? 0 : (len - sizeof(*rec)) / sizeof(uint64_t);

	if (len < sizeof(*rec) || rec->n_checkpoints > n ||
	    (rec->n_checkpoints && rec->n_frames <= (uint64_t)rec->n_checkpoints * RBPF_CHECKPOINT))
		return -1;
	return (ssize_t)(n - rec->n_checkpoints);
}

int ruby_stacks_define(struct ruby_generation *g, const struct ruby_generation *previous,
		       struct ruby_stacks_buffers *b, struct sink *out, struct tracked_process *p,
		       const struct rbpf_ring_stack *rec, size_t len)
{
	const struct stack_era sampled = { .gc_era = rec->gc_era,
					   .gc_major = rec->gc_major,
					   .gc_transition = rec->flags & RBPF_STACK_GC_TRANSITION };
	const struct ruby_checkpoint *outer;
	struct ruby_definition def = { 0 };
	struct naming_range naming = { 0 };
	const uint32_t *ids;
	ssize_t n_words;
	size_t n;
	int r;

	n_words = words_of(rec, len);
	if (n_words < 0)
		return -EPROTO;
	r = take_frames(g, previous, b, p, rec, (size_t)n_words, &outer);
	if (!r)
		r = take_points(b, rec, (const uint64_t *)(rec + 1) + n_words);
	if (r)
		return r == -ENOENT ? 0 : r;
	if (outer) {
		naming.begin = outer->state;
		def.outer = (uint32_t)(outer - g->checkpoints) + 1;
		def.n = outer->n;
		def.flags = outer->flags;
		def.rule = outer->rule;
	}
	naming.points = b->points;
	naming.n_points = b->n_points;
	r = resolver_stack(p->resolver, &sampled, b->frames, b->n_frames, &naming, &ids, &n);
	if (!r)
		r = add_own(g, b->frames, b->n_frames - (outer != NULL), &def);
	if (!r)
		r = add_named(g, out, p, ids, n, &def);
	if (!r)
		r = array_room(g->definitions, g->cap_definitions, g->n_definitions + 1);
	if (!r)
		r = u64_map_set(&g->stacks, rec->stack, (uint32_t)g->n_definitions);
	if (r)
		return r;
	g->definitions[g->n_definitions++] = def;
	lost_names_note(&p->lost_names, rec->h.ts, def.flags & SAMPLE_UNRESOLVED);
	return add_checkpoints(g, b, p, &def, ids);
}
