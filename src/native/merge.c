/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Both stacks are consumed from their outermost ends. If all of them is there, their activations
 * of rb_vm_exec() are paired in this order, because activations begin and end at the inner end,
 * where for a moment one of the stacks has one more. Where frames are missing, from there on in
 * they are paired in the other order (align()).
 */
#include "native/merge.h"

#include <stdlib.h>

#include "base/array.h"

/* Frames that are searched for a function that may have made a tail call. */
#define MAX_TRIES 64

/* What is left are the first frames of each. */
struct merger {
	const struct merge *w;
	size_t ruby, native; /* frames left of each */
	size_t aligned;	     /* to be aligned when so many Ruby frames are left; 0: no more */
	size_t skip;   /* activations of rb_vm_exec() that come first and are of none of the Ruby
			  frames */
	size_t opened; /* of those that the next Ruby frame begins with */
	size_t first;  /* the next one when so many are left begins with … */
	size_t opens;  /* … so many, whatever it says */
	struct merged_frame *out;
	size_t n;
	size_t ruby_end; /* behind the last Ruby frame in it */
};

static void put(struct merger *m, uint32_t index, bool native, bool internal)
{
	m->out[m->n++] =
		(struct merged_frame) { .index = index, .native = native, .internal = internal };
}

static void put_native(struct merger *m, bool internal)
{
	put(m, (uint32_t)--m->native, true, internal);
}

static bool next_is(const struct merger *m, uint32_t is)
{
	return m->native && m->w->native[m->native - 1].is & is;
}

static const struct merge_ruby *next_ruby(const struct merger *m)
{
	return m->ruby ? &m->w->ruby[m->ruby - 1] : NULL;
}

/* Whether the next Ruby frame begins with activations that did not come yet. */
static bool next_begins(const struct merger *m)
{
	return m->ruby &&
	       m->opened < (m->ruby == m->first ? m->opens : m->w->ruby[m->ruby - 1].finish);
}

/* ---- where frames are missing ---- */

static void align(struct merger *m);

static void put_ruby(struct merger *m)
{
	put(m, (uint32_t)--m->ruby, false, false);
	m->ruby_end = m->n;
	m->opened = 0;
	if (m->aligned && m->ruby == m->aligned)
		align(m);
}

static size_t count_activations(const struct merger *m)
{
	size_t n = 0, i;

	for (i = 0; i < m->native; i++)
		n += !!(m->w->native[i].is & MERGE_VM_EXEC);
	return n;
}

/*
 * Pair the activations that are left with the Ruby frames that are, from the innermost ones on.
 * What there is more of on one side is, on the other, among what is missing.
 */
static void align(struct merger *m)
{
	const struct merge_ruby *ruby = m->w->ruby;
	const size_t left = count_activations(m);
	size_t i, n = 0;

	m->aligned = 0;
	for (i = 0; i < m->ruby && n < left; i++)
		n += ruby[i].finish;
	if (n < left) {
		/* Of one of those it is only the first frame that is missing. */
		bool begun = m->ruby && !ruby[m->ruby - 1].finish;

		m->skip = left - n - begun;
		m->first = begun ? m->ruby : 0;
		m->opens = 1;
		return;
	}
	m->first = i;
	m->opens = i ? ruby[i - 1].finish - (n - left) : 0;
	/* The last of them may be methods in C, whose functions are there. */
	while (i < m->ruby && ruby[i].function && !ruby[i].finish)
		i++;
	while (m->ruby > i)
		put_ruby(m);
}

/* ---- native frames ---- */

/* The end of the native frames that are called, in the end, by the Ruby frames that come first. */
static size_t run_end(const struct merger *m)
{
	size_t i = m->native;

	while (i && !(m->w->native[i - 1].is & MERGE_VM_EXEC))
		i--;
	return i;
}

/* Native frames down to @end that are there to call what comes then. */
static size_t glue_begin(const struct merger *m, size_t end)
{
	const uint32_t glue = MERGE_VM | MERGE_GLUE;
	size_t i = end;

	while (i < m->native && (m->w->native[i].is & glue) == glue)
		i++;
	return i;
}

/* How many of the methods in C that come next, as far as those of a segment are known, it is of. */
static size_t count_methods(const struct merger *m, uint64_t function)
{
	const struct merge_ruby *r;
	size_t n = 1, i;

	for (i = m->ruby - 1; i; i--) {
		r = &m->w->ruby[i - 1];
		if (r->finish || r->is_cut)
			break;
		n += r->function == function;
	}
	return n;
}

/* The same for the outermost frame of a function that @function may have gone on in. */
static size_t find_next_function(const struct merger *m, uint64_t function, size_t end)
{
	size_t i, tries = 0;

	for (i = m->native; m->w->makes_tail_call && i > end && tries < MAX_TRIES; i--, tries++)
		if (m->w->native[i - 1].function &&
		    m->w->makes_tail_call(m->w->arg, function, m->w->native[i - 1].function))
			return i;
	return end;
}

/*
 * The native frame of @function, that of the next method, between those left and @end; @end if
 * there is none. If several methods have it, but not each a frame, the outer ones have none.
 */
static size_t find_function(const struct merger *m, uint64_t function, size_t end)
{
	size_t at = end, n = 0, i;

	if (!function)
		return end;
	for (i = end; i < m->native; i++) {
		if (m->w->native[i].function == function) {
			at = i + 1;
			n++;
		}
	}
	if (!n)
		return find_next_function(m, function, end);
	return n < count_methods(m, function) ? end : at;
}

/* Behind the last frame, down to @end, of code that runs Ruby; those left if there is none. */
static size_t core_end(const struct merger *m, size_t end)
{
	size_t i;

	for (i = end; i < m->native; i++)
		if (m->w->native[i].is & MERGE_CORE)
			return i;
	return m->native;
}

/* Native frames down to @end, those that are one of @internal as such. */
static void put_run(struct merger *m, size_t end, uint32_t internal)
{
	while (m->native > end)
		put_native(m, next_is(m, internal));
}

/* The same, but only what calls the Ruby code that comes then. */
static void put_run_and_glue(struct merger *m, size_t end)
{
	put_run(m, end ? glue_begin(m, end) : 0, 0);
	put_run(m, end, MERGE_VM);
}

/*
 * What the interpreter calls for the method that it runs: through functions of its own, which say
 * nothing, to one that does.
 */
static void put_calls(struct merger *m, size_t end)
{
	while (m->native > end && next_is(m, MERGE_VM) && next_is(m, MERGE_GLUE))
		put_native(m, true);
}

/* ---- segments ---- */

/*
 * The methods in C of a segment, each where its function is; one whose function is not there (it
 * went on to another for good, or the frame is missing) is put at once. What calls the first one is
 * @internal. Returns whether any was found.
 */
static bool put_methods_in_c(struct merger *m, size_t end, uint32_t internal)
{
	bool found = false;

	while (m->ruby && !next_begins(m)) {
		size_t at = find_function(m, next_ruby(m)->function, end);

		if (at > end && found)
			put_run_and_glue(m, at);
		else if (at > end)
			put_run(m, at, internal);
		put_ruby(m);
		if (at > end)
			put_native(m, true);
		found |= at > end;
	}
	return found;
}

/* All that is called by the Ruby code that was put. */
static void put_called(struct merger *m, size_t end)
{
	if (!put_methods_in_c(m, end, MERGE_VM))
		put_calls(m, end);
	put_run_and_glue(m, end);
}

/* The methods in Ruby that the activation runs. */
static void put_methods_in_ruby(struct merger *m)
{
	if (m->skip) {
		m->skip--;
		return;
	}
	m->opened++;
	while (m->ruby && !next_begins(m) && !next_ruby(m)->function)
		put_ruby(m);
}

/* All that an activation of rb_vm_exec() runs: of the native frames those down to the next one. */
static void put_segment(struct merger *m)
{
	put_native(m, true); /* rb_vm_exec() */
	while (next_is(m, MERGE_CORE))
		put_native(m, true);
	put_methods_in_ruby(m);
	put_called(m, run_end(m));
}

/*
 * Before the first rb_vm_exec(): how the program or thread came to run Ruby; it may have begun with
 * a method in C. Or what is left of a segment whose outer end is missing.
 */
static void put_start(struct merger *m)
{
	size_t end = run_end(m);

	if (m->w->complete && put_methods_in_c(m, end, MERGE_VM | MERGE_START)) {
		put_run_and_glue(m, end);
	} else if (m->w->complete && end) {
		put_run(m, end, MERGE_VM | MERGE_START);
	} else {
		put_run(m, core_end(m, end), MERGE_VM);
		put_called(m, end);
	}
}

/* Behind the innermost Ruby frame and, if that is a method in C, the function that it is. */
static size_t innermost_end(const struct merger *m)
{
	const struct merged_frame *last = m->ruby_end ? &m->out[m->ruby_end - 1] : NULL;
	const struct merge_native *next = m->ruby_end < m->n
						  ? &m->w->native[m->out[m->ruby_end].index]
						  : NULL;

	if (last && !last->native && next && next->function && !(next->is & MERGE_GC) &&
	    next->function == m->w->ruby[last->index].function)
		return m->ruby_end + 1;
	return m->ruby_end;
}

/*
 * Where a collection that is going on begins: with the first of its functions that is known, or
 * else behind the last function that is known to be none of them.
 */
static size_t collection_begin(const struct merger *m)
{
	size_t begin = innermost_end(m), i;
	bool told = true; /* nothing from there on may be the collection */

	for (i = begin; i < m->n; i++) {
		uint32_t is = m->w->native[m->out[i].index].is;

		if (is & MERGE_GC)
			return i;
		/* A library is called by either. */
		if (!(is & MERGE_VM)) {
			told &= !(is & MERGE_OTHER);
			continue;
		}
		told |= !!(is & MERGE_ALLOC);
		if (told)
			begin = is & MERGE_NAMELESS ? i : i + 1;
		told &= !(is & MERGE_NAMELESS);
	}
	return begin;
}

/* The native stack is that of the fiber that runs, whose frames are the innermost ones. */
static size_t count_running(const struct merge *w)
{
	size_t i = 0;

	while (i < w->n_ruby && !w->ruby[i].is_fiber)
		i++;
	return i;
}

/* The innermost Ruby frames, up to the first that stands for frames that were cut. */
static size_t count_uncut(const struct merge *w, size_t running)
{
	size_t i = 0;

	while (i < running && !w->ruby[i].is_cut)
		i++;
	return i;
}

size_t merge_stacks(const struct merge *w, struct merged_frame *out, size_t *gc)
{
	struct merger m = { .w = w, .ruby = w->n_ruby, .native = w->n_native, .out = out };
	const size_t running = count_running(w), uncut = count_uncut(w, running);
	/*
	 * With no activation that is known as one, the native stack is all called by the Ruby one.
	 */
	const bool from_start = w->complete && count_activations(&m);

	if (!from_start || uncut < running)
		m.aligned = uncut;
	while (m.ruby > (from_start ? running : uncut))
		put_ruby(&m);
	if (m.aligned && m.ruby == m.aligned)
		align(&m);
	put_start(&m);
	while (next_is(&m, MERGE_VM_EXEC))
		put_segment(&m);
	while (m.ruby)
		put_ruby(&m);
	*gc = collection_begin(&m);
	return m.n;
}

/* ---- room ---- */

int merge_buffers_reserve(struct merge_buffers *b, size_t n_ruby, size_t n_native)
{
	int r;

	r = array_reserve(b->ruby, b->cap_ruby, n_ruby + 1);
	if (!r)
		r = array_reserve(b->native, b->cap_native, n_native + 1);
	return r ? r : array_reserve(b->merged, b->cap_merged, n_ruby + n_native + 1);
}

void merge_buffers_deinit(struct merge_buffers *b)
{
	free(b->ruby);
	free(b->native);
	free(b->merged);
	*b = (struct merge_buffers) { 0 };
}
