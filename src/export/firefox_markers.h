/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Markers of a thread in a profile of the Firefox Profiler: its garbage collections, its waits and
 * the requests that it served. They are in the order in which they ended, as Firefox itself writes
 * them.
 */
#ifndef RBPF_EXPORT_FIREFOX_MARKERS_H
#define RBPF_EXPORT_FIREFOX_MARKERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "export/request_spans.h"

struct err;
struct firefox_tables;
struct json;
struct replay;
struct thread_samples;

struct firefox_markers {
	struct firefox_tables *tables;	/* not owned */
	struct thread_samples *samples; /* not owned */
	struct request_spans requests;
	bool in_samples;  /* spans_in_samples() */
	struct buf kinds; /* scratch: of each marker of a thread, a byte */
};

/*
 * @tables and @samples must live longer. Returns as request_spans_init(). @ret:
 * firefox_markers_deinit().
 */
int firefox_markers_init(struct firefox_tables *tables, struct thread_samples *samples,
			 const struct replay *from, struct firefox_markers *ret, struct err *err);
void firefox_markers_deinit(struct firefox_markers *m); /* accepts one that is all zero */

/*
 * The member "markers" of the @i-th thread. Returns 0, -ENOMEM, or what thread_samples_each() does.
 */
int firefox_add_markers(struct firefox_markers *m, size_t i, struct json *j, struct err *err);

/* The member "markerSchema" of meta. */
void firefox_add_marker_schemas(struct json *j);

#endif
