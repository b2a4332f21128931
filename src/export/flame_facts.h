/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The figures in the header of a flame graph, about the samples that are drawn.
 */
#ifndef RBPF_EXPORT_FLAME_FACTS_H
#define RBPF_EXPORT_FLAME_FACTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"

struct profile;
struct view_filter;

struct flame_facts {
	uint64_t samples;
	uint64_t value;
	uint64_t truncated, unresolved, failed; /* samples with the flag of that name */
	uint64_t gaps;		       /* samples of whose native stack a part is missing */
	uint64_t frameless;	       /* samples without a stack */
	uint64_t gc_unknown;	       /* samples that may be garbage collection, or not */
	uint64_t all_samples;	       /* of the recording */
	uint64_t duration_ns;	       /* of the part of the recording that is looked at */
	size_t n_processes, n_threads; /* with samples */
	uint32_t process;	       /* one of them; valid if there is one */
	struct buf programs;	       /* their distinct names, "puma, sidekiq", or
					* the first 6 "and 94 more" */
	size_t n_programs;
	struct buf rubies; /* their distinct versions, "3.1.2, 3.3.6" */
};

#define FLAME_FACTS_INIT                                                                           \
	{                                                                                          \
		0                                                                                  \
	}

/* Returns 0 or -ENOMEM. @ret: flame_facts_deinit(). */
int flame_facts_init(const struct profile *p, const struct view_filter *f, struct flame_facts *ret);
void flame_facts_deinit(struct flame_facts *facts);
#define _cleanup_flame_facts_ _cleanup_(flame_facts_deinit)

/* The facts in words, piece by piece: "30.0 s", "4 processes", … */
struct flame_facts_text {
	const struct profile *profile;
	const struct flame_facts *facts;
	const struct view_filter *filter;	     /* or NULL */
	void (*piece)(void *arg, struct buf *piece); /* it empties @piece */
	void *arg;
};

/* What is drawn. */
void flame_facts_tell(const struct flame_facts_text *t);

/* What keeps the picture from being the whole truth; nothing if nothing does. */
void flame_facts_tell_defects(const struct flame_facts_text *t);

/* Append what was recorded, for a title: "3 × puma", "ruby (pid 42)". */
void flame_facts_programs(const struct profile *p, const struct flame_facts *facts,
			  struct buf *out);

/* Append @value, in @unit (enum value_unit): "30.0 s", "1.4 MB", "11,876". */
void flame_facts_value(struct buf *out, uint32_t unit, uint64_t value);

#endif
