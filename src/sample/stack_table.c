/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/stack_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "profile/reason.h"
#include "profile/sink.h"
#include "ruby/vm.h"
#include "native/native_stacks.h"
#include "sample/process_table.h"
#include "native/merge.h"

#define GENERATION_NS	  (40ull << RBPF_EPOCH_SHIFT)
/* One that has become this large ends earlier. */
#define GENERATION_BYTES  (2u << 20)
#define GENERATION_MIN_NS (2ull << RBPF_EPOCH_SHIFT)
_Static_assert(GENERATION_NS > 1ull << RBPF_CHECKPOINT_SHIFT, "checkpoints are remembered");

/* Beyond enum rbpf_status: a sample names a stack whose definition was lost. */
enum { STACK_LOST = RBPF_STATUS_COUNT, STACK_BEFORE };

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
	[RBPF_EXECUTING] = { REASON_EXECUTING, SAMPLE_NO_RUBY },
	[STACK_LOST] = { REASON_STACK_LOST, SAMPLE_FAILED },
	[STACK_BEFORE] = { REASON_WAITED_BEFORE, SAMPLE_NO_RUBY },
};

/* The stacks that were seen together, and what else makes them the one of a sample. */
struct stack_pair {
	uint64_t ruby, native; /* fingerprints; 0: none */
	uint32_t placeholder;  /* 1 + what stands for no Ruby stack; 0: there is one */
	uint32_t flags; /* RBPF_SAMPLE_GC and phase, RBPF_WAIT_HELD, RBPF_WAIT_TURN; NATIVE_LOST */
	uint32_t wait;	/* as in struct stacks_taken */
	uint32_t on;	/* of waited_for_id() */
};

#define NATIVE_LOST (1u << 31) /* there was a native stack, whose definition was lost */

static void generation_deinit(struct stack_generation *g)
{
	ruby_generation_deinit(&g->ruby);
	native_generation_deinit(&g->native);
	intern_deinit(&g->pairs);
	free(g->merged);
	*g = (struct stack_generation) { 0 };
}

/* Empty it, and keep what it took for the next one. */
static void generation_recycle(struct stack_generation *g)
{
	ruby_generation_recycle(&g->ruby);
	native_generation_recycle(&g->native);
	array_recycle(g->merged, g->cap_merged, g->pairs.count);
	intern_recycle(&g->pairs);
}

void stack_table_deinit(struct stack_table *t)
{
	generation_deinit(&t->generations[0]);
	generation_deinit(&t->generations[1]);
	waited_for_deinit(&t->waited_for);
	merge_buffers_deinit(&t->buffers);
	ruby_stacks_buffers_deinit(&t->naming);
	native_definitions_buffers_deinit(&t->naming_native);
	free(t->frames);
	free(t->native_frames);
}

void stack_table_forget(struct stack_table *t)
{
	generation_deinit(&t->generations[0]);
	generation_deinit(&t->generations[1]);
}

void stack_table_forget_native(struct stack_table *t)
{
	int i;

	for (i = 0; i < 2; i++)
		native_generation_deinit(&t->generations[i].native);
}

void stack_table_ids(struct stack_table *t, id_fn *fn, void *arg)
{
	for (int i = 0; i < 2; i++) {
		struct stack_generation *g = &t->generations[i];

		ruby_generation_ids(&g->ruby, fn, arg);
		for (size_t k = 0; k < g->pairs.count; k++)
			fn(arg, ID_STACK, &g->merged[k].stack);
	}
}

bool stack_table_keeps_all(struct stack_table *t)
{
	bool early = t->ended_early;

	t->ended_early = false;
	return !early;
}

static size_t generation_bytes(const struct stack_generation *g)
{
	return ruby_generation_bytes(&g->ruby) + native_generation_bytes(&g->native);
}

/* Records of different CPUs may be slightly out of order. */
static void next_generation(struct stack_table *t, uint64_t now)
{
	struct stack_generation dropped;

	if (now <= t->since_ns || (now - t->since_ns <= GENERATION_NS &&
				   (now - t->since_ns <= GENERATION_MIN_NS ||
				    generation_bytes(&t->generations[0]) <= GENERATION_BYTES)))
		return;
	t->ended_early |= t->since_ns && now - t->since_ns <= GENERATION_NS;
	dropped = t->generations[1];
	generation_recycle(&dropped);
	t->generations[1] = t->generations[0];
	t->generations[0] = dropped;
	t->since_ns = now;
}

/* ---- definitions ---- */

int stack_table_define(struct stack_table *t, struct sink *out, struct tracked_process *p,
		       const struct rbpf_ring_stack *rec, size_t len)
{
	next_generation(t, rec->h.ts);
	return ruby_stacks_define(&t->generations[0].ruby, &t->generations[1].ruby, &t->naming, out,
				  p, rec, len);
}

int stack_table_define_native(struct stack_table *t, struct tracked_process *p, bool no_wait,
			      const struct rbpf_ring_native *rec, size_t len)
{
	const struct native_naming naming = { .native = t->native,
					      .process = p->native,
					      .no_wait = no_wait };

	next_generation(t, rec->h.ts);
	return native_define(&t->generations[0].native, &t->generations[1].native,
			     &t->naming_native, &naming, rec, len);
}

/* ---- stacks ---- */

/* A frame that is no function, upon *@stack: with this @label. */
static int push_named(struct sink *out, enum frame_reason reason, const char *label,
		      uint32_t *stack)
{
	struct profile_frame def = { .kind = frame_reason_kind(reason),
				     .module = PROFILE_NONE,
				     .reason = reason };
	uint32_t frame;
	int r;

	r = sink_string(out, label, strlen(label), &def.name);
	if (!r)
		r = sink_frame(out, &def, &frame);
	return r ? r : sink_stack(out, *stack, frame, stack);
}

static int push_reason(struct sink *out, enum frame_reason reason, uint32_t *stack)
{
	return push_named(out, reason, frame_reason_label(reason), stack);
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

/* The frame of a wait for what @pair->on is. */
static int push_waited_for(const struct stack_table *t, struct sink *out,
			   const struct stack_pair *pair, enum frame_reason reason, uint32_t *stack)
{
	_cleanup_buf_ struct buf on = BUF_INIT, label = BUF_INIT;

	waited_for_add(&t->waited_for, pair->on, &on);
	wait_label_add(reason, buf_str(&on), &label);
	if (buf_failed(&on) || buf_failed(&label))
		return -ENOMEM;
	return push_named(out, reason, buf_str(&label), stack);
}

/* What the thread waited for; what is known of it and the GVL stands below that. */
static int push_wait(const struct stack_table *t, struct sink *out, const struct stack_pair *pair,
		     uint32_t *stack)
{
	static const enum frame_reason reasons[RBPF_WAITS] = {
		[RBPF_WAIT_CPU] = REASON_WAIT_CPU,
		[RBPF_WAIT_GVL] = REASON_WAIT_GVL,
		[RBPF_WAIT_LOCK] = REASON_WAIT_LOCK,
		[RBPF_WAIT_FAULT] = REASON_WAIT_FAULT,
		[RBPF_WAIT_DISK] = REASON_WAIT_DISK,
		[RBPF_WAIT_NETWORK] = REASON_WAIT_NETWORK,
		[RBPF_WAIT_PIPE] = REASON_WAIT_PIPE,
		[RBPF_WAIT_TIMER] = REASON_WAIT_TIMER,
		[RBPF_WAIT_CHILD] = REASON_WAIT_CHILD,
		[RBPF_WAIT_STOPPED] = REASON_WAIT_STOPPED,
		[RBPF_WAIT_OTHER] = REASON_WAIT_OTHER,
		[RBPF_WAIT_THROTTLED] = REASON_WAIT_THROTTLED,
	};
	uint32_t wait = pair->wait - 1;
	enum frame_reason reason;
	int r = 0;

	if (!pair->wait)
		return 0;
	reason = reasons[wait < RBPF_WAITS ? wait : RBPF_WAIT_OTHER];
	if (pair->flags & RBPF_WAIT_HELD)
		r = push_reason(out, REASON_GVL_HELD, stack);
	else if (pair->flags & RBPF_WAIT_TURN)
		r = push_reason(out, REASON_GVL_TURN, stack);
	if (r)
		return r;
	return pair->on ? push_waited_for(t, out, pair, reason, stack)
			: push_reason(out, reason, stack);
}

/*
 * @frame upon *@stack, frame @depth of its stack. The next stack of a process mostly has the same
 * outer frames: so what was pushed last at each depth is kept in the order in which it is needed.
 */
static int push_frame(struct sink *out, struct tracked_process *p, size_t depth, uint32_t frame,
		      uint32_t *stack)
{
	struct pushed_frame *last;
	int r;

	r = array_reserve(p->pushed, p->cap_pushed, depth + 1);
	if (r)
		return r;
	last = &p->pushed[depth];
	if (last->stack && last->parent == *stack && last->frame == frame) {
		*stack = last->stack;
		return 0;
	}
	last->parent = *stack;
	last->frame = frame;
	last->stack = 0;
	r = sink_stack(out, *stack, frame, stack);
	if (!r)
		last->stack = *stack;
	return r;
}

/* The frames of both stacks, of which either may be none, as one, on top of *@stack. */
static int push_merged(struct stack_table *t, struct sink *out, struct tracked_process *p,
		       const struct merge *w, uint32_t gc_flags, uint32_t *stack)
{
	struct merged_frame *merged = t->buffers.merged;
	size_t i, gc, n = merge_stacks(w, merged, &gc);
	uint32_t frame;
	int r = 0;

	for (i = 0; i < n && !r; i++) {
		if (i == gc)
			r = push_collection(out, gc_flags, stack);
		if (!r && merged[i].native)
			r = native_frame_id(t->native, out, t->native_frames[merged[i].index].name,
					    merged[i].internal, &frame);
		else
			frame = t->frames[merged[i].index].frame;
		if (!r)
			r = push_frame(out, p, i, frame, stack);
	}
	return !r && gc >= n ? push_collection(out, gc_flags, stack) : r;
}

/* The generation that the Ruby stack @fingerprint is defined in, and *@def; NULL: none. */
static const struct ruby_generation *find_ruby(const struct stack_table *t, uint64_t fingerprint,
					       const struct ruby_definition **def)
{
	int i;

	*def = NULL;
	for (i = 0; i < 2 && fingerprint; i++) {
		*def = ruby_stacks_find(&t->generations[i].ruby, fingerprint);
		if (*def)
			return &t->generations[i].ruby;
	}
	return NULL;
}

/* The same for a native stack. */
static const struct native_generation *find_native(const struct stack_table *t,
						   uint64_t fingerprint,
						   const struct native_definition **def)
{
	int i;

	*def = NULL;
	for (i = 0; i < 2 && fingerprint; i++) {
		*def = native_definition_find(&t->generations[i].native, fingerprint);
		if (*def)
			return &t->generations[i].native;
	}
	return NULL;
}

/* The frames of both stacks to where they are merged from. */
static int take_frames(struct stack_table *t, const struct ruby_generation *g,
		       const struct ruby_definition *ruby, const struct native_generation *g_native,
		       const struct native_definition *native)
{
	const size_t n_ruby = ruby ? ruby->n : 0, n_native = native ? native->n : 0;
	size_t i;
	int r;

	r = merge_buffers_reserve(&t->buffers, n_ruby, n_native);
	if (!r)
		r = array_room(t->frames, t->cap_frames, n_ruby + 1);
	if (!r)
		r = array_room(t->native_frames, t->cap_native_frames, n_native + 1);
	if (r)
		return r;
	if (ruby)
		ruby_stacks_frames(g, ruby, t->frames);
	if (native)
		native_definition_frames(g_native, native, t->native_frames);
	for (i = 0; i < n_ruby; i++)
		t->buffers.ruby[i] = t->frames[i].merge;
	for (i = 0; i < n_native; i++)
		t->buffers.native[i] = t->native_frames[i].what;
	return 0;
}

/* Merge what @pair names. */
static int make_stack(struct stack_table *t, struct sink *out, struct tracked_process *p,
		      const struct stack_pair *pair, struct sample_stack *ret)
{
	const struct native_definition *native;
	const struct ruby_definition *ruby;
	const struct ruby_generation *g = find_ruby(t, pair->ruby, &ruby);
	const struct native_generation *g_native = find_native(t, pair->native, &native);
	struct merge w = { .n_ruby = ruby ? ruby->n : 0,
			   .n_native = native ? native->n : 0,
			   .complete = native && !(native->flags & NATIVE_CUT),
			   .makes_tail_call = native_makes_tail_call,
			   .arg = p->native };
	int err;

	*ret = (struct sample_stack) {
		.flags = ruby ? ruby->flags : 0,
		.rule = ruby ? ruby->rule : 0,
	};
	err = take_frames(t, g, ruby, g_native, native);
	if (!err && pair->placeholder) {
		ret->flags |= placeholders[pair->placeholder - 1].flags;
		err = push_reason(out, placeholders[pair->placeholder - 1].reason, &ret->stack);
	}
	if (err)
		return err;
	w.ruby = t->buffers.ruby;
	w.native = t->buffers.native;
	ret->flags |= native ? native->flags & ~NATIVE_CUT : 0;
	if (pair->flags & RBPF_SAMPLE_GC)
		ret->flags |= SAMPLE_GC;
	err = push_merged(t, out, p, &w, pair->flags, &ret->stack);
	if (!err && pair->flags & NATIVE_LOST) {
		ret->flags |= SAMPLE_NATIVE | SAMPLE_GAP;
		err = push_reason(out, REASON_GAP_LOST, &ret->stack);
	}
	return err ? err : push_wait(t, out, pair, &ret->stack);
}

/* What stands for the Ruby stack that @taken names, which is not known, or there is none. */
static unsigned int placeholder_for(const struct stacks_taken *taken, bool ruby_found)
{
	unsigned int which = taken->status < RBPF_STATUS_COUNT ? taken->status : RBPF_OK;

	if (!ruby_found && which != RBPF_EXITING && which != RBPF_EXECUTING)
		return RBPF_NO_RUBY;
	if (taken->flags & RBPF_WAIT_BEFORE)
		return STACK_BEFORE;
	return taken->ruby ? STACK_LOST : which;
}

int stack_table_of_sample(struct stack_table *t, struct sink *out, struct tracked_process *p,
			  const struct stacks_taken *taken, bool ruby_found,
			  struct sample_stack *ret)
{
	const uint32_t gc = RBPF_SAMPLE_GC | 3u << RBPF_SAMPLE_GC_PHASE_SHIFT;
	struct stack_generation *g = &t->generations[0];
	const struct native_definition *native;
	const struct ruby_definition *ruby;
	struct stack_pair pair = { .ruby = taken->ruby,
				   .native = taken->native,
				   .flags = taken->flags & RBPF_WAIT_HELD,
				   .wait = taken->wait };
	uint32_t id;
	bool is_new;
	int r = 0;

	/* Once it is woken it waits for a CPU. */
	if (taken->wait == 1 + RBPF_WAIT_GVL)
		pair.flags |= taken->flags & RBPF_WAIT_TURN;
	if (taken->flags & RBPF_SAMPLE_GC)
		pair.flags |= taken->flags & gc;
	if (taken->native && !find_native(t, taken->native, &native)) {
		pair.native = 0;
		pair.flags |= NATIVE_LOST;
	}
	if (!find_ruby(t, taken->ruby, &ruby)) {
		pair.ruby = 0;
		pair.placeholder = placeholder_for(taken, ruby_found) + 1;
	}
	if (taken->on && t->peers &&
	    (taken->wait == 1 + RBPF_WAIT_NETWORK || taken->wait == 1 + RBPF_WAIT_DISK))
		r = waited_for_id(&t->waited_for, taken->on, &pair.on);
	if (!r)
		r = intern_add(&g->pairs, &pair, sizeof(pair), &id, &is_new);
	if (!r)
		r = array_reserve(g->merged, g->cap_merged, id + 1);
	if (!r && is_new)
		r = make_stack(t, out, p, &pair, &g->merged[id]);
	if (r)
		return r;
	*ret = g->merged[id];
	/* Any thread of the process may be one of the collector's. */
	if ((taken->flags & RBPF_SAMPLE_GC_UNKNOWN || (p->vm && !p->vm->walk.gc_owner)) &&
	    !(ret->flags & SAMPLE_GC))
		ret->flags |= SAMPLE_GC_UNKNOWN;
	return 0;
}

int stack_of_waker(struct sink *out, const char comm[RBPF_COMM_LEN], uint32_t pid, uint32_t *ret)
{
	char label[RBPF_COMM_LEN + sizeof("[ 4294967295]")];

	*ret = 0;
	if (!pid)
		return push_reason(out, REASON_INTERRUPT, ret);
	snprintf(label, sizeof(label), "[%.*s %" PRIu32 "]", RBPF_COMM_LEN, comm, pid);
	return push_named(out, REASON_OTHER_PROCESS, label, ret);
}
