/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/stack_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "profile/reason.h"
#include "profile/sink.h"
#include "native/native_stacks.h"
#include "sample/process_table.h"
#include "native/merge.h"
#include "symbol/resolver.h"

#define GENERATION_NS	  (8ull << RBPF_EPOCH_SHIFT)
/* One that has become this large ends earlier: each stack is defined again once an epoch. */
#define GENERATION_BYTES  (64u << 20)
#define GENERATION_MIN_NS (2ull << RBPF_EPOCH_SHIFT)

/* Beyond SAMPLE_*: the outer end of a native stack is missing. */
#define NATIVE_CUT	  (1u << 15)

/* Beyond enum rbpf_status: a sample names a stack whose definition was lost. */
enum { STACK_LOST = RBPF_STATUS_COUNT };

/* What stands in the place of a Ruby stack, where there is none. */
static const struct {
	enum frame_reason reason;
	uint16_t flags;
} placeholders[] = {
	[RBPF_OK] = { REASON_NO_RUBY_FRAME, SAMPLE_NO_RUBY },
	[RBPF_NO_RUBY] = { REASON_NO_RUBY, SAMPLE_NO_RUBY },
	[RBPF_NO_EC] = { REASON_NATIVE_THREAD, SAMPLE_NO_RUBY },
	[RBPF_EC_STALE] = { REASON_THREAD_ENDS, SAMPLE_NO_RUBY },
	[RBPF_EC_RANGE] = { REASON_INCONSISTENT, SAMPLE_FAILED },
	[RBPF_FAULT_TLS] = { REASON_UNREADABLE, SAMPLE_FAILED },
	[RBPF_FAULT_EC] = { REASON_UNREADABLE, SAMPLE_FAILED },
	[RBPF_FAULT_STACK] = { REASON_UNREADABLE, SAMPLE_FAILED },
	[RBPF_EXITING] = { REASON_THREAD_ENDS, SAMPLE_NO_RUBY },
	[RBPF_SWITCHING] = { REASON_SWITCHING, SAMPLE_NO_RUBY },
	[STACK_LOST] = { REASON_STACK_LOST, SAMPLE_FAILED },
};

/* A frame of the VM's stack. */
struct ruby_frame {
	uint32_t frame; /* id in the recording */
	struct merge_ruby merge;
};

/* The stacks that were seen together, and what else makes them the one of a sample. */
struct stack_pair {
	uint64_t ruby, native; /* fingerprints; 0: none */
	uint32_t placeholder;  /* 1 + what stands for no Ruby stack; 0: there is one */
	uint32_t flags;	       /* RBPF_SAMPLE_GC and phase, as in the sample; NATIVE_LOST */
};

#define NATIVE_LOST (1u << 31) /* there was a native stack, whose definition was lost */

static void definitions_deinit(struct stack_definitions *d)
{
	intern_deinit(&d->fingerprints);
	free(d->v);
}

static void generation_deinit(struct stack_generation *g)
{
	definitions_deinit(&g->ruby);
	definitions_deinit(&g->native);
	free(g->ruby_frames);
	free(g->native_frames.v);
	intern_deinit(&g->pairs);
	free(g->merged);
	*g = (struct stack_generation) { 0 };
}

void stack_table_deinit(struct stack_table *t)
{
	generation_deinit(&t->generations[0]);
	generation_deinit(&t->generations[1]);
	merge_buffers_deinit(&t->buffers);
}

void stack_table_forget(struct stack_table *t)
{
	generation_deinit(&t->generations[0]);
	generation_deinit(&t->generations[1]);
}

void stack_table_forget_native(struct stack_table *t)
{
	int i;

	for (i = 0; i < 2; i++) {
		definitions_deinit(&t->generations[i].native);
		t->generations[i].native = (struct stack_definitions) { 0 };
		t->generations[i].native_frames.n = 0;
	}
}

static size_t generation_bytes(const struct stack_generation *g)
{
	return g->n_ruby * sizeof(*g->ruby_frames) +
	       g->native_frames.n * sizeof(*g->native_frames.v);
}

/* Records of different CPUs may be slightly out of order. */
static void next_generation(struct stack_table *t, uint64_t now)
{
	if (now <= t->since_ns || (now - t->since_ns <= GENERATION_NS &&
				   (now - t->since_ns <= GENERATION_MIN_NS ||
				    generation_bytes(&t->generations[0]) <= GENERATION_BYTES)))
		return;
	generation_deinit(&t->generations[1]);
	t->generations[1] = t->generations[0];
	t->generations[0] = (struct stack_generation) { 0 };
	t->since_ns = now;
}

/* ---- definitions ---- */

static int define(struct stack_definitions *d, uint64_t fingerprint, const struct stack_frames *def)
{
	uint32_t id;
	int r;

	r = intern_add(&d->fingerprints, &fingerprint, sizeof(fingerprint), &id, NULL);
	if (!r)
		r = array_reserve(d->v, d->cap, id + 1);
	if (!r)
		d->v[id] = *def;
	return r;
}

static const struct stack_frames *find(const struct stack_definitions *d, uint64_t fingerprint)
{
	uint32_t id;

	return intern_find(&d->fingerprints, &fingerprint, sizeof(fingerprint), &id) ? NULL
										     : &d->v[id];
}

static int record_frame(struct sink *out, struct tracked_process *p, uint32_t symbol, uint32_t *ret)
{
	const struct named_frame *s = resolver_symbol(p->resolver, symbol);
	struct profile_frame def = {
		.kind = s->kind,
		.line = s->line,
		.func_line = s->func_line,
		.module = PROFILE_NONE,
		.flags = s->flags,
	};
	uint32_t id;
	int r;

	r = array_reserve(p->frame_ids, p->cap_frame_ids, symbol + 1);
	if (r)
		return r;
	if (!p->frame_ids[symbol]) {
		r = sink_string(out, s->name, strlen(s->name), &def.name);
		if (!r)
			r = sink_string(out, s->file, strlen(s->file), &def.file);
		if (!r)
			r = sink_frame(out, &def, &id);
		if (r)
			return r;
		p->frame_ids[symbol] = id + 1;
	}
	*ret = p->frame_ids[symbol] - 1;
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

int stack_table_define(struct stack_table *t, struct sink *out, struct tracked_process *p,
		       const struct rbpf_ring_stack *rec, size_t len)
{
	const struct rbpf_frame *frames = (const struct rbpf_frame *)(rec + 1);
	const struct stack_era sampled = { .gc_era = rec->gc_era,
					   .gc_major = rec->gc_major,
					   .gc_transition = rec->flags & RBPF_STACK_GC_TRANSITION };
	struct stack_generation *g = &t->generations[0];
	const struct frame_origin *origins;
	struct stack_frames def;
	const uint32_t *ids;
	size_t i, n;
	int r;

	if (len < sizeof(*rec) + (size_t)rec->n_frames * sizeof(*frames))
		return -EPROTO;
	next_generation(t, rec->h.ts);
	r = resolver_stack(p->resolver, &sampled, frames, rec->n_frames, &ids, &n);
	if (!r)
		r = array_reserve(g->ruby_frames, g->cap_ruby, g->n_ruby + n);
	if (r)
		return r;
	origins = resolver_origins(p->resolver);
	def = (struct stack_frames) { .first = g->n_ruby, .n = (uint32_t)n };
	for (i = 0; i < n && !r; i++) {
		enum frame_kind kind = resolver_symbol(p->resolver, ids[i])->kind;
		struct ruby_frame *f = &g->ruby_frames[g->n_ruby + i];

		f->merge = native_merge_ruby(kind, &origins[i]);
		def.flags |= flags_of_kind(kind);
		r = record_frame(out, p, ids[i], &f->frame);
	}
	g->n_ruby += n;
	return r ? r : define(&g->ruby, rec->stack, &def);
}

int stack_table_define_native(struct stack_table *t, struct tracked_process *p, bool no_wait,
			      const struct rbpf_ring_native *rec, size_t len)
{
	const uint64_t *words = (const uint64_t *)(rec + 1);
	const uint64_t end = rec->end < RBPF_NATIVE_END_COUNT ? rec->end : RBPF_NATIVE_OUTERMOST;
	struct stack_generation *g = &t->generations[0];
	struct stack_frames def = { .flags = SAMPLE_NATIVE };
	size_t i;
	int r;

	if (len < sizeof(*rec) + (size_t)rec->n_frames * sizeof(*words))
		return -EPROTO;
	next_generation(t, rec->h.ts);
	def.first = g->native_frames.n;
	r = native_frames(t->native, p->native, no_wait, words, rec->n_frames, &g->native_frames);
	/* What is missing at its outer end is a frame, too. */
	if (!r && end != RBPF_NATIVE_OUTERMOST)
		r = native_frames(t->native, p->native, no_wait, &end, 1, &g->native_frames);
	def.n = (uint32_t)(g->native_frames.n - def.first);
	for (i = 0; i < rec->n_frames; i++)
		if (words[i] < RBPF_NATIVE_END_COUNT)
			def.flags |= SAMPLE_GAP;
	if (end != RBPF_NATIVE_OUTERMOST)
		def.flags |= SAMPLE_GAP | NATIVE_CUT;
	return r ? r : define(&g->native, rec->stack, &def);
}

/* ---- stacks ---- */

/* A frame that is no function, upon *@stack. */
static int push_reason(struct sink *out, enum frame_reason reason, uint32_t *stack)
{
	struct profile_frame def = { .kind = frame_reason_kind(reason),
				     .module = PROFILE_NONE,
				     .reason = reason };
	const char *label = frame_reason_label(reason);
	uint32_t frame;
	int r;

	r = sink_string(out, label, strlen(label), &def.name);
	if (!r)
		r = sink_frame(out, &def, &frame);
	return r ? r : sink_stack(out, *stack, frame, stack);
}

/* What the collector is doing, on top of the stack that called for it. */
static int push_collection(struct sink *out, uint32_t flags, uint32_t *stack)
{
	static const enum frame_reason phases[] = {
		[RUBY_GC_MARKING] = REASON_GC_MARKING,
		[RUBY_GC_SWEEPING] = REASON_GC_SWEEPING,
		[RUBY_GC_COMPACTING] = REASON_GC_COMPACTING,
	};
	enum ruby_gc_mode phase = RBPF_SAMPLE_GC_PHASE(flags);
	int r;

	if (!(flags & RBPF_SAMPLE_GC))
		return 0;
	r = push_reason(out, REASON_GC, stack);
	return r || phase == RUBY_GC_NONE ? r : push_reason(out, phases[phase], stack);
}

/* The frames of both stacks, of which either may be NULL, as one, on top of *@stack. */
static int push_merged(struct stack_table *t, struct sink *out, const struct ruby_frame *ruby,
		       const struct native_frame *native, const struct merge *w, uint32_t gc_flags,
		       uint32_t *stack)
{
	struct merged_frame *merged = t->buffers.merged;
	size_t i, gc, n = merge_stacks(w, merged, &gc);
	uint32_t frame;
	int r = 0;

	for (i = 0; i < n && !r; i++) {
		if (i == gc)
			r = push_collection(out, gc_flags, stack);
		if (!r && merged[i].native)
			r = native_frame_id(t->native, out, native[merged[i].index].name,
					    merged[i].internal, &frame);
		else
			frame = ruby[merged[i].index].frame;
		if (!r)
			r = sink_stack(out, *stack, frame, stack);
	}
	return !r && gc >= n ? push_collection(out, gc_flags, stack) : r;
}

/* A definition, and the generation it is in; NULL if it is in none. */
static const struct stack_frames *look_up(struct stack_table *t, bool native, uint64_t fingerprint,
					  const struct stack_generation **ret)
{
	const struct stack_frames *def = NULL;
	int i;

	for (i = 0; i < 2 && !def && fingerprint; i++) {
		*ret = &t->generations[i];
		def = find(native ? &(*ret)->native : &(*ret)->ruby, fingerprint);
	}
	return def;
}

/* Merge what @pair names. */
static int make_stack(struct stack_table *t, struct sink *out, const struct tracked_process *p,
		      const struct stack_pair *pair, struct sample_stack *ret)
{
	const struct stack_generation *of_ruby, *of_native;
	const struct stack_frames *ruby = look_up(t, false, pair->ruby, &of_ruby);
	const struct stack_frames *native = look_up(t, true, pair->native, &of_native);
	const struct ruby_frame *r = ruby ? &of_ruby->ruby_frames[ruby->first] : NULL;
	const struct native_frame *n = native ? &of_native->native_frames.v[native->first] : NULL;
	struct merge w = { .n_ruby = ruby ? ruby->n : 0,
			   .n_native = native ? native->n : 0,
			   .complete = native && !(native->flags & NATIVE_CUT),
			   .makes_tail_call = native_makes_tail_call,
			   .arg = p->native };
	size_t i;
	int err;

	*ret = (struct sample_stack) { .flags = ruby ? ruby->flags : 0 };
	err = merge_buffers_reserve(&t->buffers, w.n_ruby, w.n_native);
	if (!err && pair->placeholder) {
		ret->flags |= placeholders[pair->placeholder - 1].flags;
		err = push_reason(out, placeholders[pair->placeholder - 1].reason, &ret->stack);
	}
	if (err)
		return err;
	for (i = 0; i < w.n_ruby; i++)
		t->buffers.ruby[i] = r[i].merge;
	for (i = 0; i < w.n_native; i++)
		t->buffers.native[i] = n[i].what;
	w.ruby = t->buffers.ruby;
	w.native = t->buffers.native;
	ret->flags |= native ? native->flags & ~NATIVE_CUT : 0;
	if (pair->flags & RBPF_SAMPLE_GC)
		ret->flags |= SAMPLE_GC;
	err = push_merged(t, out, r, n, &w, pair->flags, &ret->stack);
	if (!err && pair->flags & NATIVE_LOST) {
		ret->flags |= SAMPLE_NATIVE | SAMPLE_GAP;
		err = push_reason(out, REASON_GAP_LOST, &ret->stack);
	}
	return err;
}

/* What stands for the Ruby stack of @rec, which has none that is known. */
static unsigned int placeholder_for(const struct rbpf_ring_sample *rec, bool ruby_found)
{
	unsigned int which = rec->status < RBPF_STATUS_COUNT ? rec->status : RBPF_OK;

	if (!ruby_found && which != RBPF_EXITING)
		return RBPF_NO_RUBY;
	return rec->stack ? STACK_LOST : which;
}

int stack_table_of_sample(struct stack_table *t, struct sink *out, const struct tracked_process *p,
			  const struct rbpf_ring_sample *rec, bool ruby_found,
			  struct sample_stack *ret)
{
	const uint32_t gc = RBPF_SAMPLE_GC | 3u << RBPF_SAMPLE_GC_PHASE_SHIFT;
	struct stack_generation *g = &t->generations[0];
	const struct stack_generation *of;
	struct stack_pair pair = { .ruby = rec->stack, .native = rec->native };
	uint32_t id;
	bool is_new;
	int r;

	if (rec->flags & RBPF_SAMPLE_GC)
		pair.flags = rec->flags & gc;
	if (rec->native && !look_up(t, true, rec->native, &of)) {
		pair.native = 0;
		pair.flags |= NATIVE_LOST;
	}
	if (!look_up(t, false, rec->stack, &of)) {
		pair.ruby = 0;
		pair.placeholder = placeholder_for(rec, ruby_found) + 1;
	}
	r = intern_add(&g->pairs, &pair, sizeof(pair), &id, &is_new);
	if (!r)
		r = array_reserve(g->merged, g->cap_merged, id + 1);
	if (!r && is_new)
		r = make_stack(t, out, p, &pair, &g->merged[id]);
	if (!r)
		*ret = g->merged[id];
	return r;
}
