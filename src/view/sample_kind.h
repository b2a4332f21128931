/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What kind of code each sample was taken in: shares by kind divide the time, so that they add up
 * to all of it, and are the same whatever frames a view shows.
 *
 * A sample of garbage collection is of that kind, whatever function of the collector runs. Any
 * other is of the kind of its innermost frame, but the interpreter's own functions
 * (FRAME_INTERNAL) are the Ruby frame whose work they do.
 */
#ifndef RBPF_VIEW_SAMPLE_KIND_H
#define RBPF_VIEW_SAMPLE_KIND_H

#include <stdint.h>

#include "profile/profile.h"
#include "view/label.h"

/*
 * By stack id: the frame that tells the kind of samples with this stack, an innermost FRAME_GC if
 * it has any; PROFILE_NONE of the empty stack. @ret: free(). Returns 0 or -ENOMEM.
 */
int sample_frames(const struct profile *p, uint32_t **ret);

/*
 * What the samples of @a are, @frames being what sample_frames() gave. Without any frame they are
 * unknown.
 */
enum frame_kind sample_kind(const struct profile *p, const uint32_t *frames,
			    const struct profile_aggregate *a);
enum code_origin sample_origin(const struct profile *p, const uint32_t *frames,
			       const struct profile_aggregate *a);

#endif
