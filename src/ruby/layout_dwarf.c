/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Most facts of layout.h are the offset of a member or the size of a struct, and are asked for as
 * they stand in its list. The others follow from which members and types a Ruby has, never from its
 * version; where these do not fit a form that rbpf knows, the fact stays unknown.
 */
#include "ruby/layout_dwarf.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/array.h"
#include "elf/dwarf.h"
#include "ruby/binary.h"
#include "worker/file_worker.h"

/* What is asked for besides the members in layout.h's list: X(name, type, member). */
#define CLUES(X)                                                                                   \
	X(first_lineno, "rb_iseq_constant_body", "location.first_lineno")                          \
	X(fl_singleton, "ruby_fl_type", "RUBY_FL_SINGLETON")                                       \
	X(class_size, "RClass", NULL)                                                              \
	X(class_ptr, "RClass", "ptr")                                                              \
	X(ext_iv_tbl, "rb_classext_struct", "iv_tbl")                                              \
	X(ext_iv_ptr, "rb_classext_struct", "iv_ptr")                                              \
	X(ext_classpath, "rb_classext_struct", "classpath")                                        \
	/* symbol.c has this enum while units are Arrays, this struct when they are not */         \
	X(id_entry_sym, "id_entry_type", "ID_ENTRY_SYM")                                           \
	X(sym_id_entry_str, "sym_id_entry", "str")

/* Clues stand behind the fields in one array of facts. */
enum clue {
	BEFORE_CLUES = RUBY_FIELDS - 1,
#define X(name, type, member) CLUE_##name,
	CLUES(X)
#undef X
		FACTS
};

static void ask(struct dwarf_fact *facts)
{
	static const struct {
		const char *type;
		const char *member;
	} clues[] = {
#define X(name, type, member) { type, member },
		CLUES(X)
#undef X
	};
	size_t i;

	/* "*" is no type's name, and will not be found. */
	for (i = 0; i < RUBY_FIELDS; i++)
		facts[i] = (struct dwarf_fact) { .type = ruby_field_info[i].type,
						 .member = ruby_field_info[i].member };
	for (; i < FACTS; i++)
		facts[i] = (struct dwarf_fact) { .type = clues[i - RUBY_FIELDS].type,
						 .member = clues[i - RUBY_FIELDS].member };
}

/* ---- from answers to facts ---- */

static bool has(const struct dwarf_fact *fact)
{
	return fact->answer == DWARF_FOUND;
}

static bool has_at(const struct dwarf_fact *fact, uint64_t value)
{
	return has(fact) && fact->value == value;
}

static uint16_t plain_value(const struct dwarf_fact *fact)
{
	if (fact->answer == DWARF_NO_MEMBER)
		return RUBY_ABSENT;
	/*
	 * 0 would mean ABSENT; and the one bitfield, class_permanent, is read as bit 0 of a byte.
	 */
	if (!has(fact) || !fact->value || fact->value >= RUBY_UNKNOWN || fact->bit)
		return RUBY_UNKNOWN;
	return (uint16_t)fact->value;
}

static uint16_t lineno_size(const struct dwarf_fact *facts)
{
	const struct dwarf_fact *lineno = &facts[CLUE_first_lineno];

	return has(lineno) && (lineno->size == 4 || lineno->size == 8) ? (uint16_t)lineno->size
								       : RUBY_UNKNOWN;
}

static uint16_t singleton_bit(const struct dwarf_fact *facts)
{
	const struct dwarf_fact *flag = &facts[CLUE_fl_singleton];

	/* A flag is one bit. */
	if (!has(flag) || !flag->value || flag->value & (flag->value - 1))
		return RUBY_UNKNOWN;
	return (uint16_t)__builtin_ctzll(flag->value);
}

static uint16_t class_form(const struct dwarf_fact *facts)
{
	const struct dwarf_fact *size = &facts[CLUE_class_size], *iv = &facts[CLUE_ext_iv_ptr];

	if (has(&facts[RUBY_FIELD_class_path]))
		return RUBY_CLASS_EXT;
	if (facts[CLUE_ext_classpath].answer != DWARF_NO_MEMBER)
		return RUBY_UNKNOWN;
	if (has_at(&facts[CLUE_class_ptr], RCLASS_PTR_WORD * 8) &&
	    has_at(&facts[CLUE_ext_iv_tbl], RCLASSEXT_IV_TBL))
		return RUBY_CLASS_IV_TBL;
	/* The rb_classext_struct stands behind the RClass. */
	if (facts[CLUE_class_ptr].answer == DWARF_NO_MEMBER && has(size) && has(iv) &&
	    size->value + iv->value == RCLASS_IV_PTR_WORD * 8)
		return RUBY_CLASS_IV_SLOTS;
	return RUBY_UNKNOWN;
}

static uint16_t symbol_form(const struct dwarf_fact *facts)
{
	if (has_at(&facts[CLUE_sym_id_entry_str], RUBY_SYM_ENTRY_STR))
		return RUBY_SYMBOLS_DATA;
	return has_at(&facts[CLUE_id_entry_sym], 1) ? RUBY_SYMBOLS_ARRAY : RUBY_UNKNOWN;
}

/* Members of structs that this Ruby does not have, or that mean something else in it. */
static void set_absent(struct ruby_layout *l)
{
	if (l->class_form == RUBY_CLASS_IV_TBL || l->class_form == RUBY_CLASS_IV_SLOTS)
		l->class_path = l->class_permanent = l->class_attached = RUBY_ABSENT;
	if (l->th_ractor == RUBY_ABSENT)
		l->ractor_running_ec = l->ractor_gvl_queue = l->ractor_gvl_owner = RUBY_ABSENT;
	else if (l->th_ractor != RUBY_UNKNOWN)
		l->th_thread_id = l->vm_gvl_owner = l->vm_gvl_queue = l->vm_living_threads =
			RUBY_ABSENT;
}

/* Returns whether anything is known. */
static bool interpret(const struct dwarf_fact *facts, struct ruby_layout *l)
{
	bool any = false;
	size_t i;

	for (i = 0; i < RUBY_FIELDS; i++) {
		*ruby_layout_at(l, i) = plain_value(&facts[i]);
		any |= has(&facts[i]);
	}
	l->lineno_size = lineno_size(facts);
	l->singleton_bit = singleton_bit(facts);
	l->class_form = class_form(facts);
	l->symbol_form = symbol_form(facts);
	set_absent(l);
	return any;
}

/* ---- files ---- */

int ruby_layout_dwarf(struct file_worker *worker, pid_t pid, int fd, const struct ruby_binary *bin,
		      struct ruby_layout *ret, char *where, size_t size)
{
	const struct worker_file from = { .fd = fd, .path = bin->path, .pid = pid };
	struct dwarf_fact facts[FACTS];
	char found[PATH_MAX];
	struct ruby_layout l;

	ask(facts);
	if (file_worker_facts(worker, &from, facts, FACTS, RUBY_FIELDS, found) ||
	    !interpret(facts, &l))
		return -ENOENT;
	snprintf(where, size, "%s", found[0] ? found : bin->path);
	*ret = l;
	return 0;
}
