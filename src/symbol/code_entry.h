/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The entries of a code cache, for those that fill them: code_cache.c from the process, and
 * code_captured.c from what the BPF programs copied.
 *
 * An entry says what was found at an address, and of which eras that is known (code_proof.h). It is
 * here that the latter is noted, when something was read or compared.
 */
#ifndef RBPF_SYMBOL_CODE_ENTRY_H
#define RBPF_SYMBOL_CODE_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "symbol/code_cache.h"

/* When objects were read or compared, and for which stack. */
struct entry_reading {
	const struct stack_era *sampled; /* of the stack */
	uint64_t era;			 /* as it was read; 0: unknown */
	bool swept; /* nothing that is dead lay in the heap, since all of that had been freed */
};

/* Add the entry of the object at @addr, which has none. Returns 0 or -ENOMEM. */
int code_entry_add_iseq(struct code_cache *c, uint64_t addr, uint32_t *ret);
int code_entry_add_method(struct code_cache *c, uint64_t addr, bool with_name, uint32_t *ret);

/* Find or add the entry of the iseq at @addr. Returns 0 or -ENOMEM. */
static inline int code_entry_iseq(struct code_cache *c, uint64_t addr, uint32_t *ret)
{
	return u64_map_get(&c->iseq_at, addr, ret) ? 0 : code_entry_add_iseq(c, addr, ret);
}

/* What code_cache.method_at has a method entry by: no process has an address of 2^63 or more. */
static inline uint64_t code_entry_method_key(uint64_t addr, bool with_name)
{
	return addr << 1 | with_name;
}

/* The same of the method entry at @addr, whose name is asked for or not. */
static inline int code_entry_method(struct code_cache *c, uint64_t addr, bool with_name,
				    uint32_t *ret)
{
	return u64_map_get(&c->method_at, code_entry_method_key(addr, with_name), ret)
		       ? 0
		       : code_entry_add_method(c, addr, with_name, ret);
}

/* The entry is of @fresh, which it takes over; NULL: of nothing usable. */
void code_entry_set_iseq(struct code_cache *c, struct cached_iseq *e, const struct ruby_iseq *fresh,
			 const struct entry_reading *reading);
void code_entry_set_method(struct code_cache *c, struct cached_method *e,
			   const struct ruby_method *fresh, const struct entry_reading *reading);

/* What @known is of, whose first word is @flags, still holds what it held. */
void code_entry_same(const struct code_cache *c, struct code_known *known, uint64_t flags,
		     const struct entry_reading *reading);

#endif
