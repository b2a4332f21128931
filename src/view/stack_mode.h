/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stack modes: which frames of a stack a view shows.
 *
 * A stack of a recording is one sequence of Ruby, native and kernel frames, each called by the one
 * outside of it. Most native frames are the interpreter at work, which the Ruby frames beside them
 * tell already (FRAME_INTERNAL). A mode selects frames by kind; the time of a hidden frame goes to
 * the nearest frame outside of it that is shown. In a recording without native stacks all modes but
 * native show the same.
 *
 * A mode may hide all frames of a stack, as those of a thread that runs no Ruby. Its time is then
 * shown in a frame that says so. Views and exports know frames and stacks by their ids, so that
 * frame must be in the profile: see stack_mode_prepare().
 */
#ifndef RBPF_VIEW_STACK_MODE_H
#define RBPF_VIEW_STACK_MODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;
struct profile_frame;

enum stack_mode {
	STACK_ALL,   /* all frames */
	STACK_MIXED, /* all but internal ones */
	STACK_RUBY,  /* Ruby and C methods, garbage collection, and what stands for Ruby frames that
		      * are missing (truncated, unknown, "[native thread]") or between two stacks
		      * (fiber): a caller must not seem to call what it did not */
	STACK_NATIVE, /* all others: native frames, internal ones too, kernel frames and gaps */
	STACK_BOTH,   /* those of STACK_RUBY next to those of STACK_NATIVE: two views of the same
		       * samples, each in a mode of its own */
	STACK_MODE_COUNT,
};

/* The word of the command line, "mixed"; what it means, for help. NULL past the last. */
const char *stack_mode_name(size_t mode);
const char *stack_mode_help(size_t mode);

/* Whether @mode shows frame @frame of @p. STACK_BOTH shows what either of its two shows: all. */
bool stack_mode_shows(enum stack_mode mode, const struct profile *p, uint32_t frame);
/* The same of a frame that is in no profile; its kind, flags and reason count. */
bool stack_mode_shows_frame(enum stack_mode mode, const struct profile_frame *f);

/*
 * If @mode leaves nothing of a sample's stack, add to @p the frame and the stack that are shown in
 * its place: behind all others, which keep their ids. Once is enough, more do not harm.
 *
 * Returns 0 or -ENOMEM.
 */
int stack_mode_prepare(struct profile *p, enum stack_mode mode);

/* The stack that was so added; 0 if none was. */
uint32_t stack_mode_instead(enum stack_mode mode, const struct profile *p);

#endif
