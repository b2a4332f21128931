/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The samples of a profile one by one, each with the names of its shown frames: what oracles count
 * in the simplest way.
 */
#ifndef RBPF_TESTS_NAIVE_SAMPLES_H
#define RBPF_TESTS_NAIVE_SAMPLES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"
#include "view/filter.h"

#define NAIVE_MAX_DEPTH 64

struct naive_sample {
	uint64_t value;
	size_t n;			 /* frames, the outermost first */
	char keys[NAIVE_MAX_DEPTH][160]; /* what makes two frames of one function */
	uint32_t frames[NAIVE_MAX_DEPTH];
};

/* Kind, name, file, line of the definition; of C functions the name alone. */
static inline void naive_key(const struct profile *p, uint32_t frame, char *ret, size_t size)
{
	const struct profile_frame *f = &p->frames[frame];
	const char *file = profile_str(p, f->file);

	if (f->kind == FRAME_CFUNC)
		snprintf(ret, size, "C %s", profile_str(p, f->name));
	else if (f->kind != FRAME_RUBY && !*file && f->module != PROFILE_NONE)
		snprintf(ret, size, "%u %s %s %u", f->kind, profile_str(p, f->name),
			 profile_str(p, p->modules[f->module].path), f->func_line);
	else
		snprintf(ret, size, "%u %s %s %u", f->kind, profile_str(p, f->name), file,
			 f->func_line);
}

static inline void naive_push(const struct profile *p, uint32_t frame, struct naive_sample *ret)
{
	if (ret->n == NAIVE_MAX_DEPTH)
		abort();
	naive_key(p, frame, ret->keys[ret->n], sizeof(ret->keys[0]));
	ret->frames[ret->n++] = frame;
}

/* The shown frames of a kept sample; false if @f does not select it. */
static inline bool naive_sample(const struct profile *p, const struct view_selection *sel, size_t i,
				struct naive_sample *ret)
{
	const struct profile_aggregate alike = profile_aggregate_of(p, &p->samples[i]);
	uint32_t stack, path[NAIVE_MAX_DEPTH];
	size_t n = 0;

	if (!view_selected(sel, &alike))
		return false;
	ret->value = p->samples[i].value;
	ret->n = 0;
	for (stack = alike.stack; stack; stack = p->stacks[stack].parent)
		path[n++] = p->stacks[stack].frame;
	while (n--)
		if (view_frame_shown(sel, path[n]))
			naive_push(p, path[n], ret);
	if (!ret->n && alike.stack && view_stack_instead(sel))
		naive_push(p, p->stacks[view_stack_instead(sel)].frame, ret);
	return true;
}

#endif
