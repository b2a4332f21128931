/* SPDX-License-Identifier: GPL-2.0-only */
#include "symbol/class_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "ruby/class.h"
#include "ruby/object.h"
#include "ruby/vm.h"
#include "symbol/code_proof.h"
#include "target/memory.h"
#include "target/transcript.h"

#define READ_ATTEMPTS 3 /* without a collection in between */

struct class_name {
	char *name; /* NULL: nothing usable was found; owned */
	struct transcript
		*read;	/* of what gave the name, the flags first; NULL: not all is known; owned */
	uint64_t flags; /* of the object, when it was read */
	uint64_t first, last; /* eras between which it is known to be the same */
	uint64_t held;	      /* the last of them in which it was also sampled */
	struct old_since old;
};

void class_names_deinit(struct class_names *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->v[i].name);
		free(c->v[i].read);
	}
	free(c->v);
	u64_map_deinit(&c->at);
	*c = (struct class_names)CLASS_NAMES_INIT;
}

size_t class_names_bytes(const struct class_names *c)
{
	return c->bytes + c->cap * sizeof(*c->v) + u64_map_bytes(&c->at);
}

/* Whether an object of these flags is a class, and no singleton class. */
static bool is_class(const struct ruby_vm *vm, uint64_t flags)
{
	return ruby_flags_type(flags) == RUBY_T_CLASS && !(flags >> vm->layout.singleton_bit & 1);
}

/* The name of the class at @addr, and in @t what was read for it. */
static int read_name(const struct ruby_vm *live, uint64_t addr, uint64_t *flags, struct buf *out,
		     struct transcript *t)
{
	struct ruby_vm vm = *live;

	vm.mem = transcript_memory(t, &live->mem);
	if (!ruby_is_object(addr) || memory_read_u64(&vm.mem, addr, flags))
		return -EFAULT;
	return is_class(&vm, *flags) ? ruby_class_name(&vm, addr, out) : -EINVAL;
}

/*
 * Keep @t with the name that it gave; without memory for that it is only read anew the next time.
 */
static void keep_transcript(struct class_names *c, struct class_name *e, const struct transcript *t)
{
	const bool had = e->read;

	if (!e->name || !t->is_whole) {
		free(e->read);
		e->read = NULL;
	} else {
		e->read = e->read ?: malloc(sizeof(*t));
		if (e->read)
			*e->read = *t;
	}
	c->bytes += ((size_t) !!e->read - had) * sizeof(*t);
}

/* Note that the object, as it is in @now, is called @name (NULL: nothing usable). */
static int take(struct class_names *c, const struct code_cache *code, struct class_name *e,
		const char *name, uint64_t flags, const struct stack_era *now)
{
	bool same = name && e->name && !strcmp(e->name, name);

	if (!same) {
		char *copy = name ? strdup(name) : NULL;

		if (name && !copy)
			return -ENOMEM;
		c->bytes -= e->name ? strlen(e->name) + 1 : 0;
		c->bytes += name ? strlen(name) + 1 : 0;
		free(e->name);
		e->name = copy;
		e->old = (struct old_since) { 0 };
	}
	/*
	 * A class has its permanent name for good, and constants keep it. So if one of that name
	 * was there before and is there now, both old, none of another name has come and gone in
	 * between; nor within one era.
	 */
	if (!same || now->gc_era < e->last ||
	    (now->gc_era - e->last > 1 &&
	     !(code_is_old(code, flags) && code_is_old(code, e->flags))))
		e->first = now->gc_era;
	e->last = now->gc_era;
	e->flags = flags;
	code_note_old(code, flags, now, &e->old);
	return 0;
}

/* What one look at a class has found, all of it in one era. */
struct class_look {
	struct stack_era era;
	uint64_t flags;
};

/*
 * As ruby_vm_gc_era() twice, before and after what was looked at: whether both are known and the
 * same.
 */
static bool same_era(uint64_t era, uint64_t major, struct stack_era *now)
{
	if (era != now->gc_era)
		return false;
	if (major != now->gc_major)
		now->gc_major = 0;
	return true;
}

/* Whether all that gave the name is as it was, read at once with the era. */
static bool still_the_same(const struct code_cache *code, const struct class_name *e,
			   struct class_look *ret)
{
	struct memory_span spans[RUBY_ERA_SPANS + TRANSCRIPT_SPANS + RUBY_ERA_SPANS];
	struct ruby_era_words before, after;
	uint8_t bytes[TRANSCRIPT_BYTES];
	uint64_t era, major;
	size_t n, i;

	if (!e->read)
		return false;
	ruby_vm_era_spans(code->vm, &before, spans);
	n = RUBY_ERA_SPANS + transcript_again(e->read, &spans[RUBY_ERA_SPANS], bytes);
	ruby_vm_era_spans(code->vm, &after, &spans[n]);
	memory_read_spans(&code->vm->mem, spans, n + RUBY_ERA_SPANS);
	for (i = RUBY_ERA_SPANS; i < n; i++)
		if (!spans[i].ok)
			return false;
	memcpy(&ret->flags, bytes, sizeof(ret->flags));
	return !ruby_vm_era(code->vm, &before, spans, &ret->era.gc_era, &ret->era.gc_major) &&
	       !ruby_vm_era(code->vm, &after, &spans[n], &era, &major) &&
	       same_era(era, major, &ret->era) && is_class(code->vm, ret->flags) &&
	       !memcmp(&bytes[sizeof(ret->flags)], &e->read->bytes[sizeof(ret->flags)],
		       e->read->len - sizeof(ret->flags));
}

/*
 * Read it between two readings of the era that agree. Returns 0, -EAGAIN if they did not, or
 * -ENOMEM.
 */
static int read_anew(struct class_names *c, const struct code_cache *code, struct class_name *e,
		     uint64_t addr, struct class_look *ret)
{
	struct buf name _cleanup_buf_ = BUF_INIT;
	struct transcript read;
	uint64_t era, major;
	int r, not_named;

	*ret = (struct class_look) { 0 };
	if (ruby_vm_gc_era(code->vm, &ret->era.gc_era, &ret->era.gc_major))
		return -EAGAIN;
	not_named = read_name(code->vm, addr, &ret->flags, &name, &read);
	if (buf_failed(&name))
		return -ENOMEM;
	if (ruby_vm_gc_era(code->vm, &era, &major) || !same_era(era, major, &ret->era))
		return -EAGAIN;
	r = take(c, code, e, not_named ? NULL : buf_str(&name), ret->flags, &ret->era);
	if (!r)
		keep_transcript(c, e, &read);
	return r;
}

/*
 * If the class @was_old when the sample was taken, and there was no major collection since, it is
 * the same.
 */
static int read_class(struct class_names *c, const struct code_cache *code, struct class_name *e,
		      uint64_t addr, const struct stack_era *sampled, bool was_old)
{
	struct class_look look = { 0 };
	int attempt, r = -EAGAIN;

	if (still_the_same(code, e, &look))
		r = take(c, code, e, e->name, look.flags, &look.era);
	for (attempt = 0; attempt < READ_ATTEMPTS && r == -EAGAIN; attempt++)
		r = read_anew(c, code, e, addr, &look);
	if (r)
		return r == -EAGAIN ? 0 : r;
	if (sampled->gc_era == look.era.gc_era)
		e->held = look.era.gc_era;
	if (was_old && look.era.gc_major && look.era.gc_major == sampled->gc_major &&
	    code_is_old(code, look.flags) && sampled->gc_era < e->old.era)
		e->old.era = sampled->gc_era;
	return 0;
}

static bool is_proven(const struct class_name *e, const struct stack_era *sampled)
{
	return e->name && sampled->gc_era &&
	       (code_not_freed(&e->old, sampled) ||
		code_known_at(e->first, e->last, e->held, sampled) ||
		(e->first < sampled->gc_era && sampled->gc_era < e->last));
}

/* Find or add the entry of the class at @addr. Returns 0, -ENOENT (too many) or -ENOMEM. */
static int entry(struct class_names *c, uint64_t addr, struct class_name **ret)
{
	uint32_t i;

	if (!u64_map_get(&c->at, addr, &i)) {
		if (c->n >= CLASS_NAMES_MAX)
			return -ENOENT;
		i = (uint32_t)c->n;
		if (array_reserve(c->v, c->cap, c->n + 1) || u64_map_set(&c->at, addr, i))
			return -ENOMEM;
		c->v[c->n++] = (struct class_name) { 0 };
	}
	*ret = &c->v[i];
	return 0;
}

int class_names_get(struct class_names *c, const struct code_cache *code,
		    const struct stack_era *sampled, uint64_t addr, bool was_old, const char **ret)
{
	struct class_name *e;
	int r;

	*ret = NULL;
	r = addr ? entry(c, addr, &e) : -ENOENT;
	if (r)
		return r == -ENOENT ? 0 : r;
	if (!is_proven(e, sampled))
		r = read_class(c, code, e, addr, sampled, was_old);
	/* It was there then if it is old now, and has not been for long. */
	if (!r &&
	    (is_proven(e, sampled) ||
	     (e->name && sampled->gc_era && !sampled->gc_transition && !code->compacts &&
	      sampled->gc_era < e->first && code_old_enough(code, e->flags, e->last, sampled))))
		*ret = e->name;
	return r;
}
