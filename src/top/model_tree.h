/* SPDX-License-Identifier: GPL-2.0-only */
/* The rows of the call tree, and what they share with those of the lists. */
#ifndef RBPF_TOP_MODEL_TREE_H
#define RBPF_TOP_MODEL_TREE_H

#include <regex.h>

#include "top/model.h"

struct profile;
struct view_filter;

/* Append @s to the text of @m; its offset. */
size_t top_text(struct top_model *m, const char *s);

/* Set the label of a frame, where it is, and a key made from both, in @row. */
void top_frame_text(struct top_model *m, const struct profile *p, uint32_t frame,
		    struct top_row *row);

/* Returns 0 or -ENOMEM. */
int top_add_row(struct top_model *m, const struct top_row *row);

/* Whether the filter lets @row through. */
bool top_matches(const struct top_model *m, const struct top_row *row,
		 const struct top_choice *choice);

/*
 * Compile into @re, and set *@has, what matches @name and nothing else. Returns 0, -EINVAL or
 * -ENOMEM.
 */
int top_match_only(const char *name, regex_t *re, bool *has);

/*
 * The nodes that are open or below an open one, in preorder. Those of 5 % of the root and more are
 * open unless they were closed. Returns 0, -ENOMEM or -E2BIG.
 */
int top_build_tree(struct top_model *m, const struct profile *p, struct view_filter *f,
		   const struct top_choice *choice);

#endif
