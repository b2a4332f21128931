/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is the same in all versions is in ruby_abi.h and structs.h; what differs, in the layout.
 */
#include "ruby/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "ruby/structs.h"
#include "ruby/vm.h"

static int read_string_bytes(const struct ruby_vm *vm, uint64_t addr, uint64_t len, struct buf *out)
{
	_cleanup_free_ char *bytes = NULL;

	if (!len)
		return 0;
	bytes = malloc(len);
	if (!bytes)
		return -ENOMEM;
	if (memory_read(&vm->mem, addr, bytes, len))
		return -EFAULT;
	buf_add(out, bytes, len);
	return 0;
}

/* Where the bytes of String @value are, and how many. */
static int find_bytes(const struct ruby_vm *vm, uint64_t value, uint64_t *addr, uint64_t *len)
{
	uint64_t w[RSTRING_PTR_WORD + 1];

	if (!ruby_is_object(value))
		return -EINVAL;
	if (memory_read(&vm->mem, value, w, sizeof(w)))
		return -EFAULT;
	if (ruby_flags_type(w[0]) != RUBY_T_STRING)
		return -EINVAL;
	*len = w[RSTRING_LEN_WORD];
	if (w[0] & RSTRING_NOEMBED) {
		*addr = w[RSTRING_PTR_WORD];
	} else if (vm->layout.string_embed == RSTRING_EMBED_SHORT) {
		*addr = value + RSTRING_EMBED_SHORT;
		*len = RSTRING_EMBED_LEN(w[0]);
	} else {
		*addr = value + vm->layout.string_embed;
	}
	if (*len > RUBY_STRING_MAX)
		*len = RUBY_STRING_MAX;
	return 0;
}

int ruby_string_read(const struct ruby_vm *vm, uint64_t value, struct buf *out)
{
	uint64_t addr, len;
	int r = find_bytes(vm, value, &addr, &len);

	return r ? r : read_string_bytes(vm, addr, len, out);
}

void ruby_string_expect(const struct ruby_vm *vm, uint64_t value)
{
	uint64_t addr, len;

	if (vm->mem.gathered && !find_bytes(vm, value, &addr, &len))
		memory_expect(&vm->mem, addr, len);
}

size_t ruby_hash_entries(const struct ruby_vm *vm, uint64_t value, struct ruby_st_entry *ret,
			 size_t max)
{
	uint64_t flags, table = value + RHASH_ST_EMBED, st[2]; /* entries_bound, entries */

	if (!ruby_is_object(value) || memory_read_u64(&vm->mem, value, &flags) ||
	    ruby_flags_type(flags) != RUBY_T_HASH || !(flags & RHASH_ST_TABLE))
		return 0;
	if (!vm->rules.hash_embeds && memory_read_u64(&vm->mem, value + RHASH_ST_POINTER, &table))
		return 0;
	if (memory_read(&vm->mem, table + vm->rules.st_bound, st, sizeof(st)))
		return 0;
	if (st[0] > max)
		st[0] = max;
	return memory_read(&vm->mem, st[1], ret, st[0] * sizeof(*ret)) ? 0 : st[0];
}

int ruby_array_get(const struct ruby_vm *vm, uint64_t value, uint64_t i, uint64_t *ret)
{
	uint64_t w[RARRAY_PTR_WORD + 1];
	bool embedded;

	if (!ruby_is_object(value))
		return -EINVAL;
	if (memory_read(&vm->mem, value, w, sizeof(w)))
		return -EFAULT;
	if (ruby_flags_type(w[0]) != RUBY_T_ARRAY)
		return -EINVAL;
	embedded = w[0] & RARRAY_EMBED_FLAG;
	if (i >= (embedded ? RARRAY_EMBED_LEN(w[0]) : w[RARRAY_LEN_WORD]))
		return -ENOENT;
	return memory_read_u64(&vm->mem,
			       (embedded ? value + RARRAY_EMBED : w[RARRAY_PTR_WORD]) + i * 8, ret);
}

int ruby_data_of(const struct ruby_vm *vm, uint64_t object, uint64_t *ret)
{
	const uint64_t embedded = vm->rules.mutex_form == RUBY_MUTEX_SERIAL
					  ? RTYPEDDATA_EMBEDDED_TYPE
					  : RTYPEDDATA_EMBEDDED_FLAG;
	uint64_t words[RTYPEDDATA_DATA_WORD + 1];

	if (!ruby_is_object(object))
		return -EINVAL;
	if (memory_read(&vm->mem, object, words, sizeof(words)))
		return -EFAULT;
	if (ruby_flags_type(words[0]) != RUBY_T_DATA)
		return -EINVAL;
	*ret = words[RTYPEDDATA_FLAG_WORD] & embedded ? object + RTYPEDDATA_DATA_WORD * 8
						      : words[RTYPEDDATA_DATA_WORD];
	return ruby_is_object(*ret) ? 0 : -EINVAL;
}

/* Unit @i of the symbol table, which is in an Array or a directory. */
static int symbol_unit(const struct ruby_vm *vm, uint64_t ids, uint64_t i, uint64_t *ret)
{
	uint64_t data, dir[RUBY_ID_DIR_WORDS];

	if (ruby_data_of(vm, ids, &data))
		return ruby_array_get(vm, ids, i, ret);
	if (memory_read(&vm->mem, data, dir, sizeof(dir)))
		return -EFAULT;
	if (i >= dir[RUBY_ID_DIR_CAPA])
		return -ENOENT;
	return memory_read_u64(&vm->mem, dir[RUBY_ID_DIR_ENTRIES] + i * 8, ret);
}

/* The String of a symbol, in a unit of the symbol table; symbol.c get_id_serial_entry(). */
static int unit_string(const struct ruby_vm *vm, uint64_t unit, uint64_t i, uint64_t *ret)
{
	uint64_t data, count;
	int r;

	if (vm->layout.symbol_form == RUBY_SYMBOLS_ARRAY)
		return ruby_array_get(vm, unit, i * RUBY_ID_ENTRY_SIZE, ret);
	r = ruby_data_of(vm, unit, &data);
	if (r)
		return r;
	if (memory_read_u64(&vm->mem, data, &count))
		return -EFAULT;
	if (i >= count)
		return -ENOENT;
	return memory_read_u64(
		&vm->mem, data + RUBY_DARRAY_HEADER + i * RUBY_SYM_ENTRY_BYTES + RUBY_SYM_ENTRY_STR,
		ret);
}

static int serial_string(const struct ruby_vm *vm, uint64_t ids, uint64_t serial, struct buf *out)
{
	uint64_t unit, str;
	int r;

	r = symbol_unit(vm, ids, serial / RUBY_ID_ENTRY_UNIT, &unit);
	if (!r)
		r = unit_string(vm, unit, serial % RUBY_ID_ENTRY_UNIT, &str);
	return r ? r : ruby_string_read(vm, str, out);
}

int ruby_id_name(const struct ruby_vm *vm, uint64_t id, struct buf *out)
{
	uint64_t ids;

	if (!vm->symbols)
		return -ENOENT;
	if (memory_read_u64(&vm->mem, vm->symbols + RUBY_SYMBOLS_IDS, &ids))
		return -EFAULT;
	return serial_string(vm, ids, ruby_id_serial(id), out);
}

bool ruby_symbols_check(const struct ruby_vm *vm, uint64_t symbols)
{
	struct buf name _cleanup_buf_ = BUF_INIT;
	uint64_t ids;

	return symbols && !memory_read_u64(&vm->mem, symbols + RUBY_SYMBOLS_IDS, &ids) &&
	       !serial_string(vm, ids, '!', &name) && !strcmp(buf_str(&name), "!");
}
