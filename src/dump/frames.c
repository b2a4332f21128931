/* SPDX-License-Identifier: GPL-2.0-only */
#include "dump/frames.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "dump/dump.h"
#include "native/native_user_walk.h"
#include "native/native_stacks.h"
#include "native/merge.h"
#include "symbol/native_names.h"
#include "symbol/resolver.h"

/* The words of a native stack and their names; merging takes buffers of its own. */
struct native_words {
	uint64_t *words;
	size_t n;
	struct native_frames names;
	struct merge_buffers buffers;
};

static void native_words_deinit(struct native_words *w)
{
	free(w->words);
	free(w->names.v);
	merge_buffers_deinit(&w->buffers);
}

/* Those of @native, and one for what is missing at its end. Returns 0 or -ENOMEM. */
static int native_words_take(struct native_words *w, struct native_user_walk *here,
			     const struct native_stack *native)
{
	size_t i;

	w->words = calloc(native->n_words + 1, sizeof(*w->words));
	if (!w->words)
		return -ENOMEM;
	for (i = 0; i < native->n_words; i++)
		w->words[i] = native->words[i];
	if (native->end != RBPF_NATIVE_OUTERMOST)
		w->words[i++] = native->end;
	w->n = i;
	return native_user_walk_frames(here, w->words, w->n, &w->names);
}

static struct dump_frame frame_of_ruby(const struct dump_ruby *ruby, size_t i)
{
	const struct named_frame *s = resolver_symbol(ruby->resolver, ruby->symbols[i]);

	return (struct dump_frame) {
		.kind = s->kind,
		.flags = s->flags,
		.label = s->label,
		.raw_label = s->name,
		.file = s->file,
		.line = s->line,
		.module = "",
	};
}

static struct dump_frame frame_of_native(const struct native_user_walk *here,
					 const struct native_words *words,
					 const struct merged_frame *w)
{
	const struct native_name *name = native_user_walk_name(here, words->names.v[w->index].name);
	uint64_t word = words->words[w->index];

	return (struct dump_frame) {
		.kind = name->kind,
		.reason = name->reason,
		.flags = w->internal ? FRAME_INTERNAL : 0,
		.label = name->name,
		.raw_label = name->name,
		.file = "",
		.module = name->module,
		.address = name->address,
		.pc = word < RBPF_NATIVE_END_COUNT ? 0 : word & ~RBPF_NATIVE_EXACT,
	};
}

/* Merge into @words->buffers. Returns 0 or -ENOMEM. */
static int merge_both(struct native_user_walk *here, const struct dump_ruby *ruby,
		      struct native_words *words, bool complete, size_t *n)
{
	const struct frame_origin *origins = resolver_origins(ruby->resolver);
	struct merge_buffers *b = &words->buffers;
	struct merge w = { .n_ruby = ruby->n,
			   .n_native = words->n,
			   .complete = complete,
			   .makes_tail_call = native_user_walk_makes_tail_call,
			   .arg = here };
	size_t i, gc;

	if (merge_buffers_reserve(b, w.n_ruby, w.n_native))
		return -ENOMEM;
	for (i = 0; i < w.n_native; i++)
		b->native[i] = words->names.v[i].what;
	for (i = 0; i < w.n_ruby; i++)
		b->ruby[i] = native_merge_ruby(
			resolver_symbol(ruby->resolver, ruby->symbols[i])->kind, &origins[i]);
	w.ruby = b->ruby;
	w.native = b->native;
	*n = merge_stacks(&w, b->merged, &gc);
	return 0;
}

static int both_frames(struct native_user_walk *here, const struct dump_ruby *ruby,
		       const struct native_stack *native, struct dump_frame **ret, size_t *n)
{
	struct native_words words _cleanup_(native_words_deinit) = { .n = 0 };
	struct dump_frame *frames;
	size_t i, n_merged = 0;
	int r;

	r = native_user_walk_interpreter(here, ruby->resolver);
	if (!r)
		r = native_words_take(&words, here, native);
	if (!r)
		r = merge_both(here, ruby, &words, native->end == RBPF_NATIVE_OUTERMOST, &n_merged);
	if (r)
		return r;
	frames = calloc(n_merged + 1, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	for (i = 0; i < n_merged; i++) {
		/* The outermost comes first. */
		const struct merged_frame *w = &words.buffers.merged[n_merged - 1 - i];

		frames[i] = w->native ? frame_of_native(here, &words, w)
				      : frame_of_ruby(ruby, w->index);
	}
	*ret = frames;
	*n = n_merged;
	return 0;
}

int dump_frames(struct native_user_walk *here, const struct dump_ruby *ruby,
		const struct native_stack *native, struct dump_frame **ret, size_t *n)
{
	struct dump_frame *frames;
	size_t i;

	if (here)
		return both_frames(here, ruby, native, ret, n);
	frames = calloc(ruby->n + 1, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	for (i = 0; i < ruby->n; i++)
		frames[i] = frame_of_ruby(ruby, i);
	*ret = frames;
	*n = ruby->n;
	return 0;
}
