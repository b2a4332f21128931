/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ruby objects in another process' memory: strings, arrays, IDs.
 *
 * Everything read may be garbage (freed, moved, half-written): each function checks the type in the
 * flags, bounds each length, and returns an error rather than something that looks like a name.
 * Bytes are raw: they are made valid UTF-8 where they are interned.
 */
#ifndef RBPF_RUBY_OBJECT_H
#define RBPF_RUBY_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ruby_abi.h"

struct buf;
struct ruby_vm;

#define RUBY_STRING_MAX 4096 /* bytes of a name; longer ones are cut */

/* enum ruby_value_type */
static inline unsigned int ruby_flags_type(uint64_t flags)
{
	return flags & RUBY_T_MASK;
}

/* Append the bytes of String @value. -EINVAL if it is none, -EFAULT if unreadable. */
int ruby_string_read(const struct ruby_vm *vm, uint64_t value, struct buf *out);

/*
 * Say that String @value is about to be read (memory_expect()), as far as is known by now where it
 * lies.
 */
void ruby_string_expect(const struct ruby_vm *vm, uint64_t value);

/*
 * The first entries of Hash @value, at most @max; also such as were removed (RUBY_ST_DELETED).
 * Returns how many are in @ret: 0 if it is no Hash, has up to 8 entries, or cannot be read.
 */
size_t ruby_hash_entries(const struct ruby_vm *vm, uint64_t value, struct ruby_st_entry *ret,
			 size_t max);

/*
 * The address of the struct that @object, a T_DATA, wraps, or has in itself. Returns 0, -EINVAL (it
 * is none) or -EFAULT.
 */
int ruby_data_of(const struct ruby_vm *vm, uint64_t object, uint64_t *ret);

/* Element @i of Array @value. */
int ruby_array_get(const struct ruby_vm *vm, uint64_t value, uint64_t i, uint64_t *ret);

/* Append the name of an ID. -ENOENT if the symbol table is unknown or has no such entry. */
int ruby_id_name(const struct ruby_vm *vm, uint64_t id, struct buf *out);

/*
 * Whether ruby_global_symbols is at @symbols: serial 33 has to be "!" (tables are filled in the
 * same order in all versions).
 */
bool ruby_symbols_check(const struct ruby_vm *vm, uint64_t symbols);

#endif
