/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/method.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "ruby/class.h"
#include "ruby/object.h"
#include "ruby/vm.h"
#include "target/memory.h"

/*
 * rb_method_definition_t.type, the low bits of its flags, and what its body begins with; method.h
 */
#define DEF_TYPE_MASK	     0xful
#define VM_METHOD_TYPE_ISEQ  0ul /* the iseq */
#define VM_METHOD_TYPE_CFUNC 1ul /* the address of the function */

static bool is_ment(uint64_t flags)
{
	return (flags & RUBY_IMEMO_MASK) == RUBY_IMEMO_MENT;
}

/* Up to and with RClass.ptr (up to 3.1) or iv_ptr (3.2), through which a class has its name. */
static size_t owner_words_old(const struct ruby_layout *l)
{
	return (l->class_form == RUBY_CLASS_IV_TBL ? RCLASS_PTR_WORD : RCLASS_IV_PTR_WORD) + 1;
}

/* As much of a class as tells it from another one that later stands at its address. */
static size_t owner_size(const struct ruby_vm *vm)
{
	const struct ruby_layout *l = &vm->layout;

	if (l->class_form != RUBY_CLASS_EXT)
		return owner_words_old(l) * 8;
	return (l->class_path > l->class_attached ? l->class_path : l->class_attached) + 8u;
}

/* As much of a definition as is used. */
static size_t def_size(const struct ruby_vm *vm)
{
	return vm->layout.original_id + 8u;
}

static uint64_t original_id(const struct ruby_vm *vm, const struct ruby_method_id *id)
{
	return id->def[vm->layout.original_id / 8];
}

int ruby_method_read_pieces(const struct ruby_vm *vm, uint64_t addr, bool with_name,
			    struct ruby_method *ret)
{
	struct buf prefix _cleanup_buf_ = BUF_INIT, name _cleanup_buf_ = BUF_INIT;
	struct ruby_method m = { .addr = addr };
	int r, named = 0;

	if (!ruby_is_object(addr) || memory_read(&vm->mem, addr, m.id.me, sizeof(m.id.me)))
		return -EFAULT;
	if (!is_ment(m.id.me[RUBY_ME_FLAGS]))
		return -EINVAL;
	memory_expect(&vm->mem, m.id.me[RUBY_ME_OWNER], owner_size(vm));
	if (memory_read(&vm->mem, m.id.me[RUBY_ME_DEF], m.id.def, def_size(vm)) ||
	    memory_read(&vm->mem, m.id.me[RUBY_ME_OWNER], m.id.owner, owner_size(vm)))
		return -EFAULT;
	r = ruby_owner_prefix(vm, m.id.me[RUBY_ME_OWNER], &prefix);
	/* Both, so that what both miss is read at once. */
	if (with_name && (!r || vm->mem.gathered))
		named = ruby_id_name(vm, original_id(vm, &m.id), &name);
	if (r || named)
		return r ? r : named;
	m.prefix = strdup(buf_str(&prefix));
	if (with_name)
		m.name = strdup(buf_str(&name));
	if (!m.prefix || (with_name && !m.name)) {
		ruby_method_deinit(&m);
		return -ENOMEM;
	}
	*ret = m;
	return 0;
}

int ruby_method_read(const struct ruby_vm *vm, uint64_t addr, bool with_name,
		     struct ruby_method *ret)
{
	struct memory_span spans[RUBY_METHOD_SPANS];
	struct ruby_method_id again;
	struct ruby_method m;
	int r;

	r = ruby_method_read_pieces(vm, addr, with_name, &m);
	if (r)
		return r;
	ruby_method_check_spans(vm, &m, &again, spans);
	memory_read_spans(&vm->mem, spans, RUBY_METHOD_SPANS);
	if (!spans[0].ok || !spans[1].ok || !spans[2].ok || !ruby_method_check(vm, &m, &again)) {
		ruby_method_deinit(&m);
		return -EINVAL;
	}
	*ret = m;
	return 0;
}

size_t ruby_method_bytes(const struct ruby_method *m)
{
	return (m->prefix ? strlen(m->prefix) + 1 : 0) + (m->name ? strlen(m->name) + 1 : 0);
}

void ruby_method_deinit(struct ruby_method *m)
{
	free(m->prefix);
	free(m->name);
	*m = (struct ruby_method) { 0 };
}

uint64_t ruby_method_words_check(const struct ruby_method *m, uint64_t check)
{
	return rbpf_check_me(check, m->id.me[RUBY_ME_DEF], m->id.me[RUBY_ME_CALLED_ID],
			     m->id.me[RUBY_ME_OWNER]);
}

uint64_t ruby_method_original_id(const struct ruby_vm *vm, const struct ruby_method *m)
{
	return original_id(vm, &m->id);
}

bool ruby_method_has_iseq(const struct ruby_method *m)
{
	return (m->id.def[RUBY_DEF_FLAGS] & DEF_TYPE_MASK) == VM_METHOD_TYPE_ISEQ;
}

bool ruby_method_is_of(const struct ruby_method *m, uint64_t iseq)
{
	return ruby_method_has_iseq(m) && m->id.def[RUBY_DEF_BODY] == iseq;
}

uint64_t ruby_method_function(const struct ruby_method *m)
{
	return (m->id.def[RUBY_DEF_FLAGS] & DEF_TYPE_MASK) == VM_METHOD_TYPE_CFUNC
		       ? m->id.def[RUBY_DEF_BODY]
		       : 0;
}

void ruby_method_check_spans(const struct ruby_vm *vm, const struct ruby_method *m,
			     struct ruby_method_id *fresh, struct memory_span *spans)
{
	spans[0] = (struct memory_span) { .addr = m->addr,
					  .dst = fresh->me,
					  .len = sizeof(fresh->me) };
	spans[1] = (struct memory_span) { .addr = m->id.me[RUBY_ME_DEF],
					  .dst = fresh->def,
					  .len = def_size(vm) };
	spans[2] = (struct memory_span) { .addr = m->id.me[RUBY_ME_OWNER],
					  .dst = fresh->owner,
					  .len = owner_size(vm) };
}

bool ruby_method_check(const struct ruby_vm *vm, const struct ruby_method *m,
		       const struct ruby_method_id *fresh)
{
	const struct ruby_layout *l = &vm->layout;
	bool ext = l->class_form == RUBY_CLASS_EXT;
	/* The name and the attached object, or what they are found through. */
	size_t path = ext ? l->class_path / 8u : owner_words_old(l) - 1;
	size_t attached = ext ? l->class_attached / 8u : path;

	return is_ment(fresh->me[RUBY_ME_FLAGS]) &&
	       fresh->me[RUBY_ME_DEF] == m->id.me[RUBY_ME_DEF] &&
	       fresh->me[RUBY_ME_CALLED_ID] == m->id.me[RUBY_ME_CALLED_ID] &&
	       fresh->me[RUBY_ME_OWNER] == m->id.me[RUBY_ME_OWNER] &&
	       original_id(vm, fresh) == original_id(vm, &m->id) &&
	       ruby_flags_type(fresh->owner[0]) == ruby_flags_type(m->id.owner[0]) &&
	       fresh->owner[path] == m->id.owner[path] &&
	       fresh->owner[attached] == m->id.owner[attached];
}
