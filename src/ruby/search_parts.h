/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the search (search.c, search_iseq.c, search_class.c) have in common; of no use
 * to others.
 *
 * A member is found by asking of each offset it could have, on each object at hand, whether it fits
 * there. The true offset fits on every object that does not change while it is read; a wrong one
 * that fits on one object by chance is refused by another. If exactly one offset is left, it is the
 * answer. So a change during the search can only cost the answer.
 */
#ifndef RBPF_RUBY_SEARCH_PARTS_H
#define RBPF_RUBY_SEARCH_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ruby/layout.h"

struct memory;
struct ruby_binary;
struct ruby_search;

#define SEARCH_WORDS	   128	 /* of an object that are read */
#define SEARCH_WINDOW	   65536 /* bytes of the heap that are looked at around an object */
#define SEARCH_MAX_OBJECTS 128	 /* of a kind */

/* A snapshot of an object. */
struct search_object {
	uint64_t addr;
	/*
	 * an iseq's body: the iseq; a singleton class: its object; a method's definition: the ID
	 * that the method is called by; others: 0
	 */
	uint64_t of;
	const char *name;	      /* of a class, if known; others: NULL */
	uint64_t words[SEARCH_WORDS]; /* 0 where unreadable */
};

struct search_objects {
	struct search_object *v;
	size_t n, cap;
};

struct search {
	const struct memory *mem;
	const struct ruby_binary *bin;
	struct ruby_layout *l; /* what was found so far */
	struct search_objects ecs, threads, iseqs, defs, classes;
	uint64_t attached_key; /* RUBY_CLASS_IV_TBL: of a singleton class' object */
	bool one_ec;	       /* a Ruby with one EC pointer for all threads (2.7) */
};

enum search_says { SEARCH_NO, SEARCH_YES, SEARCH_NOTHING };

/* Whether the member looked for can be at @off of @o. */
typedef enum search_says search_fits_fn(const struct search *s, const struct search_object *o,
					uint16_t off);

/*
 * The only offset from @lo up to (not including) @hi, in steps of @step, to which an object says
 * yes and none says no. RUBY_UNKNOWN if there is not just one, or if fewer than @min objects say
 * yes. @hi is at most SEARCH_WORDS * 8.
 */
uint16_t search_offset(const struct search *s, const struct search_objects *objects, uint16_t lo,
		       uint16_t hi, uint16_t step, size_t min, search_fits_fn *fits);

/*
 * The same of objects of which some may be no longer, or not yet, what they are taken for: no more
 * than a quarter of all say no. In steps of 8.
 */
uint16_t search_offset_of_most(const struct search *s, const struct search_objects *objects,
			       uint16_t lo, uint16_t hi, size_t min, search_fits_fn *fits);

/* Append the object at @addr, unless it is there already. NULL if not, or if it is unreadable. */
struct search_object *search_add(const struct search *s, struct search_objects *objects,
				 uint64_t addr);

/* As ruby_is_object(), and an address that a process can have: this is asked of any memory. */
bool search_is_pointer(uint64_t word);

/* The word at @addr, or 0. */
uint64_t search_word(const struct search *s, uint64_t addr);

/* The type (enum ruby_value_type) of the object that is @value, 0 if it is none. */
unsigned int search_type(const struct search *s, uint64_t value);

/* Whether @value is a T_DATA object that wraps the struct at @data. */
bool search_wraps(const struct search *s, uint64_t value, uint64_t data);

/*
 * Read the heap around @addr: *@words receives SEARCH_WINDOW bytes, 0 where unreadable. Returns the
 * address of the first.
 */
uint64_t search_window(const struct search *s, uint64_t addr, uint64_t *words);

/* The text of String @value in @buf, of @size bytes. False if it is none, or longer. */
bool search_string(const struct search *s, uint64_t value, char *buf, size_t size);

/* ---- the parts; each builds on the ones before ---- */

/*
 * search_iseq.c. Collect iseqs, starting with those of @n frames, which may be anything; and find
 * the members of their bodies.
 */
void search_iseqs(struct search *s, const uint64_t *iseqs, size_t n);

/*
 * The location in @body, of those that it collected; it leaves none if it cannot find where that
 * is.
 */
const uint64_t *search_location(const struct search *s, const struct search_object *body);

/* search_class.c. The last one returns the address of ruby_global_symbols, or 0. */
void search_strings(struct search *s);
void search_classes(struct search *s);
uint64_t search_symbols(struct search *s);

#endif
