/* SPDX-License-Identifier: GPL-2.0-only */
/* Which gem frames and stacks belong to, as the paths of their files tell it (gem_path.h). */
#ifndef RBPF_VIEW_GEM_H
#define RBPF_VIEW_GEM_H

#include <stdint.h>

#include "profile/gem_path.h"

struct buf;
struct profile;

/* gem_of_path() of a frame: GEM_NONE if that is no Ruby code, GEM_NOT_RECORDED. */
void gem_of_frame(const struct profile *p, uint32_t frame, struct gem *ret);

/*
 * Whose the time of a stack is: that of its innermost frame among those with the highest claim.
 * Programs and libraries have the highest, the interpreter's own code has one where there are none
 * of these, what is no Ruby code has none: 0.
 */
unsigned int gem_claim(enum gem_origin origin);

/*
 * By stack id: the frame whose gem has its time, if need be one that is no Ruby code; PROFILE_NONE
 * of the empty stack. @ret: free(). Returns 0 or -ENOMEM.
 */
int gem_frames(const struct profile *p, uint32_t **ret);

/* "app", "gem", "stdlib", "core", "none", "not-recorded" */
const char *gem_origin_word(enum gem_origin origin);

/* Append the name, "net-http"; nothing if it is in no gem. */
void gem_name(const struct gem *gem, struct buf *out);

/*
 * Append what it is to people: "activerecord 7.1.3", "net-http", "[application]", "[ruby core]",
 * "[no Ruby code]", "[not recorded]".
 */
void gem_label(const struct gem *gem, struct buf *out);

#endif
