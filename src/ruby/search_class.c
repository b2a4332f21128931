/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What strings, classes and the symbol table look like. Three classes are exported by name; others
 * lie near them in the heap, and with each class its singleton class is known, RBasic.klass.
 */
#include "ruby/search_parts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "ruby/binary.h"
#include "ruby/structs.h"
#include "target/memory.h"

#define FL_BITS		 32
#define STRING_MAX_EMBED 600
#define MIN_STRINGS	 4
#define CLASS_BYTES	 256 /* of a class that are searched */
#define CLASS_NAME_MAX	 128
#define MIN_CLASSES	 8
#define ST_MAX_ENTRIES	 256
#define SYMBOLS_MIN_ID	 200
#define SYMBOLS_MAX_ID	 (1u << 28)
#define SYMBOLS_MAX_DATA (16u << 20)

/* ---- strings ---- */

/* An embedded String whose bytes are at @off: they are text, and a NUL behind it. */
static enum search_says fits_embed(const struct search *s, const struct search_object *str,
				   uint16_t off)
{
	const unsigned char *bytes = (const unsigned char *)str->words + off;
	uint64_t i, len = str->words[RSTRING_LEN_WORD];

	(void)s;
	if ((str->words[0] & RUBY_T_MASK) != RUBY_T_STRING || str->words[0] & RSTRING_NOEMBED)
		return SEARCH_NOTHING;
	if (off == RSTRING_EMBED_SHORT)
		len = RSTRING_EMBED_LEN(str->words[0]);
	if (!len)
		return SEARCH_NOTHING;
	if (len > STRING_MAX_EMBED)
		return SEARCH_NO;
	for (i = 0; i < len; i++)
		if (bytes[i] < ' ' || bytes[i] == 0x7f)
			return SEARCH_NO;
	return bytes[len] ? SEARCH_NO : SEARCH_YES;
}

void search_strings(struct search *s)
{
	struct search_objects strings = { 0 };
	size_t i;

	for (i = 0; i < s->iseqs.n; i++) {
		const uint64_t *location = search_location(s, &s->iseqs.v[i]);

		search_add(s, &strings, location[RUBY_LOCATION_LABEL]);
		search_add(s, &strings, location[RUBY_LOCATION_BASE_LABEL]);
	}
	s->l->string_embed = search_offset(s, &strings, RSTRING_EMBED_SHORT, RSTRING_EMBED_LONG + 8,
					   8, MIN_STRINGS, fits_embed);
	free(strings.v);
}

/* ---- classes ---- */

/* The exported variables. Names and singleton classes of what is in them are known. */
static const struct {
	enum ruby_binary_symbol symbol;
	const char *name;
} roots[] = {
	{ RUBY_SYM_rb_cObject, "Object" },
	{ RUBY_SYM_rb_cString, "String" },
	{ RUBY_SYM_rb_mKernel, "Kernel" },
};

static bool string_is(const struct search *s, uint64_t value, const char *text)
{
	char buf[CLASS_NAME_MAX];

	return search_string(s, value, buf, sizeof(buf)) && !strcmp(buf, text);
}

static uint64_t class_of(const struct search *s, uint64_t value)
{
	return search_is_pointer(value) ? search_word(s, value + RBASIC_KLASS_WORD * 8) : 0;
}

/* RUBY_CLASS_EXT: the String that names a class is in a member of it. */
static enum search_says fits_class_path(const struct search *s, const struct search_object *klass,
					uint16_t off)
{
	return string_is(s, klass->words[off / 8], klass->name) ? SEARCH_YES : SEARCH_NO;
}

/*
 * RUBY_CLASS_IV_SLOTS: the first instance variable of a class is its name or, if it is a singleton
 * class, its object.
 */
static uint64_t first_iv(const struct search *s, const struct search_object *klass)
{
	uint64_t iv_ptr = klass->words[RCLASS_IV_PTR_WORD];

	return search_is_pointer(iv_ptr) ? search_word(s, iv_ptr) : 0;
}

/* RUBY_CLASS_IV_TBL: a class has a table of them. Returns their number, up to ST_MAX_ENTRIES. */
static size_t read_iv_tbl(const struct search *s, const struct search_object *klass,
			  struct ruby_st_entry *ivs)
{
	uint64_t ext = klass->words[RCLASS_PTR_WORD], tbl, n;

	tbl = search_is_pointer(ext) ? search_word(s, ext + RCLASSEXT_IV_TBL) : 0;
	n = search_is_pointer(tbl) ? search_word(s, tbl + RUBY_ST_BOUND) : 0;
	if (n > ST_MAX_ENTRIES)
		n = ST_MAX_ENTRIES;
	if (memory_read(s->mem, n ? search_word(s, tbl + RUBY_ST_BOUND + 8) : 0, ivs,
			n * sizeof(*ivs)))
		return 0;
	return n;
}

static bool has_name_in_iv_tbl(const struct search *s, const struct search_object *klass)
{
	struct ruby_st_entry ivs[ST_MAX_ENTRIES];
	size_t i, n = read_iv_tbl(s, klass, ivs);

	for (i = 0; i < n; i++)
		if (string_is(s, ivs[i].record, klass->name))
			return true;
	return false;
}

/* Where the names of the roots are: in one form only. */
static void find_class_form(struct search *s, const struct search_objects *classes)
{
	uint16_t path = search_offset(s, classes, RBASIC_BYTES, CLASS_BYTES, 8, ARRAY_SIZE(roots),
				      fits_class_path);
	size_t i, slots = 0, tbl = 0;

	for (i = 0; i < classes->n; i++) {
		slots += string_is(s, first_iv(s, &classes->v[i]), classes->v[i].name);
		tbl += has_name_in_iv_tbl(s, &classes->v[i]);
	}
	if (path != RUBY_UNKNOWN && !slots && !tbl) {
		s->l->class_form = RUBY_CLASS_EXT;
		s->l->class_path = path;
	} else if (path == RUBY_UNKNOWN && slots == ARRAY_SIZE(roots) && !tbl) {
		s->l->class_form = RUBY_CLASS_IV_SLOTS;
	} else if (path == RUBY_UNKNOWN && tbl == ARRAY_SIZE(roots) && !slots) {
		s->l->class_form = RUBY_CLASS_IV_TBL;
	}
	if (s->l->class_form == RUBY_CLASS_IV_SLOTS || s->l->class_form == RUBY_CLASS_IV_TBL)
		s->l->class_path = s->l->class_permanent = s->l->class_attached = RUBY_ABSENT;
}

/* ---- singleton classes ---- */

/* RUBY_CLASS_EXT: a singleton class holds the object it belongs to. */
static enum search_says fits_attached(const struct search *s, const struct search_object *klass,
				      uint16_t off)
{
	(void)s;
	return klass->words[off / 8] == klass->of ? SEARCH_YES : SEARCH_NO;
}

/* The key under which the singleton class @klass has @object in its table, 0 if it has not. */
static uint64_t key_of(const struct search *s, const struct search_object *klass, uint64_t object)
{
	struct ruby_st_entry ivs[ST_MAX_ENTRIES];
	size_t i, n = read_iv_tbl(s, klass, ivs);

	for (i = 0; i < n; i++)
		if (ivs[i].record == object)
			return ivs[i].key;
	return 0;
}

static void find_class_attached(struct search *s, const struct search_objects *classes)
{
	struct search_objects singletons = { 0 };
	size_t i;

	for (i = 0; i < classes->n; i++) {
		uint64_t klass = classes->v[i].words[RBASIC_KLASS_WORD];
		struct search_object *o = search_add(s, &singletons, klass);

		if (o)
			o->of = classes->v[i].addr;
	}
	if (s->l->class_form == RUBY_CLASS_EXT)
		s->l->class_attached = search_offset(s, &singletons, RBASIC_BYTES, CLASS_BYTES, 8,
						     ARRAY_SIZE(roots), fits_attached);
	else if (s->l->class_form == RUBY_CLASS_IV_TBL && singletons.n)
		s->attached_key = key_of(s, singletons.v, singletons.v->of);
	free(singletons.v);
}

/* What @klass has under @key. */
static uint64_t record_of(const struct search *s, const struct search_object *klass, uint64_t key)
{
	struct ruby_st_entry ivs[ST_MAX_ENTRIES];
	size_t i, n = read_iv_tbl(s, klass, ivs);

	for (i = 0; i < n; i++)
		if (ivs[i].key == key)
			return ivs[i].record;
	return 0;
}

/* The object of the singleton class @klass: that of which it is the class. 0 if it is none. */
static uint64_t attached_to(const struct search *s, const struct search_object *klass)
{
	uint64_t object;

	if (s->l->class_form == RUBY_CLASS_EXT) {
		object = klass->words[s->l->class_attached / 8];
	} else if (s->l->class_form == RUBY_CLASS_IV_TBL) {
		object = record_of(s, klass, s->attached_key);
	} else {
		object = first_iv(s, klass);
		/* Class String has a String there, too: its name. */
		if (search_type(s, object) == RUBY_T_STRING)
			return 0;
	}
	return class_of(s, object) == klass->addr ? object : 0;
}

static void add_class(struct search *s, uint64_t addr)
{
	struct search_object *klass = search_add(s, &s->classes, addr);

	if (klass)
		klass->of = attached_to(s, klass);
}

/* Add what is around @addr and certainly a class: one whose class is attached to it. */
static void add_classes(struct search *s, uint64_t addr, uint64_t *words)
{
	uint64_t lo = search_window(s, addr, words), singleton;
	struct search_object klass;
	size_t i;

	for (i = 0; i + 1 < SEARCH_WINDOW / 8; i++) {
		if ((words[i] & RUBY_T_MASK) != RUBY_T_CLASS ||
		    search_type(s, words[i + 1]) != RUBY_T_CLASS)
			continue;
		singleton = words[i + 1];
		klass = (struct search_object) { .addr = singleton };
		memory_read_some(s->mem, singleton, klass.words, sizeof(klass.words));
		if (attached_to(s, &klass) != lo + i * 8)
			continue;
		add_class(s, lo + i * 8);
		add_class(s, singleton);
	}
}

/* The flag is number @bit of a class' flags: singleton classes have it, others have not. */
static enum search_says fits_singleton_bit(const struct search *s,
					   const struct search_object *klass, uint16_t bit)
{
	(void)s;
	return (klass->words[0] >> bit & 1) == (klass->of != 0) ? SEARCH_YES : SEARCH_NO;
}

static bool is_constant_path(const char *name)
{
	size_t i;

	if (!isupper((unsigned char)name[0]))
		return false;
	for (i = 1; name[i]; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != ':')
			return false;
	return true;
}

/*
 * RUBY_CLASS_EXT: bit 0 of a byte, not of a pointer that only one kind of class has. Singleton
 * classes have no permanent name; a constant path is one.
 */
static enum search_says fits_permanent(const struct search *s, const struct search_object *klass,
				       uint16_t off)
{
	bool permanent = ((const uint8_t *)klass->words)[off] & 1;
	char name[CLASS_NAME_MAX];

	if (off / 8 == s->l->class_path / 8 || off / 8 == s->l->class_attached / 8)
		return SEARCH_NO;
	if (klass->of)
		return permanent ? SEARCH_NO : SEARCH_YES;
	if (!search_string(s, klass->words[s->l->class_path / 8], name, sizeof(name)) ||
	    !is_constant_path(name))
		return SEARCH_NOTHING;
	return permanent ? SEARCH_YES : SEARCH_NO;
}

static void find_class_facts(struct search *s, const struct search_objects *classes)
{
	_cleanup_free_ uint64_t *words = malloc(SEARCH_WINDOW);
	size_t i;

	for (i = 0; words && i < classes->n; i++)
		add_classes(s, classes->v[i].addr, words);
	s->l->singleton_bit = search_offset(s, &s->classes, RUBY_FL_USHIFT, FL_BITS, 1, MIN_CLASSES,
					    fits_singleton_bit);
	if (s->l->class_form == RUBY_CLASS_EXT)
		s->l->class_permanent = search_offset(s, &s->classes, RBASIC_BYTES, CLASS_BYTES, 1,
						      MIN_CLASSES, fits_permanent);
}

void search_classes(struct search *s)
{
	struct search_objects classes = { 0 };
	struct search_object *klass;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(roots); i++) {
		uint64_t variable = s->bin->symbol[roots[i].symbol];

		klass = variable ? search_add(s, &classes, search_word(s, variable)) : NULL;
		if (klass)
			klass->name = roots[i].name;
	}
	find_class_form(s, &classes);
	find_class_attached(s, &classes);
	if (s->l->class_form != RUBY_UNKNOWN && s->l->class_attached != RUBY_UNKNOWN)
		find_class_facts(s, &classes);
	free(classes.v);
}

/* ---- the symbol table ---- */

/* Element @i of Array @value, 0 if there is none. */
static uint64_t array_get(const struct search *s, uint64_t value, uint64_t i)
{
	uint64_t flags = search_is_pointer(value) ? search_word(s, value) : 0;

	if ((flags & RUBY_T_MASK) != RUBY_T_ARRAY)
		return 0;
	if (flags & RARRAY_EMBED_FLAG)
		return search_word(s, value + RARRAY_EMBED + i * 8);
	return search_word(s, search_word(s, value + RARRAY_PTR_WORD * 8) + i * 8);
}

/* The first unit of the symbol table, which is in an Array or a directory. */
static uint64_t first_unit(const struct search *s, uint64_t ids)
{
	uint64_t dir;

	if (search_type(s, ids) != RUBY_T_DATA)
		return array_get(s, ids, 0);
	dir = search_word(s, ids + RTYPEDDATA_DATA_WORD * 8);
	return search_word(s, search_word(s, dir + RUBY_ID_DIR_ENTRIES * 8));
}

/* What the first unit of @ids is, if it names the operator "!"; RUBY_UNKNOWN if it does not. */
static uint16_t form_of_ids(const struct search *s, uint64_t ids)
{
	uint64_t unit = first_unit(s, ids);

	if (string_is(s, array_get(s, unit, '!' * RUBY_ID_ENTRY_SIZE), "!"))
		return RUBY_SYMBOLS_ARRAY;
	if (search_type(s, unit) == RUBY_T_DATA &&
	    string_is(s,
		      search_word(s, search_word(s, unit + RTYPEDDATA_DATA_WORD * 8) +
					     RUBY_DARRAY_HEADER + '!' * RUBY_SYM_ENTRY_BYTES +
					     RUBY_SYM_ENTRY_STR),
		      "!"))
		return RUBY_SYMBOLS_DATA;
	return RUBY_UNKNOWN;
}

/*
 * ruby_global_symbols is { last_id, table of strings, ids, … }, among the VM's data. Operators of
 * one character are their own IDs.
 */
uint64_t search_symbols(struct search *s)
{
	_cleanup_free_ uint64_t *words = NULL;
	uint64_t lo = s->bin->data_lo, hi = s->bin->data_hi, found = 0;
	uint16_t form;
	size_t i, n;

	if (hi <= lo || hi - lo > SYMBOLS_MAX_DATA)
		return 0;
	words = malloc(hi - lo);
	n = words ? memory_read_some(s->mem, lo, words, hi - lo) / 8 : 0;
	for (i = 0; i + RUBY_SYMBOLS_IDS / 8 < n; i++) {
		if (words[i] < SYMBOLS_MIN_ID || words[i] > SYMBOLS_MAX_ID ||
		    !search_is_pointer(words[i + 1]) ||
		    !search_is_pointer(words[i + RUBY_SYMBOLS_IDS / 8]))
			continue;
		form = form_of_ids(s, words[i + RUBY_SYMBOLS_IDS / 8]);
		if (form == RUBY_UNKNOWN)
			continue;
		if (found) {
			s->l->symbol_form = RUBY_UNKNOWN;
			return 0;
		}
		found = lo + i * 8;
		s->l->symbol_form = form;
	}
	return found;
}
