/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/stack_mode.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "profile/profile.h"
#include "profile/reason.h"

static const struct {
	const char *name;
	const char *help;
	enum frame_reason
		instead; /* of the frame that is shown where nothing else is; or none is */
} modes[STACK_MODE_COUNT] = {
	[STACK_ALL] = { "all", "all frames, also those of the interpreter itself", REASON_NONE },
	[STACK_MIXED] = { "mixed", "Ruby, native and kernel frames without the interpreter's own",
			  REASON_NATIVE_THREAD },
	[STACK_RUBY] = { "ruby", "Ruby methods (in Ruby and in C) and garbage collection",
			 REASON_NATIVE_THREAD },
	[STACK_NATIVE] = { "native", "native and kernel frames", REASON_NO_NATIVE_STACK },
	[STACK_BOTH] = { "both",
			 "ruby and native side by side (of report, flame and export -f flame)",
			 REASON_NONE },
};

const char *stack_mode_name(size_t mode)
{
	return mode < STACK_MODE_COUNT ? modes[mode].name : NULL;
}

const char *stack_mode_help(size_t mode)
{
	return mode < STACK_MODE_COUNT ? modes[mode].help : NULL;
}

/*
 * What belongs to the native stack; all else, also what stands for no Ruby stack, to the Ruby
 * stack.
 */
static bool is_native(const struct profile_frame *f)
{
	if (f->kind == FRAME_NATIVE)
		return !frame_reason_of_no_ruby_stack(f->reason);
	return f->kind == FRAME_KERNEL || f->kind == FRAME_GAP;
}

bool stack_mode_shows_frame(enum stack_mode mode, const struct profile_frame *f)
{
	if (f->kind == FRAME_WAIT)
		return true;
	switch (mode) {
	case STACK_MIXED:
		return !(f->flags & FRAME_INTERNAL);
	case STACK_RUBY:
		return !is_native(f);
	case STACK_NATIVE:
		return is_native(f);
	default:
		return true;
	}
}

bool stack_mode_shows(enum stack_mode mode, const struct profile *p, uint32_t frame)
{
	return stack_mode_shows_frame(mode, &p->frames[frame]);
}

/* Whether a sample has a stack of which @mode leaves nothing. */
static int finds_nothing(const struct profile *p, enum stack_mode mode, bool *ret)
{
	_cleanup_free_ bool *shown = calloc(p->n_stacks + 1, sizeof(*shown));

	if (!shown)
		return -ENOMEM;
	for (size_t i = 1; i < p->n_stacks; i++)
		shown[i] = shown[p->stacks[i].parent] ||
			   stack_mode_shows(mode, p, p->stacks[i].frame);
	*ret = false;
	for (size_t i = 0; i < p->n_aggregates && !*ret; i++)
		*ret = p->aggregates[i].stack && !shown[p->aggregates[i].stack];
	return 0;
}

static int add_instead(struct profile *p, enum stack_mode mode)
{
	const enum frame_reason reason = modes[mode].instead;
	struct profile_frame frame = { .kind = frame_reason_kind(reason),
				       .module = PROFILE_NONE,
				       .reason = reason };

	if (intern_str(&p->strings, frame_reason_label(reason), &frame.name) ||
	    array_reserve(p->frames, p->cap_frames, p->n_frames + 1) ||
	    array_reserve(p->stacks, p->cap_stacks, p->n_stacks + 1))
		return -ENOMEM;
	p->stacks[p->n_stacks++] = (struct profile_stack) { .frame = (uint32_t)p->n_frames };
	p->frames[p->n_frames++] = frame;
	return 0;
}

int stack_mode_prepare(struct profile *p, enum stack_mode mode)
{
	bool needed;
	int r;

	if (mode == STACK_BOTH) {
		r = stack_mode_prepare(p, STACK_RUBY);
		return r ? r : stack_mode_prepare(p, STACK_NATIVE);
	}
	r = finds_nothing(p, mode, &needed);
	if (r || !needed || stack_mode_instead(mode, p))
		return r;
	return add_instead(p, mode);
}

uint32_t stack_mode_instead(enum stack_mode mode, const struct profile *p)
{
	const enum frame_reason reason = modes[mode].instead;

	if (reason == REASON_NONE)
		return 0;
	for (size_t i = p->n_stacks; i-- > 1;)
		if (!p->stacks[i].parent && p->frames[p->stacks[i].frame].reason == reason)
			return (uint32_t)i;
	return 0;
}
