/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The picture that flame.c draws, shared by its parts: flame_frames.c paints the boxes,
 * flame_header.c the title, the legend and the footer. Nobody else includes this.
 */
#ifndef RBPF_EXPORT_FLAME_PICTURE_H
#define RBPF_EXPORT_FLAME_PICTURE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "export/flame.h"
#include "export/flame_color.h"
#include "export/flame_facts.h"
#include "export/flame_layout.h"
#include "profile/profile.h"
#include "view/tree.h"

/* Pixels. The script reads ROW, PAD and GUTTER from the file; its texts have the same fonts. */
#define PAD	  12 /* left and right of everything */
#define GUTTER	  24 /* between two graphs side by side */
#define ROW	  17 /* from one level to the next */

#define MAX_PANES 2

/* One flame graph. A picture of STACK_BOTH has two, of the same samples in the same scale. */
struct flame_pane {
	struct tree tree;
	struct flame_layout layout;
	const char *root;	  /* what the root is called; NULL: as by tree_node_label() */
	unsigned int left, width; /* pixels */
};

struct flame {
	const struct profile *profile;
	const struct flame_options *opts;
	struct flame_pane panes[MAX_PANES];
	size_t n_panes;
	struct flame_pane app;	/* the program's own code alone, which the script shows instead */
	enum flame_color color; /* not FLAME_COLOR_USUAL */
	struct flame_colors colors;
	struct flame_facts facts;
	uint64_t total;	    /* width of each root in the unit of the layouts */
	bool by_samples;    /* that unit */
	uint32_t max_depth; /* of a box */
	uint64_t n_hidden;  /* boxes that are too narrow */
	struct buf title;   /* not escaped */
	struct buf name;    /* scratch */
	struct buf text;    /* scratch */
	unsigned int width;
	double seen;	    /* flame_states_seen(); 1 with other colours */
	double min_percent; /* no box is narrower: if it was not given, of what is seen */
	uint64_t min_box;   /* none is narrower, in the unit of the layouts; 0: min_percent */
	unsigned int top;   /* height of the header */
	unsigned int height;
};

/* All that is not markup comes into the picture through here, so that it is escaped, and once. */
void flame_add_text(struct buf *out, const struct buf *text);

/* "\ntotal 1.20 s (12.3%), 120 samples" */
void flame_add_amount(const struct flame *fl, const char *what, uint64_t value, uint64_t samples,
		      struct buf *out);

/* The boxes of all panes. */
void flame_add_frames(struct flame *fl, struct buf *out);

/* The boxes of fl->app, without a place: they are seen only where a script places them. */
void flame_add_app_frames(struct flame *fl, struct buf *out);

/* Set fl->title. */
void flame_make_title(struct flame *fl);

/* Sets fl->top. */
void flame_add_header(struct flame *fl, struct buf *out);
void flame_add_footer(struct flame *fl, struct buf *out);

/* "0.01%": what is narrower has no box. @min_box as fl->min_box. */
void flame_add_min_width(const struct flame *fl, uint64_t min_box, struct buf *out);

/* "37 frames below 0.01% hidden" */
void flame_add_hidden_note(const struct flame *fl, struct buf *out);

#endif
