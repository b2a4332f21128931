/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The heat map: a page that shows when the time was spent, with the flame graph of any range of
 * time that is selected in it.
 */
#ifndef RBPF_EXPORT_HEATMAP_H
#define RBPF_EXPORT_HEATMAP_H

struct buf;
struct err;
struct page_options;
struct profile;

/*
 * Append the page to @out. Returns 0, -ENOMEM, -ENODATA (ERR_EMPTY) if no sample is selected, or
 * what profile_each_sample() and tree_build() return.
 */
int heatmap_render(const struct profile *p, const struct page_options *opts, struct buf *out,
		   struct err *err);

#endif
