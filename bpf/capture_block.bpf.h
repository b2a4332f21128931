/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lower half of name_capture.bpf.h: appending blocks of copied memory to a record, and copying
 * the objects that lead to names (Strings, Arrays, the symbol table), as src/ruby/object.c reads
 * them.
 */
#ifndef RBPF_CAPTURE_BLOCK_BPF_H
#define RBPF_CAPTURE_BLOCK_BPF_H

#include "walk_state.bpf.h"

#define CAPTURE_ROOM	 (CAPTURE_WORDS - 3 - CAPTURE_BLOCK_MAX / 8)
/*
 * Longer texts are not copied: 4096 bytes are enough for a name, but a check needs the end of the
 * label.
 */
#define CAPTURE_TEXT_MAX 4096

/*
 * For capture_once(), in the low bits of an address: copied as an attached object, or as an item.
 */
#define AS_ATTACHED	 1
#define AS_ITEM		 2

/* Word @i of the bytes at @at. */
static __always_inline __u64 captured_at(const struct walk *w, __u32 at, __u32 i)
{
	return w->capture.words[(at + i) & (CAPTURE_WORDS - 1)];
}

/* … of the block that was appended last. */
static __always_inline __u64 captured_word(const struct walk *w, __u32 i)
{
	return captured_at(w, w->capture.at, i);
}

/* Append the @len bytes at @addr. Returns 0, or -1 if they cannot be read or there is no room. */
__noinline int capture_block(__u32 walk_id, __u64 addr, __u64 len)
{
	struct walk *w = walk_state(walk_id);
	__u64 at;

	if (!w)
		return -1;
	at = w->capture.used;
	if (at > CAPTURE_ROOM || !len)
		return -1;
	barrier_var(len);
	if (len > CAPTURE_BLOCK_MAX)
		return -1;
	/* The last word: the bytes may end within it. */
	w->capture.words[at + 1 + (len + 7) / 8] = 0;
	if (walk_read(&w->capture.words[at + 2], len, addr))
		return -1;
	w->capture.words[at] = addr;
	w->capture.words[at + 1] = len; /* RBPF_BLOCK_PART */
	w->capture.at = at + 2;
	w->capture.used = at + 2 + (len + 7) / 8;
	return 0;
}

/* Let the block that was appended last be of @kind. */
static __always_inline void capture_kind(struct walk *w, __u32 kind)
{
	__u32 at = w->capture.at - 1;

	w->capture.words[at & (CAPTURE_WORDS - 1)] |= (__u64)kind << 32;
}

/*
 * Returns true if what begins at @addr is not in the record yet, and remembers it. The low bits of
 * @addr say as what it is copied (AS_*): what is not an item may be shared by several.
 */
static __always_inline bool capture_once(struct walk *w, __u64 addr)
{
	__u64 nonce = addr & AS_ITEM ? w->capture.items_nonce : w->capture.nonce;
	__u32 slot = addr >> 3 ^ addr >> 11 ^ (addr & 7) * 37;
	__u64 *done = &w->capture.done[slot & (CAPTURE_DONE - 1)];

	if (*done == (addr ^ nonce))
		return false;
	*done = addr ^ nonce;
	return true;
}

/* ---- strings, arrays, symbols ---- */

/* The text of the String at @value, whose first words were appended last. */
static __always_inline int capture_text(struct walk *w, __u32 walk_id, __u64 value)
{
	__u64 flags = captured_word(w, 0), len = captured_word(w, RSTRING_LEN_WORD), at;

	if (flags & RSTRING_NOEMBED)
		at = captured_word(w, RSTRING_PTR_WORD);
	else if (w->layout.flags & RBPF_LAYOUT_LONG_EMBED && len > 16)
		at = value + RSTRING_EMBED_LONG;
	else
		return 0;
	if (!len)
		return 0;
	return len > CAPTURE_TEXT_MAX ? -1 : capture_block(walk_id, at, len);
}

__noinline int capture_string(__u32 walk_id, __u64 value)
{
	struct walk *w = walk_state(walk_id);

	if (!w || !ruby_is_object(value))
		return -1;
	if (!capture_once(w, value))
		return 0;
	if (capture_block(walk_id, value, RUBY_OBJECT_WORDS * 8) ||
	    (captured_word(w, 0) & RUBY_T_MASK) != RUBY_T_STRING)
		return -1;
	return capture_text(w, walk_id, value);
}

/* Element @i of the Array at @array, whose first words were appended last; 0 if there is none. */
static __always_inline __u64 capture_at(struct walk *w, __u32 walk_id, __u64 array, __u64 i)
{
	__u64 flags = captured_word(w, 0), len = captured_word(w, RARRAY_LEN_WORD);
	__u64 at = captured_word(w, RARRAY_PTR_WORD);

	if ((flags & RUBY_T_MASK) != RUBY_T_ARRAY)
		return 0;
	if (flags & RARRAY_EMBED_FLAG) {
		len = RARRAY_EMBED_LEN(flags);
		at = array + RARRAY_EMBED;
	}
	if (i >= len || capture_block(walk_id, at + i * 8, 8))
		return 0;
	return captured_word(w, 0);
}

__noinline __u64 capture_element(__u32 walk_id, __u64 array, __u64 i)
{
	struct walk *w = walk_state(walk_id);

	if (!w || !ruby_is_object(array) || capture_block(walk_id, array, RUBY_OBJECT_WORDS * 8))
		return 0;
	return capture_at(w, walk_id, array, i);
}

/* The path, or [path, realpath]. */
__noinline int capture_path(__u32 walk_id, __u64 pathobj)
{
	struct walk *w = walk_state(walk_id);

	if (!w || !ruby_is_object(pathobj))
		return -1;
	if (!capture_once(w, pathobj))
		return 0;
	if (capture_block(walk_id, pathobj, RUBY_OBJECT_WORDS * 8))
		return -1;
	if ((captured_word(w, 0) & RUBY_T_MASK) == RUBY_T_STRING)
		return capture_text(w, walk_id, pathobj);
	return capture_string(walk_id, capture_at(w, walk_id, pathobj, 0));
}

/* Unit @i of the symbol table, which is in an Array or a directory; 0 if it cannot be read. */
__noinline __u64 capture_symbol_unit(__u32 walk_id, __u64 ids, __u64 i)
{
	struct walk *w = walk_state(walk_id);

	if (!w || !ruby_is_object(ids) || capture_block(walk_id, ids, RUBY_OBJECT_WORDS * 8))
		return 0;
	if ((captured_word(w, 0) & RUBY_T_MASK) != RUBY_T_DATA)
		return capture_at(w, walk_id, ids, i);
	if (capture_block(walk_id, captured_word(w, RTYPEDDATA_DATA_WORD), RUBY_ID_DIR_WORDS * 8) ||
	    i >= captured_word(w, RUBY_ID_DIR_CAPA) ||
	    capture_block(walk_id, captured_word(w, RUBY_ID_DIR_ENTRIES) + i * 8, 8))
		return 0;
	return captured_word(w, 0);
}

/* The name of an ID. */
__noinline int capture_id(__u32 walk_id, __u64 id)
{
	__u64 serial = ruby_id_serial(id), i = serial % RUBY_ID_ENTRY_UNIT;
	struct walk *w = walk_state(walk_id);
	__u64 unit, data;

	if (!w || capture_block(walk_id, w->layout.naming.symbols + RUBY_SYMBOLS_IDS, 8))
		return -1;
	unit = capture_symbol_unit(walk_id, captured_word(w, 0), serial / RUBY_ID_ENTRY_UNIT);
	if (w->layout.naming.symbol_form == RUBY_SYMBOLS_ARRAY)
		return capture_string(walk_id,
				      capture_element(walk_id, unit, i * RUBY_ID_ENTRY_SIZE));
	if (!ruby_is_object(unit) || capture_block(walk_id, unit, RUBY_OBJECT_WORDS * 8))
		return -1;
	data = captured_word(w, RTYPEDDATA_DATA_WORD);
	if (capture_block(walk_id, data, 8) ||
	    capture_block(walk_id,
			  data + RUBY_DARRAY_HEADER + i * RUBY_SYM_ENTRY_BYTES + RUBY_SYM_ENTRY_STR,
			  8))
		return -1;
	return capture_string(walk_id, captured_word(w, 0));
}

#endif
