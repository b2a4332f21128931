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
#define CLASS_EXT_PTR	  24 /* RUBY_CLASS_IV_TBL */
#define EXT_IV_TBL	  8
#define ST_ENTRIES_BOUND  40
#define ST_ENTRIES	  48
#define ST_MAX_ENTRIES	  65536u /* instance variables of one class: far beyond any program */
#define ST_DELETED	  (~0ull)
#define ID_SCOPE_SHIFT	  4
#define ID_ENTRY_UNIT	  512 /* symbol.c */
#define SYMBOLS_IDS	  16  /* rb_symbols_t.ids */
#define SYMBOLS_BYTES	  24

struct st_entry {
	uint64_t hash, key, record;
};

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
	if (vm->layout->string_len_in_flags)
		return read_string_bytes(vm, value + 16, w[0] >> STR_EMBED_SHIFT & STR_EMBED_MASK,
					 out);
	return read_string_bytes(vm, value + 24, w[2], out);
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

/* Call @match for each entry of the instance variable table of @klass until it returns true. */
static int iv_tbl_each(const struct ruby_vm *vm, uint64_t klass,
		       bool (*match)(const struct ruby_vm *vm, const struct st_entry *e, void *arg),
		       void *arg)
{
	struct st_entry entries[32];
	uint64_t ext, tbl, st[2]; /* entries_bound, entries */
	uint64_t i, k, n;

	if (memory_read_u64(&vm->mem, klass + CLASS_EXT_PTR, &ext) ||
	    memory_read_u64(&vm->mem, ext + EXT_IV_TBL, &tbl))
		return -EFAULT;
	if (!tbl)
		return -ENOENT;
	if (memory_read(&vm->mem, tbl + ST_ENTRIES_BOUND, st, sizeof(st)))
		return -EFAULT;
	for (i = 0; i < st[0] && i < ST_MAX_ENTRIES; i += n) {
		n = st[0] - i < ARRAY_SIZE(entries) ? st[0] - i : ARRAY_SIZE(entries);
		if (memory_read(&vm->mem, st[1] + i * sizeof(*entries), entries,
				n * sizeof(*entries)))
			return -EFAULT;
		for (k = 0; k < n; k++)
			if (entries[k].hash != ST_DELETED && match(vm, &entries[k], arg))
				return 0;
	}
	return -ENOENT;
}

struct key_match {
	uint64_t key;
	uint64_t record;
};

static bool match_key(const struct ruby_vm *vm, const struct st_entry *e, void *arg)
{
	struct key_match *m = arg;

	(void)vm;
	if (e->key != m->key)
		return false;
	m->record = e->record;
	return true;
}

static int iv_get(const struct ruby_vm *vm, uint64_t klass, uint64_t key, uint64_t *ret)
{
	struct key_match m = { .key = key };
	int r = iv_tbl_each(vm, klass, match_key, &m);

	if (!r)
		*ret = m.record;
	return r;
}

static bool match_name_object(const struct ruby_vm *vm, const struct st_entry *e, void *arg)
{
	struct buf name _cleanup_buf_ = BUF_INIT;

	if (ruby_string_read(vm, e->record, &name) || strcmp(buf_str(&name), "Object"))
		return false;
	((struct key_match *)arg)->key = e->key;
	return true;
}

static bool match_record(const struct ruby_vm *vm, const struct st_entry *e, void *arg)
{
	struct key_match *m = arg;

	(void)vm;
	if (e->record != m->record)
		return false;
	m->key = e->key;
	return true;
}

int ruby_class_keys_learn(const struct ruby_vm *vm, uint64_t object, uint64_t *classpath,
			  uint64_t *attached)
{
	struct key_match name = { 0 }, self = { .record = object };
	uint64_t singleton;
	int r;

	r = iv_tbl_each(vm, object, match_name_object, &name);
	if (r)
		return r;
	r = memory_read_u64(&vm->mem, object + 8, &singleton); /* RBasic.klass */
	if (!r)
		r = iv_tbl_each(vm, singleton, match_record, &self);
	if (r)
		return r;
	*classpath = name.key;
	*attached = self.key;
	return 0;
}

int ruby_class_name(const struct ruby_vm *vm, uint64_t klass, struct buf *out)
{
	const struct ruby_layout *l = vm->layout;
	uint64_t path;
	uint8_t permanent;
	int r;

	if (l->class_form == RUBY_CLASS_IV_TBL) {
		r = iv_get(vm, klass, vm->key_classpath, &path);
		return r ? r : ruby_string_read(vm, path, out);
	}
	if (memory_read_u64(&vm->mem, klass + l->class_path, &path) ||
	    memory_read(&vm->mem, klass + l->class_permanent, &permanent, 1))
		return -EFAULT;
	if (!path || path == l->qnil || !(permanent & 1))
		return -ENOENT;
	return ruby_string_read(vm, path, out);
}

/* Append "NAME" and @sep if @klass is a class or module with a permanent name. */
static int named_prefix(const struct ruby_vm *vm, uint64_t klass, char sep, struct buf *out)
{
	int r = ruby_class_name(vm, klass, out);

	if (!r)
		buf_addch(out, sep);
	return r == -ENOENT ? 0 : r;
}

static int read_flags(const struct ruby_vm *vm, uint64_t value, uint64_t *flags)
{
	if (!ruby_is_object(value))
		return -EINVAL;
	return memory_read_u64(&vm->mem, value, flags);
}

static bool is_class_or_module(uint64_t flags)
{
	return ruby_flags_type(flags) == RUBY_T_CLASS || ruby_flags_type(flags) == RUBY_T_MODULE;
}

int ruby_owner_prefix(const struct ruby_vm *vm, uint64_t owner, struct buf *out)
{
	uint64_t flags, attached;
	int r;

	r = read_flags(vm, owner, &flags);
	if (r)
		return r;
	if (!is_class_or_module(flags))
		return -EINVAL;
	if (ruby_flags_type(flags) == RUBY_T_MODULE || !(flags & vm->layout->singleton_flag))
		return named_prefix(vm, owner, '#', out);

	if (vm->layout->class_form == RUBY_CLASS_IV_TBL)
		r = iv_get(vm, owner, vm->key_attached, &attached);
	else
		r = memory_read_u64(&vm->mem, owner + vm->layout->class_attached, &attached);
	if (r)
		return r;
	/* The singleton of an object that is no class says nothing: Ruby prints the plain name. */
	if (read_flags(vm, attached, &flags) || !is_class_or_module(flags))
		return 0;
	return named_prefix(vm, attached, '.', out);
}

static int serial_string(const struct ruby_vm *vm, uint64_t ids, uint64_t serial, struct buf *out)
{
	uint64_t unit, str;
	int r;

	r = ruby_array_get(vm, ids, serial / ID_ENTRY_UNIT, &unit);
	if (!r)
		r = ruby_array_get(vm, unit, serial % ID_ENTRY_UNIT * 2, &str);
	return r ? r : ruby_string_read(vm, str, out);
}

int ruby_id_name(const struct ruby_vm *vm, uint64_t id, struct buf *out)
{
	uint64_t serial = id > vm->layout->last_op_id ? id >> ID_SCOPE_SHIFT : id;
	uint64_t ids;

	if (!vm->symbols)
		return -ENOENT;
	if (memory_read_u64(&vm->mem, vm->symbols + SYMBOLS_IDS, &ids))
		return -EFAULT;
	return serial_string(vm, ids, serial, out);
}

int ruby_symbols_search(const struct ruby_vm *vm, uint64_t lo, uint64_t hi, uint64_t *ret)
{
	_cleanup_free_ uint64_t *words = NULL;
	size_t i, n = (hi - lo) / 8;

	if (hi <= lo || hi - lo > (16u << 20))
		return -ENOENT;
	words = malloc(n * 8);
	if (!words)
		return -ENOMEM;
	n = memory_read_some(&vm->mem, lo, words, n * 8) / 8;
	for (i = 0; i + SYMBOLS_BYTES / 8 <= n; i++) {
		struct buf name _cleanup_buf_ = BUF_INIT;
		uint32_t last_id = (uint32_t)words[i];

		if (last_id < 200 || last_id > (1u << 28) || !ruby_is_object(words[i + 1]) ||
		    !ruby_is_object(words[i + 2]))
			continue;
		if (serial_string(vm, words[i + 2], '!', &name) || strcmp(buf_str(&name), "!"))
			continue;
		*ret = lo + i * 8;
		return 0;
	}
	return -ENOENT;
}
