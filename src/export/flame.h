/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The flame graph: one self-contained SVG, right without scripts, interactive with them.
 */
#ifndef RBPF_EXPORT_FLAME_H
#define RBPF_EXPORT_FLAME_H

#include <stdbool.h>

#include "view/tree.h"

struct buf;
struct err;
struct profile;
struct flame_base;
struct view_filter;

enum flame_color {
	FLAME_COLOR_USUAL, /* by state where threads run and wait, or wait for several things … */
	FLAME_COLOR_KIND,  /* … else by kind of code */
	FLAME_COLOR_MODULE,
	FLAME_COLOR_HASH,
	FLAME_COLOR_STATE,
	FLAME_COLOR_GEM,
	FLAME_COLOR_DIFF,
};

struct flame_options {
	const struct view_filter *filter;
	const char *title;  /* any bytes; NULL: made from the profile */
	bool icicle;	    /* root on top */
	bool inverted;	    /* callers above the innermost frames */
	double min_width;   /* percent of the whole below which a frame is left out; negative: none
			     * is; 0: 0.01, or so much that the boxes take 3 MiB at most */
	unsigned int width; /* pixels of the static picture; 0: default 1200 */
	enum flame_color color;
	enum tree_split split;
	/*
	 * With FLAME_COLOR_DIFF: what the colours compare with, inverted as the picture. Then it
	 * has one graph that is not split, without that of the program's own code.
	 */
	struct flame_base *base;
	const char *base_name; /* what that is called; any bytes */
	const char *command;   /* the command line that draws it, for <desc>; NULL: not said */
};

/* Append the SVG to @out. Returns 0, -ENOMEM, or -ENODATA (ERR_EMPTY) if no sample is selected. */
int flame_render(const struct profile *p, const struct flame_options *opts, struct buf *out,
		 struct err *err);

/*
 * Append the script of all pictures, that between the tags: for a policy that names it by its hash.
 */
void flame_add_script(struct buf *out);

#endif
