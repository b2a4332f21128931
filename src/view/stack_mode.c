/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/stack_mode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "profile/profile.h"

static const struct {
	const char *name;
	const char *help;
	enum frame_kind instead_kind; /* of the frame that is shown where nothing else is … */
	const char *instead;	      /* … and its name; NULL: there is none */
} modes[STACK_MODE_COUNT] = {
	[STACK_ALL] = { "all", "all frames, also those of the interpreter itself", FRAME_NATIVE,
			NULL },
	[STACK_MIXED] = { "mixed", "Ruby, native and kernel frames without the interpreter's own",
			  FRAME_NATIVE, "[native thread]" },
	[STACK_RUBY] = { "ruby", "Ruby methods (in Ruby and in C) and garbage collection",
			 FRAME_NATIVE, "[native thread]" },
	[STACK_NATIVE] = { "native", "native and kernel frames", FRAME_GAP, "[no native stack]" },
	[STACK_BOTH] = { "both", "ruby and native side by side", FRAME_NATIVE, NULL },
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
 * "[native thread]", "[no Ruby in process]": what samplers put in place of a Ruby stack that is not
 * there. Such a frame is nowhere in memory, and so in no module; it is no code of the interpreter,
 * as "[compiled Ruby code]" is.
 */
static bool is_instead_of_ruby(const struct profile *p, const struct profile_frame *f)
{
	size_t len;
	const char *name = intern_get(&p->strings, f->name, &len);

	return f->kind == FRAME_NATIVE && f->module == PROFILE_NONE &&
	       !(f->flags & FRAME_INTERNAL) && len && name[0] == '[' && name[len - 1] == ']';
}

/* What belongs to the native stack; all else belongs to the Ruby stack. */
static bool is_native(const struct profile *p, const struct profile_frame *f)
{
	if (f->kind == FRAME_NATIVE)
		return !is_instead_of_ruby(p, f);
	return f->kind == FRAME_KERNEL || f->kind == FRAME_GAP;
}

bool stack_mode_shows(enum stack_mode mode, const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames[frame];

	switch (mode) {
	case STACK_MIXED:
		return !(f->flags & FRAME_INTERNAL);
	case STACK_RUBY:
		return !is_native(p, f);
	case STACK_NATIVE:
		return is_native(p, f);
	default:
		return true;
	}
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
	struct profile_frame frame = { .kind = modes[mode].instead_kind, .module = PROFILE_NONE };

	if (intern_str(&p->strings, modes[mode].instead, &frame.name) ||
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
	const char *name = modes[mode].instead;

	if (!name)
		return 0;
	for (size_t i = p->n_stacks; i-- > 1;) {
		const struct profile_frame *f = &p->frames[p->stacks[i].frame];

		if (!p->stacks[i].parent && f->kind == modes[mode].instead_kind &&
		    f->module == PROFILE_NONE && !strcmp(profile_str(p, f->name), name))
			return (uint32_t)i;
	}
	return 0;
}
