/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The text of a source file that a recording names, read where the report is made.
 */
#ifndef RBPF_REPORT_SOURCE_TEXT_H
#define RBPF_REPORT_SOURCE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define SOURCE_MAX_BYTES (16u << 20)

struct source_text {
	char *path;	    /* where it was found; owned; NULL if nowhere */
	int why;	    /* -errno: why there is no text */
	int64_t changed_ns; /* when it was last changed, since 1970; 0 if .kept */
	bool kept;	    /* it is from the recording … */
	bool differs;	    /* … and the file that was found is another */
	size_t versions;    /* how many files of that path were kept */
	struct buf text;
	size_t *lines; /* where they begin in .text; owned */
	size_t n, cap;
};

#define SOURCE_TEXT_INIT                                                                           \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Read the file that Ruby calls @path below the directory @root: by its whole path, then by fewer
 * and fewer of its last parts. The recording chooses the path, so nothing outside of @root is
 * opened, and regular files only, of at most SOURCE_MAX_BYTES (-EFBIG). @root NULL: there is no
 * text.
 *
 * Returns 0, also if there is no text, or -ENOMEM. @ret: source_text_deinit().
 */
int source_text_read(const char *path, const char *root, struct source_text *ret);

/*
 * The text that a recording kept of the file that Ruby calls @path, or else, if it kept none,
 * source_text_read(). The file that is compared with it is the one below @root; without @root the
 * one that has this very path here. Returns as source_text_read().
 */
struct kept_sources;
int source_text_choose(const struct kept_sources *kept, const char *path, const char *root,
		       struct source_text *ret);
void source_text_deinit(struct source_text *s);
#define _cleanup_source_text_ _cleanup_(source_text_deinit)

/*
 * Append line @line, from 1, to @out: made valid, tabs as blanks; nothing if there is none.
 */
void source_text_line(const struct source_text *s, uint32_t line, struct buf *out);

#endif
