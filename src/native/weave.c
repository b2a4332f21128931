/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Both stacks are consumed from their outermost ends. If all of them is there, their activations
 * of rb_vm_exec() are paired in this order, because activations begin and end at the inner end, where
 * for a moment one of the stacks has one more. Where frames are missing, from there on in they are
 * paired in the other order (align()).
 */
#include "native/weave.h"

#include <stdlib.h>

#include "base/array.h"

/* Frames that are looked at for a function that another one may have gone on in. */
#define MAX_TRIES 64

/* What is left are the first frames of each. */
struct loom {
	const struct weave *w;
	size_t ruby, native; /* frames left of each */
	size_t aligned;	     /* to be aligned when so many Ruby frames are left; 0: no more */
	size_t skip; /* activations of rb_vm_exec() that come first and are of none of the Ruby frames */
	size_t opened; /* of those that the next Ruby frame begins with */
	size_t first;  /* the next one when so many are left begins with … */
	size_t opens;  /* … so many, whatever it says */
	struct woven *out;
	size_t n;
	size_t ruby_end; /* behind the last Ruby frame in it */
};

static void put(struct loom *l, uint32_t index, bool native, bool internal)
{
	l->out[l->n++] = (struct woven) { .index = index, .native = native, .internal = internal };
}

static void put_native(struct loom *l, bool internal)
{
	put(l, (uint32_t)--l->native, true, internal);
}

static bool next_is(const struct loom *l, uint32_t is)
{
	return l->native && l->w->native[l->native - 1].is & is;
}

static const struct weave_ruby *next_ruby(const struct loom *l)
{
	return l->ruby ? &l->w->ruby[l->ruby - 1] : NULL;
}

/* Whether the next Ruby frame begins with activations that did not come yet. */
static bool next_begins(const struct loom *l)
{
	return l->ruby &&
	       l->opened < (l->ruby == l->first ? l->opens : l->w->ruby[l->ruby - 1].finish);
}

/* ---- where frames are missing ---- */

static void align(struct loom *l);

static void put_ruby(struct loom *l)
{
	put(l, (uint32_t)--l->ruby, false, false);
	l->ruby_end = l->n;
	l->opened = 0;
	if (l->aligned && l->ruby == l->aligned)
		align(l);
}

static size_t count_activations(const struct loom *l)
{
	size_t n = 0, i;

	for (i = 0; i < l->native; i++)
		n += !!(l->w->native[i].is & WEAVE_VM_EXEC);
	return n;
}

/*
 * Pair the activations that are left with the Ruby frames that are, from the innermost ones on. What
 * there is more of on one side is, on the other, among what is missing.
 */
static void align(struct loom *l)
{
	const struct weave_ruby *ruby = l->w->ruby;
	const size_t left = count_activations(l);
	size_t i, n = 0;

	l->aligned = 0;
	for (i = 0; i < l->ruby && n < left; i++)
		n += ruby[i].finish;
	if (n < left) {
		/* Of one of those it is only the first frame that is missing. */
		bool begun = l->ruby && !ruby[l->ruby - 1].finish;

		l->skip = left - n - begun;
		l->first = begun ? l->ruby : 0;
		l->opens = 1;
		return;
	}
	l->first = i;
	l->opens = i ? ruby[i - 1].finish - (n - left) : 0;
	/* The last of them may be methods in C, whose functions are there. */
	while (i < l->ruby && ruby[i].function && !ruby[i].finish)
		i++;
	while (l->ruby > i)
		put_ruby(l);
}

/* ---- native frames ---- */

/* The end of the native frames that are called, in the end, by the Ruby frames that come first. */
static size_t run_end(const struct loom *l)
{
	size_t i = l->native;

	while (i && !(l->w->native[i - 1].is & WEAVE_VM_EXEC))
		i--;
	return i;
}

/* Native frames down to @end that are there to call what comes then. */
static size_t glue_begin(const struct loom *l, size_t end)
{
	const uint32_t glue = WEAVE_VM | WEAVE_GLUE;
	size_t i = end;

	while (i < l->native && (l->w->native[i].is & glue) == glue)
		i++;
	return i;
}

/* How many of the methods in C that come next, as far as those of a segment are known, it is of. */
static size_t count_methods(const struct loom *l, uint64_t function)
{
	const struct weave_ruby *r;
	size_t n = 1, i;

	for (i = l->ruby - 1; i; i--) {
		r = &l->w->ruby[i - 1];
		if (r->finish || r->is_cut)
			break;
		n += r->function == function;
	}
	return n;
}

/* The same for the outermost frame of a function that @function may have gone on in. */
static size_t find_next_function(const struct loom *l, uint64_t function, size_t end)
{
	size_t i, tries = 0;

	for (i = l->native; l->w->goes_on && i > end && tries < MAX_TRIES; i--, tries++)
		if (l->w->native[i - 1].function &&
		    l->w->goes_on(l->w->arg, function, l->w->native[i - 1].function))
			return i;
	return end;
}

/*
 * The native frame of @function, that of the next method, between those left and @end; @end if
 * there is none. If several methods have it, but not each a frame, the outer ones have none.
 */
static size_t find_function(const struct loom *l, uint64_t function, size_t end)
{
	size_t at = end, n = 0, i;

	if (!function)
		return end;
	for (i = end; i < l->native; i++) {
		if (l->w->native[i].function == function) {
			at = i + 1;
			n++;
		}
	}
	if (!n)
		return find_next_function(l, function, end);
	return n < count_methods(l, function) ? end : at;
}

/* Behind the last frame, down to @end, of code that runs Ruby; those left if there is none. */
static size_t core_end(const struct loom *l, size_t end)
{
	size_t i;

	for (i = end; i < l->native; i++)
		if (l->w->native[i].is & WEAVE_CORE)
			return i;
	return l->native;
}

/* Native frames down to @end, those that are one of @internal as such. */
static void put_run(struct loom *l, size_t end, uint32_t internal)
{
	while (l->native > end)
		put_native(l, next_is(l, internal));
}

/* The same, but only what calls the Ruby code that comes then. */
static void put_run_and_glue(struct loom *l, size_t end)
{
	put_run(l, end ? glue_begin(l, end) : 0, 0);
	put_run(l, end, WEAVE_VM);
}

/*
 * What the interpreter calls for the method that it runs: through functions of its own, which say
 * nothing, to one that does.
 */
static void put_calls(struct loom *l, size_t end)
{
	while (l->native > end && next_is(l, WEAVE_VM) && next_is(l, WEAVE_GLUE))
		put_native(l, true);
}

/* ---- segments ---- */

/*
 * The methods in C of a segment, each where its function is; one whose function is not there (it
 * went on to another for good, or the frame is missing) is put at once. What calls the first one is
 * @internal. Returns whether any was found.
 */
static bool put_methods_in_c(struct loom *l, size_t end, uint32_t internal)
{
	bool found = false;

	while (l->ruby && !next_begins(l)) {
		size_t at = find_function(l, next_ruby(l)->function, end);

		if (at > end && found)
			put_run_and_glue(l, at);
		else if (at > end)
			put_run(l, at, internal);
		put_ruby(l);
		if (at > end)
			put_native(l, true);
		found |= at > end;
	}
	return found;
}

/* All that is called by the Ruby code that was put. */
static void put_called(struct loom *l, size_t end)
{
	if (!put_methods_in_c(l, end, WEAVE_VM))
		put_calls(l, end);
	put_run_and_glue(l, end);
}

/* The methods in Ruby that the activation runs. */
static void put_methods_in_ruby(struct loom *l)
{
	if (l->skip) {
		l->skip--;
		return;
	}
	l->opened++;
	while (l->ruby && !next_begins(l) && !next_ruby(l)->function)
		put_ruby(l);
}

/* All that an activation of rb_vm_exec() runs: of the native frames those down to the next one. */
static void put_segment(struct loom *l)
{
	put_native(l, true); /* rb_vm_exec() */
	while (next_is(l, WEAVE_CORE))
		put_native(l, true);
	put_methods_in_ruby(l);
	put_called(l, run_end(l));
}

/*
 * Before the first rb_vm_exec(): how the program or thread came to run Ruby; it may have begun with a
 * method in C. Or what is left of a segment whose outer end is missing.
 */
static void put_start(struct loom *l)
{
	size_t end = run_end(l);

	if (l->w->complete && put_methods_in_c(l, end, WEAVE_VM | WEAVE_START)) {
		put_run_and_glue(l, end);
	} else if (l->w->complete && end) {
		put_run(l, end, WEAVE_VM | WEAVE_START);
	} else {
		put_run(l, core_end(l, end), WEAVE_VM);
		put_called(l, end);
	}
}

/* Where a collection that is going on begins. */
static size_t collection_begin(const struct loom *l)
{
	size_t i;

	for (i = l->ruby_end; i < l->n; i++)
		if (l->w->native[l->out[i].index].is & WEAVE_GC)
			return i;
	return l->ruby_end;
}

/* The native stack is that of the fiber that runs, whose frames are the innermost ones. */
static size_t count_running(const struct weave *w)
{
	size_t i = 0;

	while (i < w->n_ruby && !w->ruby[i].is_fiber)
		i++;
	return i;
}

/* The innermost Ruby frames, up to the first that stands for frames that were cut. */
static size_t count_uncut(const struct weave *w, size_t running)
{
	size_t i = 0;

	while (i < running && !w->ruby[i].is_cut)
		i++;
	return i;
}

size_t weave(const struct weave *w, struct woven *out, size_t *gc)
{
	struct loom l = { .w = w, .ruby = w->n_ruby, .native = w->n_native, .out = out };
	const size_t running = count_running(w), uncut = count_uncut(w, running);
	/* With no activation that is known as one, the native stack is all called by the Ruby one. */
	const bool from_start = w->complete && count_activations(&l);

	if (!from_start || uncut < running)
		l.aligned = uncut;
	while (l.ruby > (from_start ? running : uncut))
		put_ruby(&l);
	if (l.aligned && l.ruby == l.aligned)
		align(&l);
	put_start(&l);
	while (next_is(&l, WEAVE_VM_EXEC))
		put_segment(&l);
	while (l.ruby)
		put_ruby(&l);
	*gc = collection_begin(&l);
	return l.n;
}

/* ---- room ---- */

int weave_buffers_reserve(struct weave_buffers *b, size_t n_ruby, size_t n_native)
{
	int r;

	r = array_reserve(b->ruby, b->cap_ruby, n_ruby + 1);
	if (!r)
		r = array_reserve(b->native, b->cap_native, n_native + 1);
	return r ? r : array_reserve(b->woven, b->cap_woven, n_ruby + n_native + 1);
}

void weave_buffers_deinit(struct weave_buffers *b)
{
	free(b->ruby);
	free(b->native);
	free(b->woven);
	*b = (struct weave_buffers) { 0 };
}
