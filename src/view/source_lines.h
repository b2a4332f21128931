/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Self and total of lines of source files.
 *
 * A line has the samples with a Ruby frame that executes it: as self time those in which that frame
 * is the innermost one shown, so not the time of the C functions that the line calls. An
 * approximate line (FRAME_LINE_APPROXIMATE) counts as what it says.
 */
#ifndef RBPF_VIEW_SOURCE_LINES_H
#define RBPF_VIEW_SOURCE_LINES_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "view/totals.h"

struct profile;
struct view_filter;

struct source_line {
	uint32_t file; /* string */
	uint32_t line;
	struct group_total time;
};

struct source_lines {
	struct source_line *lines; /* by path, then by line; owned */
	size_t n;
	struct view_sum all; /* selected samples */
};

#define SOURCE_LINES_INIT                                                                          \
	{                                                                                          \
		0                                                                                  \
	}

/* Which lines: those of all methods whose name matches; or, if it is NULL, those of a file. */
struct source_choice {
	const regex_t *method;
	const char *file; /* its path as Ruby shows it, or the last parts of that */
	uint32_t line;	  /* this one only; 0: all */
};

/* Whether @path is what @name names: the whole path, or its last parts. */
bool source_is_named(const char *path, const char *name);

/* Whether the recording has Ruby code of a file that @name names. */
bool source_is_known(const struct profile *p, const char *name);

/*
 * Lines without samples have no row. Returns 0, -ENOMEM, or -EINVAL (as view_selection_new()).
 * @ret: source_lines_deinit().
 */
int source_lines_build(const struct profile *p, const struct view_filter *f,
		       const struct source_choice *choice, struct source_lines *ret);
void source_lines_deinit(struct source_lines *s);
#define _cleanup_source_lines_ _cleanup_(source_lines_deinit)

#endif
