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
#include <stdint.h>

struct buf;
struct ruby_vm;

/* RBasic.flags & RUBY_T_MASK (include/ruby/internal/value_type.h, all versions) */
enum ruby_type {
	RUBY_T_CLASS = 0x02,
	RUBY_T_MODULE = 0x03,
	RUBY_T_STRING = 0x05,
	RUBY_T_ARRAY = 0x07,
	RUBY_T_DATA = 0x0c,
	RUBY_T_IMEMO = 0x1a,
};

#define RUBY_T_MASK	0x1ful
#define RUBY_STRING_MAX 4096 /* bytes of a name; longer ones are cut */

static inline unsigned int ruby_flags_type(uint64_t flags)
{
	return flags & RUBY_T_MASK;
}

/* (flags & mask) of an imemo, and its values: internal/imemo.h */
#define RUBY_IMEMO_MASK 0xf01ful
#define RUBY_IMEMO_MENT 0x601aul
#define RUBY_IMEMO_ISEQ 0x701aul

/* True for what can be a pointer to a heap object: no special constant, aligned. */
static inline bool ruby_is_object(uint64_t value)
{
	return value > 0x1000 && !(value & 7);
}

/* Append the bytes of String @value. -EINVAL if it is none, -EFAULT if unreadable. */
int ruby_string_read(const struct ruby_vm *vm, uint64_t value, struct buf *out);

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
