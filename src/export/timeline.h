/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The timeline: a page with a row for each thread, that shows what it did when.
 */
#ifndef RBPF_EXPORT_TIMELINE_H
#define RBPF_EXPORT_TIMELINE_H

struct buf;
struct err;
struct page_options;
struct profile;

/*
 * Append the page to @out. The samples of @p are time that threads had: of CPU time, of waits, or
 * of both (EVENT_WALL).
 *
 * Returns 0, -ENOMEM, -ENODATA (ERR_EMPTY) if no sample is selected, -EINVAL (ERR_USAGE) for
 * another event, or what profile_each_sample() returns.
 */
int timeline_render(const struct profile *p, const struct page_options *opts, struct buf *out,
		    struct err *err);

#endif
