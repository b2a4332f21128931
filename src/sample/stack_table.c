/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/stack_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "profile/recorder.h"
#include "sample/process_table.h"
#include "symbol/resolver.h"

#define GENERATION_NS (8ull << RBPF_EPOCH_SHIFT)

/* Beyond enum rbpf_status: a sample names a stack whose definition was lost. */
enum { STACK_LOST = RBPF_STATUS_COUNT };

/* What stands in the place of a Ruby stack, where there is none. */
static const struct {
	const char *name;
	uint16_t flags;
} placeholders[] = {
	[RBPF_OK] = { "[no Ruby frame]", SAMPLE_NO_RUBY },
	[RBPF_NO_RUBY] = { "[no Ruby in process]", SAMPLE_NO_RUBY },
	[RBPF_NO_EC] = { "[native thread]", SAMPLE_NO_RUBY },
	[RBPF_EC_STALE] = { "[thread start or end]", SAMPLE_NO_RUBY },
	[RBPF_EC_RANGE] = { "[stack inconsistent]", SAMPLE_FAILED },
	[RBPF_FAULT_TLS] = { "[stack unreadable]", SAMPLE_FAILED },
	[RBPF_FAULT_EC] = { "[stack unreadable]", SAMPLE_FAILED },
	[RBPF_FAULT_STACK] = { "[stack unreadable]", SAMPLE_FAILED },
	[RBPF_EXITING] = { "[thread start or end]", SAMPLE_NO_RUBY },
	[RBPF_SWITCHING] = { "[switching fibers]", SAMPLE_NO_RUBY },
	[STACK_LOST] = { "[stack lost]", SAMPLE_FAILED },
};

static void generation_deinit(struct stack_generation *g)
{
	intern_deinit(&g->fingerprints);
	free(g->stacks);
	*g = (struct stack_generation) { 0 };
}

void stack_table_deinit(struct stack_table *t)
{
	generation_deinit(&t->generations[0]);
	generation_deinit(&t->generations[1]);
}

static void next_generation(struct stack_table *t, uint64_t now)
{
	generation_deinit(&t->generations[1]);
	t->generations[1] = t->generations[0];
	t->generations[0] = (struct stack_generation) { 0 };
	t->since_ns = now;
}

/* A frame that stands for no code; of a kind and a name. */
static int plain_frame(struct recorder *out, enum frame_kind kind, const char *name, uint32_t *ret)
{
	struct profile_frame frame = { .kind = kind, .module = PROFILE_NONE };
	int r;

	r = recorder_string(out, name, strlen(name), &frame.name);
	return r ? r : recorder_frame(out, &frame, ret);
}

/* The recording's stack of the one frame that stands for @which. */
static int placeholder(struct stack_table *t, struct recorder *out, unsigned int which,
		       uint32_t *ret)
{
	uint32_t frame, stack;
	int r;

	if (!t->placeholders[which]) {
		r = plain_frame(out, FRAME_NATIVE, placeholders[which].name, &frame);
		if (!r)
			r = recorder_stack(out, 0, frame, &stack);
		if (r)
			return r;
		t->placeholders[which] = stack + 1;
	}
	*ret = t->placeholders[which] - 1;
	return 0;
}

/* What the collector is doing, on top of the stack that called for it. */
static int add_collection(struct recorder *out, enum rbpf_gc_phase phase, uint32_t *stack)
{
	static const char *const phases[] = {
		[RBPF_GC_MARKING] = "(marking)",
		[RBPF_GC_SWEEPING] = "(sweeping)",
		[RBPF_GC_COMPACTING] = "(compacting)",
	};
	uint32_t frame;
	int r;

	r = plain_frame(out, FRAME_GC, "(garbage collection)", &frame);
	if (!r)
		r = recorder_stack(out, *stack, frame, stack);
	if (r || phase == RBPF_GC_NONE)
		return r;
	r = plain_frame(out, FRAME_GC, phases[phase], &frame);
	return r ? r : recorder_stack(out, *stack, frame, stack);
}

static int record_frame(struct recorder *out, struct tracked_process *p, uint32_t symbol,
			uint32_t *ret)
{
	const struct symbol *s = resolver_symbol(p->resolver, symbol);
	struct profile_frame def = {
		.kind = s->kind,
		.line = s->line,
		.func_line = s->func_line,
		.module = PROFILE_NONE,
		.flags = s->approximate ? FRAME_LINE_APPROXIMATE : 0,
	};
	uint32_t id;
	int r;

	r = array_reserve(p->frame_ids, p->cap_frame_ids, symbol + 1);
	if (r)
		return r;
	if (!p->frame_ids[symbol]) {
		r = recorder_string(out, s->name, strlen(s->name), &def.name);
		if (!r)
			r = recorder_string(out, s->file, strlen(s->file), &def.file);
		if (!r)
			r = recorder_frame(out, &def, &id);
		if (r)
			return r;
		p->frame_ids[symbol] = id + 1;
	}
	*ret = p->frame_ids[symbol] - 1;
	return 0;
}

static int define_stack(struct stack_table *t, uint64_t fingerprint, const struct sample_stack *def)
{
	struct stack_generation *g = &t->generations[0];
	uint32_t id;
	int r;

	r = intern_add(&g->fingerprints, &fingerprint, sizeof(fingerprint), &id, NULL);
	if (!r)
		r = array_reserve(g->stacks, g->cap, id + 1);
	if (!r)
		g->stacks[id] = *def;
	return r;
}

static const struct sample_stack *find_stack(const struct stack_table *t, uint64_t fingerprint)
{
	uint32_t id;
	int i;

	for (i = 0; i < 2; i++)
		if (!intern_find(&t->generations[i].fingerprints, &fingerprint, sizeof(fingerprint),
				 &id))
			return &t->generations[i].stacks[id];
	return NULL;
}

int stack_table_define(struct stack_table *t, struct recorder *out, struct tracked_process *p,
		       const struct rbpf_rec_stack *rec, size_t len)
{
	const struct rbpf_frame *frames = (const struct rbpf_frame *)(rec + 1);
	const struct code_moment moment = { .gc_era = rec->gc_era,
					    .unsettled = rec->flags & RBPF_STACK_UNSETTLED };
	struct sample_stack def = { 0 };
	const uint32_t *ids;
	uint32_t frame;
	size_t n;
	int r;

	if (len < sizeof(*rec) + (size_t)rec->n_frames * sizeof(*frames))
		return -EPROTO;
	/* Records of different CPUs may be slightly out of order. */
	if (rec->h.ts > t->since_ns && rec->h.ts - t->since_ns > GENERATION_NS)
		next_generation(t, rec->h.ts);
	r = resolver_stack(p->resolver, &moment, frames, rec->n_frames, &ids, &n);
	while (!r && n-- > 0) {
		enum frame_kind kind = resolver_symbol(p->resolver, ids[n])->kind;

		if (kind == FRAME_TRUNCATED)
			def.flags |= SAMPLE_TRUNCATED;
		else if (kind == FRAME_UNKNOWN)
			def.flags |= SAMPLE_UNRESOLVED;
		r = record_frame(out, p, ids[n], &frame);
		if (!r)
			r = recorder_stack(out, def.stack, frame, &def.stack);
	}
	return r ? r : define_stack(t, rec->stack, &def);
}

int stack_table_of_sample(struct stack_table *t, struct recorder *out,
			  const struct rbpf_rec_sample *rec, bool ruby_found,
			  struct sample_stack *ret)
{
	const struct sample_stack *known = rec->stack ? find_stack(t, rec->stack) : NULL;
	unsigned int which = rec->status < RBPF_STATUS_COUNT ? rec->status : RBPF_OK;
	int r = 0;

	if (known) {
		*ret = *known;
	} else {
		if (!ruby_found && which != RBPF_EXITING)
			which = RBPF_NO_RUBY;
		else if (rec->stack)
			which = STACK_LOST;
		ret->flags = placeholders[which].flags;
		r = placeholder(t, out, which, &ret->stack);
	}
	if (!r && rec->flags & RBPF_SAMPLE_GC) {
		ret->flags |= SAMPLE_GC;
		r = add_collection(out, RBPF_SAMPLE_GC_PHASE(rec->flags), &ret->stack);
	}
	return r;
}
