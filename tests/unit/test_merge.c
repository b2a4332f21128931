/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "native/merge.h"

#define MAX_FRAMES 512
#define MAX_NAME   32

/* ---- stacks drawn as text ---- */

/*
 * Frames are words, outermost first. Of a Ruby frame each ! behind it is an activation that begins
 * with it, and @function what it is written in; | stands for cut frames, > is the mark of a fiber.
 * Native frames are of the kind that their name says; [gap] at the outer end is a stack that is not
 * complete.
 */
struct drawn {
	char ruby_name[MAX_FRAMES][MAX_NAME], native_name[MAX_FRAMES][MAX_NAME];
	struct merge_ruby ruby[MAX_FRAMES];
	struct merge_native native[MAX_FRAMES];
	struct merge w;
	struct merged_frame out[2 * MAX_FRAMES];
	size_t n, gc;
};

static uint64_t function_of(const char *name)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 0x100000001b3ull;
	return h;
}

static bool begins_with(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

static uint32_t kind_of(const char *name)
{
	static const struct {
		const char *prefix;
		uint32_t is;
	} kinds[] = {
		{ "rb_vm_exec", MERGE_VM | MERGE_GLUE | MERGE_VM_EXEC },
		{ "core", MERGE_VM | MERGE_GLUE | MERGE_CORE },
		{ "jit", MERGE_VM | MERGE_GLUE | MERGE_CORE },
		{ "vm_", MERGE_VM | MERGE_GLUE },
		{ "rb_yield", MERGE_VM | MERGE_GLUE },
		{ "rb_funcall", MERGE_VM | MERGE_GLUE },
		{ "ruby_run_node", MERGE_VM | MERGE_GLUE },
		{ "thread_start", MERGE_VM | MERGE_GLUE },
		{ "libruby+", MERGE_VM | MERGE_GLUE | MERGE_NAMELESS },
		{ "rb_newobj", MERGE_VM | MERGE_ALLOC },
		{ "gc_", MERGE_VM | MERGE_GC },
		{ "rb_", MERGE_VM },
		{ "_start", MERGE_START },
		{ "main", MERGE_START },
		{ "qsort_r", MERGE_START }, /* libc's */
		{ "clone", MERGE_START },
		{ "[", MERGE_OTHER },
		{ "k:", MERGE_OTHER },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (begins_with(name, kinds[i].prefix))
			return kinds[i].is;
	return 0;
}

static size_t split(const char *text, char names[][MAX_NAME])
{
	size_t n = 0, len;

	for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
		len = strcspn(text, " ");
		cr_assert(n < MAX_FRAMES && len < MAX_NAME, "too much");
		snprintf(names[n++], MAX_NAME, "%.*s", (int)len, text);
		text += len;
	}
	return n;
}

static struct merge_ruby ruby_of(char *name)
{
	struct merge_ruby r = { .is_cut = name[0] == '|', .is_fiber = name[0] == '>' };
	char *at = strchr(name, '@'), *end = strchr(name, '!');

	for (const char *p = end; p && *p; p++)
		r.finish++;
	if (end)
		*end = '\0';
	if (at) {
		*at = '\0';
		r.function = function_of(at + 1);
	}
	return r;
}

static struct drawn *draw(const char *ruby, const char *native)
{
	struct drawn *d = calloc(1, sizeof(*d));

	cr_assert_not_null(d);
	d->w = (struct merge) { .ruby = d->ruby,
				.n_ruby = split(ruby, d->ruby_name),
				.native = d->native,
				.n_native = split(native, d->native_name),
				.complete = *native && !begins_with(native, "[gap]") };
	for (size_t i = 0; i < d->w.n_ruby; i++)
		d->ruby[d->w.n_ruby - 1 - i] = ruby_of(d->ruby_name[i]);
	for (size_t i = 0; i < d->w.n_native; i++)
		d->native[d->w.n_native - 1 - i] = (struct merge_native) {
			.function = function_of(d->native_name[i]), .is = kind_of(d->native_name[i])
		};
	return d;
}

static void assert_sane_merged(const struct drawn *d)
{
	size_t ruby = d->w.n_ruby, native = d->w.n_native;

	cr_assert_eq(d->n, ruby + native, "%zu of %zu frames", d->n, ruby + native);
	cr_assert_leq(d->gc, d->n);
	for (size_t i = 0; i < d->n; i++) {
		size_t *left = d->out[i].native ? &native : &ruby;

		cr_assert_gt(*left, 0, "frame %zu", i);
		cr_assert_eq(d->out[i].index, --*left, "frame %zu is out of order", i);
		cr_assert(d->out[i].native || !d->out[i].internal, "frame %zu", i);
	}
}

static void run(struct drawn *d)
{
	d->n = merge_stacks(&d->w, d->out, &d->gc);
	assert_sane_merged(d);
}

/* Internal frames in parentheses, and where a collection would be. */
static void print(const struct drawn *d, bool gc, struct buf *ret)
{
	for (size_t i = 0; i <= d->n; i++) {
		const struct merged_frame *f = &d->out[i];

		if (gc && i == d->gc)
			buf_addf(ret, "%s<GC>", ret->len ? " " : "");
		if (i == d->n)
			break;
		buf_addf(ret, "%s%s%s%s", ret->len ? " " : "", f->internal ? "(" : "",
			 f->native ? d->native_name[d->w.n_native - 1 - f->index]
				   : d->ruby_name[d->w.n_ruby - 1 - f->index],
			 f->internal ? ")" : "");
	}
}

static void expect_merged(const char *ruby, const char *native, bool gc, const char *want)
{
	struct drawn *d = draw(ruby, native);
	struct buf got _cleanup_buf_ = BUF_INIT;

	run(d);
	print(d, gc, &got);
	cr_expect_str_eq(buf_str(&got), want, "\n%s\n%s\n  is merged into\n%s\n  not\n%s\n", ruby,
			 native, buf_str(&got), want);
	free(d);
}

/* How a program begins, and what that becomes. */
#define START	 "_start main ruby_run_node "
#define STARTED	 "(_start) (main) (ruby_run_node) "
#define EXEC	 "rb_vm_exec core "
#define EXECUTED "(rb_vm_exec) (core) "

Test(merge, plain)
{
	expect_merged("<main>! foo bar", START EXEC, false, STARTED EXECUTED "<main> foo bar");
	expect_merged("<main>! foo", START EXEC "vm_sendish", false,
		      STARTED EXECUTED "<main> foo (vm_sendish)");
	expect_merged("<main>! foo", START EXEC "rb_obj_dup memcpy", false,
		      STARTED EXECUTED "<main> foo rb_obj_dup memcpy");
	expect_merged("", START, false, "_start main ruby_run_node");
	expect_merged("", "", false, "");
	expect_merged("", "clone worker", false, "clone worker");
}

Test(merge, methods_in_c)
{
	expect_merged("<main>! foo deflate@z_deflate",
		      START EXEC "vm_sendish vm_call_cfunc z_deflate deflate memcpy", false,
		      STARTED EXECUTED
		      "<main> foo (vm_sendish) (vm_call_cfunc) deflate (z_deflate) deflate memcpy");
	expect_merged("<main>! each@rb_ary_each block! x@z_x",
		      START EXEC "vm_call_cfunc rb_ary_each rb_yield vm_yield " EXEC
				 "vm_call_cfunc z_x memcpy",
		      false,
		      STARTED EXECUTED
		      "<main> (vm_call_cfunc) each (rb_ary_each) (rb_yield) (vm_yield) " EXECUTED
		      "block (vm_call_cfunc) x (z_x) memcpy");
	/* What a method in C does before it calls Ruby is its own. */
	expect_merged("<main>! sort@rb_ary_sort block!",
		      START EXEC "rb_ary_sort rb_sort qsort_r rb_sort_1 rb_yield " EXEC, false,
		      STARTED EXECUTED
		      "<main> sort (rb_ary_sort) rb_sort qsort_r rb_sort_1 (rb_yield) " EXECUTED
		      "block");
	/* No name tells which functions only call. */
	expect_merged("<main>! each@libruby+1 block!",
		      START EXEC "libruby+7 libruby+1 libruby+2 " EXEC "libruby+3", false,
		      STARTED EXECUTED "<main> (libruby+7) each (libruby+1) (libruby+2) " EXECUTED
				       "block (libruby+3)");
}

Test(merge, methods_in_c_that_call_one_another)
{
	expect_merged("<main>! sort_by@rb_enum_sort_by each@rb_ary_each block!",
		      START EXEC "vm_call_cfunc rb_enum_sort_by rb_block rb_funcall vm_call0 "
				 "rb_ary_each rb_yield " EXEC,
		      false,
		      STARTED EXECUTED
		      "<main> (vm_call_cfunc) sort_by (rb_enum_sort_by) rb_block "
		      "(rb_funcall) (vm_call0) each (rb_ary_each) (rb_yield) " EXECUTED "block");
	/* The same one again and again. */
	expect_merged("<main>! inspect@rb_insp inspect@rb_insp inspect@rb_insp",
		      START EXEC "rb_insp rb_join rb_funcall rb_insp rb_funcall rb_insp rb_str",
		      false,
		      STARTED EXECUTED "<main> inspect (rb_insp) rb_join (rb_funcall) inspect "
				       "(rb_insp) (rb_funcall) inspect (rb_insp) rb_str");
	/* One in the next activation is not taken for this one's. */
	expect_merged("<main>! each@rb_ary_each block! each@rb_ary_each",
		      START EXEC "vm_yield " EXEC "rb_ary_each", false,
		      STARTED EXECUTED "<main> each (vm_yield) " EXECUTED
				       "block each (rb_ary_each)");
}

/* A function that went on to another for good has no frame. */
Test(merge, methods_in_c_without_function)
{
	expect_merged("<main>! foo tail@z_gone", START EXEC "vm_call_cfunc z_other memcpy", false,
		      STARTED EXECUTED "<main> foo tail (vm_call_cfunc) z_other memcpy");
	expect_merged("<main>! tail@z_gone each@rb_ary_each block!",
		      START EXEC "vm_call_cfunc rb_ary_each rb_yield " EXEC, false,
		      STARTED EXECUTED
		      "<main> tail (vm_call_cfunc) each (rb_ary_each) (rb_yield) " EXECUTED
		      "block");
	expect_merged("<main>! a@rb_a tail@z_gone", START EXEC "rb_a rb_funcall z_other", false,
		      STARTED EXECUTED "<main> a (rb_a) tail rb_funcall z_other");
}

/* Threads and fibers may begin with a method in C: Enumerator#next, &:method. */
Test(merge, a_method_in_c_first)
{
	expect_merged("each@rb_enum_each foo! bar",
		      "clone thread_start vm_call0 rb_enum_each rb_block rb_funcall " EXEC, false,
		      "(clone) (thread_start) (vm_call0) each (rb_enum_each) rb_block "
		      "(rb_funcall) " EXECUTED "foo bar");
	expect_merged("each@rb_enum_each", "clone thread_start rb_enum_each memcpy", false,
		      "(clone) (thread_start) each (rb_enum_each) memcpy");
	expect_merged("tail@z_gone foo!", "clone thread_start vm_call0 " EXEC, false,
		      "tail (clone) (thread_start) (vm_call0) " EXECUTED "foo");
}

/* What embeds Ruby is not there for it. */
Test(merge, programs_that_embed_ruby)
{
	expect_merged("foo!", "_start main serve ruby_run_node " EXEC, false,
		      "(_start) (main) serve (ruby_run_node) " EXECUTED "foo");
}

Test(merge, frames_that_are_not_shown_begin_activations)
{
	expect_merged("<main>! foo!!", START EXEC "vm_a " EXEC "vm_b rb_b vm_c " EXEC "rb_x", false,
		      STARTED EXECUTED "<main> (vm_a) " EXECUTED "(vm_b) rb_b (vm_c) " EXECUTED
				       "foo rb_x");
	/* That of a method in C: the walk gave it what a frame left out had. */
	expect_merged("<main>! each@rb_ary_each! block!",
		      START EXEC "rb_funcall " EXEC "vm_call rb_ary_each rb_yield " EXEC, false,
		      STARTED EXECUTED "<main> (rb_funcall) " EXECUTED
				       "(vm_call) each (rb_ary_each) (rb_yield) " EXECUTED "block");
}

/* The one that is just beginning or ending is the innermost. */
Test(merge, one_more_of_either)
{
	expect_merged("<main>! each@rb_ary_each block!", START EXEC "rb_ary_each rb_yield vm_push",
		      false, STARTED EXECUTED "<main> each (rb_ary_each) rb_yield vm_push block");
	expect_merged("<main>! each@rb_ary_each", START EXEC "rb_ary_each rb_yield " EXEC, false,
		      STARTED EXECUTED "<main> each (rb_ary_each) (rb_yield) (rb_vm_exec) (core)");
	expect_merged("block!", "clone thread_start vm_push", false,
		      "block clone thread_start vm_push");
}

Test(merge, one_of_them_is_missing)
{
	expect_merged("<main>! each@rb_ary_each block!", "", false, "<main> each block");
	expect_merged("<main>! foo", "[gap]", false, "<main> foo [gap]");
	expect_merged("", START EXEC "vm_call z_x", false, STARTED EXECUTED "(vm_call) z_x");
	/* The interpreter's functions are not known: what there is was called by Ruby code. */
	expect_merged("<main>! foo x@z_x", "_start main f g z_x memcpy", false,
		      "<main> foo (_start) (main) f g x (z_x) memcpy");
}

/* The innermost ones are those that belong together. */
Test(merge, outer_end_missing)
{
	expect_merged("<main>! a@rb_a b! c@rb_c d!", "[gap] rb_c rb_yield " EXEC "memcpy", false,
		      "<main> a b [gap] c (rb_c) (rb_yield) " EXECUTED "d memcpy");
	expect_merged("<main>! a@rb_a b! c@rb_c d!", "[gap] rb_yield " EXEC "rb_c " EXEC "memcpy",
		      false,
		      "<main> a [gap] (rb_yield) " EXECUTED "b c (rb_c) " EXECUTED "d memcpy");
	expect_merged("<main>! a@rb_a b! c@rb_c", "[gap] core vm_call rb_c memcpy", false,
		      "<main> a b [gap] (core) (vm_call) c (rb_c) memcpy");
	expect_merged("<main>! foo", "[gap] core rb_obj_dup", false,
		      "<main> foo [gap] (core) rb_obj_dup");
	expect_merged("<main>! foo", "[gap] memcpy", false, "<main> foo [gap] memcpy");
	/* Of two activations that begin with it, one is known. */
	expect_merged("<main>! b!! c@rb_c d!", "[gap] vm_b " EXEC "rb_c " EXEC, false,
		      "<main> [gap] (vm_b) " EXECUTED "b c (rb_c) " EXECUTED "d");
	/* More activations than there are Ruby frames to begin with them. */
	expect_merged("foo!", "[gap] " EXEC "vm_a " EXEC "rb_x", false,
		      "[gap] " EXECUTED "(vm_a) " EXECUTED "foo rb_x");
}

Test(merge, gap_in_the_middle)
{
	expect_merged("<main>! a@rb_a b! x@z_x", START EXEC "rb_a [gap] " EXEC "z_x", false,
		      STARTED EXECUTED "<main> a (rb_a) [gap] " EXECUTED "b x (z_x)");
	/* The function is in it. */
	expect_merged("<main>! a@rb_a b! x@z_x", START EXEC "[gap] " EXEC "vm_call [gap] memcpy",
		      false,
		      STARTED EXECUTED "<main> a [gap] " EXECUTED "b x (vm_call) [gap] memcpy");
}

Test(merge, cut_ruby_stack)
{
	/* Recursion in Ruby: one activation runs it all. */
	expect_merged("<main>! f | f f x@z_x", START EXEC "vm_call z_x memcpy", false,
		      STARTED EXECUTED "<main> f | f f (vm_call) x (z_x) memcpy");
	/* Some of what was cut began activations. */
	expect_merged("<main>! a@rb_a b! | f x@z_x",
		      START EXEC "rb_a " EXEC "rb_b " EXEC "rb_c " EXEC "z_x memcpy", false,
		      STARTED EXECUTED "<main> a (rb_a) " EXECUTED "b | rb_b " EXECUTED
				       "rb_c " EXECUTED "f x (z_x) memcpy");
	expect_merged("<main>! a@rb_a | f! x@z_x",
		      START EXEC "rb_a " EXEC "rb_b " EXEC "z_x memcpy", false,
		      STARTED EXECUTED "<main> a (rb_a) | " EXECUTED "rb_b " EXECUTED
				       "f x (z_x) memcpy");
	/* It begins with the second of two methods in C. */
	expect_merged("<main>! | y@rb_y f!", START EXEC "rb_a " EXEC "rb_x rb_i rb_y " EXEC, false,
		      STARTED EXECUTED "<main> | rb_a " EXECUTED "(rb_x) (rb_i) y (rb_y) " EXECUTED
				       "f");
	/* With an outer end missing, too. */
	expect_merged("<main>! a@rb_a b! | f! x@z_x", "[gap] " EXEC "rb_b " EXEC "z_x", false,
		      "<main> a b | [gap] " EXECUTED "rb_b " EXECUTED "f x (z_x)");
	expect_merged("<main>! a@rb_a b! | g f! x@z_x", "[gap] rb_b " EXEC "z_x", false,
		      "<main> a b | g [gap] rb_b " EXECUTED "f x (z_x)");
}

/* The native stack is that of the one that runs. */
Test(merge, fibers)
{
	expect_merged("<main>! resume@rb_fiber_resume > block! foo x@z_x",
		      "rb_fiber_start rb_yield " EXEC "z_x", false,
		      "<main> resume > (rb_fiber_start) (rb_yield) " EXECUTED "block foo x (z_x)");
	expect_merged("<main>! resume@rb_fiber_resume > block! foo x@z_x", "[gap] " EXEC "z_x",
		      false, "<main> resume > [gap] " EXECUTED "block foo x (z_x)");
	expect_merged("<main>! | foo resume@r > a! resume@r > b! f | g x@z_x",
		      "rb_fiber_start " EXEC "z_x", false,
		      "<main> | foo resume > a resume > (rb_fiber_start) " EXECUTED
		      "b f | g x (z_x)");
	/* It has not begun, or ended. */
	expect_merged("<main>! resume@r >", "rb_fiber_start rb_x", false,
		      "<main> resume > rb_fiber_start rb_x");
}

Test(merge, kernel)
{
	expect_merged("<main>! read@rb_io_read", START EXEC "rb_io_read read k:sys_read k:vfs_read",
		      false,
		      STARTED EXECUTED "<main> read (rb_io_read) read k:sys_read k:vfs_read");
	expect_merged("<main>! foo", START EXEC "k:irq", false,
		      STARTED EXECUTED "<main> foo k:irq");
}

Test(merge, compiled_code)
{
	expect_merged("<main>! a b x@z_x block! c",
		      START EXEC "jit jit vm_call z_x rb_yield "
				 "rb_vm_exec jit memcpy",
		      false,
		      STARTED EXECUTED "(jit) (jit) <main> a b (vm_call) x (z_x) (rb_yield) "
				       "(rb_vm_exec) (jit) block c memcpy");
	expect_merged("<main>! a x@z_x", START "rb_vm_exec vm_jit_exec jit z_x", false,
		      STARTED "(rb_vm_exec) <main> a (vm_jit_exec) (jit) x (z_x)");
}

/* With the call that needed memory, or else on top of the Ruby code. */
Test(merge, collection)
{
	expect_merged("<main>! new@rb_new", START EXEC "rb_new rb_alloc gc_start gc_marks", true,
		      STARTED EXECUTED "<main> new (rb_new) rb_alloc <GC> gc_start gc_marks");
	expect_merged("<main>! foo", START EXEC "vm_x libruby+5 k:irq", true,
		      STARTED EXECUTED "<main> foo (vm_x) <GC> (libruby+5) k:irq");
	expect_merged("<main>! foo", "", true, "<main> foo <GC>");
	expect_merged("<main>! foo", START EXEC "[lost]", true,
		      STARTED EXECUTED "<main> foo <GC> [lost]");
	/* One that called Ruby code is over. */
	expect_merged("<main>! gc@gc_run final!",
		      START EXEC "gc_run gc_start rb_yield " EXEC "rb_x", true,
		      STARTED EXECUTED "<main> gc (gc_run) gc_start (rb_yield) " EXECUTED
				       "final rb_x <GC>");
}

/* Where functions have no names, what allocates does, and what it calls is the collection. */
Test(merge, collection_in_a_stripped_build)
{
	expect_merged("<main>! to_s@libruby+1",
		      START EXEC "libruby+1 rb_str_x libruby+2 rb_newobj libruby+3 libruby+4 "
				 "rb_st_lookup memset",
		      true,
		      STARTED EXECUTED "<main> to_s (libruby+1) rb_str_x libruby+2 rb_newobj <GC> "
				       "libruby+3 libruby+4 rb_st_lookup memset");
	/* Behind a function without a name anything may be the collection. */
	expect_merged("<main>! to_s@libruby+1",
		      START EXEC "libruby+1 rb_str_x libruby+2 rb_mark_x libruby+3", true,
		      STARTED EXECUTED
		      "<main> to_s (libruby+1) rb_str_x <GC> libruby+2 rb_mark_x libruby+3");
	expect_merged("<main>! to_s@libruby+1", START EXEC "libruby+1 [lost] rb_x", true,
		      STARTED EXECUTED "<main> to_s (libruby+1) <GC> [lost] rb_x");
	/* What an extension calls. */
	expect_merged("<main>! parse@z_parse", START EXEC "z_parse z_string libruby+1 memset", true,
		      STARTED EXECUTED "<main> parse (z_parse) z_string <GC> libruby+1 memset");
	expect_merged("<main>! parse@z_parse",
		      START EXEC "z_parse libruby+1 z_string rb_newobj libruby+2 z_mark", true,
		      STARTED EXECUTED "<main> parse (z_parse) libruby+1 z_string rb_newobj <GC> "
				       "libruby+2 z_mark");
	expect_merged("<main>! start@gc_start", START EXEC "gc_start libruby+1", true,
		      STARTED EXECUTED "<main> start <GC> (gc_start) libruby+1");
}

/* ---- programs at random ---- */

enum kind { RUBY, NATIVE };

/* What happened, outermost first: which frame called which. */
struct truth {
	struct drawn d;
	struct {
		enum kind kind;
		uint32_t index; /* as drawn: outermost first */
	} order[2 * MAX_FRAMES];
	size_t n;
	uint64_t seed;
	uint64_t functions; /* made so far */
};

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static size_t any(struct truth *t, size_t n)
{
	return next_random(&t->seed) % n;
}

static void did(struct truth *t, enum kind kind, size_t index)
{
	t->order[t->n].kind = kind;
	t->order[t->n++].index = (uint32_t)index;
}

/* Frames are drawn outermost first here, and turned around in the end. */
static void native(struct truth *t, uint32_t is, uint64_t function)
{
	cr_assert_lt(t->d.w.n_native, MAX_FRAMES);
	did(t, NATIVE, t->d.w.n_native);
	t->d.native[t->d.w.n_native++] = (struct merge_native) { .is = is, .function = function };
}

static void ruby(struct truth *t, uint8_t finish, uint64_t function)
{
	cr_assert_lt(t->d.w.n_ruby, MAX_FRAMES);
	did(t, RUBY, t->d.w.n_ruby);
	t->d.ruby[t->d.w.n_ruby++] = (struct merge_ruby) { .finish = finish, .function = function };
}

#define GLUE (MERGE_VM | MERGE_GLUE)

/* Functions of anything but what runs Ruby code. */
static void natives(struct truth *t, size_t max, bool glue_only)
{
	static const uint32_t kinds[] = { GLUE, MERGE_VM, 0, MERGE_START, MERGE_OTHER };

	for (size_t n = any(t, max + 1); n; n--)
		native(t, glue_only ? GLUE : kinds[any(t, 5)], any(t, 3));
}

#define FIRST_FUNCTION 1000   /* of methods in C */
#define GONE	       100000 /* those of methods without native frame */

/* Some have none: the function went on to another one. */
static void method_in_c(struct truth *t, bool may_have_none)
{
	bool none = may_have_none && !any(t, 6);
	uint64_t function;

	/* At times the same as the one before, and what plain functions are never. */
	if (any(t, 4))
		t->functions++;
	function = (none ? GONE : FIRST_FUNCTION) + t->functions;
	natives(t, 2, true);
	ruby(t, 0, function);
	if (!none)
		native(t, MERGE_VM | (any(t, 4) ? 0 : MERGE_GLUE), function);
}

static void methods_in_c(struct truth *t)
{
	bool own = false; /* the one before called functions that say something */

	for (size_t n = any(t, 4); n; n--) {
		/*
		 * One without function can stand anywhere between what calls it and what it calls.
		 */
		method_in_c(t, n == 1 && !own);
		own = n > 1 && any(t, 2);
		if (own) {
			native(t, MERGE_VM, 1);
			natives(t, 2, false);
		}
	}
}

static void activation(struct truth *t)
{
	uint8_t finish = 1;

	native(t, GLUE | MERGE_VM_EXEC, 5);
	for (size_t n = any(t, 3); n; n--)
		native(t, GLUE | MERGE_CORE, 6);
	if (!any(t, 8)) { /* what it begins with is not shown */
		natives(t, 3, false);
		native(t, GLUE | MERGE_VM_EXEC, 5);
		native(t, GLUE | MERGE_CORE, 6);
		finish++;
	}
	ruby(t, finish, 0);
	for (size_t n = any(t, 4); n; n--)
		ruby(t, 0, 0);
	methods_in_c(t);
	natives(t, 4, false);
}

static void turn_around(struct truth *t)
{
	for (size_t i = 0; i < t->d.w.n_ruby / 2; i++) {
		struct merge_ruby swap = t->d.ruby[i];

		t->d.ruby[i] = t->d.ruby[t->d.w.n_ruby - 1 - i];
		t->d.ruby[t->d.w.n_ruby - 1 - i] = swap;
	}
	for (size_t i = 0; i < t->d.w.n_native / 2; i++) {
		struct merge_native swap = t->d.native[i];

		t->d.native[i] = t->d.native[t->d.w.n_native - 1 - i];
		t->d.native[t->d.w.n_native - 1 - i] = swap;
	}
}

static struct truth *happen(uint64_t seed)
{
	struct truth *t = calloc(1, sizeof(*t));

	cr_assert_not_null(t);
	t->seed = seed;
	if (!any(t, 4)) { /* the fiber that resumed it */
		for (size_t n = any(t, 5); n; n--)
			ruby(t, any(t, 2) ? 1 : 0, any(t, 2) ? 2000 : 0);
		t->d.ruby[t->d.w.n_ruby].is_fiber = true;
		did(t, RUBY, t->d.w.n_ruby++);
	}
	native(t, MERGE_START, 7);
	natives(t, 3, true);
	if (!any(t, 4))
		method_in_c(t, false);
	for (size_t n = 1 + any(t, 6); n; n--)
		activation(t);
	turn_around(t);
	t->d.w.ruby = t->d.ruby;
	t->d.w.native = t->d.native;
	t->d.w.complete = true;
	return t;
}

/* Frames that were taken out of a copy of the truth, or that tell nothing, are not compared. */
struct damage {
	bool ruby[MAX_FRAMES], native[MAX_FRAMES]; /* by index, outermost first */
};

static void ignore_glue(const struct truth *t, struct damage *damage)
{
	for (size_t i = 0; i < t->d.w.n_native; i++)
		damage->native[i] |= (t->d.native[t->d.w.n_native - 1 - i].is & GLUE) == GLUE &&
				     t->d.native[t->d.w.n_native - 1 - i].function < FIRST_FUNCTION;
}

/*
 * Merge @d, and compare the order of what is not ignored with that of @t. *_was tell which frame of
 * that each is, outermost first; UINT32_MAX: a mark or gap in the place of what was taken out.
 */
static void expect_truth(const struct truth *t, struct drawn *d, const uint32_t *ruby_was,
			 const uint32_t *native_was, const struct damage *damage, uint64_t seed)
{
	size_t at = 0, i;

	run(d);
	for (i = 0; i < d->n; i++) {
		enum kind kind = d->out[i].native ? NATIVE : RUBY;
		uint32_t was = kind == NATIVE ? native_was[d->out[i].index]
					      : ruby_was[d->out[i].index];

		if (was == UINT32_MAX || (kind == NATIVE ? damage->native : damage->ruby)[was])
			continue;
		while (at < t->n &&
		       (t->order[at].kind == NATIVE ? damage->native
						    : damage->ruby)[t->order[at].index])
			at++;
		cr_assert(at < t->n && t->order[at].kind == kind && t->order[at].index == was,
			  "seed %llu: frame %zu is %s frame %u, not %s frame %u",
			  (unsigned long long)seed, i, kind == NATIVE ? "native" : "Ruby", was,
			  t->order[at].kind == NATIVE ? "native" : "Ruby", t->order[at].index);
		at++;
	}
}

#define ROUNDS 20000

/* Copies of both stacks with [ruby_from, ruby_to) and [native_from, native_to) taken out. */
struct cut {
	size_t ruby_from, ruby_to, native_from, native_to; /* innermost first */
};

static void merge_cut(const struct truth *t, const struct cut *c, struct damage *damage,
		      uint64_t seed)
{
	uint32_t ruby_was[MAX_FRAMES], native_was[MAX_FRAMES];
	struct drawn *d = calloc(1, sizeof(*d));
	size_t i;

	cr_assert_not_null(d);
	d->w = (struct merge) { .ruby = d->ruby, .native = d->native };
	d->w.complete = c->native_to < t->d.w.n_native || c->native_from == c->native_to;
	for (i = 0; i < t->d.w.n_ruby; i++) {
		bool out = i >= c->ruby_from && i < c->ruby_to;

		damage->ruby[t->d.w.n_ruby - 1 - i] |= out;
		if (out && i > c->ruby_from)
			continue;
		ruby_was[d->w.n_ruby] = out ? UINT32_MAX : (uint32_t)(t->d.w.n_ruby - 1 - i);
		d->ruby[d->w.n_ruby++] = out ? (struct merge_ruby) { .is_cut = true }
					     : t->d.ruby[i];
	}
	for (i = 0; i < t->d.w.n_native; i++) {
		bool out = i >= c->native_from && i < c->native_to;

		damage->native[t->d.w.n_native - 1 - i] |= out;
		if (out && i > c->native_from)
			continue;
		native_was[d->w.n_native] = out ? UINT32_MAX : (uint32_t)(t->d.w.n_native - 1 - i);
		d->native[d->w.n_native++] = out ? (struct merge_native) { .is = MERGE_OTHER }
						 : t->d.native[i];
	}
	ignore_glue(t, damage);
	expect_truth(t, d, ruby_was, native_was, damage, seed);
	free(d);
}

Test(merge, at_random)
{
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		struct truth *t = happen(seed * 0x9e3779b97f4a7c15ull);
		struct damage damage = { 0 };

		merge_cut(t, &(struct cut) { 0 }, &damage, seed);
		free(t);
	}
}

/* What is left of the native stack is where it belongs. */
Test(merge, outer_end_missing_at_random)
{
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		struct truth *t = happen(seed * 0x9e3779b97f4a7c15ull);
		size_t n = t->d.w.n_native;
		struct damage damage = { 0 };

		merge_cut(t, &(struct cut) { .native_from = any(t, n), .native_to = n }, &damage,
			  seed);
		free(t);
	}
}

/* Where methods without function are is not known, unless all that calls them is there. */
static void ignore_gone(const struct truth *t, struct damage *damage)
{
	for (size_t i = 0; i < t->d.w.n_ruby; i++)
		damage->ruby[i] |= t->d.ruby[t->d.w.n_ruby - 1 - i].function >= GONE;
}

Test(merge, gaps_at_random)
{
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		struct truth *t = happen(seed * 0x9e3779b97f4a7c15ull);
		struct damage damage = { 0 };
		struct cut c = { .native_from = any(t, t->d.w.n_native - 1) };

		c.native_to = c.native_from;
		while (c.native_to < t->d.w.n_native - 1 && any(t, 6) &&
		       !(t->d.native[c.native_to].is & MERGE_VM_EXEC))
			c.native_to++;
		for (size_t i = c.native_from; i < c.native_to; i++)
			for (size_t k = 0; k < t->d.w.n_ruby; k++)
				damage.ruby[t->d.w.n_ruby - 1 - k] |=
					t->d.native[i].function >= FIRST_FUNCTION &&
					t->d.ruby[k].function == t->d.native[i].function;
		ignore_gone(t, &damage);
		merge_cut(t, &c, &damage, seed);
		free(t);
	}
}

/* The number of frames of the fiber that runs. */
static size_t running(const struct truth *t)
{
	size_t n = 0;

	while (n < t->d.w.n_ruby && !t->d.ruby[n].is_fiber)
		n++;
	return n;
}

/*
 * The outermost frame is never cut. Of several calls of a method in C none can be told from
 * another.
 */
static bool can_cut(const struct truth *t, const struct cut *c)
{
	uint64_t function = t->d.ruby[c->ruby_from - 1].function;

	return c->ruby_to < running(t) &&
	       (!function || function != t->d.ruby[c->ruby_from].function);
}

Test(merge, cut_ruby_stacks_at_random)
{
	size_t cuts = 0;

	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		struct truth *t = happen(seed * 0x9e3779b97f4a7c15ull);
		size_t n = running(t);
		struct damage damage = { 0 };
		struct cut c = { .ruby_from = 1 + any(t, n) };

		c.ruby_to = c.ruby_from + any(t, n + 1);
		ignore_gone(t, &damage);
		if (can_cut(t, &c)) {
			merge_cut(t, &c, &damage, seed);
			cuts++;
		}
		free(t);
	}
	cr_expect_gt(cuts, ROUNDS / 10);
}

/* Then at least the inner part, which both stacks tell of, is as it was. */
Test(merge, both_damaged_at_random)
{
	size_t cuts = 0;

	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		struct truth *t = happen(seed * 0x9e3779b97f4a7c15ull);
		size_t n = running(t), ends = t->d.w.n_native;
		struct damage damage = { 0 };
		struct cut c = { .ruby_from = 1 + any(t, n),
				 .native_from = any(t, ends),
				 .native_to = ends };

		c.ruby_to = c.ruby_from + any(t, n + 1);
		for (size_t i = c.ruby_from; i < t->d.w.n_ruby; i++)
			damage.ruby[t->d.w.n_ruby - 1 - i] = true;
		ignore_gone(t, &damage);
		if (can_cut(t, &c)) {
			merge_cut(t, &c, &damage, seed);
			cuts++;
		}
		free(t);
	}
	cr_expect_gt(cuts, ROUNDS / 10);
}
