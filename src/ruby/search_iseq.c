/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What bodies of iseqs (rb_iseq_constant_body) look like. They begin with the same members in all
 * versions, and the first instruction is an address in the VM's code; and in each of them three
 * pointers to objects stand side by side, a path and two Strings: the location. (A control frame
 * may hold a stale or foreign iseq, see cfp->jit_return; any iseq will do here.)
 *
 * A stack has few iseqs, so the heap around them is looked at, too: an iseq is seldom created
 * alone, nor is the method that it is the code of.
 */
#include "ruby/search_parts.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "ruby/binary.h"
#include "ruby/structs.h"
#include "target/memory.h"

#define MIN_ISEQS    8
#define MIN_DEFS     3
#define MAX_DEFS     24
#define MAX_WINDOWS  64
#define MAX_TRIES    4096 /* what has an iseq's flags … */
#define MAX_ME_TRIES 256  /* … or a method entry's: most of them are of C functions */
#define MAX_DISTANCE (8 * SEARCH_WINDOW)
#define MAX_LINE     (1 << 24)
#define MAX_ENTRIES  64 /* of insns_info that are looked at */
#define MAX_ENTRY    12 /* bytes */

static uint32_t iseq_type(const struct search_object *body)
{
	return (uint32_t)body->words[RUBY_BODY_TYPE];
}

static uint32_t iseq_size(const struct search_object *body)
{
	return (uint32_t)(body->words[RUBY_BODY_TYPE] >> 32);
}

static bool is_iseq(const struct search *s, uint64_t value)
{
	return search_is_pointer(value) &&
	       (search_word(s, value) & RUBY_IMEMO_MASK) == RUBY_IMEMO_ISEQ;
}

static bool is_body(const struct search *s, const struct search_object *body)
{
	uint64_t insn = search_word(s, body->words[RUBY_BODY_ENCODED]);

	return iseq_type(body) <= RUBY_ISEQ_PLAIN && iseq_size(body) &&
	       iseq_size(body) <= RUBY_ISEQ_SIZE_MAX && insn >= s->bin->text_lo &&
	       insn < s->bin->text_hi;
}

/* ---- collecting iseqs ---- */

static void add_iseq(struct search *s, uint64_t iseq)
{
	struct search_object *body;

	if (!is_iseq(s, iseq))
		return;
	body = search_add(s, &s->iseqs, search_word(s, iseq + RUBY_ISEQ_BODY * 8));
	if (!body)
		return;
	if (is_body(s, body))
		body->of = iseq;
	else
		s->iseqs.n--;
}

/* The definition of a method entry, if its code is an iseq. */
static void add_def(struct search *s, const uint64_t words[RUBY_ME_WORDS])
{
	struct search_object *def = search_add(s, &s->defs, words[RUBY_ME_DEF]);

	if (!def)
		return;
	if (is_iseq(s, def->words[RUBY_DEF_BODY]))
		def->of = words[RUBY_ME_CALLED_ID];
	else
		s->defs.n--;
}

/* The windows that were looked at, and room for one. */
struct windows {
	uint64_t *words;
	uint64_t lo[MAX_WINDOWS];
	size_t n, tries, me_tries;
};

/* Add the iseqs and definitions of methods that lie around @addr. */
static void add_window(struct search *s, struct windows *w, uint64_t addr)
{
	uint64_t lo = addr & ~(uint64_t)(SEARCH_WINDOW - 1);
	size_t i;

	for (i = 0; i < w->n; i++)
		if (w->lo[i] == lo)
			return;
	if (w->n == MAX_WINDOWS)
		return;
	w->lo[w->n++] = search_window(s, addr, w->words);
	for (i = 0; i + RUBY_ME_WORDS <= SEARCH_WINDOW / 8; i++) {
		uint64_t kind = w->words[i] & RUBY_IMEMO_MASK;

		if (kind == RUBY_IMEMO_ISEQ && search_is_pointer(w->words[i + RUBY_ISEQ_BODY]) &&
		    w->tries++ < MAX_TRIES)
			add_iseq(s, lo + i * 8);
		else if (kind == RUBY_IMEMO_MENT && search_is_pointer(w->words[i + RUBY_ME_DEF]) &&
			 s->defs.n < MAX_DEFS && w->me_tries++ < MAX_ME_TRIES)
			add_def(s, &w->words[i]);
	}
}

static void collect(struct search *s, const uint64_t *iseqs, size_t n)
{
	_cleanup_free_ uint64_t *words = malloc(SEARCH_WINDOW);
	struct windows windows = { .words = words };
	uint64_t distance;
	size_t i;

	for (i = 0; i < n; i++)
		add_iseq(s, iseqs[i]);
	n = s->iseqs.n;
	for (distance = 0; words && distance <= MAX_DISTANCE; distance += SEARCH_WINDOW) {
		for (i = 0; i < n && s->iseqs.n < SEARCH_MAX_OBJECTS; i++) {
			uint64_t iseq = s->iseqs.v[i].of;

			add_window(s, &windows, iseq + distance);
			add_window(s, &windows, iseq - distance);
		}
	}
}

/* ---- names ---- */

static enum search_says fits_location(const struct search *s, const struct search_object *body,
				      uint16_t off)
{
	const uint64_t *location = &body->words[off / 8];
	unsigned int path;

	/* All three, before any is read. */
	if (!search_is_pointer(location[RUBY_LOCATION_PATHOBJ]) ||
	    !search_is_pointer(location[RUBY_LOCATION_BASE_LABEL]) ||
	    !search_is_pointer(location[RUBY_LOCATION_LABEL]))
		return SEARCH_NO;
	path = search_type(s, location[RUBY_LOCATION_PATHOBJ]);
	return (path == RUBY_T_STRING || path == RUBY_T_ARRAY) &&
			       search_type(s, location[RUBY_LOCATION_BASE_LABEL]) ==
				       RUBY_T_STRING &&
			       search_type(s, location[RUBY_LOCATION_LABEL]) == RUBY_T_STRING
		       ? SEARCH_YES
		       : SEARCH_NO;
}

const uint64_t *search_location(const struct search *s, const struct search_object *body)
{
	return &body->words[s->l->iseq_location / 8];
}

/* Find the location, and keep the bodies that have one. */
static void find_location(struct search *s)
{
	struct search_objects *iseqs = &s->iseqs;
	size_t i, n = 0;

	s->l->iseq_location = search_offset_of_most(s, iseqs, RUBY_BODY_WORDS * 8,
						    RUBY_BODY_BYTES - RUBY_LOCATION_WORDS * 8 + 8,
						    1, fits_location);
	for (i = 0; i < iseqs->n && s->l->iseq_location != RUBY_UNKNOWN; i++)
		if (fits_location(s, &iseqs->v[i], s->l->iseq_location) == SEARCH_YES)
			iseqs->v[n++] = iseqs->v[i];
	iseqs->n = n;
}

/* A method is called by the ID that it was defined by, but for aliases. */
static enum search_says fits_original_id(const struct search *s, const struct search_object *def,
					 uint16_t off)
{
	(void)s;
	return def->words[off / 8] == def->of ? SEARCH_YES : SEARCH_NO;
}

/* ---- lines ---- */

/*
 * insns_info is { body, positions, size, succ_index_table }. The table has the rank of each
 * position: the first instruction's is 1, the last one's is the number of all entries. (positions
 * was freed and is 0, but in debug builds.)
 */
static enum search_says fits_insns(const struct search *s, const struct search_object *body,
				   uint16_t off)
{
	const uint64_t *info = &body->words[off / 8];
	uint32_t last = iseq_size(body) - 1, n = (uint32_t)info[2];
	uint64_t ranks;

	if (!search_is_pointer(info[0]) || !search_is_pointer(info[3]) || !n || n > last + 1 ||
	    (info[1] && !search_is_pointer(info[1])))
		return SEARCH_NO;
	if (last >= RUBY_INDEX_IMM)
		return SEARCH_NOTHING;
	ranks = search_word(s, info[3] + last / RUBY_INDEX_IMM_PACK * 8);
	return RUBY_INDEX_IMM_RANK(search_word(s, info[3]), 0) == 1 &&
			       RUBY_INDEX_IMM_RANK(ranks, last) == n
		       ? SEARCH_YES
		       : SEARCH_NO;
}

/* first_lineno if it has @size bytes: a Fixnum, or an int. -1 if it is none. 0 is one. */
static int64_t first_line(const struct search *s, const struct search_object *body, uint16_t size)
{
	uint64_t word = search_location(s, body)[RUBY_LOCATION_LINENO];
	int64_t line = size == 8 ? (int64_t)word >> 1 : (int32_t)word;

	return (size == 8 && !(word & RUBY_FIXNUM_FLAG)) || line > MAX_LINE ? -1 : line;
}

/* The lines of insns_info, up to MAX_ENTRIES, if an entry has @size bytes. Returns their number. */
static size_t read_lines(const struct search *s, const struct search_object *body, size_t size,
			 int32_t *lines)
{
	int32_t words[MAX_ENTRIES * MAX_ENTRY / 4];
	size_t i, n = (uint32_t)body->words[s->l->insns_size / 8];

	if (n > MAX_ENTRIES)
		n = MAX_ENTRIES;
	if (memory_read(s->mem, body->words[s->l->insns_body / 8], words, n * size))
		return 0;
	for (i = 0; i < n; i++)
		lines[i] = words[i * size / 4];
	return n;
}

/* A script, method, block or class has no line before its first. An ensure clause may. */
static bool has_lines_in_order(const struct search_object *body)
{
	return iseq_type(body) <= RUBY_ISEQ_CLASS;
}

/*
 * The line of the first entry, which is an int at its start, is not before the first line. (Twice
 * that line is, as a rule; and an odd int, followed by a 0, is not the rule.)
 */
static enum search_says fits_lineno_size(const struct search *s, const struct search_object *body,
					 uint16_t size)
{
	int64_t first = first_line(s, body, size);
	int32_t line = (int32_t)search_word(s, body->words[s->l->insns_body / 8]);

	if (!has_lines_in_order(body) || line <= 0 || line > MAX_LINE)
		return SEARCH_NOTHING;
	return first >= 0 && first <= line ? SEARCH_YES : SEARCH_NO;
}

/* Each entry begins with a line, or 0. With the wrong size, flags and node ids are there. */
static enum search_says fits_insn_entry(const struct search *s, const struct search_object *body,
					uint16_t size)
{
	int64_t first = first_line(s, body, s->l->lineno_size);
	int32_t lines[MAX_ENTRIES];
	size_t i, n;

	if (!has_lines_in_order(body))
		return SEARCH_NOTHING;
	n = read_lines(s, body, size, lines);
	for (i = 0; i < n; i++)
		if (lines[i] && (lines[i] < first || lines[i] > MAX_LINE))
			return SEARCH_NO;
	return n > 2 ? SEARCH_YES : SEARCH_NOTHING;
}

static void find_lines(struct search *s)
{
	struct ruby_layout *l = s->l;

	l->insns_body = search_offset(s, &s->iseqs, RUBY_BODY_WORDS * 8, RUBY_BODY_BYTES - 24, 8,
				      MIN_ISEQS, fits_insns);
	if (l->insns_body == RUBY_UNKNOWN)
		return;
	l->insns_size = l->insns_body + 16;
	l->insns_index = l->insns_body + 24;
	l->lineno_size = search_offset(s, &s->iseqs, 4, 12, 4, MIN_ISEQS, fits_lineno_size);
	if (l->lineno_size != RUBY_UNKNOWN)
		l->insn_entry = search_offset(s, &s->iseqs, 8, MAX_ENTRY + 4, 4, MIN_ISEQS,
					      fits_insn_entry);
}

/* ---- other iseqs ---- */

/* The body of the iseq @iseq, 0 if it is none. */
static uint64_t body_of(const struct search *s, uint64_t iseq)
{
	return is_iseq(s, iseq) ? search_word(s, iseq + RUBY_ISEQ_BODY * 8) : 0;
}

/* What is no block within something else is its own local iseq; that of a block is no block. */
static enum search_says fits_local(const struct search *s, const struct search_object *body,
				   uint16_t off)
{
	uint64_t local = body->words[off / 8], other;

	switch (iseq_type(body)) {
	case RUBY_ISEQ_TOP:
	case RUBY_ISEQ_METHOD:
	case RUBY_ISEQ_CLASS:
		return local == body->of ? SEARCH_YES : SEARCH_NO;
	case RUBY_ISEQ_BLOCK:
		other = body_of(s, local);
		return other && (uint32_t)search_word(s, other) != RUBY_ISEQ_BLOCK ? SEARCH_YES
										   : SEARCH_NO;
	default:
		return SEARCH_NOTHING;
	}
}

/* The parent of a block, and of a rescue or ensure clause, has the same local iseq. */
static enum search_says fits_parent(const struct search *s, const struct search_object *body,
				    uint16_t off)
{
	uint64_t local = body->words[s->l->local_iseq / 8], other;

	switch (iseq_type(body)) {
	case RUBY_ISEQ_BLOCK:
	case RUBY_ISEQ_RESCUE:
	case RUBY_ISEQ_ENSURE:
		other = body_of(s, body->words[off / 8]);
		return other && other != body->addr && off != s->l->local_iseq &&
				       search_word(s, other + s->l->local_iseq) == local
			       ? SEARCH_YES
			       : SEARCH_NO;
	default:
		return SEARCH_NOTHING;
	}
}

void search_iseqs(struct search *s, const uint64_t *iseqs, size_t n)
{
	struct ruby_layout *l = s->l;

	collect(s, iseqs, n);
	l->original_id = search_offset_of_most(s, &s->defs, (RUBY_DEF_BODY + 1) * 8,
					       RUBY_DEF_WORDS * 8, MIN_DEFS, fits_original_id);
	find_location(s);
	find_lines(s);
	l->local_iseq = search_offset(s, &s->iseqs, RUBY_BODY_WORDS * 8, RUBY_BODY_BYTES, 8,
				      MIN_ISEQS, fits_local);
	if (l->local_iseq != RUBY_UNKNOWN)
		l->parent_iseq = search_offset(s, &s->iseqs, RUBY_BODY_WORDS * 8, RUBY_BODY_BYTES,
					       8, 1, fits_parent);
}
