/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The part of a profile of the Firefox Profiler that all threads share: strings, functions, frames,
 * stacks.
 */
#ifndef RBPF_EXPORT_FIREFOX_TABLES_H
#define RBPF_EXPORT_FIREFOX_TABLES_H

#include <stdint.h>

#include "base/intern.h"
#include "export/shown.h"
#include "view/group.h"

struct json;
struct profile;
struct view_filter;

struct firefox_tables {
	const struct profile *profile; /* not owned */
	struct shown shown;
	struct groups functions;
	struct intern strings; /* of the file */
	uint32_t *index;       /* by shown stack: its place among them; owned */
};

#define FIREFOX_MS_DECIMALS 6 /* of ns in ms */

/* Indexes of meta.categories. */
enum firefox_category {
	FIREFOX_OTHER,
	FIREFOX_RUBY,
	FIREFOX_CFUNC,
	FIREFOX_JIT,
	FIREFOX_GC,
	FIREFOX_NATIVE,
	FIREFOX_KERNEL,
	FIREFOX_WAIT,
	FIREFOX_IDLE, /* what the profiler takes for no use of the thread */
};

/* @f NULL: all. Returns 0, -ENOMEM, or -EINVAL as shown_init(). @ret: firefox_tables_deinit(). */
int firefox_tables_init(const struct profile *p, const struct view_filter *f,
			struct firefox_tables *ret);
void firefox_tables_deinit(struct firefox_tables *t); /* accepts one that is all zero */

/* The id of a string in stringArray, which is written after all others are known. */
uint32_t firefox_string(struct firefox_tables *t, struct json *j, const char *s);

/*
 * A time of a sample (CLOCK_MONOTONIC) as the format has it: ms since the start of the recording.
 */
void firefox_add_time(const struct firefox_tables *t, struct json *j, const char *key, uint64_t ts);

/* The members "categories" of meta, "libs", and "shared" with all strings so far. */
void firefox_add_categories(struct json *j);
void firefox_add_libs(const struct profile *p, struct json *j);
int firefox_add_shared(struct firefox_tables *t, struct json *j);

#endif
