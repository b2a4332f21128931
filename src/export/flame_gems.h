/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which gem the boxes of a flame graph are of (FLAME_COLOR_GEM): as 'rbpf report --by gem' has it
 * of stacks, but of a box and the callers that it has in the picture.
 */
#ifndef RBPF_EXPORT_FLAME_GEMS_H
#define RBPF_EXPORT_FLAME_GEMS_H

#include <stdint.h>

struct tree;

/*
 * By node of @t, the frame whose gem it is of; PROFILE_NONE of what is no function. Where callers
 * are above, of several those with the most time count. Returns 0 or -ENOMEM. *@ret: free().
 */
int flame_gem_frames(const struct tree *t, uint32_t **ret);

#endif
