/* SPDX-License-Identifier: GPL-2.0-only */
#include "symbol/code_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "profile/profile.h"
#include "ruby/constants.h"
#include "ruby/vm.h"
#include "symbol/code_proof.h"
#include "target/captured.h"
#include "target/memory.h"

#define LOOK_ATTEMPTS 3 /* looks at a stack's objects until no collection comes in between */

struct method_key {
	uint64_t addr;
	uint64_t with_name;
};

/* A cache entry that must be looked at. */
struct pending {
	uint32_t index; /* of iseqs or methods */
	bool is_method;
	bool seen;   /* it was compared or read */
	size_t span; /* the first of its spans, if there is a copy to compare */
	union {
		struct ruby_iseq_id iseq;
		struct ruby_method_id method;
	} fresh;
};

/* One look: what is read between two readings of the era. */
struct look {
	const struct stack_era *sampled;
	uint64_t era; /* now; 0: unknown */
	size_t n_pending, n_spans;
};

void code_cache_init(struct code_cache *c, const struct ruby_vm *vm)
{
	*c = (struct code_cache) { .vm = vm, .revalidation = 1 };
}

void code_cache_deinit(struct code_cache *c)
{
	size_t i;

	for (i = 0; i < c->iseq_addrs.count; i++)
		ruby_iseq_deinit(&c->iseqs[i].iseq);
	for (i = 0; i < c->method_addrs.count; i++)
		ruby_method_deinit(&c->methods[i].method);
	intern_deinit(&c->iseq_addrs);
	intern_deinit(&c->method_addrs);
	free(c->iseqs);
	free(c->methods);
	free(c->spans);
	free(c->pending);
	*c = (struct code_cache) { 0 };
}

size_t code_cache_bytes(const struct code_cache *c)
{
	return c->bytes + c->cap_iseqs * sizeof(*c->iseqs) + c->cap_methods * sizeof(*c->methods) +
	       intern_bytes(&c->iseq_addrs) + intern_bytes(&c->method_addrs) +
	       c->cap_spans * sizeof(*c->spans) + c->cap_pending * sizeof(*c->pending);
}

/* Whether there is no room for another copy. */
static bool is_full(struct code_cache *c)
{
	bool full = c->bytes >= CODE_CACHE_BYTES;

	c->refused += full;
	return full;
}

static size_t method_bytes(const struct ruby_method *m)
{
	return (m->prefix ? strlen(m->prefix) + 1 : 0) + (m->name ? strlen(m->name) + 1 : 0);
}

/* Find or add the entry of the iseq at @addr. */
static int iseq_entry(struct code_cache *c, uint64_t addr, uint32_t *ret)
{
	int err = array_reserve(c->iseqs, c->cap_iseqs, c->iseq_addrs.count + 1);

	return err ? err : intern_add(&c->iseq_addrs, &addr, sizeof(addr), ret, NULL);
}

static int method_entry(struct code_cache *c, uint64_t addr, bool with_name, uint32_t *ret)
{
	struct method_key key = { .addr = addr, .with_name = with_name };
	int err = array_reserve(c->methods, c->cap_methods, c->method_addrs.count + 1);

	return err ? err : intern_add(&c->method_addrs, &key, sizeof(key), ret, NULL);
}

/* Find or add the cache entries that @frame needs. */
static int ref_init(struct code_cache *c, const struct rbpf_frame *frame, struct code_ref *ret)
{
	int err = 0;

	*ret = (struct code_ref) { PROFILE_NONE, PROFILE_NONE, false, false };
	if (frame->iseq)
		err = iseq_entry(c, frame->iseq, &ret->iseq);
	if (!err && frame->me)
		err = method_entry(c, frame->me, !frame->iseq, &ret->method);
	return err;
}

static bool process_gone(const struct code_cache *c)
{
	uint64_t word;

	return memory_read_u64(&c->vm->mem, c->vm->binary.symbol[RUBY_SYM_rb_cObject], &word);
}

/* ---- reading ---- */

/*
 * The object holds what it held: it was there all the time if it is old, and else may be another
 * one, made of the same source when the first was freed.
 */
static void still_the_same(const struct code_cache *c, uint64_t flags, uint64_t *first,
			   uint64_t *last, bool *unsure, const struct look *look)
{
	const struct stack_era then = { .gc_era = *last };

	if (look->era < *last && !*unsure)
		return;
	if (*unsure || c->compacts || !code_old_enough(c, flags, look->era, &then))
		*first = look->era;
	*last = look->era;
	*unsure = false;
}

/* The entry is of @fresh, which was read in @era; NULL: of nothing usable. */
static void set_iseq(struct code_cache *c, struct cached_iseq *e, const struct ruby_iseq *fresh,
		     uint64_t era)
{
	c->bytes -= ruby_iseq_bytes(&e->iseq);
	ruby_iseq_deinit(&e->iseq);
	if (fresh)
		e->iseq = *fresh;
	c->bytes += ruby_iseq_bytes(&e->iseq);
	e->generation = fresh ? ++c->generation : 0;
	e->first = e->last = era;
	e->checked = 0;
	e->unsure = false;
}

static int load_iseq(struct code_cache *c, uint32_t i, uint64_t era)
{
	struct ruby_iseq fresh;
	uint64_t addr;
	int err;

	memcpy(&addr, intern_get(&c->iseq_addrs, i, NULL), sizeof(addr));
	err = is_full(c) ? -E2BIG : ruby_iseq_read(c->vm, addr, &fresh);
	if (err == -ENOMEM)
		return err;
	set_iseq(c, &c->iseqs[i], err ? NULL : &fresh, era);
	return 0;
}

/* The entry is of @fresh, which was read at @look; NULL: of nothing usable. */
static void set_method(struct code_cache *c, struct cached_method *e,
		       const struct ruby_method *fresh, const struct look *look)
{
	bool known = fresh && e->generation;
	bool same_words = known && ruby_method_check(c->vm, &e->method, &fresh->id);
	/* Symbols made of the same name stay right. */
	bool same_name = known && !strcmp(e->method.prefix, fresh->prefix) &&
			 (!fresh->name || !strcmp(e->method.name, fresh->name));

	c->bytes -= method_bytes(&e->method);
	ruby_method_deinit(&e->method);
	if (fresh)
		e->method = *fresh;
	c->bytes += method_bytes(&e->method);
	if (!same_name)
		e->generation = fresh ? ++c->generation : 0;
	if (same_words) {
		still_the_same(c, fresh->id.me[RUBY_ME_FLAGS], &e->first, &e->last, &e->unsure,
			       look);
	} else {
		e->first = e->last = look->era;
		e->checked = 0;
		e->unsure = false;
	}
}

static int load_method(struct code_cache *c, uint32_t i, const struct look *look)
{
	struct ruby_method fresh;
	struct method_key key;
	int err;

	memcpy(&key, intern_get(&c->method_addrs, i, NULL), sizeof(key));
	err = is_full(c) ? -E2BIG : ruby_method_read(c->vm, key.addr, key.with_name, &fresh);
	if (err == -ENOMEM)
		return err;
	set_method(c, &c->methods[i], err ? NULL : &fresh, look);
	return 0;
}

/*
 * An owner without a name may be given one at any time (a class assigned to a constant), which
 * changes none of the words that are compared.
 */
static bool may_get_name(const struct cached_method *e)
{
	return e->generation && !e->method.prefix[0];
}

/* Where there was nothing, something may be allocated at any time. */
static bool is_settled(const struct code_cache *c, uint32_t generation, uint64_t first,
		       uint64_t last, uint64_t revalidated, const struct stack_era *sampled)
{
	if (sampled->gc_era && !code_known_at(first, last, sampled))
		return false;
	return (sampled->gc_era && generation) || revalidated == c->revalidation;
}

static bool is_checked(uint64_t checked, const struct stack_era *sampled)
{
	return checked && checked == sampled->gc_era && !sampled->gc_transition;
}

/*
 * Put the entry of iseq @i on the list of what must be looked at, unless it is known or there
 * already.
 */
static void enlist_iseq(struct code_cache *c, uint32_t i, struct look *look)
{
	struct cached_iseq *e = &c->iseqs[i];
	struct pending *p;

	if (e->stamp == c->stamp || is_checked(e->checked, look->sampled) ||
	    (!e->unsure &&
	     is_settled(c, e->generation, e->first, e->last, e->revalidated, look->sampled)))
		return;
	e->stamp = c->stamp;
	p = &c->pending[look->n_pending++];
	*p = (struct pending) { .index = i, .span = look->n_spans };
	if (e->generation) {
		ruby_iseq_check_spans(&e->iseq, &p->fresh.iseq, &c->spans[look->n_spans]);
		look->n_spans += RUBY_ISEQ_SPANS;
	}
}

static void enlist_method(struct code_cache *c, uint32_t i, struct look *look)
{
	struct cached_method *e = &c->methods[i];
	struct pending *p;

	if (e->stamp == c->stamp || ((is_checked(e->checked, look->sampled) ||
				      (!e->unsure && is_settled(c, e->generation, e->first, e->last,
								e->revalidated, look->sampled))) &&
				     (e->revalidated == c->revalidation || !may_get_name(e))))
		return;
	e->stamp = c->stamp;
	p = &c->pending[look->n_pending++];
	*p = (struct pending) { .index = i, .is_method = true, .span = look->n_spans };
	if (e->generation) {
		ruby_method_check_spans(c->vm, &e->method, &p->fresh.method,
					&c->spans[look->n_spans]);
		look->n_spans += RUBY_METHOD_SPANS;
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

static int settle_iseq(struct code_cache *c, struct pending *p, const struct look *look)
{
	struct cached_iseq *e = &c->iseqs[p->index];
	bool read = e->generation && all_read(&c->spans[p->span], RUBY_ISEQ_SPANS);

	e->revalidated = c->revalidation;
	if (read && ruby_iseq_check(c->vm, &e->iseq, &p->fresh.iseq)) {
		p->seen = true;
		still_the_same(c, p->fresh.iseq.head[RUBY_ISEQ_FLAGS], &e->first, &e->last,
			       &e->unsure, look);
		e->iseq.id.head[RUBY_ISEQ_FLAGS] =
			p->fresh.iseq.head[RUBY_ISEQ_FLAGS]; /* it may have become old */
		return 0;
	}
	/* If nothing can be read any more, what is known is used. */
	p->seen = read || !process_gone(c);
	return p->seen ? load_iseq(c, p->index, look->era) : 0;
}

static int settle_method(struct code_cache *c, struct pending *p, const struct look *look)
{
	struct cached_method *e = &c->methods[p->index];
	bool read = e->generation && all_read(&c->spans[p->span], RUBY_METHOD_SPANS);

	e->revalidated = c->revalidation;
	if (read && ruby_method_check(c->vm, &e->method, &p->fresh.method) && !may_get_name(e)) {
		p->seen = true;
		still_the_same(c, p->fresh.method.me[RUBY_ME_FLAGS], &e->first, &e->last,
			       &e->unsure, look);
		e->method.id.me[RUBY_ME_FLAGS] = p->fresh.method.me[RUBY_ME_FLAGS];
		return 0;
	}
	p->seen = read || !process_gone(c);
	return p->seen ? load_method(c, p->index, look) : 0;
}

/* Compare what is not known of these frames in one batch of reads; read anew what has changed. */
static int look_once(struct code_cache *c, struct look *look, const struct code_ref *refs, size_t n)
{
	size_t i;
	int err;

	look->n_pending = look->n_spans = 0;
	c->stamp++;
	err = array_reserve(c->pending, c->cap_pending, 2 * n + 1);
	if (!err)
		err = array_reserve(c->spans, c->cap_spans,
				    n * (RUBY_ISEQ_SPANS + RUBY_METHOD_SPANS) + 1);
	for (i = 0; i < n && !err; i++) {
		if (refs[i].iseq != PROFILE_NONE)
			enlist_iseq(c, refs[i].iseq, look);
		if (refs[i].method != PROFILE_NONE)
			enlist_method(c, refs[i].method, look);
	}
	if (err || !look->n_pending)
		return err;
	memory_read_spans(&c->vm->mem, c->spans, look->n_spans);
	for (i = 0; i < look->n_pending && !err; i++)
		err = c->pending[i].is_method ? settle_method(c, &c->pending[i], look)
					      : settle_iseq(c, &c->pending[i], look);
	return err;
}

/*
 * An era ended in between, or it could not be told which it was: what was read or compared is of
 * none for certain, @latest at most, until it is found to be the same once more.
 */
static void unsettle(struct code_cache *c, const struct look *look, uint64_t latest)
{
	size_t i;

	for (i = 0; i < look->n_pending; i++) {
		const struct pending *p = &c->pending[i];

		if (!p->seen)
			continue;
		if (p->is_method) {
			c->methods[p->index].unsure = true;
			c->methods[p->index].last = latest;
		} else {
			c->iseqs[p->index].unsure = true;
			c->iseqs[p->index].last = latest;
		}
	}
}

/*
 * The era now, or that of @sampled if it cannot be read (any more). False if it is just between two,
 * the latter of which it is then.
 */
static bool read_era(const struct code_cache *c, const struct stack_era *sampled, uint64_t *ret)
{
	int r = sampled->gc_era ? ruby_vm_gc_era(c->vm, ret) : -ENOENT;

	if (r && r != -EAGAIN)
		*ret = sampled->gc_era;
	return r != -EAGAIN;
}

int code_cache_look(struct code_cache *c, const struct stack_era *sampled,
		    const struct rbpf_frame *frames, size_t n, struct code_ref *refs)
{
	struct look look = { .sampled = sampled };
	unsigned int attempt;
	uint64_t latest;
	bool settled;
	size_t i;
	int err = 0;

	c->compacts |= sampled->gc_transition;
	for (i = 0; i < n && !err; i++)
		err = ref_init(c, &frames[i], &refs[i]);
	for (i = 0; i < n && !err; i++)
		code_prove_by_check(c, sampled, &frames[i], &refs[i]);
	for (attempt = 0; attempt < LOOK_ATTEMPTS && !err; attempt++) {
		settled = read_era(c, sampled, &look.era);
		err = look_once(c, &look, refs, n);
		if (!look.n_pending)
			break;
		settled &= read_era(c, sampled, &latest);
		if (settled && latest == look.era)
			break;
		unsettle(c, &look, latest);
	}
	for (i = 0; i < n && !err; i++)
		code_prove(c, sampled, &frames[i], &refs[i]);
	return err;
}

/* ---- what the kernel side copied ---- */

/* One RBPF_RING_MEMORY. */
struct copy {
	struct captured blocks;
	struct ruby_vm vm; /* of the process as it was then: what can be read are the blocks */
	struct look look;
};

/*
 * An entry that holds what was copied: nothing else stood there in that era. But while objects are
 * being moved an address may be that of another one still, and only a check tells.
 */
static void settle_copy(const struct code_cache *c, const struct copy *copy, uint64_t *checked,
			uint64_t *revalidated)
{
	*revalidated = c->revalidation;
	if (copy->look.era && !copy->look.sampled->gc_transition)
		*checked = copy->look.era;
}

/* What was not copied in full is left to code_cache_look(), like what was not copied at all. */
static int take_iseq(struct code_cache *c, const struct copy *copy, uint64_t addr)
{
	bool gc_transition = copy->look.sampled->gc_transition;
	struct cached_iseq *e;
	struct ruby_iseq fresh;
	uint32_t i;
	int err;

	err = is_full(c) ? -E2BIG : ruby_iseq_read(&copy->vm, addr, &fresh);
	if (err)
		return err == -ENOMEM ? err : 0;
	err = iseq_entry(c, addr, &i);
	if (err) {
		ruby_iseq_deinit(&fresh);
		return err;
	}
	e = &c->iseqs[i];
	if (!e->generation || !ruby_iseq_check(c->vm, &e->iseq, &fresh.id)) {
		set_iseq(c, e, &fresh, copy->look.era);
		e->unsure = gc_transition;
	} else {
		if (!gc_transition)
			still_the_same(c, fresh.id.head[RUBY_ISEQ_FLAGS], &e->first, &e->last,
				       &e->unsure, &copy->look);
		ruby_iseq_deinit(&fresh);
	}
	settle_copy(c, copy, &e->checked, &e->revalidated);
	return 0;
}

static int take_method(struct code_cache *c, const struct copy *copy, uint64_t addr, bool with_name)
{
	bool gc_transition = copy->look.sampled->gc_transition;
	struct cached_method *e;
	struct ruby_method fresh;
	uint32_t i;
	int err;

	err = is_full(c) ? -E2BIG : ruby_method_read(&copy->vm, addr, with_name, &fresh);
	if (err)
		return err == -ENOMEM ? err : 0;
	err = method_entry(c, addr, with_name, &i);
	if (err) {
		ruby_method_deinit(&fresh);
		return err;
	}
	e = &c->methods[i];
	if (gc_transition && e->generation && ruby_method_check(c->vm, &e->method, &fresh.id)) {
		ruby_method_deinit(&fresh);
	} else {
		set_method(c, e, &fresh, &copy->look);
		e->unsure |= gc_transition;
	}
	settle_copy(c, copy, &e->checked, &e->revalidated);
	return 0;
}

int code_cache_captured(struct code_cache *c, const struct stack_era *sampled, const void *blocks,
			size_t len)
{
	struct copy copy = { .blocks = CAPTURED_INIT,
			     .vm = *c->vm,
			     .look = { .sampled = sampled, .era = sampled->gc_era } };
	struct memory constants = ruby_constants_memory(c->vm->binary.constants);
	size_t i;
	int err;

	copy.blocks.below = &constants;
	copy.vm.mem = captured_memory(&copy.blocks);
	c->compacts |= sampled->gc_transition;
	err = captured_set(&copy.blocks, blocks, len);
	for (i = 0; i < copy.blocks.n && !err; i++) {
		const struct captured_block *b = &copy.blocks.blocks[i];

		if (b->kind == RBPF_BLOCK_ISEQ)
			err = take_iseq(c, &copy, b->addr);
		else if (b->kind == RBPF_BLOCK_METHOD || b->kind == RBPF_BLOCK_CFUNC)
			err = take_method(c, &copy, b->addr, b->kind == RBPF_BLOCK_CFUNC);
	}
	captured_deinit(&copy.blocks);
	return err;
}
