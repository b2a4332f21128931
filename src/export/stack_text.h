/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a format writes for the frames of a stack, made once for each stack: samples far outnumber
 * stacks. As many are kept as fit into STACK_TEXTS_MAX bytes; those of others are made anew each
 * time.
 */
#ifndef RBPF_EXPORT_STACK_TEXT_H
#define RBPF_EXPORT_STACK_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct shown;

#define STACK_TEXTS_MAX (32u << 20)

/*
 * Append the text of a stack to @out, the @n ids of whose frames are at @frames, the innermost
 * first. Returns 0 or -errno.
 */
typedef int stack_text_fn(void *arg, const uint32_t *frames, size_t n, struct buf *out);

struct stack_texts {
	const struct shown *shown; /* not owned */
	stack_text_fn *make;
	void *arg;
	size_t max;	    /* bytes that are kept */
	uint32_t *of_stack; /* by shown stack: where its text is in @texts + 1; 0: nowhere; owned */
	struct buf texts;   /* each after its length, a uint32_t */
	struct buf scratch; /* one that is not kept */
	uint32_t *frames;   /* scratch: of a stack; owned */
	size_t cap_frames;
};

/* @max is STACK_TEXTS_MAX, or less for tests. @shown must live as long. Returns 0 or -ENOMEM. */
int stack_texts_init(const struct shown *shown, size_t max, stack_text_fn *make, void *arg,
		     struct stack_texts *ret);
void stack_texts_deinit(struct stack_texts *t); /* accepts one that is all zero */

/*
 * The text of a shown stack, also of 0, the empty one; valid until the next call. Returns 0,
 * -ENOMEM, or what the function that makes it returns.
 */
int stack_text(struct stack_texts *t, uint32_t stack, const char **ret, size_t *len);

#endif
