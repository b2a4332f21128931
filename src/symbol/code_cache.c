/* SPDX-License-Identifier: GPL-2.0-only */
#include "symbol/code_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "profile/profile.h"
#include "ruby/constants.h"
#include "ruby/vm.h"
#include "target/captured.h"
#include "target/memory.h"

#define OLD_AGE	      3 /* collections that an object survives to be old; gc.c RVALUE_OLD_AGE */
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
	const struct code_moment *moment;
	uint64_t era; /* now; 0: unknown */
	size_t n_pending, n_spans;
};

void code_cache_init(struct code_cache *c, const struct ruby_vm *vm)
{
	*c = (struct code_cache) { .vm = vm, .round = 1 };
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

/* ---- proof ---- */

static bool known_at(uint64_t first, uint64_t last, const struct code_moment *m)
{
	return first <= m->gc_era && m->gc_era <= last && !m->unsettled;
}

static bool is_old(const struct code_cache *c, uint64_t flags)
{
	uint64_t old = c->vm->rules.old_flags;

	return (flags & old) == old;
}

/*
 * Whether an object with @flags, read in @era, was there at @m: see OLD_AGE. An unsettled moment is
 * of its era or the one before.
 */
static bool old_enough(const struct code_cache *c, uint64_t flags, uint64_t era,
		       const struct code_moment *m)
{
	return c->vm->rules.old_by_age && is_old(c, flags) && era >= m->gc_era &&
	       era - m->gc_era + m->unsettled < OLD_AGE - 1;
}

static bool iseq_proven(const struct code_cache *c, const struct rbpf_frame *f,
			const struct cached_iseq *e, const struct code_moment *m)
{
	bool pc_inside = ruby_iseq_has_pc(&e->iseq, rbpf_frame_pc(f));
	uint64_t flags = e->iseq.id.head[RUBY_ISEQ_FLAGS];

	if (!e->generation || (!pc_inside && !(f->pc & RBPF_PC_STALE)))
		return false;
	if (m->gc_era && m->gc_era == e->checked && !m->unsettled)
		return true;
	if (!e->unsure) {
		if (!m->gc_era || known_at(e->first, e->last, m))
			return true;
		if (m->gc_era > e->last) /* the process is gone: nothing can be compared */
			return pc_inside && is_old(c, flags);
		/* Unsettled: it is of this era or the one before. */
		if (m->gc_era > e->first)
			return pc_inside;
	}
	return m->gc_era && pc_inside && old_enough(c, flags, e->last, m);
}

static bool method_proven(const struct code_cache *c, const struct rbpf_frame *f,
			  const struct ruby_iseq *iseq, const struct cached_method *e,
			  const struct code_moment *m)
{
	if (!e->generation)
		return false;
	if (m->gc_era && m->gc_era == e->checked && !m->unsettled)
		return true;
	if (!f->iseq && f->check)
		return ruby_method_words_check(&e->method, 0) == f->check;
	if (!m->gc_era || known_at(e->first, e->last, m))
		return !e->unsure;
	if (iseq && ruby_method_is_of(&e->method, iseq->local))
		return true;
	if (e->unsure)
		return false;
	if (m->gc_era > e->last)
		return is_old(c, e->method.id.me[RUBY_ME_FLAGS]);
	return !m->unsettled && !c->compacts && m->gc_era < e->first &&
	       old_enough(c, e->method.id.me[RUBY_ME_FLAGS], e->last, m);
}

/* Whether the check of @f, if it has one, can be compared with what is known. */
static bool has_check(const struct rbpf_frame *f, const struct cached_iseq *iseq,
		      const struct cached_method *method)
{
	return f->check && (!f->iseq || iseq->generation) && (!f->me || method->generation);
}

/* Whether iseq and method entry of @f hold what they held when the kernel side took its check. */
static bool check_fits(const struct rbpf_frame *f, const struct cached_iseq *iseq,
		       const struct cached_method *method)
{
	uint64_t check = 0;

	if (!has_check(f, iseq, method))
		return false;
	if (f->iseq)
		check = ruby_iseq_words_check(&iseq->iseq);
	if (f->me)
		check = ruby_method_words_check(&method->method, check);
	return check == f->check;
}

/*
 * Another object had taken the place of what is known, and with the process gone nobody can say
 * what: no later sample is of what is known.
 */
static void forget_what_was_replaced(const struct code_moment *m, const struct rbpf_frame *f,
				     struct cached_iseq *iseq, struct cached_method *method)
{
	if (m->unsettled || !has_check(f, iseq, method) || check_fits(f, iseq, method))
		return;
	if (iseq && m->gc_era > iseq->last && m->gc_era > iseq->checked)
		iseq->generation = 0;
	if (method && m->gc_era > method->last && m->gc_era > method->checked)
		method->generation = 0;
}

static void prove(struct code_cache *c, const struct code_moment *m, const struct rbpf_frame *f,
		  struct code_ref *ref)
{
	struct cached_iseq *iseq = ref->iseq != PROFILE_NONE ? &c->iseqs[ref->iseq] : NULL;
	struct cached_method *method = ref->method != PROFILE_NONE ? &c->methods[ref->method]
								   : NULL;

	forget_what_was_replaced(m, f, iseq, method);
	ref->iseq_ok = iseq && iseq_proven(c, f, iseq, m);
	ref->method_ok = method && method_proven(c, f, code_iseq(c, ref), method, m);
	if ((!iseq || ref->iseq_ok) && (!method || ref->method_ok))
		return;
	/* It says what was there, not that it is the same still: it may be the same anew. */
	if (!check_fits(f, iseq, method))
		return;
	ref->iseq_ok = iseq &&
		       (f->pc & RBPF_PC_STALE || ruby_iseq_has_pc(&iseq->iseq, rbpf_frame_pc(f)));
	ref->method_ok = method != NULL;
	if (m->unsettled)
		return;
	if (iseq)
		iseq->checked = m->gc_era;
	if (method)
		method->checked = m->gc_era;
}

/*
 * A check that fits what is known proves it without a look; and after one it might be too late,
 * for another object may stand there now.
 */
static void prove_by_check(struct code_cache *c, const struct code_moment *m,
			   const struct rbpf_frame *f, const struct code_ref *ref)
{
	struct cached_iseq *iseq = ref->iseq != PROFILE_NONE ? &c->iseqs[ref->iseq] : NULL;
	struct cached_method *method = ref->method != PROFILE_NONE ? &c->methods[ref->method]
								   : NULL;

	if (!m->gc_era || m->unsettled || !check_fits(f, iseq, method))
		return;
	if (iseq)
		iseq->checked = m->gc_era;
	if (method)
		method->checked = m->gc_era;
}

/* ---- reading ---- */

/*
 * The object holds what it held: it was there all the time if it is old, and else may be another
 * one, made of the same source when the first was freed.
 */
static void still_the_same(const struct code_cache *c, uint64_t flags, uint64_t *first,
			   uint64_t *last, bool *unsure, const struct look *look)
{
	const struct code_moment then = { .gc_era = *last };

	if (look->era < *last && !*unsure)
		return;
	if (*unsure || c->compacts || !old_enough(c, flags, look->era, &then))
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
		       uint64_t last, uint64_t round, const struct code_moment *m)
{
	if (m->gc_era && !known_at(first, last, m))
		return false;
	return (m->gc_era && generation) || round == c->round;
}

static bool is_checked(uint64_t checked, const struct code_moment *m)
{
	return checked && checked == m->gc_era && !m->unsettled;
}

/*
 * Put the entry of iseq @i on the list of what must be looked at, unless it is known or there
 * already.
 */
static void enlist_iseq(struct code_cache *c, uint32_t i, struct look *look)
{
	struct cached_iseq *e = &c->iseqs[i];
	struct pending *p;

	if (e->stamp == c->stamp || is_checked(e->checked, look->moment) ||
	    (!e->unsure && is_settled(c, e->generation, e->first, e->last, e->round, look->moment)))
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

	if (e->stamp == c->stamp || ((is_checked(e->checked, look->moment) ||
				      (!e->unsure && is_settled(c, e->generation, e->first, e->last,
								e->round, look->moment))) &&
				     (e->round == c->round || !may_get_name(e))))
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

	e->round = c->round;
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

	e->round = c->round;
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
 * The era now, or that of @moment if it cannot be read (any more). False if it is just between two,
 * the latter of which it is then.
 */
static bool read_era(const struct code_cache *c, const struct code_moment *moment, uint64_t *ret)
{
	int r = moment->gc_era ? ruby_vm_gc_era(c->vm, ret) : -ENOENT;

	if (r && r != -EAGAIN)
		*ret = moment->gc_era;
	return r != -EAGAIN;
}

int code_cache_look(struct code_cache *c, const struct code_moment *moment,
		    const struct rbpf_frame *frames, size_t n, struct code_ref *refs)
{
	struct look look = { .moment = moment };
	unsigned int attempt;
	uint64_t latest;
	bool settled;
	size_t i;
	int err = 0;

	c->compacts |= moment->unsettled;
	for (i = 0; i < n && !err; i++)
		err = ref_init(c, &frames[i], &refs[i]);
	for (i = 0; i < n && !err; i++)
		prove_by_check(c, moment, &frames[i], &refs[i]);
	for (attempt = 0; attempt < LOOK_ATTEMPTS && !err; attempt++) {
		settled = read_era(c, moment, &look.era);
		err = look_once(c, &look, refs, n);
		if (!look.n_pending)
			break;
		settled &= read_era(c, moment, &latest);
		if (settled && latest == look.era)
			break;
		unsettle(c, &look, latest);
	}
	for (i = 0; i < n && !err; i++)
		prove(c, moment, &frames[i], &refs[i]);
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
			uint64_t *round)
{
	*round = c->round;
	if (copy->look.era && !copy->look.moment->unsettled)
		*checked = copy->look.era;
}

/* What was not copied in full is left to code_cache_look(), like what was not copied at all. */
static int take_iseq(struct code_cache *c, const struct copy *copy, uint64_t addr)
{
	bool unsettled = copy->look.moment->unsettled;
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
		e->unsure = unsettled;
	} else {
		if (!unsettled)
			still_the_same(c, fresh.id.head[RUBY_ISEQ_FLAGS], &e->first, &e->last,
				       &e->unsure, &copy->look);
		ruby_iseq_deinit(&fresh);
	}
	settle_copy(c, copy, &e->checked, &e->round);
	return 0;
}

static int take_method(struct code_cache *c, const struct copy *copy, uint64_t addr, bool with_name)
{
	bool unsettled = copy->look.moment->unsettled;
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
	if (unsettled && e->generation && ruby_method_check(c->vm, &e->method, &fresh.id)) {
		ruby_method_deinit(&fresh);
	} else {
		set_method(c, e, &fresh, &copy->look);
		e->unsure |= unsettled;
	}
	settle_copy(c, copy, &e->checked, &e->round);
	return 0;
}

int code_cache_captured(struct code_cache *c, const struct code_moment *moment, const void *blocks,
			size_t len)
{
	struct copy copy = { .blocks = CAPTURED_INIT,
			     .vm = *c->vm,
			     .look = { .moment = moment, .era = moment->gc_era } };
	struct memory constants = ruby_constants_memory(c->vm->binary.constants);
	size_t i;
	int err;

	copy.blocks.below = &constants;
	copy.vm.mem = captured_memory(&copy.blocks);
	c->compacts |= moment->unsettled;
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
