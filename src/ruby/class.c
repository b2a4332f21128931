/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/class.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "ruby/object.h"
#include "ruby/structs.h"
#include "ruby/vm.h"

#define ST_MAX_ENTRIES	65536u /* instance variables of one class: far beyond any program */
#define SHAPE_MAX_DEPTH 4096
#define VM_BYTES	9600 /* sizeof(rb_vm_t), and a little more: what is searched for the shapes */

/* Called for each instance variable of a class, until it returns true. */
typedef bool (*ivar_match)(const struct ruby_vm *vm, uint64_t key, uint64_t value, void *arg);

static int each_in_iv_tbl(const struct ruby_vm *vm, uint64_t klass, ivar_match match, void *arg)
{
	struct ruby_st_entry entries[32];
	uint64_t ext, tbl, st[2]; /* entries_bound, entries */
	uint64_t i, k, n;

	if (memory_read_u64(&vm->mem, klass + RCLASS_PTR_WORD * 8, &ext) ||
	    memory_read_u64(&vm->mem, ext + RCLASSEXT_IV_TBL, &tbl))
		return -EFAULT;
	if (!tbl)
		return -ENOENT;
	if (memory_read(&vm->mem, tbl + RUBY_ST_BOUND, st, sizeof(st)))
		return -EFAULT;
	for (i = 0; i < st[0] && i < ST_MAX_ENTRIES; i += n) {
		n = st[0] - i < ARRAY_SIZE(entries) ? st[0] - i : ARRAY_SIZE(entries);
		if (memory_read(&vm->mem, st[1] + i * sizeof(*entries), entries,
				n * sizeof(*entries)))
			return -EFAULT;
		for (k = 0; k < n; k++)
			if (entries[k].hash != RUBY_ST_DELETED &&
			    match(vm, entries[k].key, entries[k].record, arg))
				return 0;
	}
	return -ENOENT;
}

static int each_in_slots(const struct ruby_vm *vm, uint64_t klass, ivar_match match, void *arg)
{
	uint64_t flags, slots, value;
	struct ruby_shape shape;
	unsigned int depth;
	uint32_t id;

	if (memory_read_u64(&vm->mem, klass, &flags) ||
	    memory_read_u64(&vm->mem, klass + RCLASS_IV_PTR_WORD * 8, &slots))
		return -EFAULT;
	id = (uint32_t)(flags >> RUBY_SHAPE_ID_SHIFT);
	for (depth = 0; id && depth < SHAPE_MAX_DEPTH; depth++, id = shape.parent) {
		if (memory_read(&vm->mem, vm->class_keys.shapes + id * sizeof(shape), &shape,
				sizeof(shape)))
			return -EFAULT;
		if (shape.type != RUBY_SHAPE_IVAR || !shape.next_iv_index)
			continue;
		if (memory_read_u64(&vm->mem, slots + (shape.next_iv_index - 1) * 8ull, &value))
			return -EFAULT;
		if (match(vm, shape.edge_name, value, arg))
			return 0;
	}
	return -ENOENT;
}

static int each_ivar(const struct ruby_vm *vm, uint64_t klass, ivar_match match, void *arg)
{
	return vm->layout.class_form == RUBY_CLASS_IV_TBL ? each_in_iv_tbl(vm, klass, match, arg)
							  : each_in_slots(vm, klass, match, arg);
}

struct ivar {
	uint64_t key;
	uint64_t value;
};

static bool match_key(const struct ruby_vm *vm, uint64_t key, uint64_t value, void *arg)
{
	struct ivar *ivar = arg;

	(void)vm;
	if (key != ivar->key)
		return false;
	ivar->value = value;
	return true;
}

static int ivar_get(const struct ruby_vm *vm, uint64_t klass, uint64_t key, uint64_t *ret)
{
	struct ivar ivar = { .key = key };
	int r = each_ivar(vm, klass, match_key, &ivar);

	if (!r)
		*ret = ivar.value;
	return r;
}

static bool match_name_object(const struct ruby_vm *vm, uint64_t key, uint64_t value, void *arg)
{
	struct buf name _cleanup_buf_ = BUF_INIT;

	if (ruby_string_read(vm, value, &name) || strcmp(buf_str(&name), "Object"))
		return false;
	((struct ivar *)arg)->key = key;
	return true;
}

static bool match_value(const struct ruby_vm *vm, uint64_t key, uint64_t value, void *arg)
{
	struct ivar *ivar = arg;

	(void)vm;
	if (value != ivar->value)
		return false;
	ivar->key = key;
	return true;
}

static int learn_keys(struct ruby_vm *vm, uint64_t object)
{
	struct ivar name = { 0 }, self = { .value = object };
	uint64_t singleton;
	int r;

	r = each_ivar(vm, object, match_name_object, &name);
	if (!r)
		r = memory_read_u64(&vm->mem, object + RBASIC_KLASS_WORD * 8, &singleton);
	if (!r)
		r = each_ivar(vm, singleton, match_value, &self);
	if (r)
		return r;
	vm->class_keys.classpath = name.key;
	vm->class_keys.attached = self.key;
	return 0;
}

int ruby_class_keys_learn(struct ruby_vm *vm, uint64_t object, uint64_t vm_addr)
{
	uint64_t words[VM_BYTES / 8];
	size_t i, n;

	if (vm->layout.class_form == RUBY_CLASS_IV_TBL)
		return learn_keys(vm, object);
	/* vm->shape_list is the word with which Object's variables turn out to be what they are. */
	n = memory_read_some(&vm->mem, vm_addr, words, sizeof(words)) / 8;
	for (i = 0; i < n; i++) {
		vm->class_keys.shapes = words[i];
		if (ruby_is_object(words[i]) && !learn_keys(vm, object))
			return 0;
	}
	vm->class_keys.shapes = 0;
	return -ENOENT;
}

size_t ruby_class_size(const struct ruby_layout *l)
{
	size_t last;

	if (l->class_form == RUBY_CLASS_IV_TBL)
		return (RCLASS_PTR_WORD + 1) * 8;
	if (l->class_form == RUBY_CLASS_IV_SLOTS)
		return (RCLASS_IV_PTR_WORD + 1) * 8;
	last = l->class_path > l->class_attached ? l->class_path : l->class_attached;
	return (last > l->class_permanent ? last : l->class_permanent) / 8u * 8u + 8u;
}

int ruby_class_name(const struct ruby_vm *vm, uint64_t klass, struct buf *out)
{
	const struct ruby_layout *l = &vm->layout;
	uint64_t path;
	uint8_t permanent;
	int r;

	if (l->class_form != RUBY_CLASS_EXT) {
		r = ivar_get(vm, klass, vm->class_keys.classpath, &path);
		return r ? r : ruby_string_read(vm, path, out);
	}
	if (memory_read_u64(&vm->mem, klass + l->class_path, &path) ||
	    memory_read(&vm->mem, klass + l->class_permanent, &permanent, 1))
		return -EFAULT;
	if (!ruby_is_object(path) || !(permanent & 1)) /* 0 or nil: never named */
		return -ENOENT;
	return ruby_string_read(vm, path, out);
}

#define SUPER_WORDS 6  /* it is before this one */
#define SUPER_DEPTH 64 /* with modules that Object, Module and Class are extended by */

uint32_t ruby_class_super_word(const struct ruby_vm *vm)
{
	uint64_t object, singleton, klass;
	uint32_t word, i;

	if (memory_read_u64(&vm->mem, vm->binary.symbol[RUBY_SYM_rb_cObject], &object) ||
	    memory_read_u64(&vm->mem, object + RBASIC_KLASS_WORD * 8, &singleton))
		return 0;
	for (word = RBASIC_BYTES / 8; word < SUPER_WORDS; word++) {
		klass = singleton;
		for (i = 0; i < SUPER_DEPTH && ruby_is_object(klass); i++) {
			if (memory_read_u64(&vm->mem, klass + word * 8, &klass))
				break;
			if (klass == object)
				return word;
		}
	}
	return 0;
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
	if (ruby_flags_type(flags) == RUBY_T_MODULE || !(flags >> vm->layout.singleton_bit & 1))
		return named_prefix(vm, owner, '#', out);

	if (vm->layout.class_form != RUBY_CLASS_EXT)
		r = ivar_get(vm, owner, vm->class_keys.attached, &attached);
	else
		r = memory_read_u64(&vm->mem, owner + vm->layout.class_attached, &attached);
	if (r)
		return r;
	/* The singleton of an object that is no class says nothing: Ruby prints the plain name. */
	if (read_flags(vm, attached, &flags) || !is_class_or_module(flags))
		return 0;
	return named_prefix(vm, attached, '.', out);
}
