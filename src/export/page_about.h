/* SPDX-License-Identifier: GPL-2.0-only */
/* What a page says of the recording that it is of, and of itself; what its renderer is given. */
#ifndef RBPF_EXPORT_PAGE_ABOUT_H
#define RBPF_EXPORT_PAGE_ABOUT_H

#include <stdint.h>

#include "profile/replay.h"

struct buf;
struct err;
struct flame_facts;
struct json;
struct profile;
struct view_filter;

/* What the data of a page may take at most, if nobody said how much: browsers open it at once. */
#define PAGE_MAX_BYTES (3u << 20)

struct page_options {
	const struct view_filter *filter; /* not NULL */
	const struct replay *from;	  /* of the profile, for its samples one by one */
	const char *title;		  /* any bytes; NULL: made from the profile */
	const char *recording;		  /* what it is called in command lines; any bytes */
	const char *command;		  /* the command line that draws it, or NULL */
	const struct buf *filters; /* its options that select samples, each with a NUL behind it */
	uint64_t max_bytes;	   /* of the data, about; 0: PAGE_MAX_BYTES */
	uint64_t rows;		   /* of a heat map: in a second; 0: 50 */
};

/* Set @title: the given one, or "puma (pid 42): @what". */
void page_make_title(const struct profile *p, const struct flame_facts *facts,
		     const struct page_options *opts, const char *what, struct buf *title);

/*
 * Add to the object that is open in @j: title, facts and warnings (arrays of strings), event, unit,
 * where the recording comes from, and the command lines.
 */
void page_add_about(const struct profile *p, const struct flame_facts *facts,
		    const struct page_options *opts, const struct buf *title, struct json *j);

#endif
