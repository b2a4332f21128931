/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "ruby/iseq.h"
#include "ruby/walk.h"
#include "support/ruby_image.h"
#include "symbol/resolver.h"

/* An image, a resolver over it, and what the last stack was resolved to. */
struct fixture {
	struct ruby_image *img;
	struct resolver *r;
	struct stack_era sampled; /* at first: a Ruby whose collector was not found */
	const uint32_t *ids;
	size_t n;
};

static struct fixture setup(const char *version)
{
	struct fixture f = { .img = image_new(version) };

	cr_assert_eq(resolver_new(&f.img->vm, &f.r), 0);
	return f;
}

static void teardown(struct fixture *f)
{
	resolver_free(f->r);
	image_free(f->img);
}

static void assert_sane_symbol(const struct named_frame *s)
{
	cr_assert_lt(s->kind, FRAME_KIND_COUNT);
	for (const char *p = s->name; *p;) {
		size_t n = utf8_sequence(p, strlen(p));

		cr_assert_gt(n, 0, "\"%s\" is no UTF-8", s->name);
		p += n;
	}
	if (s->kind == FRAME_UNKNOWN || s->kind == FRAME_TRUNCATED || s->kind == FRAME_FIBER) {
		cr_assert_str_eq(s->file, "");
		cr_assert_eq(s->line, 0);
	}
	cr_assert(s->kind == FRAME_RUBY || (!s->func_line && !s->flags));
}

static void resolve(struct fixture *f, const struct rbpf_frame *frames, size_t n)
{
	cr_assert_eq(resolver_stack(f->r, &f->sampled, frames, n, NULL, &f->ids, &f->n), 0);
	cr_assert_leq(f->n, n, "%zu symbols of %zu frames", f->n, n);
	for (size_t i = 0; i < f->n; i++)
		assert_sane_symbol(resolver_symbol(f->r, f->ids[i]));
}

static void expect_symbol(struct fixture *f, size_t i, enum frame_kind kind, const char *name,
			  const char *file, uint32_t line)
{
	const struct named_frame *s;

	cr_assert_lt(i, f->n, "there are only %zu frames", f->n);
	s = resolver_symbol(f->r, f->ids[i]);
	cr_expect(s->kind == kind && !strcmp(s->name, name) && !strcmp(s->file, file) &&
			  s->line == line,
		  "frame %zu is %d \"%s\" %s:%u, not %d \"%s\" %s:%u", i, s->kind, s->name, s->file,
		  s->line, kind, name, file, line);
}

static uint64_t method_iseq(struct fixture *f, const char *label, const char *path, uint32_t line)
{
	return image_iseq(f->img, &(struct image_iseq) { .type = RUBY_ISEQ_METHOD,
							 .label = label,
							 .path = path,
							 .first_line = line });
}

static struct rbpf_frame ruby_frame(struct fixture *f, uint64_t iseq, uint64_t me)
{
	return (struct rbpf_frame) { .iseq = iseq, .pc = image_pc(f->img, iseq, 2), .me = me };
}

static struct rbpf_frame c_frame(uint64_t me)
{
	return (struct rbpf_frame) { .me = me };
}

/* Give the iseq at @addr the body, and so the code, of another one. */
static void replace_iseq(struct fixture *f, uint64_t addr, uint64_t by)
{
	image_put64(f->img, addr + 16, image_body(f->img, by));
}

/* ---- labels ---- */

Test(resolver, labels)
{
	struct fixture f = setup("3.3");
	uint64_t foo = image_class(f.img, "Foo"), meta = image_singleton(f.img, foo);
	uint64_t anon = image_class(f.img, NULL);
	uint64_t method = method_iseq(&f, "bar", "/a.rb", 10);
	uint64_t block = image_iseq(f.img,
				    &(struct image_iseq) { .type = RUBY_ISEQ_BLOCK,
							   .label = "block (2 levels) in bar",
							   .base = "bar",
							   .path = "/a.rb",
							   .local = method });
	uint64_t body = image_iseq(f.img, &(struct image_iseq) { .type = RUBY_ISEQ_CLASS,
								 .label = "<class:Foo>",
								 .path = "/a.rb" });
	uint64_t main_iseq = image_iseq(f.img, &(struct image_iseq) { .type = RUBY_ISEQ_MAIN,
								      .label = "<main>",
								      .path = "/main.rb" });
	uint64_t bar = image_ment(f.img, foo, "bar", IMAGE_ISEQ);
	uint64_t bar2 = image_ment(f.img, meta, "bar", IMAGE_ISEQ);
	uint64_t bar3 = image_ment(f.img, anon, "bar", IMAGE_ISEQ);
	const struct rbpf_frame frames[] = {
		ruby_frame(&f, block, bar),	ruby_frame(&f, method, bar),
		ruby_frame(&f, block, bar2),	ruby_frame(&f, method, bar2),
		ruby_frame(&f, method, bar3),	ruby_frame(&f, method, 0),
		ruby_frame(&f, method, 0x5000), /* a method entry that cannot be read */
		ruby_frame(&f, body, bar),	/* not in a method: no class */
		ruby_frame(&f, main_iseq, 0),
	};

	resolve(&f, frames, 9);
	cr_assert_eq(f.n, 9);
	expect_symbol(&f, 0, FRAME_RUBY, "block (2 levels) in Foo#bar", "/a.rb", 1);
	expect_symbol(&f, 1, FRAME_RUBY, "Foo#bar", "/a.rb", 10);
	expect_symbol(&f, 2, FRAME_RUBY, "block (2 levels) in Foo.bar", "/a.rb", 1);
	expect_symbol(&f, 3, FRAME_RUBY, "Foo.bar", "/a.rb", 10);
	expect_symbol(&f, 4, FRAME_RUBY, "bar", "/a.rb", 10);
	expect_symbol(&f, 5, FRAME_RUBY, "bar", "/a.rb", 10);
	expect_symbol(&f, 6, FRAME_UNKNOWN, "[unknown]", "", 0);
	expect_symbol(&f, 7, FRAME_RUBY, "<class:Foo>", "/a.rb", 1);
	expect_symbol(&f, 8, FRAME_RUBY, "<main>", "/main.rb", 1);
	cr_expect_eq(resolver_symbol(f.r, f.ids[1])->func_line, 10);
	cr_expect_eq(f.ids[4], f.ids[5], "equal symbols are one");

	resolve(&f, frames, 0);
	cr_expect_eq(f.n, 0);
	teardown(&f);
}

Test(resolver, templates_are_labelled_by_their_file)
{
	struct fixture f = setup("3.3");
	uint64_t iseq = method_iseq(&f, "_app_views_a_erb__1_2", "/srv/shop/app/views/a.erb", 1);
	uint64_t plain = method_iseq(&f, "bar", "/srv/shop/app/views/a.erb", 1);
	const struct rbpf_frame frames[] = { ruby_frame(&f, iseq, 0), ruby_frame(&f, plain, 0) };

	resolve(&f, frames, 2);
	expect_symbol(&f, 0, FRAME_RUBY, "_app_views_a_erb__1_2", "/srv/shop/app/views/a.erb", 1);
	cr_expect_str_eq(resolver_symbol(f.r, f.ids[0])->label, "app/views/a.erb");
	cr_expect_str_eq(resolver_symbol(f.r, f.ids[1])->label, "bar");
	teardown(&f);
}

Test(resolver, names_become_utf8)
{
	struct fixture f = setup("3.3");
	struct rbpf_frame frame = ruby_frame(&f,
					     method_iseq(&f,
							 "a\xff\x01"
							 "b",
							 "/\xc3.rb", 1),
					     0);

	resolve(&f, &frame, 1);
	expect_symbol(&f, 0, FRAME_RUBY,
		      "a\xef\xbf\xbd\xef\xbf\xbd"
		      "b",
		      "/\xef\xbf\xbd.rb", 1);
	teardown(&f);
}

/* A C function is shown where its nearest Ruby caller executes, as in Ruby's backtraces. */
Test(resolver, source_location_of_c_functions)
{
	struct fixture f = setup("3.3");
	uint64_t array = image_class(f.img, "Array"), integer = image_class(f.img, "Integer");
	uint64_t each = image_ment(f.img, array, "each", IMAGE_CFUNC);
	uint64_t times = image_ment(f.img, integer, "times", IMAGE_CFUNC);
	uint64_t one = method_iseq(&f, "one", "/one.rb", 11);
	uint64_t two = method_iseq(&f, "two", "/two.rb", 22);
	const struct rbpf_frame frames[] = {
		c_frame(each), c_frame(times),	       ruby_frame(&f, two, 0),
		c_frame(each), ruby_frame(&f, one, 0), c_frame(times),
	};

	resolve(&f, frames, 6);
	cr_expect_neq(f.ids[0], f.ids[3], "one function, two source locations");
	expect_symbol(&f, 0, FRAME_CFUNC, "Array#each", "/two.rb", 22);
	expect_symbol(&f, 1, FRAME_CFUNC, "Integer#times", "/two.rb", 22);
	expect_symbol(&f, 2, FRAME_RUBY, "two", "/two.rb", 22);
	expect_symbol(&f, 3, FRAME_CFUNC, "Array#each", "/one.rb", 11);
	expect_symbol(&f, 4, FRAME_RUBY, "one", "/one.rb", 11);
	expect_symbol(&f, 5, FRAME_CFUNC, "Integer#times", "", 0);
	teardown(&f);
}

Test(resolver, c_function_called_from_two_lines)
{
	static const struct image_line lines[] = { { 0, 5 }, { 4, 6 } };
	struct fixture f = setup("3.3");
	uint64_t each = image_ment(f.img, image_class(f.img, "Array"), "each", IMAGE_CFUNC);
	uint64_t iseq = image_iseq(f.img, &(struct image_iseq) { .type = RUBY_ISEQ_METHOD,
								 .label = "one",
								 .path = "/one.rb",
								 .lines = lines,
								 .n_lines = 2 });

	for (uint32_t i = 0; i < 2; i++) {
		const struct rbpf_frame frames[] = {
			c_frame(each),
			{ .iseq = iseq, .pc = image_pc(f.img, iseq, 2 + 4 * i) },
		};

		resolve(&f, frames, 2);
		expect_symbol(&f, 0, FRAME_CFUNC, "Array#each", "/one.rb", 5 + i);
		expect_symbol(&f, 1, FRAME_RUBY, "one", "/one.rb", 5 + i);
	}
	teardown(&f);
}

/* It must not be given the source location of a frame further out, which does not call it. */
Test(resolver, c_function_called_by_an_unknown_frame)
{
	struct fixture f = setup("3.3");
	uint64_t each = image_ment(f.img, f.img->object, "each", IMAGE_CFUNC);
	const struct rbpf_frame unknown[] = {
		c_frame(each),
		{ .iseq = 0x5000, .pc = 0x5000 },
		ruby_frame(&f, method_iseq(&f, "one", "/one.rb", 11), 0),
	};
	const struct rbpf_frame cut[] = { c_frame(each), { .pc = 7 }, unknown[2] };

	resolve(&f, unknown, 3);
	expect_symbol(&f, 0, FRAME_CFUNC, "Object#each", "", 0);
	expect_symbol(&f, 1, FRAME_UNKNOWN, "[unknown]", "", 0);
	resolve(&f, cut, 3);
	expect_symbol(&f, 0, FRAME_CFUNC, "Object#each", "", 0);
	expect_symbol(&f, 1, FRAME_TRUNCATED, "[truncated 7 frames]", "", 0);
	teardown(&f);
}

Test(resolver, like_a_c_function)
{
	struct fixture f = setup("3.4");
	uint64_t array = image_class(f.img, "Array");
	uint64_t each = image_iseq(f.img, &(struct image_iseq) { .type = RUBY_ISEQ_METHOD,
								 .label = "each",
								 .path = "<internal:array>",
								 .attrs = 8 });
	uint64_t map = image_ment(f.img, array, "map", IMAGE_CFUNC);
	const struct rbpf_frame frames[] = {
		c_frame(map),
		ruby_frame(&f, each, image_ment(f.img, array, "each", IMAGE_ISEQ)),
		ruby_frame(&f, method_iseq(&f, "one", "/one.rb", 11), 0),
	};

	resolve(&f, frames, 3);
	expect_symbol(&f, 0, FRAME_CFUNC, "Array#map", "/one.rb", 11);
	expect_symbol(&f, 1, FRAME_CFUNC, "Array#each", "/one.rb", 11);
	expect_symbol(&f, 2, FRAME_RUBY, "one", "/one.rb", 11);
	teardown(&f);
}

Test(resolver, cut_frames)
{
	struct fixture f = setup("3.3");
	struct rbpf_frame one = ruby_frame(&f, method_iseq(&f, "one", "/one.rb", 11), 0);
	const struct rbpf_frame frames[] = { one, { .pc = 1234567 }, one };

	resolve(&f, frames, 3);
	cr_expect_eq(f.n, 3);
	expect_symbol(&f, 0, FRAME_RUBY, "one", "/one.rb", 11);
	expect_symbol(&f, 1, FRAME_TRUNCATED, "[truncated 1234567 frames]", "", 0);
	teardown(&f);
}

/* ---- what Ruby shows, and what it hides ---- */

/*
 * A stack by letters, innermost first: r a method in Ruby, i one in "<internal:", t one in
 * "<internal:" with the attribute c_trace, c a C function. Number k of it is called "X#k", where X
 * is the letter, and executes line 10 + k.
 */
#define LETTERS_MAX 8

static struct rbpf_frame letter_frame(struct fixture *f, char letter, uint32_t k)
{
	char name[2] = { (char)('0' + k) }, owner[2] = { letter };
	uint64_t klass = image_class(f->img, owner), iseq;

	if (letter == 'c')
		return c_frame(image_ment(f->img, klass, name, IMAGE_CFUNC));
	iseq = image_iseq(f->img,
			  &(struct image_iseq) { .type = RUBY_ISEQ_METHOD,
						 .label = name,
						 .path = letter == 'r' ? "/r.rb" : "<internal:x>",
						 .attrs = letter == 't' ? 8 : 0,
						 .first_line = 10 + k });
	return ruby_frame(f, iseq, image_method(f->img, klass, name, iseq));
}

/* What Ruby makes of it: which frames it shows, and where. */
struct shown {
	uint32_t n;
	uint32_t frame[LETTERS_MAX];
	int location[LETTERS_MAX]; /* the frame whose file and line it is shown at; -1: none */
};

/* vm_backtrace.c rb_ec_partial_backtrace_object(), 4.0 */
static struct shown backtrace_4_0(const char *letters)
{
	struct shown s = { 0 };
	uint32_t pending = 0; /* the last so many have no source location yet, or only their own */

	for (uint32_t k = 0; letters[k]; k++) {
		if (letters[k] == 'i') {
			s.n -= pending;
			pending = 0;
		}
		s.location[s.n] = letters[k] == 'c' ? -1 : (int)k;
		s.frame[s.n++] = k;
		pending++;
		if (letters[k] != 'r')
			continue;
		for (; pending; pending--)
			s.location[s.n - pending] = (int)k;
	}
	return s;
}

/* The same in 3.4; before that, there is no such attribute. */
static struct shown backtrace_3_4(const char *letters)
{
	struct shown s = { 0 };
	uint32_t pending = 0;

	for (uint32_t k = 0; letters[k]; k++) {
		s.location[s.n] = letters[k] == 'c' ? -1 : (int)k;
		s.frame[s.n++] = k;
		pending++;
		if (letters[k] == 'c' || letters[k] == 't')
			continue;
		for (; pending; pending--)
			s.location[s.n - pending] = (int)k;
	}
	return s;
}

static void expect_shown(struct fixture *f, const char *letters, const struct shown *want)
{
	struct rbpf_frame frames[LETTERS_MAX];
	uint32_t n = (uint32_t)strlen(letters);

	for (uint32_t k = 0; k < n; k++)
		frames[k] = letter_frame(f, letters[k], k);
	resolve(f, frames, n);
	cr_assert_eq(f->n, want->n, "%s: \"%s\": %zu frames, not %u", f->img->version, letters,
		     f->n, want->n);
	for (uint32_t i = 0; i < want->n; i++) {
		uint32_t k = want->frame[i];
		int at = want->location[i];
		bool own = at == (int)k;
		char name[8];

		snprintf(name, sizeof(name), "%c#%u", letters[k], k);
		expect_symbol(f, i, own ? FRAME_RUBY : FRAME_CFUNC, name,
			      at < 0		   ? ""
			      : letters[at] == 'r' ? "/r.rb"
						   : "<internal:x>",
			      at < 0 ? 0 : 10 + (uint32_t)at);
	}
}

/* All stacks of up to @max of these @letters. */
static void each_stack(const char *version, const char *letters, size_t max,
		       struct shown (*backtrace)(const char *))
{
	size_t base = strlen(letters);

	for (size_t len = 1, n = base; len <= max; len++, n *= base) {
		struct fixture f = setup(version);

		for (size_t i = 0; i < n; i++) {
			char stack[LETTERS_MAX + 1] = { 0 };
			struct shown want;
			size_t rest = i;

			for (size_t k = 0; k < len; k++, rest /= base)
				stack[k] = letters[rest % base];
			want = backtrace(stack);
			expect_shown(&f, stack, &want);
			if (f.img->n_regions > IMAGE_MAX_REGIONS / 2) {
				teardown(&f);
				f = setup(version);
			}
		}
		teardown(&f);
	}
}

Test(resolver, internal_frames)
{
	each_stack("4.0", "cir", 5, backtrace_4_0);
	each_stack("4.1", "cir", 4, backtrace_4_0);
}

/* Up to 3.3 it is a method like any other. */
Test(resolver, internal_frames_before_4_0)
{
	each_stack("3.4", "cir", 4, backtrace_3_4);
	each_stack("3.3", "cir", 3, backtrace_3_4);
	each_stack("2.7", "cir", 3, backtrace_3_4);
}

/* 3.4. (Such a method always has a caller in Ruby.) */
Test(resolver, c_trace_frames)
{
	static const char *const stacks[] = { "tr",   "trr",   "ctr",  "tcr",  "ttr",
					      "itr",  "tir",   "cttr", "rtcr", "trctr",
					      "tcir", "ctcir", "rtir" };

	for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
		struct fixture f = setup("3.4");
		struct shown want = backtrace_3_4(stacks[i]);

		expect_shown(&f, stacks[i], &want);
		teardown(&f);
	}
}

/* A block of such a method has the method's name, as the method entry says it. */
Test(resolver, blocks_of_internal_methods)
{
	struct fixture f = setup("4.0");
	uint64_t array = image_class(f.img, "Array");
	uint64_t each = image_iseq(f.img, &(struct image_iseq) { .type = RUBY_ISEQ_METHOD,
								 .label = "each",
								 .path = "<internal:array>" });
	uint64_t block = image_iseq(f.img, &(struct image_iseq) { .type = RUBY_ISEQ_BLOCK,
								  .label = "block in each",
								  .path = "<internal:array>",
								  .local = each });
	uint64_t me = image_method(f.img, array, "each", each);
	const struct rbpf_frame frames[] = {
		ruby_frame(&f, block, me), ruby_frame(&f, method_iseq(&f, "one", "/one.rb", 11), 0)
	};

	resolve(&f, frames, 2);
	cr_assert_eq(f.n, 2);
	expect_symbol(&f, 0, FRAME_CFUNC, "Array#each", "/one.rb", 11);
	teardown(&f);
}

/* What is not known to be in "<internal:" hides nothing. */
Test(resolver, unknown_among_internal_frames)
{
	struct fixture f = setup("4.0");
	struct rbpf_frame frames[4];

	for (uint32_t k = 0; k < 4; k++)
		frames[k] = letter_frame(&f, "ciir"[k], k);
	frames[1].iseq = 0x5000;
	resolve(&f, frames, 4);
	cr_assert_eq(f.n, 4);
	expect_symbol(&f, 0, FRAME_CFUNC, "c#0", "", 0);
	expect_symbol(&f, 1, FRAME_UNKNOWN, "[unknown]", "", 0);
	expect_symbol(&f, 2, FRAME_CFUNC, "i#2", "/r.rb", 13);
	teardown(&f);
}

/* ---- fibers ---- */

Test(resolver, fibers)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);
		uint64_t resume = image_ment(f.img, image_class(f.img, "Fiber"), "resume",
					     IMAGE_CFUNC);
		uint64_t each = image_ment(f.img, image_class(f.img, "Array"), "each", IMAGE_CFUNC);
		const struct rbpf_frame frames[] = {
			ruby_frame(&f, method_iseq(&f, "one", "/one.rb", 11), 0),
			c_frame(each), /* with no Ruby code of this fiber around it */
			{ 0 },
			c_frame(resume),
			ruby_frame(&f, method_iseq(&f, "two", "/two.rb", 22), 0),
			{ 0 },
			ruby_frame(&f, method_iseq(&f, "three", "/three.rb", 33), 0),
		};

		resolve(&f, frames, 7);
		cr_assert_eq(f.n, 7);
		expect_symbol(&f, 0, FRAME_RUBY, "one", "/one.rb", 11);
		expect_symbol(&f, 1, FRAME_CFUNC, "Array#each", "", 0);
		expect_symbol(&f, 2, FRAME_FIBER, "[fiber]", "", 0);
		expect_symbol(&f, 3, FRAME_CFUNC, "Fiber#resume", "/two.rb", 22);
		expect_symbol(&f, 4, FRAME_RUBY, "two", "/two.rb", 22);
		expect_symbol(&f, 5, FRAME_FIBER, "[fiber]", "", 0);
		expect_symbol(&f, 6, FRAME_RUBY, "three", "/three.rb", 33);
		cr_expect_eq(f.ids[2], f.ids[5]);
		teardown(&f);
	}
}

/* A rescue frame or an internal one hides what is below it on its own stack, and no more. */
Test(resolver, fibers_hide_nothing_of_one_another)
{
	struct fixture f = setup("4.0");
	uint64_t method = method_iseq(&f, "foo", "/a.rb", 1);
	uint64_t rescue = image_iseq(f.img, &(struct image_iseq) { .type = RUBY_ISEQ_RESCUE,
								   .label = "rescue in foo",
								   .path = "/a.rb",
								   .local = method });
	const struct rbpf_frame frames[] = {
		c_frame(image_ment(f.img, f.img->object, "x", IMAGE_CFUNC)),
		ruby_frame(&f, rescue, 0),
		{ 0 },
		letter_frame(&f, 'i', 1),
		ruby_frame(&f, method, 0),
	};

	resolve(&f, frames, 5);
	cr_assert_eq(f.n, 5);
	expect_symbol(&f, 0, FRAME_CFUNC, "Object#x", "/a.rb", 1);
	expect_symbol(&f, 1, FRAME_RUBY, "foo", "/a.rb", 1);
	expect_symbol(&f, 2, FRAME_FIBER, "[fiber]", "", 0);
	expect_symbol(&f, 3, FRAME_CFUNC, "i#1", "/a.rb", 1);
	teardown(&f);
}

/* ---- lines of compiled code ---- */

static const struct image_line two_lines[] = { { 0, 5 }, { 4, 6 } };

static uint64_t compiled_iseq(struct fixture *f, bool compiled)
{
	return image_iseq(f->img, &(struct image_iseq) { .type = RUBY_ISEQ_METHOD,
							 .label = "one",
							 .path = "/one.rb",
							 .first_line = 4,
							 .lines = two_lines,
							 .n_lines = 2,
							 .compiled = compiled });
}

static void expect_line(struct fixture *f, size_t i, uint32_t line, bool approximate)
{
	expect_symbol(f, i, FRAME_RUBY, "one", "/one.rb", line);
	cr_expect_eq(resolver_symbol(f->r, f->ids[i])->flags & FRAME_LINE_APPROXIMATE, approximate,
		     "%s: frame %zu: line %u", f->img->version, i, line);
	cr_expect_eq(resolver_symbol(f->r, f->ids[i])->func_line, 4);
}

Test(resolver, approximate_lines)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);
		uint64_t iseq = compiled_iseq(&f, true), pc = image_pc(f.img, iseq, 5);
		struct rbpf_frame frames[2] = { { .iseq = iseq, .pc = pc | RBPF_PC_STALE },
						{ .iseq = iseq, .pc = pc } };
		static const uint64_t garbage[] = { 0, 0x5000, 8, ~7ull };

		resolve(&f, frames, 2);
		expect_line(&f, 0, 6, true);
		/* 3.1 may not have saved that of the caller either. */
		expect_line(&f, 1, 6, f.img->vm.rules.caller_pc_late);
		cr_expect_eq(f.ids[0] == f.ids[1], f.img->vm.rules.caller_pc_late);
		/* What an earlier frame left there: of the method only its first line is known. */
		for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
			frames[0].pc = garbage[i] | RBPF_PC_STALE;
			resolve(&f, frames, 2);
			expect_line(&f, 0, 4, true);
		}
		teardown(&f);
	}
}

/*
 * Some compilers leave no trace in a frame: the innermost may be theirs if there is compiled code.
 */
Test(resolver, lines_of_methods_that_were_compiled)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		for (int compiled = 0; compiled < 2; compiled++) {
			struct fixture f = setup(image_versions[v].minor);
			uint64_t iseq = compiled_iseq(&f, compiled);
			uint64_t pc = image_pc(f.img, iseq, 5);
			const struct rbpf_frame frames[] = { { .iseq = iseq, .pc = pc },
							     { .iseq = iseq, .pc = pc } };

			resolve(&f, frames, 2);
			expect_line(&f, 0, 6, compiled);
			expect_line(&f, 1, 6, false);
			teardown(&f);
		}
	}
}

/* ---- 2.7: a frame that is being written ---- */

struct callee {
	struct image_frame frame;
	const char *name;
};

static struct callee callee(struct fixture *f, const char *klass, const char *name, uint32_t locals)
{
	uint64_t iseq = method_iseq(f, name, "/callee.rb", 3);
	static char names[2][16];
	static int n;
	char *full = names[n++ % 2];

	snprintf(full, sizeof(names[0]), "%s#%s", klass, name);
	return (struct callee) {
		.frame = { .flags = IMAGE_METHOD | IMAGE_LOCAL,
			   .iseq = iseq,
			   .pc = image_pc(f->img, iseq, 3),
			   .me_cref = image_method(f->img, image_class(f->img, klass), name, iseq),
			   .locals = locals },
		.name = full,
	};
}

/* The names of a stack that is walked and resolved now; innermost first. */
static void resolve_thread(struct fixture *f, const struct image_thread *t)
{
	struct ruby_stack stack;

	cr_assert_eq(ruby_walk(&f->img->vm.mem, &f->img->vm.walk, t->ec, 100, &stack), 0);
	cr_assert_eq(stack.status, RBPF_OK);
	resolve(f, stack.frames, stack.n_frames);
	ruby_stack_deinit(&stack);
}

/*
 * pc and iseq of a frame are written before its environment, in whose place stands until then what
 * the call before left: it must not be named after both.
 */
Test(resolver, a_method_being_written)
{
	for (uint32_t locals = 0; locals < 16; locals++) {
		struct fixture f = setup("2.7");
		struct callee old = callee(&f, "Old", "called", locals / 4);
		struct callee new = callee(&f, "New", "calls", locals % 4);
		uint64_t main_iseq = method_iseq(&f, "caller", "/caller.rb", 1);
		struct image_thread t = image_thread(f.img, 4096), before;
		bool more = true;

		image_push_method(&t, main_iseq, image_pc(f.img, main_iseq, 1), 0);
		before = t;
		for (unsigned int stage = 0; more; stage++) {
			const struct named_frame *top;

			image_push(&t, &old.frame);
			image_return(&t, &before);
			more = image_push_until(&t, &new.frame, stage);
			resolver_revalidate(f.r);
			resolve_thread(&f, &t);
			image_return(&t, &before);
			cr_assert(f.n == 1 || f.n == 2);
			if (f.n == 1)
				continue;
			top = resolver_symbol(f.r, f.ids[0]);
			cr_expect(top->kind == FRAME_UNKNOWN || !strcmp(top->name, old.name) ||
					  !strcmp(top->name, new.name) ||
					  !strcmp(top->name, "calls"),
				  "after store %u it is named \"%s\"", stage, top->name);
			cr_expect(more || !strcmp(top->name, new.name), "\"%s\"", top->name);
		}
		teardown(&f);
	}
}

/* 4.0's ZJIT writes no pc: its frames are named all the same. */
Test(resolver, a_method_that_bare_zjit_has_called)
{
	struct fixture f = setup("4.0");
	struct callee new = callee(&f, "New", "called", 0);
	uint64_t main_iseq = method_iseq(&f, "caller", "/caller.rb", 1);
	uint64_t left[] = { 0, image_pc(f.img, main_iseq, 1), new.frame.pc };
	struct image_thread t = image_thread(f.img, 4096), before;

	image_zjit_on(f.img, true);
	image_push_method(&t, main_iseq, image_pc(f.img, main_iseq, 1), 0);
	before = t;
	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
		new.frame.pc = left[i];
		image_push(&t, &new.frame);
		resolve_thread(&f, &t);
		image_return(&t, &before);
		cr_assert_eq(f.n, 2);
		expect_symbol(&f, 0, FRAME_RUBY, new.name, "/callee.rb", 3);
		cr_expect(resolver_symbol(f.r, f.ids[0])->flags & FRAME_LINE_APPROXIMATE);
		expect_symbol(&f, 1, FRAME_RUBY, "caller", "/caller.rb", 1);
		cr_expect_not(resolver_symbol(f.r, f.ids[1])->flags & FRAME_LINE_APPROXIMATE);
	}
	teardown(&f);
}

/* What is not proven is no frame that was only being written: its pc is of its iseq. */
Test(resolver, an_unproven_frame_is_not_left_out)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);
		uint64_t one = method_iseq(&f, "one", "/one.rb", 11);
		uint64_t two = method_iseq(&f, "two", "/two.rb", 22);
		const struct rbpf_frame frames[] = {
			ruby_frame(&f, one, image_method(f.img, f.img->object, "one", one)),
			ruby_frame(&f, two, image_method(f.img, f.img->object, "two", two)),
		};

		image_gc_count(f.img, 7);
		f.sampled.gc_era = 5;
		resolve(&f, frames, 2);
		cr_assert_eq(f.n, 2, "%s: %zu frames", f.img->version, f.n);
		expect_symbol(&f, 0, FRAME_UNKNOWN, "[unknown]", "", 0);
		expect_symbol(&f, 1, FRAME_UNKNOWN, "[unknown]", "", 0);
		teardown(&f);
	}
}

/* ---- rescue and ensure ---- */

static size_t rescue_frames(struct fixture *f, struct rbpf_frame *frames)
{
	uint64_t foo = image_ment(f->img, image_class(f->img, "Foo"), "foo", IMAGE_ISEQ);
	uint64_t method = method_iseq(f, "foo", "/a.rb", 1);
	struct image_iseq rescue = { .type = RUBY_ISEQ_RESCUE,
				     .label = "rescue in foo",
				     .base = "foo",
				     .path = "/a.rb",
				     .local = method,
				     .first_line = 5 };
	struct image_iseq ensure = { .type = RUBY_ISEQ_ENSURE,
				     .label = "ensure in rescue in foo",
				     .base = "foo",
				     .path = "/a.rb",
				     .local = method,
				     .first_line = 6 };

	frames[0] = c_frame(image_ment(f->img, f->img->object, "puts", IMAGE_CFUNC));
	frames[1] = ruby_frame(f, image_iseq(f->img, &ensure), foo);
	frames[2] = ruby_frame(f, image_iseq(f->img, &rescue), foo);
	frames[3] = ruby_frame(f, method, foo);
	frames[4] = ruby_frame(f, method_iseq(f, "run", "/run.rb", 3), 0);
	return 5;
}

/* Since 3.4 a rescue or ensure frame stands for the frame below it as well. */
Test(resolver, rescue_hides_its_method)
{
	struct fixture f = setup("3.4");
	struct rbpf_frame frames[5];

	resolve(&f, frames, rescue_frames(&f, frames));
	cr_assert_eq(f.n, 3, "%zu frames", f.n);
	expect_symbol(&f, 0, FRAME_CFUNC, "Object#puts", "/a.rb", 6);
	expect_symbol(&f, 1, FRAME_RUBY, "Foo#foo", "/a.rb", 6);
	expect_symbol(&f, 2, FRAME_RUBY, "run", "/run.rb", 3);
	resolve(&f, frames + 2, 3);
	cr_assert_eq(f.n, 2);
	expect_symbol(&f, 0, FRAME_RUBY, "Foo#foo", "/a.rb", 5);
	teardown(&f);
}

Test(resolver, rescue_beside_its_method)
{
	struct fixture f = setup("3.3");
	struct rbpf_frame frames[5];

	resolve(&f, frames, rescue_frames(&f, frames));
	cr_assert_eq(f.n, 5);
	expect_symbol(&f, 1, FRAME_RUBY, "ensure in rescue in Foo#foo", "/a.rb", 6);
	expect_symbol(&f, 2, FRAME_RUBY, "rescue in Foo#foo", "/a.rb", 5);
	expect_symbol(&f, 3, FRAME_RUBY, "Foo#foo", "/a.rb", 1);
	teardown(&f);
}

/* What is hidden is the method of the frame, nothing else that stands there. */
Test(resolver, rescue_does_not_hide_the_cut)
{
	struct fixture f = setup("3.4");
	struct rbpf_frame frames[5];

	rescue_frames(&f, frames);
	frames[3] = (struct rbpf_frame) { .pc = 99 };
	resolve(&f, frames + 2, 3);
	cr_assert_eq(f.n, 3, "the marker says that frames are missing");
	expect_symbol(&f, 1, FRAME_TRUNCATED, "[truncated 99 frames]", "", 0);
	teardown(&f);
}

/* ---- where rb_vm_exec() begins, and functions ---- */

/*
 * A stack by letters, as above, with R for the frame that a rescue stands for, s for a rescue of
 * it,
 * | for cut frames and > for a mark of a fiber; one behind ! begins an activation.
 */
static size_t origin_frames(struct fixture *f, const char *text, struct rbpf_frame *frames)
{
	struct rbpf_frame rescue[5];
	size_t n = 0;

	rescue_frames(f, rescue);
	for (; *text; text++) {
		bool begins = *text == '!';

		text += begins;
		switch (*text) {
		case 's':
			frames[n] = rescue[2];
			break;
		case 'R':
			frames[n] = rescue[3];
			break;
		case '|':
			frames[n] = (struct rbpf_frame) { .pc = 2 | 1 << 6 };
			break;
		case '>':
			frames[n] = (struct rbpf_frame) { 0 };
			break;
		default:
			frames[n] = letter_frame(f, *text, (uint32_t)n);
		}
		frames[n++].pc |= begins ? RBPF_PC_FINISH : 0;
	}
	return n;
}

Test(resolver, activations)
{
	static const struct {
		const char *version, *stack;
		uint8_t finish[8]; /* of what is shown */
		size_t n;
	} cases[] = {
		{ "3.3", "r!rr!r", { 0, 1, 0, 1 }, 4 },
		{ "3.3", "!c!r", { 1, 1 }, 2 }, /* of a frame that the walk left out */
		/* A cut, whatever their number; a fiber. */
		{ "3.3", "r|!r>!r", { 0, 0, 1, 0, 1 }, 5 },
		/* A method that its rescue stands for. */
		{ "3.3", "s!R!r", { 0, 1, 1 }, 3 },
		{ "3.4", "s!R!r", { 1, 1 }, 2 },
		{ "3.4", "!s!R!r", { 2, 1 }, 2 },
		{ "3.4", "s!Rs!R!r", { 1, 1, 1 }, 3 },
		{ "3.4", "ss!R!r", { 1, 1 }, 2 },
		{ "3.4", "s!s!R!r", { 2, 1 }, 2 },
		{ "3.4", "rs!R!r", { 0, 1, 1 }, 3 },
		/* What a method in "<internal:" calls. */
		{ "4.0", "!r!c!i!i!r", { 3, 1, 1 }, 3 },
		{ "4.0", "r!i!i!r", { 1, 1, 1 }, 3 },
		{ "4.0", "!c!i!i!r", { 1, 1 }, 2 }, /* none is left that would have them */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f = setup(cases[i].version);
		struct rbpf_frame frames[8];

		resolve(&f, frames, origin_frames(&f, cases[i].stack, frames));
		cr_assert_eq(f.n, cases[i].n, "%s: %zu frames", cases[i].stack, f.n);
		for (size_t k = 0; k < f.n; k++)
			cr_expect_eq(resolver_origins(f.r)[k].finish, cases[i].finish[k],
				     "%s %s: frame %zu begins %u", cases[i].version, cases[i].stack,
				     k, resolver_origins(f.r)[k].finish);
		teardown(&f);
	}
}

/* That it begins an activation is no part of what a frame is called. */
Test(resolver, activations_have_no_names)
{
	struct fixture f = setup("3.3");
	struct rbpf_frame frames[4] = {
		letter_frame(&f, 'c', 0), { 0 }, letter_frame(&f, 'r', 2), { 0 }
	};

	frames[1] = frames[0];
	frames[1].pc = RBPF_PC_FINISH;
	frames[3] = frames[2];
	frames[3].pc |= RBPF_PC_FINISH;
	resolve(&f, frames, 4);
	cr_assert_eq(f.n, 4);
	cr_expect_eq(f.ids[0], f.ids[1]);
	cr_expect_eq(f.ids[2], f.ids[3]);
	teardown(&f);
}

Test(resolver, functions)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);
		uint64_t puts = image_ment(f.img, f.img->object, "puts", IMAGE_CFUNC);
		uint64_t def = image_get64(f.img, puts + 16), other;
		const struct rbpf_frame frames[] = { c_frame(puts), letter_frame(&f, 'r', 1),
						     c_frame(0x5000) };

		image_put64(f.img, def + 8, 0x7f1234560010);
		other = image_ment(f.img, f.img->object, "bmethod", IMAGE_BMETHOD);
		resolve(&f, frames, 3);
		cr_assert_eq(f.n, 3);
		cr_expect_eq(resolver_origins(f.r)[0].function, 0x7f1234560010, "%s",
			     f.img->version);
		cr_expect_eq(resolver_origins(f.r)[1].function, 0, "in Ruby");
		cr_expect_eq(resolver_origins(f.r)[2].function, 0, "unknown");

		const struct rbpf_frame block = c_frame(other);

		image_put64(f.img, image_get64(f.img, other + 16) + 8, 0x7f1234560020);
		resolve(&f, &block, 1);
		cr_expect_eq(resolver_origins(f.r)[0].function, 0, "%s: not written in C",
			     f.img->version);
		teardown(&f);
	}
}

Test(resolver, instructions)
{
	struct fixture f = setup("3.3");
	struct rbpf_frame frame = letter_frame(&f, 'r', 0);
	uint64_t label = 7;

	cr_expect_eq(resolver_instructions(f.r, &label, 1), 0);
	cr_expect_eq(label, 7);
	resolve(&f, &frame, 1);
	image_put64(f.img, image_pc(f.img, frame.iseq, 0) - 8, 0x7f1234567890);
	cr_assert_eq(resolver_instructions(f.r, &label, 1), 1);
	cr_expect_eq(label, 0x7f1234567890);
	cr_expect_eq(resolver_instructions(f.r, &label, 0), 0);
	image_hide_all(f.img, true);
	cr_expect_eq(resolver_instructions(f.r, &label, 1), 0);
	teardown(&f);
}

Test(resolver, whose_code_runs_a_frame)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++)
		for (int zjit = 0; zjit < 2; zjit++) {
			struct fixture f = setup(image_versions[v].minor);
			const uint32_t flags = FRAME_YJIT | FRAME_ZJIT;
			struct rbpf_frame frames[2];
			uint32_t want = FRAME_YJIT;

			if (zjit && !f.img->facts.zjit_frames && !f.img->facts.zjit_bare) {
				teardown(&f);
				continue;
			}
			if (zjit) {
				image_zjit_on(f.img, true);
				/* 4.0's leaves what it finds where that would be told. */
				want = f.img->facts.zjit_bare ? 0 : FRAME_ZJIT;
			}
			frames[0] = frames[1] = letter_frame(&f, 'r', 0);
			frames[0].pc |= RBPF_PC_JIT;
			resolve(&f, frames, 2);
			cr_expect_eq(resolver_symbol(f.r, f.ids[0])->flags & flags, want, "%s",
				     f.img->version);
			cr_expect_eq(resolver_symbol(f.r, f.ids[1])->flags & flags, 0, "%s",
				     f.img->version);
			teardown(&f);
		}
}

/* ---- what is known, and for how long ---- */

Test(resolver, names_are_kept_until_revalidation)
{
	struct fixture f = setup("3.3");
	uint64_t iseq = method_iseq(&f, "one", "/one.rb", 11);
	uint64_t me = image_ment(f.img, image_class(f.img, "Foo"), "one", IMAGE_ISEQ);
	struct rbpf_frame frame = ruby_frame(&f, iseq, me);
	size_t reads;

	resolve(&f, &frame, 1);
	expect_symbol(&f, 0, FRAME_RUBY, "Foo#one", "/one.rb", 11);
	reads = f.img->n_reads;
	replace_iseq(&f, iseq, method_iseq(&f, "two", "/two.rb", 22));
	resolve(&f, &frame, 1);
	expect_symbol(&f, 0, FRAME_RUBY, "Foo#one", "/one.rb", 11);
	cr_expect_eq(f.img->n_reads, reads, "nothing is read again");
	teardown(&f);
}

/* One for all that is known, and one for whether the innermost has been compiled meanwhile. */
Test(resolver, a_revalidation_takes_two_reads)
{
	struct fixture f = setup("3.3");
	uint64_t me = image_ment(f.img, image_class(f.img, "Foo"), "one", IMAGE_ISEQ);
	struct rbpf_frame frames[200];
	size_t reads;

	for (size_t i = 0; i < 40; i++)
		frames[i] = ruby_frame(&f, method_iseq(&f, "one", "/one.rb", 1), me);
	for (size_t i = 40; i < 200; i++)
		frames[i] = frames[i % 40];
	resolve(&f, frames, 200);
	reads = f.img->n_reads;
	resolver_revalidate(f.r);
	resolve(&f, frames, 200);
	cr_expect_eq(f.img->n_reads - reads, 2, "%zu reads", f.img->n_reads - reads);
	expect_symbol(&f, 199, FRAME_RUBY, "Foo#one", "/one.rb", 1);
	teardown(&f);
}

/* Known from when it was interpreted, it is compiled: its pc may be an old one from then on. */
Test(resolver, compiled_after_it_was_read)
{
	struct fixture f = setup("3.1");
	uint64_t iseq = method_iseq(&f, "one", "/one.rb", 11);
	uint64_t body = image_get64(f.img, iseq + 16);
	struct rbpf_frame frame = ruby_frame(
		&f, iseq, image_ment(f.img, image_class(f.img, "Foo"), "one", IMAGE_ISEQ));

	resolve(&f, &frame, 1);
	cr_expect_not(resolver_symbol(f.r, f.ids[0])->flags & FRAME_LINE_APPROXIMATE);
	image_put64(f.img, body + f.img->facts.jit_entry, 0x7e0000000000);
	resolver_revalidate(f.r);
	resolve(&f, &frame, 1);
	cr_expect(resolver_symbol(f.r, f.ids[0])->flags & FRAME_LINE_APPROXIMATE);
	teardown(&f);
}

/* Where no code of a JIT compiler is, none is looked for, until there may be some. */
Test(resolver, compiled_once_there_is_a_jit)
{
	struct fixture f = setup("3.1");
	uint64_t iseq = method_iseq(&f, "one", "/one.rb", 11);
	uint64_t body = image_get64(f.img, iseq + 16);
	struct rbpf_frame frame = ruby_frame(
		&f, iseq, image_ment(f.img, image_class(f.img, "Foo"), "one", IMAGE_ISEQ));
	size_t reads;

	resolver_set_jit(f.r, false);
	resolve(&f, &frame, 1);
	image_put64(f.img, body + f.img->facts.jit_entry, 0x7e0000000000);
	reads = f.img->n_reads;
	resolver_revalidate(f.r);
	resolve(&f, &frame, 1);
	cr_expect_eq(f.img->n_reads - reads, 1, "of what is known");
	cr_expect_not(resolver_symbol(f.r, f.ids[0])->flags & FRAME_LINE_APPROXIMATE);
	resolver_set_jit(f.r, true);
	resolve(&f, &frame, 1);
	cr_expect(resolver_symbol(f.r, f.ids[0])->flags & FRAME_LINE_APPROXIMATE);
	teardown(&f);
}

Test(resolver, another_iseq_at_the_address)
{
	struct fixture f = setup("3.3");
	uint64_t iseq = method_iseq(&f, "one", "/one.rb", 11);
	uint64_t two = method_iseq(&f, "two", "/two.rb", 22);
	struct rbpf_frame before = ruby_frame(&f, iseq, 0), after;

	resolve(&f, &before, 1);
	replace_iseq(&f, iseq, two);
	after = ruby_frame(&f, iseq, 0);
	resolver_revalidate(f.r);
	resolve(&f, &after, 1);
	expect_symbol(&f, 0, FRAME_RUBY, "two", "/two.rb", 22);
	resolve(&f, &before, 1);
	expect_symbol(&f, 0, FRAME_UNKNOWN, "[unknown]", "", 0); /* its code is no longer there */

	image_put64(f.img, iseq, 0); /* freed */
	resolver_revalidate(f.r);
	resolve(&f, &after, 1);
	expect_symbol(&f, 0, FRAME_UNKNOWN, "[unknown]", "", 0);
	image_put64(f.img, iseq, IMAGE_IMEMO(IMAGE_ISEQ_IMEMO));
	resolve(&f, &after, 1);
	expect_symbol(&f, 0, FRAME_UNKNOWN, "[unknown]", "", 0); /* not tried twice */
	resolver_revalidate(f.r);
	resolve(&f, &after, 1);
	expect_symbol(&f, 0, FRAME_RUBY, "two", "/two.rb", 22);
	teardown(&f);
}

/* Of the same code (an eval of the same text), but with another label: only the body tells. */
Test(resolver, another_label_on_the_same_code)
{
	struct fixture f = setup("3.3");
	uint64_t iseq = method_iseq(&f, "one", "/one.rb", 11);
	struct rbpf_frame frame = ruby_frame(&f, iseq, 0);

	resolve(&f, &frame, 1);
	image_put64(f.img, image_body(f.img, iseq) + 80, image_string(f.img, "two"));
	image_put64(f.img, image_body(f.img, iseq) + 72, image_string(f.img, "two"));
	resolver_revalidate(f.r);
	resolve(&f, &frame, 1);
	expect_symbol(&f, 0, FRAME_RUBY, "two", "/one.rb", 11);
	teardown(&f);
}

Test(resolver, another_method_at_the_address)
{
	struct fixture f = setup("3.3");
	uint64_t foo = image_class(f.img, "Foo"), bar = image_class(f.img, "Bar");
	uint64_t me = image_ment(f.img, foo, "gsub", IMAGE_CFUNC);
	uint64_t other = image_ment(f.img, bar, "scan", IMAGE_CFUNC);
	struct rbpf_frame frames[2] = { c_frame(me),
					ruby_frame(&f, method_iseq(&f, "one", "/one.rb", 1), me) };

	resolve(&f, frames, 2);
	expect_symbol(&f, 0, FRAME_CFUNC, "Foo#gsub", "/one.rb", 1);
	expect_symbol(&f, 1, FRAME_RUBY, "Foo#one", "/one.rb", 1);
	for (int i = 0; i < 40; i += 8)
		image_put64(f.img, me + i, image_get64(f.img, other + i));
	resolver_revalidate(f.r);
	resolve(&f, frames, 2);
	expect_symbol(&f, 0, FRAME_CFUNC, "Bar#scan", "/one.rb", 1);
	expect_symbol(&f, 1, FRAME_RUBY, "Bar#one", "/one.rb", 1);
	image_put64(f.img, me, IMAGE_IMEMO(IMAGE_CREF));
	resolver_revalidate(f.r);
	resolve(&f, frames, 2);
	expect_symbol(&f, 0, FRAME_UNKNOWN, "[unknown]", "", 0);
	expect_symbol(&f, 1, FRAME_UNKNOWN, "[unknown]", "", 0); /* which class it is of */
	teardown(&f);
}

/*
 * An owner without a name gets one when it is assigned to a constant, of which its methods know
 * nothing.
 */
Test(resolver, anonymous_class_that_gets_a_name)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);
		uint64_t klass = image_class(f.img, NULL), meta = image_singleton(f.img, klass);
		uint64_t me = image_ment(f.img, klass, "call", IMAGE_CFUNC);
		uint64_t me2 = image_ment(f.img, meta, "build", IMAGE_ISEQ);
		const struct rbpf_frame frames[] = {
			c_frame(me), ruby_frame(&f, method_iseq(&f, "build", "/a.rb", 3), me2)
		};

		for (int i = 0; i < 3; i++) {
			resolver_revalidate(f.r);
			resolve(&f, frames, 2);
			expect_symbol(&f, 0, FRAME_CFUNC, "call", "/a.rb", 3);
			expect_symbol(&f, 1, FRAME_RUBY, "build", "/a.rb", 3);
		}
		image_class_name(f.img, klass, "Named");
		resolver_revalidate(f.r);
		resolve(&f, frames, 2);
		expect_symbol(&f, 0, FRAME_CFUNC, "Named#call", "/a.rb", 3);
		expect_symbol(&f, 1, FRAME_RUBY, "Named.build", "/a.rb", 3);
		teardown(&f);
	}
}

/* How many revalidations of @f it takes until its @frame is called @label, up to 100. */
static int revalidations_until(struct fixture *f, const struct rbpf_frame *frame, const char *label)
{
	for (int n = 1; n <= 100; n++) {
		resolver_revalidate(f->r);
		resolve(f, frame, 1);
		if (!strcmp(resolver_symbol(f->r, f->ids[0])->name, label))
			return n;
	}
	return -1;
}

/*
 * A class that never had a name is read anew less and less often, and its name is seen soon all the
 * same. A method of it that has changed is read anew at once.
 */
Test(resolver, class_that_was_anonymous_for_long)
{
	struct fixture f = setup("3.3");
	uint64_t klass = image_class(f.img, NULL),
		 me = image_ment(f.img, klass, "call", IMAGE_CFUNC);
	const uint64_t other = image_ment(f.img, klass, "scan", IMAGE_CFUNC);
	const struct rbpf_frame frame = c_frame(me);
	size_t before, at_first, later;

	resolve(&f, &frame, 1);
	before = f.img->n_reads;
	cr_assert_eq(revalidations_until(&f, &frame, "call"), 1);
	at_first = f.img->n_reads - before;
	cr_assert_eq(revalidations_until(&f, &frame, "Named#call"), -1);
	before = f.img->n_reads;
	cr_assert_eq(revalidations_until(&f, &frame, "Named#call"), -1);
	later = f.img->n_reads - before;
	cr_expect_leq(later, at_first * 100 / 3,
		      "%zu reads in 100 revalidations, %zu in the first one", later, at_first);
	for (int i = 0; i < 40; i += 8)
		image_put64(f.img, me + i, image_get64(f.img, other + i));
	cr_expect_eq(revalidations_until(&f, &frame, "scan"), 1, "a change is seen at once");
	image_class_name(f.img, klass, "Named");
	cr_expect(revalidations_until(&f, &frame, "Named#scan") <= 8);
	teardown(&f);
}

static size_t allocated(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* An anonymous owner is read again at each revalidation, and is no new one for that. */
Test(resolver, memory_does_not_grow_with_revalidations)
{
	struct fixture f = setup("3.3");
	uint64_t me = image_ment(f.img, image_class(f.img, NULL), "call", IMAGE_ISEQ);
	struct rbpf_frame frame = ruby_frame(&f, method_iseq(&f, "call", "/a.rb", 3), me);
	size_t before = 0;

	for (int i = 0; i < 200000; i++) {
		if (i == 1000)
			before = allocated();
		resolver_revalidate(f.r);
		resolve(&f, &frame, 1);
	}
	cr_expect_leq(allocated(), before + (1 << 20), "%zu bytes more", allocated() - before);
	teardown(&f);
}

/* ---- what cannot be named ---- */

Test(resolver, unknown)
{
	struct fixture f = setup("3.3");
	uint64_t iseq = method_iseq(&f, "one", "/one.rb", 11),
		 encoded = image_pc(f.img, iseq, 0) - 8;
	const struct rbpf_frame frames[] = {
		{ .iseq = iseq, .pc = encoded + 80 }, /* just behind its code: its last word */
		{ .iseq = iseq, .pc = encoded + 88 }, /* of another one */
		{ .iseq = iseq, .pc = encoded - 8 },
		{ .iseq = iseq, .pc = 0 },
		{ .iseq = 0x5000, .pc = 0x5000 },
		{ .iseq = f.img->object, .pc = encoded },
		c_frame(0x5000),
		c_frame(iseq),
	};

	resolve(&f, frames, 8);
	cr_assert_eq(f.n, 8, "an unknown frame is a frame");
	expect_symbol(&f, 0, FRAME_RUBY, "one", "/one.rb", 11);
	for (size_t i = 1; i < 8; i++)
		expect_symbol(&f, i, FRAME_UNKNOWN, "[unknown]", "", 0);
	teardown(&f);
}

Test(resolver, process_is_gone)
{
	struct fixture f = setup("3.3");
	uint64_t me = image_ment(f.img, image_class(f.img, "Foo"), "gsub", IMAGE_CFUNC);
	uint64_t one = method_iseq(&f, "one", "/one.rb", 11);
	uint64_t two = method_iseq(&f, "two", "/two.rb", 22);
	const struct rbpf_frame frames[] = { c_frame(me), ruby_frame(&f, one, 0),
					     ruby_frame(&f, two, 0) };

	resolve(&f, frames, 2);
	image_hide_all(f.img, true);
	resolver_revalidate(f.r);
	resolve(&f, frames, 3);
	expect_symbol(&f, 1, FRAME_RUBY, "one", "/one.rb", 11);
	expect_symbol(&f, 2, FRAME_UNKNOWN, "[unknown]", "", 0);
	cr_expect_eq(resolver_symbol(f.r, f.ids[0])->kind, FRAME_CFUNC, "known before");
	resolve(&f, frames, 2);
	expect_symbol(&f, 0, FRAME_CFUNC, "Foo#gsub", "/one.rb", 11);
	teardown(&f);
}

/* A page of it went away (the heap shrank), but the process lives: what was there is not known. */
Test(resolver, memory_is_gone)
{
	struct fixture f = setup("3.3");
	uint64_t iseq = method_iseq(&f, "one", "/one.rb", 11);
	struct rbpf_frame frame = ruby_frame(&f, iseq, 0);

	resolve(&f, &frame, 1);
	image_hide(f.img, iseq, 1, true);
	resolver_revalidate(f.r);
	resolve(&f, &frame, 1);
	expect_symbol(&f, 0, FRAME_UNKNOWN, "[unknown]", "", 0);
	image_hide(f.img, iseq, 1, false);
	resolver_revalidate(f.r);
	resolve(&f, &frame, 1);
	expect_symbol(&f, 0, FRAME_RUBY, "one", "/one.rb", 11);
	teardown(&f);
}

static void hide_after_one_batch(struct ruby_image *img, uint64_t addr, size_t len)
{
	(void)addr;
	(void)len;
	if (img->n_reads > *(size_t *)img->arg + 1)
		image_hide_all(img, true);
}

/* What was seen to be another one is not used, even if the process ends just then. */
Test(resolver, changed_and_then_gone)
{
	struct fixture f = setup("3.3");
	uint64_t iseq = method_iseq(&f, "one", "/one.rb", 11);
	struct rbpf_frame frame = ruby_frame(&f, iseq, 0);
	size_t reads;

	resolve(&f, &frame, 1);
	image_put64(f.img, image_body(f.img, iseq) + 80, image_string(f.img, "two"));
	reads = f.img->n_reads;
	f.img->arg = &reads;
	f.img->on_read = hide_after_one_batch;
	resolver_revalidate(f.r);
	resolve(&f, &frame, 1);
	expect_symbol(&f, 0, FRAME_UNKNOWN, "[unknown]", "", 0);
	teardown(&f);
}

Test(resolver, freeing_nothing)
{
	resolver_free(NULL);
}
