/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Changes the stacks of a profile before a view is made of it: so that every view, whatever it adds
 * up, shows subtrees only, or recursion as one call.
 */
#ifndef RBPF_VIEW_RESHAPE_H
#define RBPF_VIEW_RESHAPE_H

#include <regex.h>
#include <stdbool.h>

struct profile;
struct view_filter;

struct reshape_options {
	bool has_root;
	/*
	 * Keep the samples with a frame whose name matches, shown or not, and of their stacks the
	 * outermost such frame and what it called.
	 */
	regex_t root;
	/*
	 * Of frames of one function that called each other directly (where frames between them are
	 * not shown, these go, too), keep the innermost.
	 */
	bool collapse_recursion;
};

/*
 * Reshape the samples of @p that @f selects; others are removed, so that @f, whose patterns see
 * whole stacks, must not be applied again: its patterns for frames and its expression are dropped
 * here; its .applied says which. Frames, threads and the sums of the recording stay. Does nothing
 * if @opts ask for nothing.
 *
 * Returns 0, -ENOMEM, or -EINVAL (as view_selection_new()); then @p is as it was.
 */
int profile_reshape(struct profile *p, struct view_filter *f, const struct reshape_options *opts);

#endif
