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

#define READ_ATTEMPTS 3 /* without a collection in between */

struct class_name {
	char *name;	      /* NULL: nothing usable was found; owned */
	uint64_t flags;	      /* of the object, when it was read */
	uint64_t first, last; /* eras between which it is known to be the same */
	uint64_t held;	      /* the last of them in which it was also sampled */
	struct old_since old;
};

void class_names_deinit(struct class_names *c)
{
	for (size_t i = 0; i < c->addrs.count; i++)
		free(c->v[i].name);
	free(c->v);
	intern_deinit(&c->addrs);
	*c = (struct class_names)CLASS_NAMES_INIT;
}

size_t class_names_bytes(const struct class_names *c)
{
	return c->bytes + c->cap * sizeof(*c->v) + intern_bytes(&c->addrs);
}

/* The name of the class at @addr, which is no singleton class. */
static int read_name(const struct ruby_vm *vm, uint64_t addr, uint64_t *flags, struct buf *out)
{
	if (!ruby_is_object(addr) || memory_read_u64(&vm->mem, addr, flags))
		return -EFAULT;
	if (ruby_flags_type(*flags) != RUBY_T_CLASS || *flags >> vm->layout.singleton_bit & 1)
		return -EINVAL;
	return ruby_class_name(vm, addr, out);
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
	 * A class has its permanent name for good, and constants keep it. So if one of that name was
	 * there before and is there now, both old, none of another name has come and gone in between;
	 * nor within one era.
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

/*
 * Read it between two readings of the era that agree. If it @was_old when the sample was taken, and
 * there was no major collection since, it is the same.
 */
static int read_class(struct class_names *c, const struct code_cache *code, struct class_name *e,
		      uint64_t addr, const struct stack_era *sampled, bool was_old)
{
	int attempt, r;

	for (attempt = 0; attempt < READ_ATTEMPTS; attempt++) {
		struct buf name _cleanup_buf_ = BUF_INIT;
		struct stack_era now = { 0 };
		uint64_t era, major, flags = 0;

		if (ruby_vm_gc_era(code->vm, &now.gc_era, &now.gc_major))
			continue;
		r = read_name(code->vm, addr, &flags, &name);
		if (buf_failed(&name))
			return -ENOMEM;
		if (ruby_vm_gc_era(code->vm, &era, &major) || era != now.gc_era)
			continue;
		if (major != now.gc_major)
			now.gc_major = 0;
		r = take(c, code, e, r ? NULL : buf_str(&name), flags, &now);
		if (!r && sampled->gc_era == now.gc_era)
			e->held = now.gc_era;
		if (!r && was_old && now.gc_major && now.gc_major == sampled->gc_major &&
		    code_is_old(code, flags) && sampled->gc_era < e->old.era)
			e->old.era = sampled->gc_era;
		return r;
	}
	return 0;
}

static bool is_proven(const struct class_name *e, const struct stack_era *sampled)
{
	return e->name && sampled->gc_era &&
	       (code_not_freed(&e->old, sampled) ||
		code_known_at(e->first, e->last, e->held, sampled) ||
		(e->first < sampled->gc_era && sampled->gc_era < e->last));
}

int class_names_get(struct class_names *c, const struct code_cache *code,
		    const struct stack_era *sampled, uint64_t addr, bool was_old, const char **ret)
{
	struct class_name *e;
	uint32_t id;
	bool is_new;
	int r;

	*ret = NULL;
	if (!addr ||
	    (c->addrs.count >= CLASS_NAMES_MAX && intern_find(&c->addrs, &addr, sizeof(addr), &id)))
		return 0;
	r = array_reserve(c->v, c->cap, c->addrs.count + 1);
	if (!r)
		r = intern_add(&c->addrs, &addr, sizeof(addr), &id, &is_new);
	if (r)
		return r;
	e = &c->v[id];
	if (is_new)
		*e = (struct class_name) { 0 };
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
