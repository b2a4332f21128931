/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Offsets that are the same in all versions stand here as constants; those that differ are in the
 * layout row. Sources: include/ruby/internal/core/rstring.h, rarray.h, internal/class.h, st.h,
 * symbol.c.
 */
#include "ruby/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "ruby/vm.h"

#define FL_USER1	  (1ul << 13) /* String: NOEMBED; Array: embedded */
#define STR_EMBED_SHIFT	  14
#define STR_EMBED_MASK	  0x1ful
#define ARRAY_HEAP_PTR	  32
#define ARRAY_EMBED	  16
#define ARRAY_EMBED_SHIFT 15
#define ARRAY_EMBED_MASK  0x7ful
#define ID_SCOPE_SHIFT	  4
/*
 * IDs of operators are their own serial, the others carry a scope in their low bits. tLAST_OP_ID is
 * 168 to 171, and so the first of the others is beyond 171 << 4: anything between them tells the
 * two apart.
 */
#define ID_LAST_OP	  1000
#define ID_ENTRY_UNIT	  512 /* symbol.c */
#define SYMBOLS_IDS	  16  /* rb_symbols_t.ids */
#define DATA_PTR	  32  /* RTypedData.data; RUBY_SYMBOLS_DATA */
#define DATA_UNIT_HEADER  16  /* rb_darray_meta_t */

static int read_string_bytes(const struct ruby_vm *vm, uint64_t addr, uint64_t len, struct buf *out)
{
	_cleanup_free_ char *bytes = NULL;

	if (len > RUBY_STRING_MAX)
		len = RUBY_STRING_MAX;
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

int ruby_string_read(const struct ruby_vm *vm, uint64_t value, struct buf *out)
{
	uint64_t w[4]; /* flags, klass, +16, +24 */

	if (!ruby_is_object(value))
		return -EINVAL;
	if (memory_read(&vm->mem, value, w, sizeof(w)))
		return -EFAULT;
	if (ruby_flags_type(w[0]) != RUBY_T_STRING)
		return -EINVAL;
	if (w[0] & FL_USER1)
		return read_string_bytes(vm, w[3], w[2], out);
	if (vm->layout.string_embed == 16)
		return read_string_bytes(vm, value + 16, w[0] >> STR_EMBED_SHIFT & STR_EMBED_MASK,
					 out);
	return read_string_bytes(vm, value + vm->layout.string_embed, w[2], out);
}

int ruby_array_get(const struct ruby_vm *vm, uint64_t value, uint64_t i, uint64_t *ret)
{
	uint64_t w[5]; /* flags, klass, +16 len, +24 capa, +32 ptr */

	if (!ruby_is_object(value))
		return -EINVAL;
	if (memory_read(&vm->mem, value, w, sizeof(w)))
		return -EFAULT;
	if (ruby_flags_type(w[0]) != RUBY_T_ARRAY)
		return -EINVAL;
	if (i >= (w[0] & FL_USER1 ? w[0] >> ARRAY_EMBED_SHIFT & ARRAY_EMBED_MASK : w[2]))
		return -ENOENT;
	if (w[0] & FL_USER1)
		return memory_read_u64(&vm->mem, value + ARRAY_EMBED + i * 8, ret);
	return memory_read_u64(&vm->mem, w[4] + i * 8, ret);
}

/* The String of a symbol, in a unit of the symbol table; symbol.c get_id_serial_entry(). */
static int unit_string(const struct ruby_vm *vm, uint64_t unit, uint64_t i, uint64_t *ret)
{
	uint64_t flags, data, count;

	if (vm->layout.symbol_form == RUBY_SYMBOLS_ARRAY)
		return ruby_array_get(vm, unit, i * 2, ret);
	if (!ruby_is_object(unit) || memory_read_u64(&vm->mem, unit, &flags) ||
	    ruby_flags_type(flags) != RUBY_T_DATA)
		return -EINVAL;
	if (memory_read_u64(&vm->mem, unit + DATA_PTR, &data) ||
	    memory_read_u64(&vm->mem, data, &count))
		return -EFAULT;
	if (i >= count)
		return -ENOENT;
	return memory_read_u64(&vm->mem, data + DATA_UNIT_HEADER + i * 16 + 8, ret);
}

static int serial_string(const struct ruby_vm *vm, uint64_t ids, uint64_t serial, struct buf *out)
{
	uint64_t unit, str;
	int r;

	r = ruby_array_get(vm, ids, serial / ID_ENTRY_UNIT, &unit);
	if (!r)
		r = unit_string(vm, unit, serial % ID_ENTRY_UNIT, &str);
	return r ? r : ruby_string_read(vm, str, out);
}

int ruby_id_name(const struct ruby_vm *vm, uint64_t id, struct buf *out)
{
	uint64_t serial = id > ID_LAST_OP ? id >> ID_SCOPE_SHIFT : id;
	uint64_t ids;

	if (!vm->symbols)
		return -ENOENT;
	if (memory_read_u64(&vm->mem, vm->symbols + SYMBOLS_IDS, &ids))
		return -EFAULT;
	return serial_string(vm, ids, serial, out);
}

bool ruby_symbols_check(const struct ruby_vm *vm, uint64_t symbols)
{
	struct buf name _cleanup_buf_ = BUF_INIT;
	uint64_t ids;

	return symbols && !memory_read_u64(&vm->mem, symbols + SYMBOLS_IDS, &ids) &&
	       !serial_string(vm, ids, '!', &name) && !strcmp(buf_str(&name), "!");
}
