/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The colours of a flame graph and the categories of its legend.
 *
 * Every box belongs to one category: where its code comes from, or the package that holds it. The
 * legend names them and can hide each. A frame's colour is that of its category, a little different
 * for each name but always the same for the same name.
 */
#ifndef RBPF_EXPORT_FLAME_COLOR_H
#define RBPF_EXPORT_FLAME_COLOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "export/flame.h"
#include "export/flame_diff.h"

struct profile;
struct tree;
struct tree_node;
struct view_filter;

#define FLAME_MAX_CATEGORIES 24
#define FLAME_SHADES	     8 /* of each colour */
#define FLAME_MAX_TREES	     3
#define FLAME_MAX_COLORS     26 /* named by a letter */

struct hsl {
	unsigned int h; /* 0 to 359 */
	unsigned int s; /* 0 to 100 */
	unsigned int l; /* 0 to 100 */
};

struct flame_category {
	struct buf name;
	const char *about;   /* more words for it; NULL: none */
	uint64_t self_value; /* of samples that were taken in it; each is in one category */
	uint64_t self_samples;
	bool used;    /* it has samples, or the trees have frames of it; or it is unknown */
	bool unknown; /* whether samples were taken in it: none is known to be */
};

struct flame_colors {
	enum flame_color mode;
	struct flame_category categories[FLAME_MAX_CATEGORIES];
	size_t n_categories;
	uint8_t *of_frame;			   /* category by frame id; owned */
	const struct tree *trees[FLAME_MAX_TREES]; /* whose nodes have categories; not owned */
	uint8_t *of_node[FLAME_MAX_TREES];	   /* these, with FLAME_COLOR_GEM; owned */
	size_t n_trees;
	struct flame_diff diff; /* FLAME_COLOR_DIFF */
	struct hsl light[FLAME_MAX_COLORS];
	struct hsl dark[FLAME_MAX_COLORS];
	bool shade_used[FLAME_MAX_COLORS][FLAME_SHADES];
};

/* Add samples that were taken in it. */
void flame_category_add(struct flame_category *category, uint64_t value, uint64_t samples);

/*
 * The categories of the frames of these trees, at least one, which are of the samples of one
 * profile that @f selects (NULL: all). Their self times are those of 'rbpf report --by kind' or,
 * with FLAME_COLOR_MODULE, '--by module', with FLAME_COLOR_GEM '--by gem', with FLAME_COLOR_STATE
 * '--by state'. @mode is not
 * FLAME_COLOR_USUAL. With FLAME_COLOR_STATE the trees tell states, and live as long. Returns 0 or
 * -ENOMEM. @ret: flame_colors_deinit().
 */
int flame_colors_init(const struct tree *const *trees, size_t n_trees, const struct view_filter *f,
		      enum flame_color mode, struct flame_colors *ret);
/*
 * The same with FLAME_COLOR_DIFF, of one tree, whose categories are enum flame_change. It must live
 * as long.
 */
int flame_colors_init_diff(const struct tree *t, struct flame_base *base, struct flame_colors *ret);

void flame_colors_deinit(struct flame_colors *colors);
#define _cleanup_flame_colors_ _cleanup_(flame_colors_deinit)

/*
 * Let nodes of @t be painted, too, which is of the same samples, but whose frames are not those
 * that the legend is about. Returns 0 or -ENOMEM.
 */
int flame_colors_add_tree(struct flame_colors *colors, const struct tree *t);

/*
 * The category of a node that is a frame: that of its frame, but with FLAME_COLOR_KIND a Ruby
 * method that mostly ran as compiled code is in one of its own. With FLAME_COLOR_STATE that of most
 * of its time; with FLAME_COLOR_GEM that of the gem of the innermost frame among it and its callers
 * that has the time by gem_claim(), of callers above it those with the most time.
 */
size_t flame_colors_category(const struct flame_colors *colors, const struct tree_node *node);

/* What is said of @node, a frame, in its title: the name of a category. */
const char *flame_colors_about(const struct flame_colors *colors, const struct profile *p,
			       const struct tree_node *node);

/*
 * What paints @node, a frame, and remember that it is used: its colour, which is its category
 * unless the mode is FLAME_COLOR_HASH, and its shade. Its CSS class is the letter 'a' + *@color,
 * then *@shade.
 */
void flame_colors_pick(struct flame_colors *colors, const struct profile *p,
		       const struct tree_node *node, size_t *color, size_t *shade);

/* Append that class. */
void flame_colors_class(struct flame_colors *colors, const struct profile *p,
			const struct tree_node *node, struct buf *out);

/* Whether categories have a colour each, whose class is then the letter 'a' + category. */
bool flame_colors_have_swatches(const struct flame_colors *colors);

/* Append the rules of the classes that were used. */
void flame_colors_css(const struct flame_colors *colors, struct buf *out);

#endif
