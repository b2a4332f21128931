/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/native_definitions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "profile/profile.h"

void native_definitions_buffers_deinit(struct native_definitions_buffers *b)
{
	free(b->words);
	free(b->points);
	*b = (struct native_definitions_buffers) { 0 };
}

void native_generation_deinit(struct native_generation *g)
{
	u64_map_deinit(&g->stacks);
	u64_map_deinit(&g->outer);
	free(g->definitions);
	free(g->checkpoints);
	free(g->words);
	free(g->frames.v);
	*g = (struct native_generation) { 0 };
}

void native_generation_recycle(struct native_generation *g)
{
	array_recycle(g->definitions, g->cap_definitions, g->n_definitions);
	array_recycle(g->checkpoints, g->cap_checkpoints, g->n_checkpoints);
	array_recycle(g->words, g->cap_words, g->n_words);
	array_recycle(g->frames.v, g->frames.cap, g->frames.n);
	u64_map_recycle(&g->stacks);
	u64_map_recycle(&g->outer);
	g->n_definitions = g->n_checkpoints = g->n_words = g->frames.n = 0;
}

size_t native_generation_bytes(const struct native_generation *g)
{
	return g->n_words * sizeof(*g->words) + g->frames.n * sizeof(*g->frames.v) +
	       g->n_definitions * sizeof(*g->definitions) +
	       g->n_checkpoints * sizeof(*g->checkpoints);
}

/* ---- looking up ---- */

const struct native_definition *native_definition_find(const struct native_generation *g,
						       uint64_t fingerprint)
{
	uint32_t i;

	return u64_map_get(&g->stacks, fingerprint, &i) ? &g->definitions[i] : NULL;
}

static const struct native_checkpoint *find_checkpoint(const struct native_generation *g,
						       uint64_t fingerprint)
{
	uint32_t i;

	return u64_map_get(&g->outer, fingerprint, &i) ? &g->checkpoints[i] : NULL;
}

void native_definition_frames(const struct native_generation *g,
			      const struct native_definition *def, struct native_frame *ret)
{
	const struct native_checkpoint *c;
	uint32_t skip = 0, n;

	for (;;) {
		n = def->n_frames - skip;
		if (n)
			memcpy(ret, &g->frames.v[def->frame + skip], n * sizeof(*ret));
		ret += n;
		if (!def->outer)
			break;
		c = &g->checkpoints[def->outer - 1];
		def = &g->definitions[c->definition];
		skip = def->n_frames - c->n_frames;
	}
}

/* ---- what is to be named ---- */

static int add_words(struct native_definitions_buffers *b, const uint64_t *words, size_t n)
{
	int r = array_room(b->words, b->cap_words, b->n_words + n + 1);

	if (r)
		return r;
	if (n)
		memcpy(&b->words[b->n_words], words, n * sizeof(*words));
	b->n_words += n;
	return 0;
}

/* Append the words of @c, a checkpoint in @g, to @b. */
static int add_checkpoint_words(struct native_definitions_buffers *b,
				const struct native_generation *g,
				const struct native_checkpoint *c)
{
	for (;;) {
		const struct native_definition *def = &g->definitions[c->definition];
		int r = add_words(b, &g->words[def->word + def->n_words - c->n_words], c->n_words);

		if (r || !def->outer)
			return r;
		c = &g->checkpoints[def->outer - 1];
	}
}

static int add_point(struct native_definitions_buffers *b, size_t word, uint64_t fingerprint)
{
	int r = array_room(b->points, b->cap_points, b->n_points + 1);

	if (!r)
		b->points[b->n_points++] = (struct native_point) { .fingerprint = fingerprint,
								   .word = word };
	return r;
}

/*
 * Put into @b the words of @rec, those outside of them that are to be named again, and where
 * checkpoints end. *@ret is the checkpoint, in @g, whose frames are taken; NULL: none.
 */
static int take(const struct native_generation *g, const struct native_generation *previous,
		struct native_definitions_buffers *b, const struct rbpf_ring_native *rec,
		uint64_t age, const struct native_checkpoint **ret)
{
	const uint64_t *words = (const uint64_t *)(rec + 1);
	const struct native_generation *of = g;
	const struct native_checkpoint *c = NULL;
	uint32_t i;
	int r;

	*ret = NULL;
	b->n_words = b->n_points = 0;
	r = add_words(b, words, rec->n_frames);
	if (rec->outer) {
		c = find_checkpoint(g, rec->outer);
		if (!c)
			c = find_checkpoint(of = previous, rec->outer);
		if (!c || c->n_all != rec->n_outer)
			return -ENOENT;
	}
	if (c && of == g && c->age == age) {
		*ret = c;
	} else if (c && !r) {
		r = add_point(b, rec->n_frames, rec->outer);
		if (!r)
			r = add_checkpoint_words(b, of, c);
	}
	for (i = 0; i < rec->n_checkpoints && !r; i++)
		r = add_point(b, rec->n_frames - (i + 1) * (size_t)RBPF_CHECKPOINT,
			      words[rec->n_frames + i]);
	return r;
}

/* ---- adding ---- */

/* Name the words from @begin on and before @end. */
static int name_words(struct native_generation *g, const struct native_definitions_buffers *b,
		      const struct native_naming *by, bool no_wait, size_t begin, size_t end)
{
	return begin < end ? native_frames(by->native, by->process, no_wait, &b->words[begin],
					   end - begin, &g->frames)
			   : 0;
}

/*
 * Name the words in @b, and note where the frames of each checkpoint begin. The first @n_new are
 * those that came now: for the symbols of the others nobody has waited.
 */
static int name(struct native_generation *g, struct native_definitions_buffers *b,
		const struct native_naming *by, size_t n_new, bool *no_wait)
{
	const size_t first = g->frames.n;
	size_t i, at = 0;
	int r = 0;

	*no_wait = by->no_wait;
	if (b->n_words > n_new && by->process &&
	    native_ready(by->process, &b->words[n_new], b->n_words - n_new) <= 0)
		*no_wait = true;
	for (i = b->n_points; i && !r; i--) {
		struct native_point *point = &b->points[i - 1];

		r = name_words(g, b, by, *no_wait, at, point->word);
		at = point->word;
		point->frame = g->frames.n - first;
	}
	return r ? r : name_words(g, b, by, *no_wait, at, b->n_words);
}

static uint16_t gaps_in(const struct native_definitions_buffers *b, size_t begin, size_t end)
{
	for (; begin < end; begin++)
		if (b->words[begin] < RBPF_NATIVE_END_COUNT)
			return SAMPLE_GAP;
	return 0;
}

/*
 * The checkpoints of the definition that is added last, @def; @flags: what all outside of its own
 * frames have.
 */
static int add_checkpoints(struct native_generation *g, const struct native_definitions_buffers *b,
			   const struct native_definition *def, uint64_t age, uint16_t flags)
{
	const struct native_checkpoint *outer = def->outer ? &g->checkpoints[def->outer - 1] : NULL;
	struct native_checkpoint c = { .definition = (uint32_t)g->n_definitions - 1,
				       .age = age,
				       .flags = flags };
	const uint32_t n = outer ? outer->n : 0, n_all = outer ? outer->n_all : 0;
	size_t i, end = def->n_words;
	int r = 0;

	for (i = 0; i < b->n_points && !r; i++) {
		const struct native_point *point = &b->points[i];

		c.n_words = def->n_words - (uint32_t)point->word;
		c.n_frames = def->n_frames - (uint32_t)point->frame;
		c.n = n + c.n_frames;
		c.n_all = n_all + c.n_words;
		c.flags |= gaps_in(b, point->word, end);
		end = point->word;
		r = array_room(g->checkpoints, g->cap_checkpoints, g->n_checkpoints + 1);
		if (!r)
			r = u64_map_set(&g->outer, point->fingerprint, (uint32_t)g->n_checkpoints);
		if (!r)
			g->checkpoints[g->n_checkpoints++] = c;
	}
	return r;
}

/* Keep the words in @b as those of @def, as they came. */
static int add_own(struct native_generation *g, const struct native_definitions_buffers *b,
		   struct native_definition *def)
{
	int r = array_room(g->words, g->cap_words, g->n_words + b->n_words);

	if (r)
		return r;
	def->word = g->n_words;
	def->n_words = (uint32_t)b->n_words;
	if (b->n_words)
		memcpy(&g->words[g->n_words], b->words, b->n_words * sizeof(*b->words));
	g->n_words += b->n_words;
	return 0;
}

/* ---- definitions ---- */

/* Whether all that @rec says is there. */
static bool is_whole(const struct rbpf_ring_native *rec, size_t len)
{
	return len >= sizeof(*rec) +
			       ((size_t)rec->n_frames + rec->n_checkpoints) * sizeof(uint64_t) &&
	       (!rec->n_checkpoints ||
		rec->n_frames > (uint64_t)rec->n_checkpoints * RBPF_CHECKPOINT);
}

int native_define(struct native_generation *g, const struct native_generation *previous,
		  struct native_definitions_buffers *b, const struct native_naming *naming,
		  const struct rbpf_ring_native *rec, size_t len)
{
	const uint64_t end = rec->end < RBPF_NATIVE_END_COUNT ? rec->end : RBPF_NATIVE_OUTERMOST;
	const struct native_checkpoint *outer;
	struct native_definition def = { .frame = g->frames.n };
	uint16_t outside = SAMPLE_NATIVE;
	bool no_wait;
	uint64_t age;
	int r;

	if (!is_whole(rec, len))
		return -EPROTO;
	age = native_names_age(naming->native, naming->process);
	r = take(g, previous, b, rec, age, &outer);
	if (r)
		return r == -ENOENT ? 0 : r;
	r = name(g, b, naming, rec->n_frames, &no_wait);
	/* What is missing at its outer end is a frame, too. */
	if (!r && !outer && end != RBPF_NATIVE_OUTERMOST)
		r = native_frames(naming->native, naming->process, no_wait, &end, 1, &g->frames);
	if (end != RBPF_NATIVE_OUTERMOST)
		outside |= SAMPLE_GAP | NATIVE_CUT;
	def.n = def.n_frames = (uint32_t)(g->frames.n - def.frame);
	if (outer) {
		def.outer = (uint32_t)(outer - g->checkpoints) + 1;
		def.n += outer->n;
		outside |= outer->flags;
	}
	def.flags = outside | gaps_in(b, 0, b->n_words);
	if (!r)
		r = add_own(g, b, &def);
	if (!r)
		r = array_room(g->definitions, g->cap_definitions, g->n_definitions + 1);
	if (!r)
		r = u64_map_set(&g->stacks, rec->stack, (uint32_t)g->n_definitions);
	if (r)
		return r;
	g->definitions[g->n_definitions++] = def;
	return add_checkpoints(g, b, &def, no_wait ? UINT64_MAX : age, outside);
}
