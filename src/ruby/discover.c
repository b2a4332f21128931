/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/discover.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "ruby/code.h"
#include "ruby/layout_dwarf.h"
#include "ruby/search.h"
#include "ruby/vm.h"

#define F(member) RUBY_FIELD_##member

/* Facts without which there is no stack, or no name. */
static const enum ruby_field needed[] = {
	F(ec_thread_ptr), F(th_ec),	  F(cf_size),	    F(lineno_size), F(insns_body),
	F(insns_size),	  F(insns_index), F(insn_entry),    F(parent_iseq), F(local_iseq),
	F(string_embed),  F(class_form),  F(singleton_bit), F(symbol_form),
};

/* … and, where classes keep names in members of their own. */
static const enum ruby_field needed_ext[] = { F(class_path), F(class_permanent),
					      F(class_attached) };

static bool knows_anything(const struct ruby_layout *l)
{
	size_t i;

	for (i = 0; i < RUBY_FIELDS; i++)
		if (ruby_layout_get(l, i) != RUBY_UNKNOWN)
			return true;
	return false;
}

static void ask_code(const struct ruby_vm *vm, uint64_t tp, struct ruby_findings *ret)
{
	struct ruby_code code;

	ruby_code_read(&vm->mem, &vm->binary, tp, &code);
	ret->layout[RUBY_FROM_CODE] = code.layout;
	ret->current_vm = code.current_vm;
	ret->symbols = code.symbols;
}

static void ask_dwarf(const struct ruby_vm *vm, struct ruby_findings *ret)
{
	_cleanup_close_ int fd = ruby_binary_open(vm->pid, &vm->binary);

	if (fd >= 0)
		ruby_layout_dwarf(vm->worker, vm->pid, fd, &vm->binary,
				  &ret->layout[RUBY_FROM_DWARF], ret->dwarf_file,
				  sizeof(ret->dwarf_file));
}

static void ask_search(const struct ruby_vm *vm, const uint64_t *ecs, size_t n,
		       struct ruby_findings *ret)
{
	struct ruby_search search;

	ruby_search(&vm->mem, &vm->binary, ecs, n, &search);
	ret->layout[RUBY_FROM_SEARCH] = search.layout;
	if (!ret->symbols)
		ret->symbols = search.symbols;
}

void ruby_discover(const struct ruby_vm *vm, unsigned int sources, uint64_t tp, const uint64_t *ecs,
		   size_t n, struct ruby_findings *ret)
{
	size_t i;

	*ret = (struct ruby_findings) { 0 };
	for (i = 0; i < RUBY_SOURCES; i++)
		ruby_layout_init(&ret->layout[i]);
	if (sources & 1 << RUBY_FROM_CODE)
		ask_code(vm, tp, ret);
	/* A file that names a variable is surer than what its code was seen to do. */
	if (vm->binary.symbol[RUBY_SYM_ruby_current_vm_ptr])
		ret->current_vm = vm->binary.symbol[RUBY_SYM_ruby_current_vm_ptr];
	if (vm->binary.symbol[RUBY_SYM_ruby_global_symbols])
		ret->symbols = vm->binary.symbol[RUBY_SYM_ruby_global_symbols];
	if (sources & 1 << RUBY_FROM_DWARF)
		ask_dwarf(vm, ret);
	if (sources & 1 << RUBY_FROM_TABLE &&
	    ruby_layout_table(vm->binary.version, &ret->layout[RUBY_FROM_TABLE]))
		ruby_layout_init(&ret->layout[RUBY_FROM_TABLE]);
	if (sources & 1 << RUBY_FROM_SEARCH)
		ask_search(vm, ecs, n, ret);
	for (i = 0; i < RUBY_SOURCES; i++)
		ret->known[i] = knows_anything(&ret->layout[i]);
}

static enum ruby_field first_unknown(const struct ruby_layout *l, const enum ruby_field *fields,
				     size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (ruby_layout_get(l, fields[i]) == RUBY_UNKNOWN)
			return fields[i];
	return RUBY_FIELDS;
}

int ruby_layout_merge(struct ruby_vm *vm, const struct ruby_findings *found, unsigned int sources,
		      struct err *err)
{
	struct ruby_layout *l = &vm->layout;
	enum ruby_field missing;
	unsigned int source;
	size_t i;

	ruby_layout_init(l);
	for (i = 0; i < RUBY_FIELDS; i++) {
		for (source = 0; source < RUBY_SOURCES; source++) {
			uint16_t value = ruby_layout_get(&found->layout[source], i);

			if (!(sources & 1u << source) || value == RUBY_UNKNOWN)
				continue;
			*ruby_layout_at(l, i) = value;
			vm->source[i] = (uint8_t)source;
			break;
		}
	}
	missing = first_unknown(l, needed, ARRAY_SIZE(needed));
	if (missing == RUBY_FIELDS && l->class_form == RUBY_CLASS_EXT)
		missing = first_unknown(l, needed_ext, ARRAY_SIZE(needed_ext));
	if (missing == RUBY_FIELDS)
		return 0;
	return err_set(err, -EPROTO, ERR_TARGET,
		       "cannot find out the memory layout of Ruby %s: '%s' is unknown",
		       vm->binary.version, ruby_field_info[missing].name);
}

/* Which sources to believe, in this order. */
static const unsigned int attempts[] = {
	RUBY_ALL_SOURCES,
	RUBY_ALL_SOURCES & ~(1u << RUBY_FROM_CODE),
	RUBY_ALL_SOURCES & ~(1u << RUBY_FROM_TABLE),
	1u << RUBY_FROM_CODE | 1u << RUBY_FROM_SEARCH,
	1u << RUBY_FROM_TABLE | 1u << RUBY_FROM_SEARCH,
	1u << RUBY_FROM_SEARCH,
};

int ruby_layout_settle(struct ruby_vm *vm, const struct ruby_findings *found, unsigned int sources,
		       int (*prove)(struct ruby_vm *vm, void *arg, struct err *err), void *arg,
		       struct err *err)
{
	struct ruby_vm_check checks[RUBY_VM_CHECKS];
	size_t i, n_checks = vm->n_checks, n_failed = 0;
	int r = -EPROTO;

	for (i = 0; i < ARRAY_SIZE(attempts) && r == -EPROTO; i++) {
		struct err *first = i ? NULL : err;

		vm->n_checks = n_checks;
		r = ruby_layout_merge(vm, found, attempts[i] & sources, first);
		if (!r)
			r = prove(vm, arg, first);
		if (i)
			continue;
		/* If all fail, what failed first is what there is to say. */
		memcpy(checks, vm->checks, sizeof(checks));
		n_failed = vm->n_checks;
	}
	if (r == -EPROTO) {
		memcpy(vm->checks, checks, sizeof(checks));
		vm->n_checks = n_failed;
	}
	return r;
}
