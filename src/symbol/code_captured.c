/* SPDX-License-Identifier: GPL-2.0-only */
/* What the BPF programs copied of iseqs and method entries, into the cache. */
#include <errno.h>

#include "ruby/constants.h"
#include "ruby/vm.h"
#include "symbol/code_entry.h"
#include "target/captured.h"

/* Whether there is no room for another copy. */
static bool is_full(struct code_cache *c)
{
	bool full = c->bytes >= CODE_CACHE_BYTES;

	c->refused += full;
	return full;
}

/* One RBPF_RING_MEMORY. */
struct copy {
	struct captured blocks;
	struct ruby_vm vm; /* of the process as it was then: what can be read are the blocks */
	struct entry_reading reading;
};

/*
 * An entry that holds what was copied: nothing else stood there in that era. But while objects are
 * being moved an address may be that of another one still, and only a check tells.
 */
static void set_checked(const struct code_cache *c, const struct copy *copy,
			struct code_known *known)
{
	known->revalidated = c->revalidation;
	if (copy->reading.era && !copy->reading.sampled->gc_transition)
		known->checked = copy->reading.era;
}

/* What was not copied in full is left to code_cache_lookup(), like what was not copied at all. */
static int take_iseq(struct code_cache *c, const struct copy *copy, uint64_t addr)
{
	bool gc_transition = copy->reading.sampled->gc_transition;
	struct cached_iseq *e;
	struct ruby_iseq fresh;
	uint32_t i;
	int err;

	err = is_full(c) ? -E2BIG : ruby_iseq_read(&copy->vm, addr, &fresh);
	if (err)
		return err == -ENOMEM ? err : 0;
	err = code_entry_iseq(c, addr, &i);
	if (err) {
		ruby_iseq_deinit(&fresh);
		return err;
	}
	e = &c->iseqs[i];
	if (!e->known.version || !ruby_iseq_check(c->vm, &e->iseq, &fresh.id)) {
		code_entry_set_iseq(c, e, &fresh, &copy->reading);
		e->known.unsure = gc_transition;
	} else {
		if (!gc_transition)
			code_entry_same(c, &e->known, fresh.id.head[RUBY_ISEQ_FLAGS],
					&copy->reading);
		ruby_iseq_deinit(&fresh);
	}
	set_checked(c, copy, &e->known);
	return 0;
}

static int take_method(struct code_cache *c, const struct copy *copy, uint64_t addr, bool with_name)
{
	bool gc_transition = copy->reading.sampled->gc_transition;
	struct cached_method *e;
	struct ruby_method fresh;
	uint32_t i;
	int err;

	err = is_full(c) ? -E2BIG : ruby_method_read(&copy->vm, addr, with_name, &fresh);
	if (err)
		return err == -ENOMEM ? err : 0;
	err = code_entry_method(c, addr, with_name, &i);
	if (err) {
		ruby_method_deinit(&fresh);
		return err;
	}
	e = &c->methods[i];
	if (gc_transition && e->known.version && ruby_method_check(c->vm, &e->method, &fresh.id)) {
		ruby_method_deinit(&fresh);
	} else {
		code_entry_set_method(c, e, &fresh, &copy->reading);
		e->known.unsure |= gc_transition;
	}
	set_checked(c, copy, &e->known);
	return 0;
}

int code_cache_captured(struct code_cache *c, const struct stack_era *sampled, const void *blocks,
			size_t len)
{
	struct copy copy = { .blocks = CAPTURED_INIT,
			     .vm = *c->vm,
			     .reading = { .sampled = sampled, .era = sampled->gc_era } };
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
