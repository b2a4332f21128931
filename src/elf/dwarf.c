/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Debug information is large (libruby: 25 MiB and more, most of it of functions and, with YJIT, of
 * Rust), but what is asked for is little and stands in few places: types of C are children of the
 * unit's root. So the units' languages select, only the roots' children are walked (libdw skips
 * their own children by DW_AT_sibling), and only of a type asked for are the members looked at.
 * That takes some 10 ms; the time goes into getting the sections. libdw uncompresses every debug
 * section when a file is opened, though the lines and locations, two thirds, are not needed here:
 * they are hidden from it (debug_info.h).
 *
 * References in hostile debug information may go in circles, and a struct may hold itself. Chains
 * and depths are limited by count, the whole by time: what libdw does within one step varies too
 * much for counts.
 */
#include "elf/dwarf.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "elf/debug_info.h"

#define MAX_CHAIN 32 /* typedefs and qualifiers of one type */
#define MAX_DEPTH 16 /* structs within structs, named or not */

struct dwarf_search {
	struct dwarf_fact *facts;
	size_t n;
	size_t left; /* questions without an answer */
	uint64_t deadline;
};

/* A member, relative to a struct around it. */
struct member_location {
	uint64_t bit_offset;
	uint64_t size; /* bytes */
};

static bool too_late(const struct dwarf_search *s)
{
	return clock_ns(CLOCK_MONOTONIC) > s->deadline;
}

/* ---- what libdw gives of one DIE ---- */

/* dwarf_diename() goes after other DIEs if this one has no name. */
static const char *die_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;

	return dwarf_formstring(dwarf_attr(die, DW_AT_name, &attr));
}

static bool die_number(Dwarf_Die *die, unsigned int name, uint64_t *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr(die, name, &attr), &value))
		return false;
	*ret = value;
	return true;
}

/*
 * The type of @die without typedefs and qualifiers. (dwarf_peel_type() never returns from a circle
 * of typedefs.)
 */
static bool die_type(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute attr;
	unsigned int i;

	*ret = *die;
	for (i = 0; i < MAX_CHAIN; i++) {
		if (!dwarf_formref_die(dwarf_attr(ret, DW_AT_type, &attr), ret))
			return false;
		switch (dwarf_tag(ret)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_atomic_type:
		case DW_TAG_restrict_type:
			break;
		default:
			return true;
		}
	}
	return false;
}

static bool is_struct(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
}

/* The offset in the struct around it that DW_AT_data_member_location gives, in bytes. */
static bool member_location(Dwarf_Die *die, uint64_t *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	*ret = 0;
	if (!dwarf_attr(die, DW_AT_data_member_location, &attr))
		return true; /* a member of a union need not say */
	/* A plain number, the usual form, comes as this operation too. */
	if (dwarf_getlocation(&attr, &ops, &n) || n != 1 || ops[0].atom != DW_OP_plus_uconst)
		return false;
	*ret = ops[0].number;
	return true;
}

static bool locate_member(Dwarf_Die *die, Dwarf_Die *type, struct member_location *ret)
{
	uint64_t from_top, width, unit;

	if (!die_number(type, DW_AT_byte_size, &ret->size))
		ret->size = 0;
	if (die_number(die, DW_AT_data_bit_offset, &ret->bit_offset))
		return true;
	if (!member_location(die, &ret->bit_offset))
		return false;
	ret->bit_offset *= 8;
	if (!die_number(die, DW_AT_bit_offset, &from_top))
		return true;
	/* DWARF 2 and 3 count bits from the top of a unit that holds the bitfield. */
	if (!die_number(die, DW_AT_byte_size, &unit))
		unit = ret->size;
	if (!die_number(die, DW_AT_bit_size, &width))
		return false;
	ret->bit_offset += unit * 8 - from_top - width;
	return true;
}

/* ---- members ---- */

static int find_member(struct dwarf_search *s, Dwarf_Die *type, const char *path, size_t len,
		       unsigned int depth, struct member_location *ret);

/*
 * Is @path (of @len) in this member, by its name or, if it has none, within it? As find_member().
 */
static int match_member(struct dwarf_search *s, Dwarf_Die *die, const char *path, size_t len,
			unsigned int depth, struct member_location *ret)
{
	const char *name = die_name(die), *dot = memchr(path, '.', len);
	size_t first = dot ? (size_t)(dot - path) : len;
	struct member_location within = { 0 };
	Dwarf_Die type;
	int r;

	if (name && (strlen(name) != first || memcmp(name, path, first)))
		return -ENOENT;
	if (!die_type(die, &type) || !locate_member(die, &type, ret))
		return -EBADMSG;
	if (name && !dot)
		return 0;
	if (!is_struct(&type))
		return -ENOENT;
	if (name) {
		path += first + 1;
		len -= first + 1;
	}
	r = find_member(s, &type, path, len, depth + 1, &within);
	if (r)
		return r;
	ret->bit_offset += within.bit_offset;
	ret->size = within.size;
	return 0;
}

/* Returns 0, -ENOENT if there is no such member, -EBADMSG or -ETIME. */
static int find_member(struct dwarf_search *s, Dwarf_Die *type, const char *path, size_t len,
		       unsigned int depth, struct member_location *ret)
{
	Dwarf_Die die;
	int r, next;

	if (depth == MAX_DEPTH)
		return -EBADMSG;
	for (next = dwarf_child(type, &die); !next; next = dwarf_siblingof(&die, &die)) {
		if (too_late(s))
			return -ETIME;
		if (dwarf_tag(&die) != DW_TAG_member)
			continue;
		r = match_member(s, &die, path, len, depth, ret);
		if (r != -ENOENT)
			return r;
	}
	return next < 0 ? -EBADMSG : -ENOENT;
}

static int find_enumerator(struct dwarf_search *s, Dwarf_Die *type, const char *enumerator,
			   size_t len, uint64_t *ret)
{
	const char *name;
	Dwarf_Die die;
	int next;

	for (next = dwarf_child(type, &die); !next; next = dwarf_siblingof(&die, &die)) {
		if (too_late(s))
			return -ETIME;
		name = die_name(&die);
		if (name && strlen(name) == len && !memcmp(name, enumerator, len))
			return die_number(&die, DW_AT_const_value, ret) ? 0 : -EBADMSG;
	}
	return next < 0 ? -EBADMSG : -ENOENT;
}

/* ---- questions ---- */

/* One of the alternatives of a fact. */
static int answer_one(struct dwarf_search *s, Dwarf_Die *type, const char *path, size_t len,
		      struct dwarf_fact *fact)
{
	struct member_location location = { 0 };
	uint64_t value;
	int r;

	if (dwarf_tag(type) == DW_TAG_enumeration_type) {
		r = find_enumerator(s, type, path, len, &value);
	} else {
		r = find_member(s, type, path, len, 0, &location);
		value = location.bit_offset / 8;
	}
	if (r)
		return r;
	fact->value = value;
	fact->bit = location.bit_offset % 8;
	fact->size = location.size;
	return 0;
}

static int answer_alternatives(struct dwarf_search *s, Dwarf_Die *type, struct dwarf_fact *fact)
{
	const char *path = fact->member;
	size_t len;
	int r;

	for (;; path += len + 1) {
		len = strcspn(path, "|");
		r = answer_one(s, type, path, len, fact);
		if (r != -ENOENT || !path[len])
			return r;
	}
}

/* @type is complete and has the name that @fact asks for. */
static int answer(struct dwarf_search *s, Dwarf_Die *type, struct dwarf_fact *fact)
{
	int r = 0;

	if (fact->member)
		r = answer_alternatives(s, type, fact);
	else if (!die_number(type, DW_AT_byte_size, &fact->value))
		r = -EBADMSG;
	if (r && r != -ENOENT)
		return r;
	fact->answer = r ? DWARF_NO_MEMBER : DWARF_FOUND;
	s->left--;
	return 0;
}

/*
 * The struct, union or enum that @die is or is a typedef of; false if it is none or not complete.
 */
static bool complete_type(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute attr;

	*ret = *die;
	if (dwarf_tag(die) == DW_TAG_typedef && !die_type(die, ret))
		return false;
	return (is_struct(ret) || dwarf_tag(ret) == DW_TAG_enumeration_type) &&
	       !dwarf_attr(ret, DW_AT_declaration, &attr);
}

/* Returns 0, also if the type is broken, or -ETIME. */
static int scan_die(struct dwarf_search *s, Dwarf_Die *die)
{
	const char *name;
	Dwarf_Die type;
	size_t i;

	switch (dwarf_tag(die)) {
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_typedef:
		break;
	default:
		return 0;
	}
	name = die_name(die);
	for (i = 0; name && i < s->n; i++) {
		struct dwarf_fact *fact = &s->facts[i];

		if (fact->answer != DWARF_NO_TYPE || strcmp(fact->type, name))
			continue;
		if (!complete_type(die, &type))
			return 0;
		if (answer(s, &type, fact) == -ETIME)
			return -ETIME;
	}
	return 0;
}

/* ---- units ---- */

static bool may_be_c(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case -1: /* not said: what dwz moved out of units that shared it */
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case 0x2c: /* C17 */
	case 0x3e: /* C23 */
		return true;
	default:
		return false;
	}
}

/* Returns 0, also if the unit is broken, for it hides no others; or -ETIME. */
static int scan_unit(struct dwarf_search *s, Dwarf_Die *unit)
{
	Dwarf_Die die;
	int next;

	for (next = dwarf_child(unit, &die); !next && s->left; next = dwarf_siblingof(&die, &die))
		if (too_late(s) || scan_die(s, &die))
			return -ETIME;
	return 0;
}

static int scan(struct dwarf_search *s, Dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;
	int next = 0;

	while (s->left && !(next = dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit, NULL)))
		if (too_late(s) || (may_be_c(&unit) && scan_unit(s, &unit)))
			return -ETIME;
	return next < 0 ? -EBADMSG : 0;
}

/* ---- files ---- */

/* What of a file is looked into. */
static const char *const needed[] = {
	".debug_info", ".debug_types",	  ".debug_abbrev",
	".debug_str",  ".debug_line_str", ".debug_str_offsets",
};

static size_t reset(struct dwarf_fact *facts, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		facts[i] = (struct dwarf_fact) { .type = facts[i].type, .member = facts[i].member };
	return n;
}

int dwarf_facts_read(int fd, int alt_fd, struct dwarf_fact *facts, size_t n)
{
	struct dwarf_search s = { .facts = facts, .n = n, .left = reset(facts, n) };
	struct debug_info own = DEBUG_INFO_INIT, alt = DEBUG_INFO_INIT;
	int r;

	r = debug_info_open(fd, needed, ARRAY_SIZE(needed), &own);
	if (r)
		return r;
	if (alt_fd >= 0 && !debug_info_open(alt_fd, needed, ARRAY_SIZE(needed), &alt))
		dwarf_setalt(own.dwarf, alt.dwarf);
	s.deadline = clock_ns(CLOCK_MONOTONIC) + DWARF_MAX_NS;
	r = scan(&s, own.dwarf);
	if (!r && alt.dwarf)
		r = scan(&s, alt.dwarf);
	debug_info_close(&own);
	debug_info_close(&alt);
	return r;
}
