/* SPDX-License-Identifier: GPL-2.0-only */
#include "symbol/code_cache.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "profile/profile.h"
#include "ruby/vm.h"
#include "symbol/code_entry.h"
#include "symbol/code_load.h"
#include "symbol/code_proof.h"
#include "target/memory.h"

#define READ_ATTEMPTS 3 /* to read a batch without a collection in between */

/* A cache entry that must be compared or read. */
struct pending {
	uint32_t index; /* of iseqs or methods */
	bool is_method;
	bool keep;   /* it is right: only what is still the same says something new */
	bool anew;   /* it is to be read whether it is right or not */
	bool done;   /* it was compared, or is to be read */
	bool load;   /* it is to be read */
	size_t span; /* the first of its spans, if there is a copy to compare */
	union {
		struct ruby_iseq_id iseq;
		struct ruby_method_id method;
	} fresh;
};

/* What is read together, between two readings of the era. */
struct batch {
	struct entry_reading reading; /* its era is that when the batch began */
	uint64_t major;		      /* rbpf_gc_major() then */
	bool era_known;		      /* it was not just between two */
	struct ruby_era_words before, after;
	size_t n_pending, n_spans, n_loads;
	size_t n_era;	       /* spans of each of the two, the first of c->spans and … */
	size_t after_span;     /* … from this one on */
	bool asked_gone, gone; /* whether process_gone() was called, and what it said */
};

void code_cache_init(struct code_cache *c, const struct ruby_vm *vm)
{
	*c = (struct code_cache) { .vm = vm, .revalidation = 1 };
}

void code_cache_deinit(struct code_cache *c)
{
	size_t i;

	for (i = 0; i < c->n_iseqs; i++)
		ruby_iseq_deinit(&c->iseqs[i].iseq);
	for (i = 0; i < c->n_methods; i++)
		ruby_method_deinit(&c->methods[i].method);
	u64_map_deinit(&c->iseq_at);
	u64_map_deinit(&c->method_at);
	free(c->iseqs);
	free(c->methods);
	free(c->spans);
	free(c->pending);
	*c = (struct code_cache) { 0 };
}

size_t code_cache_bytes(const struct code_cache *c)
{
	return c->bytes + c->cap_iseqs * sizeof(*c->iseqs) + c->cap_methods * sizeof(*c->methods) +
	       u64_map_bytes(&c->iseq_at) + u64_map_bytes(&c->method_at) +
	       c->cap_spans * sizeof(*c->spans) + c->cap_pending * sizeof(*c->pending);
}

/* Find or add the cache entries that @frame needs. */
static int ref_init(struct code_cache *c, const struct rbpf_frame *frame, struct code_ref *ret)
{
	int err = 0;

	*ret = (struct code_ref) { PROFILE_NONE, PROFILE_NONE, false, false };
	if (frame->iseq)
		err = code_entry_iseq(c, frame->iseq, &ret->iseq);
	if (!err && frame->me)
		err = code_entry_method(c, frame->me, !frame->iseq, &ret->method);
	return err;
}

static bool process_gone(const struct code_cache *c, struct batch *batch)
{
	uint64_t word;

	if (!batch->asked_gone)
		batch->gone = memory_read_u64(&c->vm->mem,
					      c->vm->binary.symbol[RUBY_SYM_rb_cObject], &word);
	batch->asked_gone = true;
	return batch->gone;
}

/* ---- reading ---- */

/* entry_reading.swept: when @batch began. */
static bool was_swept(const struct batch *batch)
{
	return batch->n_era && batch->era_known &&
	       (batch->before.flags & RUBY_GC_MODE_MASK) != RUBY_GC_SWEEPING;
}

/*
 * An owner without a name may be given one at any time (a class assigned to a constant), which
 * changes none of the words that are compared.
 */
static bool may_get_name(const struct code_cache *c, const struct cached_method *e)
{
	return e->known.version && !e->method.prefix[0] && c->revalidation >= e->ask_name;
}

/* Where there was nothing, something may be allocated at any time. */
static bool is_current(const struct code_cache *c, const struct code_known *known,
		       const struct stack_era *sampled)
{
	if (sampled->gc_era && !code_known_at(known->first, known->last, known->held, sampled))
		return false;
	return (sampled->gc_era && known->version) || known->revalidated == c->revalidation;
}

/* Whether the entry is known to be what was there then. */
static bool is_known(const struct code_cache *c, const struct code_known *known,
		     const struct stack_era *sampled)
{
	return (known->version && code_not_freed(&known->old, sampled)) ||
	       (!known->unsure && is_current(c, known, sampled));
}

static bool is_checked(const struct code_known *known, const struct stack_era *sampled)
{
	return known->checked && known->checked == sampled->gc_era && !sampled->gc_transition;
}

/*
 * Whether an entry that a check has shown to be right is to be compared all the same: once the
 * object, which had @flags, is old no check is sent any more, and then that it is must be known.
 * Only a collection makes it old, so it is compared no more in the era in which it was last.
 */
static bool may_be_old_now(const struct code_cache *c, const struct code_known *known,
			   uint64_t flags, const struct stack_era *sampled)
{
	return sampled->gc_major && !code_is_old(c, flags) && known->last != sampled->gc_era &&
	       known->revalidated != c->revalidation;
}

/* Whether an entry, whose object had @flags, is to be compared or read for what was @sampled. */
static bool is_wanted(const struct code_cache *c, const struct code_known *known, uint64_t flags,
		      const struct stack_era *sampled)
{
	return is_checked(known, sampled) ? may_be_old_now(c, known, flags, sampled)
					  : !is_known(c, known, sampled);
}

/*
 * Put the entry of iseq @i on the list of what must be compared or read, unless it is known or
 * there already.
 */
static void enlist_iseq(struct code_cache *c, uint32_t i, struct batch *batch)
{
	struct cached_iseq *e = &c->iseqs[i];
	struct pending *p;

	if (e->known.batch == c->batches)
		return;
	if (!is_wanted(c, &e->known, e->iseq.id.head[RUBY_ISEQ_FLAGS], batch->reading.sampled))
		return;
	e->known.batch = c->batches;
	p = &c->pending[batch->n_pending++];
	*p = (struct pending) { .index = i,
				.keep = is_checked(&e->known, batch->reading.sampled),
				.span = batch->n_spans };
	if (e->known.version) {
		ruby_iseq_check_spans(c->vm, &e->iseq, &p->fresh.iseq, &c->spans[batch->n_spans]);
		batch->n_spans += RUBY_ISEQ_SPANS;
	}
}

static void enlist_method(struct code_cache *c, uint32_t i, struct batch *batch)
{
	struct cached_method *e = &c->methods[i];
	const bool anew = e->known.revalidated != c->revalidation && may_get_name(c, e);
	struct pending *p;

	if (e->known.batch == c->batches)
		return;
	if (!anew &&
	    !is_wanted(c, &e->known, e->method.id.me[RUBY_ME_FLAGS], batch->reading.sampled))
		return;
	e->known.batch = c->batches;
	p = &c->pending[batch->n_pending++];
	*p = (struct pending) { .index = i,
				.is_method = true,
				.keep = !anew && is_checked(&e->known, batch->reading.sampled),
				.anew = anew,
				.span = batch->n_spans };
	if (e->known.version) {
		ruby_method_check_spans(c->vm, &e->method, &p->fresh.method,
					&c->spans[batch->n_spans]);
		batch->n_spans += RUBY_METHOD_SPANS;
	}
}

static bool all_read(const struct memory_span *spans, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!spans[i].ok)
			return false;
	return true;
}

/* Whether the entry of @p is to be read: if nothing can be read any more, what is known is used. */
static void want_load(const struct code_cache *c, struct pending *p, bool read, struct batch *batch)
{
	p->load = p->done = !p->keep && (read || !process_gone(c, batch));
	batch->n_loads += p->load;
}

static void update_iseq(struct code_cache *c, struct pending *p, struct batch *batch)
{
	struct cached_iseq *e = &c->iseqs[p->index];
	bool read = e->known.version && all_read(&c->spans[p->span], RUBY_ISEQ_SPANS);

	e->known.revalidated = c->revalidation;
	if (read && ruby_iseq_check(c->vm, &e->iseq, &p->fresh.iseq)) {
		p->done = true;
		code_entry_same(c, &e->known, p->fresh.iseq.head[RUBY_ISEQ_FLAGS], &batch->reading);
		e->iseq.id.head[RUBY_ISEQ_FLAGS] =
			p->fresh.iseq.head[RUBY_ISEQ_FLAGS]; /* it may have become old */
	} else {
		want_load(c, p, read, batch);
	}
}

static void update_method(struct code_cache *c, struct pending *p, struct batch *batch)
{
	struct cached_method *e = &c->methods[p->index];
	bool read = e->known.version && all_read(&c->spans[p->span], RUBY_METHOD_SPANS);

	e->known.revalidated = c->revalidation;
	if (read && !p->anew && ruby_method_check(c->vm, &e->method, &p->fresh.method)) {
		p->done = true;
		code_entry_same(c, &e->known, p->fresh.method.me[RUBY_ME_FLAGS], &batch->reading);
		e->method.id.me[RUBY_ME_FLAGS] = p->fresh.method.me[RUBY_ME_FLAGS];
	} else {
		want_load(c, p, read, batch);
	}
}

/* The object that @p is of, to be read. */
static struct code_load load_of(const struct code_cache *c, const struct pending *p)
{
	if (p->is_method)
		return (struct code_load) { .is_method = true,
					    .addr = c->methods[p->index].addr,
					    .with_name = c->methods[p->index].with_name };
	return (struct code_load) { .addr = c->iseqs[p->index].addr };
}

/* The entry of @p is of what was read by @load, which it takes over. */
static void set_loaded(struct code_cache *c, const struct pending *p, struct code_load *load,
		       const struct batch *batch)
{
	c->refused += load->result == -E2BIG;
	if (p->is_method)
		code_entry_set_method(c, &c->methods[p->index], load->result ? NULL : &load->method,
				      &batch->reading);
	else
		code_entry_set_iseq(c, &c->iseqs[p->index], load->result ? NULL : &load->iseq,
				    &batch->reading);
	load->result = -ENOENT; /* the entry owns it */
}

/* Read what is to be read of the batch. */
static int load_pending(struct code_cache *c, const struct batch *batch)
{
	const size_t room = c->bytes < CODE_CACHE_BYTES ? CODE_CACHE_BYTES - c->bytes : 0;
	struct code_load *loads;
	size_t i, n = 0;
	int err;

	if (!batch->n_loads)
		return 0;
	loads = calloc(batch->n_loads, sizeof(*loads));
	if (!loads)
		return -ENOMEM;
	for (i = 0; i < batch->n_pending; i++)
		if (c->pending[i].load)
			loads[n++] = load_of(c, &c->pending[i]);
	err = code_load(c->vm, loads, n, room, batch->reading.sampled->gc_era,
			&c->spans[batch->after_span], batch->n_era);
	for (i = n = 0; i < batch->n_pending && !err; i++)
		if (c->pending[i].load)
			set_loaded(c, &c->pending[i], &loads[n++], batch);
	code_load_free(loads, batch->n_loads);
	return err;
}

/* Have the words that tell the era read next; none if eras are not known. */
static void add_era(struct code_cache *c, struct batch *batch, struct ruby_era_words *words)
{
	if (!batch->reading.sampled->gc_era)
		return;
	batch->n_era = RUBY_ERA_SPANS;
	ruby_vm_era_spans(c->vm, words, &c->spans[batch->n_spans]);
	batch->n_spans += RUBY_ERA_SPANS;
}

/*
 * The era that @words tell, or that of the sample if they could not be read (any more). False if it
 * is just between two, the latter of which it is then.
 */
static bool take_era(const struct code_cache *c, const struct batch *batch,
		     const struct ruby_era_words *words, size_t span, uint64_t *ret,
		     uint64_t *major)
{
	int r = -ENOENT;

	*major = 0;
	if (batch->n_era)
		r = ruby_vm_era(c->vm, words, &c->spans[span], ret, major);
	if (r && r != -EAGAIN)
		*ret = batch->reading.sampled->gc_era;
	return r != -EAGAIN;
}

/*
 * Compare what is not known of these frames in one batch of reads; read anew what has changed. The
 * era is read before and after it.
 */
static int read_batch(struct code_cache *c, struct batch *batch, const struct code_ref *refs,
		      size_t n)
{
	size_t i;
	int err;

	batch->n_pending = batch->n_spans = batch->n_loads = batch->n_era = 0;
	batch->asked_gone = batch->gone = false;
	c->batches++;
	err = array_reserve(c->pending, c->cap_pending, 2 * n + 1);
	if (!err)
		err = array_reserve(c->spans, c->cap_spans,
				    n * (RUBY_ISEQ_SPANS + RUBY_METHOD_SPANS) + 2 * RUBY_ERA_SPANS);
	if (!err)
		add_era(c, batch, &batch->before);
	for (i = 0; i < n && !err; i++) {
		if (refs[i].iseq != PROFILE_NONE)
			enlist_iseq(c, refs[i].iseq, batch);
		if (refs[i].method != PROFILE_NONE)
			enlist_method(c, refs[i].method, batch);
	}
	if (err || !batch->n_pending)
		return err;
	batch->after_span = batch->n_spans;
	add_era(c, batch, &batch->after);
	memory_read_spans(&c->vm->mem, c->spans, batch->n_spans);
	/* Where the era's words could be read, the process is there: no need to ask. */
	batch->asked_gone = batch->n_era && c->spans[0].ok;
	batch->era_known = take_era(c, batch, &batch->before, 0, &batch->reading.era,
				    &batch->major);
	batch->reading.swept = was_swept(batch);
	for (i = 0; i < batch->n_pending; i++) {
		if (c->pending[i].is_method)
			update_method(c, &c->pending[i], batch);
		else
			update_iseq(c, &c->pending[i], batch);
	}
	return load_pending(c, batch);
}

static struct code_known *known_of(struct code_cache *c, const struct pending *p)
{
	return p->is_method ? &c->methods[p->index].known : &c->iseqs[p->index].known;
}

/* The first word of the object that @p is of, as it was read or compared last. */
static uint64_t flags_of(const struct code_cache *c, const struct pending *p)
{
	return p->is_method ? c->methods[p->index].method.id.me[RUBY_ME_FLAGS]
			    : c->iseqs[p->index].iseq.id.head[RUBY_ISEQ_FLAGS];
}

/*
 * An era ended in between, or it could not be told which it was: what was read or compared is of
 * none for certain, @latest at most, until it is found to be the same once more.
 */
static void set_unsure(struct code_cache *c, const struct batch *batch, uint64_t latest)
{
	size_t i;

	for (i = 0; i < batch->n_pending; i++) {
		struct code_known *known = known_of(c, &c->pending[i]);

		if (!c->pending[i].done)
			continue;
		known->unsure = true;
		known->last = latest;
	}
}

/*
 * What was compared or read was the same objects all the time; some of them are old. They are not
 * freed before the next major collection, if they are in use. What is read may also be waiting to
 * be freed, as the last one did not find it: but not what was on a stack after that one had marked,
 * nor what has taken its place since.
 */
static void note_old(struct code_cache *c, const struct batch *batch)
{
	const struct stack_era now = { .gc_era = batch->reading.era, .gc_major = batch->major };
	size_t i;

	for (i = 0; i < batch->n_pending; i++) {
		const struct pending *p = &c->pending[i];

		if (p->done)
			code_note_old(c, flags_of(c, p), &now, &known_of(c, p)->old);
	}
}

int code_cache_lookup(struct code_cache *c, const struct stack_era *sampled,
		      const struct rbpf_frame *frames, size_t n, struct code_ref *refs)
{
	struct batch batch = { .reading.sampled = sampled };
	uint64_t latest, major;
	unsigned int attempt;
	bool era_known;
	size_t i;
	int err = 0;

	c->compacts |= sampled->gc_transition;
	for (i = 0; i < n && !err; i++)
		err = ref_init(c, &frames[i], &refs[i]);
	for (i = 0; i < n && !err; i++)
		code_prove_by_check(c, sampled, &frames[i], &refs[i]);
	for (attempt = 0; attempt < READ_ATTEMPTS && !err; attempt++) {
		err = read_batch(c, &batch, refs, n);
		if (err || !batch.n_pending)
			break;
		era_known = take_era(c, &batch, &batch.after, batch.after_span, &latest, &major);
		if (era_known && batch.era_known && latest == batch.reading.era) {
			if (major == batch.major && major == sampled->gc_major)
				note_old(c, &batch);
			break;
		}
		set_unsure(c, &batch, latest);
	}
	for (i = 0; i < n && !err; i++)
		code_prove(c, sampled, &frames[i], &refs[i]);
	return err;
}
