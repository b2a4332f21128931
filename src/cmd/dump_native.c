/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/dump_native.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "native/native_stacks.h"
#include "native/native_here.h"
#include "native/weave.h"
#include "symbol/native_names.h"
#include "symbol/resolver.h"

struct dump_native {
	struct native_here *here;
};

int dump_native_new(const struct ruby_vm *vm, struct dump_native **ret)
{
	struct dump_native *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	r = native_here_new(vm, &d->here);
	if (r)
		dump_native_free(d);
	else
		*ret = d;
	return r;
}

void dump_native_free(struct dump_native *d)
{
	if (!d)
		return;
	native_here_free(d->here);
	free(d);
}

int dump_native_walk(struct dump_native *d, uint64_t ec, const struct rbpf_regs *regs,
		     struct native_stack *ret)
{
	return native_here_walk(d->here, ec, regs, ret);
}

/* Room for what is being woven. */
struct loom {
	uint64_t *words;
	struct native_frames names;
	struct weave_ruby *ruby;
	struct weave_native *native;
	struct woven *woven;
};

static void loom_deinit(struct loom *l)
{
	free(l->words);
	free(l->names.v);
	free(l->ruby);
	free(l->native);
	free(l->woven);
}

static int loom_init(struct loom *l, size_t n_ruby, size_t n_native)
{
	*l = (struct loom) {
		.words = calloc(n_native, sizeof(*l->words)),
		.ruby = calloc(n_ruby + 1, sizeof(*l->ruby)),
		.native = calloc(n_native, sizeof(*l->native)),
		.woven = calloc(n_ruby + n_native, sizeof(*l->woven)),
	};
	return l->words && l->ruby && l->native && l->woven ? 0 : -ENOMEM;
}

/* The words of @native, and one for what is missing at its end. Returns how many there are. */
static size_t take_words(struct loom *l, const struct native_stack *native)
{
	size_t i;

	for (i = 0; i < native->n_words; i++)
		l->words[i] = native->words[i];
	if (native->end != RBPF_NATIVE_OUTERMOST)
		l->words[i++] = native->end;
	return i;
}

static struct dump_frame native_frame_of(const struct dump_native *d, const struct loom *l,
					 const struct woven *w)
{
	uint64_t word = l->words[w->index];

	return (struct dump_frame) {
		.native = native_here_name(d->here, l->names.v[w->index].name),
		.pc = word < RBPF_NATIVE_END_COUNT ? 0 : word & ~RBPF_NATIVE_EXACT,
		.internal = w->internal,
	};
}

/* Weave into @l->woven. Returns 0 or -ENOMEM. */
static int weave_both(struct dump_native *d, struct loom *l, const struct dump_ruby *ruby,
		      const struct native_stack *native, size_t *n)
{
	const struct frame_origin *origins = resolver_origins(ruby->resolver);
	struct weave w = { .ruby = l->ruby,
			   .n_ruby = ruby->n,
			   .native = l->native,
			   .n_native = take_words(l, native),
			   .complete = native->end == RBPF_NATIVE_OUTERMOST,
			   .goes_on = native_here_goes_on,
			   .arg = d->here };
	size_t i, gc;
	int r;

	r = native_here_frames(d->here, l->words, w.n_native, &l->names);
	if (r)
		return r;
	for (i = 0; i < w.n_native; i++)
		l->native[i] = l->names.v[i].what;
	for (i = 0; i < w.n_ruby; i++)
		l->ruby[i] = native_weave_ruby(
			resolver_symbol(ruby->resolver, ruby->symbols[i])->kind, &origins[i]);
	*n = weave(&w, l->woven, &gc);
	return 0;
}

int dump_native_weave(struct dump_native *d, const struct dump_ruby *ruby,
		      const struct native_stack *native, struct dump_frame **ret, size_t *n)
{
	struct loom l _cleanup_(loom_deinit);
	struct dump_frame *frames;
	size_t i, n_woven = 0;
	int r;

	r = loom_init(&l, ruby->n, native->n_words + 1);
	if (!r)
		r = native_here_interpreter(d->here, ruby->resolver);
	if (!r)
		r = weave_both(d, &l, ruby, native, &n_woven);
	if (r)
		return r;
	frames = calloc(n_woven + 1, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	for (i = 0; i < n_woven; i++) {
		const struct woven *w = &l.woven[n_woven - 1 - i]; /* the outermost comes first */

		if (w->native)
			frames[i] = native_frame_of(d, &l, w);
		else
			frames[i].ruby = resolver_symbol(ruby->resolver, ruby->symbols[w->index]);
	}
	*ret = frames;
	*n = n_woven;
	return 0;
}

const char *dump_native_end(enum rbpf_native_end end)
{
	static const char *const words[RBPF_NATIVE_END_COUNT] = {
		[RBPF_NATIVE_OUTERMOST] = "outermost",
		[RBPF_NATIVE_NO_MAP] = "no-map",
		[RBPF_NATIVE_NO_RANGE] = "no-range",
		[RBPF_NATIVE_UNREAD] = "unread",
		[RBPF_NATIVE_NO_TABLE] = "no-table",
		[RBPF_NATIVE_NO_ROOM] = "no-room",
		[RBPF_NATIVE_NO_RULE] = "no-rule",
		[RBPF_NATIVE_REGISTER] = "register",
		[RBPF_NATIVE_FAULT] = "fault",
		[RBPF_NATIVE_STUCK] = "stuck",
		[RBPF_NATIVE_JIT] = "jit",
		[RBPF_NATIVE_LIMIT] = "limit",
	};

	return words[end];
}
