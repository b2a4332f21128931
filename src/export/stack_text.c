/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/stack_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/shown.h"

int stack_texts_init(const struct shown *shown, size_t max, stack_text_fn *make, void *arg,
		     struct stack_texts *ret)
{
	struct stack_texts t = { .shown = shown, .make = make, .arg = arg, .max = max };

	t.of_stack = calloc(shown->profile->n_stacks + 1, sizeof(*t.of_stack));
	if (!t.of_stack)
		return -ENOMEM;
	*ret = t;
	return 0;
}

void stack_texts_deinit(struct stack_texts *t)
{
	free(t->of_stack);
	buf_deinit(&t->texts);
	buf_deinit(&t->scratch);
	free(t->frames);
	*t = (struct stack_texts) { 0 };
}

static int make_text(struct stack_texts *t, uint32_t stack)
{
	size_t n;
	int r = shown_frames(t->shown, stack, &t->frames, &t->cap_frames, &n);

	buf_reset(&t->scratch);
	if (!r)
		r = t->make(t->arg, t->frames, n, &t->scratch);
	return !r && buf_failed(&t->scratch) ? -ENOMEM : r;
}

/* Keep the text that was made last, if there is room. */
static int keep(struct stack_texts *t, uint32_t stack)
{
	const uint32_t len = (uint32_t)t->scratch.len, at = (uint32_t)t->texts.len;

	if (t->scratch.len + sizeof(len) > t->max - t->texts.len)
		return 0;
	buf_add(&t->texts, &len, sizeof(len));
	buf_add(&t->texts, t->scratch.data, len);
	t->of_stack[stack] = at + 1;
	return buf_failed(&t->texts) ? -ENOMEM : 0;
}

int stack_text(struct stack_texts *t, uint32_t stack, const char **ret, size_t *ret_len)
{
	uint32_t len;
	int r;

	if (!t->of_stack[stack]) {
		r = make_text(t, stack);
		if (!r)
			r = keep(t, stack);
		if (r)
			return r;
		*ret = buf_str(&t->scratch);
		*ret_len = t->scratch.len;
		return 0;
	}
	*ret = t->texts.data + t->of_stack[stack] - 1;
	memcpy(&len, *ret, sizeof(len));
	*ret += sizeof(len);
	*ret_len = len;
	return 0;
}
