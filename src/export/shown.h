/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stacks of a profile as a filter shows them: without the frames that it hides. For formats
 * that have whole stacks; a call tree is made by view/tree.h.
 */
#ifndef RBPF_EXPORT_SHOWN_H
#define RBPF_EXPORT_SHOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "profile/profile.h"

struct view_filter;
struct view_selection;

struct shown {
	const struct profile *profile;	  /* not owned */
	struct view_selection *selection; /* owned */
	uint32_t *nearest; /* by stack: of it and its callers' stacks, the nearest whose innermost
			    * frame is shown; 0 if there is none; owned */
	bool all;	   /* frames are shown */
};

#define SHOWN_INIT                                                                                 \
	{                                                                                          \
		0                                                                                  \
	}

/* @f NULL: all. Returns 0, -ENOMEM, or -EINVAL as view_selection_new(). @ret: shown_deinit(). */
int shown_init(const struct profile *p, const struct view_filter *f, struct shown *ret);
void shown_deinit(struct shown *s);
#define _cleanup_shown_ _cleanup_(shown_deinit)

/*
 * The time that is shown, in ns since the start: that of the recording, without what --from and
 * --to of @f (which may be NULL) leave out.
 */
void shown_time(const struct profile *p, const struct view_filter *f, uint64_t *from, uint64_t *to);

/* The stack that is shown for samples with @stack; 0, the empty one, if there is none. */
uint32_t shown_stack(const struct shown *s, uint32_t stack);

/* The stack that is shown of the callers of @stack, which is a shown one and not 0. */
static inline uint32_t shown_callers(const struct shown *s, uint32_t stack)
{
	return s->nearest[s->profile->stacks[stack].parent];
}

/* The stack @stack, a shown one or 0, without frames that tell that the thread waits. */
uint32_t shown_without_wait(const struct shown *s, uint32_t stack);

/* Whether a sample passes the filter. */
bool shown_sample(const struct shown *s, const struct profile_sample *sample);

/*
 * The frames of a shown stack, the innermost first, in *@frames, an array that grows (array.h).
 * Returns 0 or -ENOMEM.
 */
int shown_frames(const struct shown *s, uint32_t stack, uint32_t **frames, size_t *cap,
		 size_t *ret);

#endif
