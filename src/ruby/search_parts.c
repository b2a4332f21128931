/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/search_parts.h"

#include <string.h>

#include "base/array.h"
#include "ruby/structs.h"
#include "target/memory.h"

#define PAGE 4096u

bool search_is_pointer(uint64_t word)
{
	return ruby_is_object(word) && word < 1ull << 56;
}

uint64_t search_word(const struct search *s, uint64_t addr)
{
	uint64_t word;

	return memory_read_u64(s->mem, addr, &word) ? 0 : word;
}

unsigned int search_type(const struct search *s, uint64_t value)
{
	return search_is_pointer(value) ? search_word(s, value) & RUBY_T_MASK : 0;
}

bool search_wraps(const struct search *s, uint64_t value, uint64_t data)
{
	return search_type(s, value) == RUBY_T_DATA &&
	       search_word(s, value + RTYPEDDATA_DATA_WORD * 8) == data;
}

uint64_t search_window(const struct search *s, uint64_t addr, uint64_t *words)
{
	struct memory_span pages[SEARCH_WINDOW / PAGE];
	uint64_t lo = addr & ~(uint64_t)(SEARCH_WINDOW - 1);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(pages); i++)
		pages[i] = (struct memory_span) { .addr = lo + i * PAGE,
						  .dst = words + i * PAGE / 8,
						  .len = PAGE };
	memory_read_spans(s->mem, pages, ARRAY_SIZE(pages));
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		if (!pages[i].ok)
			memset(pages[i].dst, 0, PAGE);
	return lo;
}

bool search_string(const struct search *s, uint64_t value, char *buf, size_t size)
{
	uint64_t w[RSTRING_PTR_WORD + 1], bytes = value + s->l->string_embed, len;

	if (s->l->string_embed == RUBY_UNKNOWN || !search_is_pointer(value) ||
	    memory_read(s->mem, value, w, sizeof(w)) || (w[0] & RUBY_T_MASK) != RUBY_T_STRING)
		return false;
	len = w[RSTRING_LEN_WORD];
	if (w[0] & RSTRING_NOEMBED)
		bytes = w[RSTRING_PTR_WORD];
	else if (s->l->string_embed == RSTRING_EMBED_SHORT)
		len = RSTRING_EMBED_LEN(w[0]);
	if (len >= size || memory_read(s->mem, bytes, buf, len))
		return false;
	buf[len] = '\0';
	return true;
}

struct search_object *search_add(const struct search *s, struct search_objects *objects,
				 uint64_t addr)
{
	struct search_object *o;
	size_t i;

	if (!search_is_pointer(addr) || objects->n == SEARCH_MAX_OBJECTS)
		return NULL;
	for (i = 0; i < objects->n; i++)
		if (objects->v[i].addr == addr)
			return NULL;
	if (array_reserve(objects->v, objects->cap, objects->n + 1))
		return NULL;
	o = &objects->v[objects->n];
	*o = (struct search_object) { .addr = addr };
	if (!memory_read_some(s->mem, addr, o->words, sizeof(o->words)))
		return NULL;
	objects->n++;
	return o;
}

/* How many of @objects say yes to @off; 0 if more than @no_max of what they say is no. */
static size_t count_yes(const struct search *s, const struct search_objects *objects, uint16_t off,
			size_t no_max, search_fits_fn *fits)
{
	size_t i, yes = 0, no = 0;

	for (i = 0; i < objects->n && no <= no_max; i++) {
		enum search_says says = fits(s, &objects->v[i], off);

		no += says == SEARCH_NO;
		yes += says == SEARCH_YES;
	}
	return no <= no_max ? yes : 0;
}

static uint16_t find_offset(const struct search *s, const struct search_objects *objects,
			    uint16_t lo, uint16_t hi, uint16_t step, size_t min, size_t no_max,
			    search_fits_fn *fits)
{
	uint16_t off, found = RUBY_UNKNOWN;
	size_t yes;

	for (off = lo; off < hi; off += step) {
		yes = count_yes(s, objects, off, no_max, fits);
		if (!yes)
			continue;
		if (found != RUBY_UNKNOWN || yes < min)
			return RUBY_UNKNOWN;
		found = off;
	}
	return found;
}

uint16_t search_offset(const struct search *s, const struct search_objects *objects, uint16_t lo,
		       uint16_t hi, uint16_t step, size_t min, search_fits_fn *fits)
{
	return find_offset(s, objects, lo, hi, step, min, 0, fits);
}

uint16_t search_offset_of_most(const struct search *s, const struct search_objects *objects,
			       uint16_t lo, uint16_t hi, size_t min, search_fits_fn *fits)
{
	return find_offset(s, objects, lo, hi, 8, min, objects->n / 4, fits);
}
