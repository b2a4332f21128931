/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/discover.h"

#include <errno.h>
#include <stdio.h>
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
	F(ec_thread_ptr), F(th_ec),	  F(cf_size),	    F(lineno_size),
	F(iseq_location), F(insns_body),  F(insns_size),    F(insns_index),
	F(insn_entry),	  F(parent_iseq), F(local_iseq),    F(original_id),
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

/* What debug information, or else the table, says of @field. */
static uint16_t of_a_file(const struct ruby_findings *found, enum ruby_field field)
{
	uint16_t value = ruby_layout_get(&found->layout[RUBY_FROM_DWARF], field);

	return value != RUBY_UNKNOWN ? value
				     : ruby_layout_get(&found->layout[RUBY_FROM_TABLE], field);
}

/*
 * Whether the search contradicts what debug information or the table says of @field, and the code
 * does not tell: a patched Ruby, say. *@source is the one that it contradicts.
 */
static bool is_disputed(const struct ruby_findings *found, enum ruby_field field,
			enum ruby_source *source)
{
	uint16_t search = ruby_layout_get(&found->layout[RUBY_FROM_SEARCH], field);
	uint16_t other = of_a_file(found, field);

	*source = other == ruby_layout_get(&found->layout[RUBY_FROM_DWARF], field)
			  ? RUBY_FROM_DWARF
			  : RUBY_FROM_TABLE;
	return search != RUBY_UNKNOWN && other != RUBY_UNKNOWN && search != other &&
	       ruby_layout_get(&found->layout[RUBY_FROM_CODE], field) == RUBY_UNKNOWN;
}

static size_t count_disputed(const struct ruby_findings *found, enum ruby_field *first,
			     enum ruby_source *source)
{
	enum ruby_source other;
	size_t i, n = 0;

	for (i = 0; i < RUBY_FIELDS; i++) {
		if (!is_disputed(found, i, &other))
			continue;
		if (!n++) {
			*first = i;
			*source = other;
		}
	}
	return n;
}

static void ask_search(const struct ruby_vm *vm, const uint64_t *ecs, size_t n,
		       struct ruby_findings *ret)
{
	struct ruby_layout *layout = &ret->layout[RUBY_FROM_SEARCH];
	enum ruby_source source;
	enum ruby_field first;
	struct ruby_search search;
	size_t i;

	ruby_search(&vm->mem, &vm->binary, ecs, n, &search);
	*layout = search.layout;
	if (!ret->symbols)
		ret->symbols = search.symbols;
	if (!count_disputed(ret, &first, &source))
		return;
	/* The process runs on meanwhile: what contradicts must do so twice. */
	ruby_search(&vm->mem, &vm->binary, ecs, n, &search);
	for (i = 0; i < RUBY_FIELDS; i++)
		if (ruby_layout_get(layout, i) != ruby_layout_get(&search.layout, i))
			*ruby_layout_at(layout, i) = RUBY_UNKNOWN;
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

/*
 * Whose word counts first. What the search found it read from this very process; but most of the
 * time all agree, and the others know of more.
 */
static const enum ruby_source by_trust[RUBY_SOURCES] = { RUBY_FROM_CODE, RUBY_FROM_DWARF,
							 RUBY_FROM_TABLE, RUBY_FROM_SEARCH };
static const enum ruby_source by_evidence[RUBY_SOURCES] = { RUBY_FROM_CODE, RUBY_FROM_SEARCH,
							    RUBY_FROM_DWARF, RUBY_FROM_TABLE };

/* Set @field of @vm->layout, and the most trusted source that says so. */
static void choose(struct ruby_vm *vm, const struct ruby_findings *found, unsigned int sources,
		   const enum ruby_source *order, enum ruby_field field)
{
	uint16_t value = RUBY_UNKNOWN;
	size_t i;

	for (i = 0; i < RUBY_SOURCES && value == RUBY_UNKNOWN; i++)
		if (sources & 1u << order[i])
			value = ruby_layout_get(&found->layout[order[i]], field);
	*ruby_layout_at(&vm->layout, field) = value;
	for (i = 0; i < RUBY_SOURCES && value != RUBY_UNKNOWN; i++)
		if (sources & 1u << by_trust[i] &&
		    ruby_layout_get(&found->layout[by_trust[i]], field) == value)
			break;
	if (i < RUBY_SOURCES)
		vm->source[field] = (uint8_t)by_trust[i];
}

/*
 * Members of which a process seldom tells anything (doc/layout.md). Whoever is wrong about another
 * member is not believed about these; but for where the collector is, which patch releases have
 * moved.
 */
static const enum ruby_field seldom_proven[] = {
	F(th_ready),	     F(th_running_time),   F(vm_gvl_queue),
	F(ractor_gvl_queue), F(ractor_gvl_owner),  F(fiber_prev),
	F(jit_entry),	     F(ractor_running_ec), F(vm_lock_owner),
};

static bool is_of_collector(enum ruby_field field)
{
	return field == F(vm_objspace) || field == F(objspace_flags) || field == F(objspace_count);
}

static bool is_contradicted(const struct ruby_vm *vm, const struct ruby_findings *found,
			    enum ruby_source source)
{
	const struct ruby_layout *says = &found->layout[source];
	size_t i;

	for (i = 0; i < RUBY_FIELDS; i++)
		if (!is_of_collector(i) && ruby_layout_get(says, i) != RUBY_UNKNOWN &&
		    ruby_layout_get(says, i) != ruby_layout_get(&vm->layout, i))
			return true;
	return false;
}

static bool is_found_by_search(const struct ruby_vm *vm, const struct ruby_findings *found,
			       enum ruby_field field)
{
	return ruby_layout_get(&found->layout[RUBY_FROM_SEARCH], field) ==
	       ruby_layout_get(&vm->layout, field);
}

static void forget_contradicted(struct ruby_vm *vm, const struct ruby_findings *found)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(seldom_proven); i++) {
		enum ruby_field field = seldom_proven[i];
		enum ruby_source source = vm->source[field];

		if (ruby_layout_has(ruby_layout_get(&vm->layout, field)) &&
		    !is_found_by_search(vm, found, field) &&
		    (source == RUBY_FROM_DWARF || source == RUBY_FROM_TABLE) &&
		    is_contradicted(vm, found, source))
			*ruby_layout_at(&vm->layout, field) = RUBY_UNKNOWN;
	}
}

static int merge(struct ruby_vm *vm, const struct ruby_findings *found, unsigned int sources,
		 const enum ruby_source *order, struct err *err)
{
	struct ruby_layout *l = &vm->layout;
	enum ruby_field missing;
	size_t i;

	for (i = 0; i < RUBY_FIELDS; i++)
		choose(vm, found, sources, order, i);
	forget_contradicted(vm, found);
	missing = first_unknown(l, needed, ARRAY_SIZE(needed));
	if (missing == RUBY_FIELDS && l->class_form == RUBY_CLASS_EXT)
		missing = first_unknown(l, needed_ext, ARRAY_SIZE(needed_ext));
	if (missing == RUBY_FIELDS)
		return 0;
	return err_set(err, -EPROTO, ERR_TARGET,
		       "cannot find out the memory layout of Ruby %s: '%s' is unknown",
		       vm->binary.version, ruby_field_info[missing].name);
}

int ruby_layout_merge(struct ruby_vm *vm, const struct ruby_findings *found, unsigned int sources,
		      struct err *err)
{
	return merge(vm, found, sources, by_trust, err);
}

/* Which sources to believe, in this order. */
static const struct {
	unsigned int sources;
	const enum ruby_source *order;
} attempts[] = {
	{ RUBY_ALL_SOURCES, by_evidence },
	{ RUBY_ALL_SOURCES, by_trust },
	{ RUBY_ALL_SOURCES & ~(1u << RUBY_FROM_CODE), by_trust },
	{ RUBY_ALL_SOURCES & ~(1u << RUBY_FROM_TABLE), by_trust },
	{ 1u << RUBY_FROM_CODE | 1u << RUBY_FROM_SEARCH, by_trust },
	{ 1u << RUBY_FROM_TABLE | 1u << RUBY_FROM_SEARCH, by_trust },
	{ 1u << RUBY_FROM_SEARCH, by_trust },
};

static void say_disputed(struct ruby_vm *vm, const struct ruby_findings *found, bool search_wins)
{
	enum ruby_source source = RUBY_FROM_TABLE;
	enum ruby_field first = 0;
	size_t n = count_disputed(found, &first, &source);
	char more[32] = "";

	if (!n)
		return;
	if (n > 1)
		snprintf(more, sizeof(more), " and %zu more", n - 1);
	ruby_vm_check_add(vm, "sources", true, false, "search contradicts %s at %s%s: %s",
			  ruby_source_name(source), ruby_field_info[first].name, more,
			  search_wins ? "what search found was proven"
				      : "what search found was refuted");
}

int ruby_layout_settle(struct ruby_vm *vm, const struct ruby_findings *found, unsigned int sources,
		       int (*prove)(struct ruby_vm *vm, void *arg, struct err *err), void *arg,
		       struct err *err)
{
	struct ruby_vm_check checks[RUBY_VM_CHECKS];
	size_t i, n_checks = vm->n_checks, n_failed = 0;
	enum ruby_source source;
	enum ruby_field field;
	int r = -EPROTO;

	for (i = 0; i < ARRAY_SIZE(attempts) && r == -EPROTO; i++) {
		struct err *first = i ? NULL : err;

		if (i == 1 && !count_disputed(found, &field, &source))
			continue; /* it would be the same again */
		vm->n_checks = n_checks;
		r = merge(vm, found, attempts[i].sources & sources, attempts[i].order, first);
		if (!r)
			r = prove(vm, arg, first);
		if (!r)
			say_disputed(vm, found, attempts[i].order == by_evidence);
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
