/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How the boxes of a flame graph differ from those of an earlier recording: those of the same path
 * of methods (view/compare.h), as shares of the whole.
 */
#ifndef RBPF_EXPORT_FLAME_DIFF_H
#define RBPF_EXPORT_FLAME_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "base/prefix_tree.h"
#include "profile/profile.h"
#include "view/compare.h"

struct tree;
struct tree_node;
struct view_filter;

/* The categories of boxes, in the order of the legend. */
enum flame_change {
	CHANGE_DOUBLED, /* more than twice as much, or new */
	CHANGE_GREW,
	CHANGE_CHANCE, /* no difference that titles show, or one that may be chance */
	CHANGE_SHRANK,
	CHANGE_HALVED, /* less than half as much */
	FLAME_CHANGES,
};

/* Of all samples below a path; the same of those that are exact (view/sum.h). */
struct flame_sum {
	uint64_t samples, value;
	uint64_t exact_samples, exact_value;
};

/* The sums of paths, of which a long recording has millions: arrays, by path; owned. */
struct flame_sums {
	uint64_t *values;
	uint32_t *samples; /* at most UINT32_MAX */
	size_t n;
	/* What is exact of the first n_exact ones; of the others nothing is. */
	uint64_t *exact_values;
	uint32_t *exact_samples;
	size_t n_exact;
};

struct flame_base {
	struct intern keys;	 /* compare_key() */
	struct prefix_tree path; /* of these */
	struct flame_sums sums;
	struct flame_sum all;
	struct profile_event event; /* of its samples */
};

/*
 * The paths of an earlier recording. @inverted as the picture will be. Returns 0, or what
 * tree_build() does. @ret: flame_base_deinit(); @p is needed no longer.
 */
int flame_base_init(const struct profile *p, const struct view_filter *f, bool inverted,
		    struct flame_base *ret);
void flame_base_deinit(struct flame_base *base); /* accepts one that is all zero */

/* How a tree differs from a base; neither is owned. */
struct flame_diff {
	const struct flame_base *base;
	const struct tree_node *nodes;
	uint32_t *paths; /* by node; owned */
	struct flame_sums after;
	struct flame_sum all;
};

/*
 * Of @t, the only one that @base can be compared with: its paths are forgotten then. @t tells what
 * is exact. Returns 0 or -ENOMEM. @ret: flame_diff_deinit().
 */
int flame_diff_init(struct flame_base *base, const struct tree *t, struct flame_diff *ret);
void flame_diff_deinit(struct flame_diff *d); /* accepts one that is all zero */

/* How a node of the tree differs. */
struct compare_share flame_diff_share(const struct flame_diff *d, const struct tree_node *node);

enum flame_change flame_change_of(const struct compare_share *share);

#endif
