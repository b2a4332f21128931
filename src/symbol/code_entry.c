/* SPDX-License-Identifier: GPL-2.0-only */
#include "symbol/code_entry.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "symbol/code_proof.h"

/*
 * An owner without a name is asked for it after an eighth of the time that it has had none, so that
 * a name is hardly later than that; but in any case after so many revalidations, of which there are
 * 4 to 20 a second: 2 to 10 s.
 */
#define NAME_LATE     8
#define NAME_WAIT_MAX 40

int code_entry_add_iseq(struct code_cache *c, uint64_t addr, uint32_t *ret)
{
	int err;

	err = array_reserve(c->iseqs, c->cap_iseqs, c->n_iseqs + 1);
	if (!err)
		err = u64_map_set(&c->iseq_at, addr, (uint32_t)c->n_iseqs);
	if (err)
		return err;
	c->iseqs[c->n_iseqs].addr = addr;
	*ret = (uint32_t)c->n_iseqs++;
	return 0;
}

int code_entry_add_method(struct code_cache *c, uint64_t addr, bool with_name, uint32_t *ret)
{
	const uint64_t key = code_entry_method_key(addr, with_name);
	int err;

	err = array_reserve(c->methods, c->cap_methods, c->n_methods + 1);
	if (!err)
		err = u64_map_set(&c->method_at, key, (uint32_t)c->n_methods);
	if (err)
		return err;
	c->methods[c->n_methods].addr = addr;
	c->methods[c->n_methods].with_name = with_name;
	*ret = (uint32_t)c->n_methods++;
	return 0;
}

/*
 * An object was read in @reading. It exists to the end of that era if its stack had it in the same
 * era; or if it cannot have been dead.
 */
static void note_held(struct code_known *known, const struct entry_reading *reading)
{
	const struct stack_era *sampled = reading->sampled;

	if (reading->era &&
	    ((reading->era == sampled->gc_era && !sampled->gc_transition) || reading->swept))
		known->held = reading->era;
}

/*
 * The object holds what it held: it was there all the time if it is old, and else may be another
 * one, made of the same source when the first was freed.
 */
static void still_the_same(const struct code_cache *c, struct code_known *known, uint64_t flags,
			   const struct entry_reading *reading)
{
	const struct stack_era then = { .gc_era = known->last };

	if (reading->era < known->last && !known->unsure)
		return;
	if (known->unsure || c->compacts || !code_old_enough(c, flags, reading->era, &then))
		known->first = reading->era;
	known->last = reading->era;
	known->unsure = false;
}

/* Another object is there than before. */
static void is_another(struct code_known *known, const struct entry_reading *reading)
{
	known->first = known->last = reading->era;
	known->held = 0;
	known->checked = 0;
	known->unsure = false;
}

void code_entry_same(const struct code_cache *c, struct code_known *known, uint64_t flags,
		     const struct entry_reading *reading)
{
	still_the_same(c, known, flags, reading);
	note_held(known, reading);
}

void code_entry_set_iseq(struct code_cache *c, struct cached_iseq *e, const struct ruby_iseq *fresh,
			 const struct entry_reading *reading)
{
	c->bytes -= ruby_iseq_bytes(&e->iseq);
	ruby_iseq_deinit(&e->iseq);
	if (fresh)
		e->iseq = *fresh;
	c->bytes += ruby_iseq_bytes(&e->iseq);
	e->check = fresh ? ruby_iseq_words_check(fresh) : 0;
	e->known.version = fresh ? ++c->version : 0;
	e->known.old = (struct old_since) { 0 };
	is_another(&e->known, reading);
	note_held(&e->known, reading);
}

/*
 * The owner of @e was asked for its name. One that has none for long (a module whose methods are
 * generated) will hardly get one: it is asked less and less often.
 */
static void name_asked(const struct code_cache *c, struct cached_method *e, bool same)
{
	uint64_t wait;

	if (!same)
		e->nameless = c->revalidation;
	wait = 1 + (c->revalidation - e->nameless) / NAME_LATE;
	e->ask_name = c->revalidation + (wait < NAME_WAIT_MAX ? wait : NAME_WAIT_MAX);
}

void code_entry_set_method(struct code_cache *c, struct cached_method *e,
			   const struct ruby_method *fresh, const struct entry_reading *reading)
{
	bool both = fresh && e->known.version;
	bool same_words = both && ruby_method_check(c->vm, &e->method, &fresh->id);
	/* Symbols made of the same name stay right. */
	bool same_name = both && !strcmp(e->method.prefix, fresh->prefix) &&
			 (!fresh->name || !strcmp(e->method.name, fresh->name));

	c->bytes -= ruby_method_bytes(&e->method);
	ruby_method_deinit(&e->method);
	if (fresh)
		e->method = *fresh;
	c->bytes += ruby_method_bytes(&e->method);
	if (!same_name)
		e->known.version = fresh ? ++c->version : 0;
	e->known.old = (struct old_since) { 0 };
	if (same_words)
		still_the_same(c, &e->known, fresh->id.me[RUBY_ME_FLAGS], reading);
	else
		is_another(&e->known, reading);
	name_asked(c, e, same_words && same_name);
	note_held(&e->known, reading);
}
