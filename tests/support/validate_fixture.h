/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A process image whose layout is to be validated, for tests of ruby/validate*.c.
 */
#ifndef RBPF_TESTS_VALIDATE_FIXTURE_H
#define RBPF_TESTS_VALIDATE_FIXTURE_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "ruby/validate.h"
#include "support/gc_code.h"
#include "support/ruby_image.h"

/* A Ruby in which one thread runs a method that calls a C function, and what is known of it. */
struct fixture {
	struct ruby_image *img;
	struct ruby_vm vm;
	struct image_thread t;
	uint64_t string; /* class String */
	struct gc_code code;
	uint64_t iseq, method;	 /* of the method */
	struct rbpf_layout walk; /* as it is to be */
	uint64_t tag;		 /* the innermost exception tag */
	uint64_t symbols;
	struct err err;
};

#define FIXTURE_TEXT	 0x400000ull
#define FIXTURE_TEXT_END 0x500000ull

/* A struct rb_vm_tag as __builtin_setjmp() makes it. */
static inline void put_tag(struct ruby_image *img, uint64_t tag, uint64_t prev)
{
	image_put64(img, tag + 16, tag + 128);		  /* fp */
	image_put64(img, tag + 24, FIXTURE_TEXT + 0x123); /* pc */
	image_put64(img, tag + 32, tag - 64);		  /* sp */
	image_put64(img, tag + 56, prev);
}

/* One as setjmp() of a C library on x86_64 does: musl's, or glibc's with a @guard. */
static inline void put_libc_tag(struct ruby_image *img, uint64_t tag, uint64_t prev, uint64_t guard)
{
	const uint64_t fp = (tag + 128) ^ guard, sp = (tag - 64) ^ guard,
		       pc = (FIXTURE_TEXT + 0x123) ^ guard;
	const int by = guard ? 17 : 0;

	image_put64(img, tag + 16, 3);
	image_put64(img, tag + 16 + 1 * 8, fp << by | fp >> (64 - by) % 64);
	image_put64(img, tag + 16 + 6 * 8, sp << by | sp >> (64 - by) % 64);
	image_put64(img, tag + 16 + 7 * 8, pc << by | pc >> (64 - by) % 64);
	image_put64(img, tag + 16 + 25 * 8, prev);
}

/* Two of them, in a native stack. */
static inline uint64_t make_tags(struct image_thread *t)
{
	uint64_t stack = image_region(t->img, 4096), inner = stack + 1024, outer = stack + 2048;

	put_tag(t->img, inner, outer);
	put_tag(t->img, outer, 0);
	image_put64(t->img, t->ec + 24, inner);
	image_put64(t->img, t->ec + t->img->facts.ec_stack_start, stack + 4096);
	return inner;
}

/* What libruby exports besides rb_cObject. */
static inline void make_roots(struct fixture *f)
{
	struct ruby_image *img = f->img;
	uint64_t kernel = image_module(img, "Kernel");

	f->string = image_class(img, "String");
	image_singleton(img, f->string);
	image_put64(img, kernel + 8, image_class(img, "Module"));
	img->vm.binary.symbol[RUBY_SYM_rb_cString] = image_variable(img, f->string);
	img->vm.binary.symbol[RUBY_SYM_rb_mKernel] = image_variable(img, kernel);
}

static inline struct fixture setup(const char *version)
{
	struct fixture f = { .img = image_new(version) };
	uint64_t foo = image_class(f.img, "Foo");

	f.t = image_thread(f.img, 4096);
	f.iseq = image_iseq(f.img,
			    &(struct image_iseq) { .type = RUBY_ISEQ_METHOD, .label = "bar" });
	f.method = image_method(f.img, foo, "bar", f.iseq);
	image_push_method(&f.t, f.iseq, image_pc(f.img, f.iseq, 3), f.method);
	image_push_cfunc(&f.t, image_ment(f.img, f.img->object, "sleep", IMAGE_CFUNC));
	image_run(&f.t);
	make_roots(&f);
	f.code = gc_code_new(f.img, &f.img->vm.binary, GC_CODE_ARM64);
	image_gc_counts(f.img, 30, 11);
	f.tag = make_tags(&f.t);
	f.img->vm.walk.text_lo = FIXTURE_TEXT;
	f.img->vm.walk.text_hi = FIXTURE_TEXT_END;

	f.walk = f.img->vm.walk;
	f.symbols = f.img->vm.symbols;
	/* All but what proving is to find. */
	f.vm = f.img->vm;
	f.vm.walk.gc_flags = f.vm.walk.gc_count = f.vm.walk.gc_owner = 0;
	f.vm.walk.gc_major_word = 0;
	f.vm.vm = f.vm.symbols = 0;
	memset(&f.vm.class_keys, 0, sizeof(f.vm.class_keys));
	return f;
}

/* What is on the stack of the fixture, besides its own frames. */
struct code {
	uint64_t outer, inner, innermost, rescue; /* a method, blocks in it, a clause */
	uint64_t me;
};

static const struct image_line outer_lines[] = { { 0, 20 }, { 3, 21 }, { 8, 40 } };
static const struct image_line inner_lines[] = { { 0, 22 }, { 4, 30 } };

static inline struct code push_code(struct fixture *f)
{
	struct ruby_image *img = f->img;
	struct code c;
	uint64_t ep;

	c.outer = image_iseq(img, &(struct image_iseq) { .type = RUBY_ISEQ_METHOD,
							 .label = "charge",
							 .first_line = 20,
							 .lines = outer_lines,
							 .n_lines = 3 });
	c.inner = image_iseq(img, &(struct image_iseq) { .type = RUBY_ISEQ_BLOCK,
							 .label = "block in charge",
							 .base = "charge",
							 .first_line = 22,
							 .lines = inner_lines,
							 .n_lines = 2,
							 .local = c.outer });
	c.innermost = image_iseq(img, &(struct image_iseq) { .type = RUBY_ISEQ_BLOCK,
							     .label = "block (2 levels) in charge",
							     .base = "charge",
							     .first_line = 24,
							     .local = c.outer,
							     .parent = c.inner });
	c.rescue = image_iseq(img, &(struct image_iseq) { .type = RUBY_ISEQ_RESCUE,
							  .label = "rescue in block in charge",
							  .base = "charge",
							  .first_line = 25,
							  .local = c.outer,
							  .parent = c.inner });
	c.me = image_method(img, image_class(img, "Card"), "charge", c.outer);
	ep = image_push_method(&f->t, c.outer, image_pc(img, c.outer, 4), c.me);
	ep = image_push_block(&f->t, c.inner, image_pc(img, c.inner, 5), ep);
	ep = image_push_block(&f->t, c.innermost, image_pc(img, c.innermost, 1), ep);
	image_push_block(&f->t, c.rescue, image_pc(img, c.rescue, 1), ep);
	return c;
}

static inline void teardown(struct fixture *f)
{
	image_free(f->img);
}

/* For each version a new one, which is torn down at the end of the block. */
#define FOR_EACH_FIXTURE(f)                                                                        \
	for (size_t v_ = 0; v_ < IMAGE_VERSIONS; v_++)                                             \
		for (struct fixture f = setup(image_versions[v_].minor); f.img;                    \
		     teardown(&f), f.img = NULL)

/* @tp: the thread pointer of its thread. */
static inline int prove_with(struct fixture *f, uint64_t tp)
{
	f->vm.n_checks = 0;
	f->err = (struct err) { 0 };
	return ruby_validate(&f->vm, &f->t.ec, 1, tp, f->img->current_vm, f->symbols, false,
			     &f->err);
}

static inline int prove(struct fixture *f)
{
	return prove_with(f, 0);
}

static inline const struct ruby_vm_check *find_check(const struct ruby_vm *vm, const char *name)
{
	for (size_t i = 0; i < vm->n_checks; i++)
		if (!strcmp(vm->checks[i].name, name))
			return &vm->checks[i];
	return NULL;
}

/* It passes, but does without what @check is about. */
static inline void expect_without(struct fixture *f, const char *check)
{
	const struct ruby_vm_check *c;

	cr_assert_eq(prove(f), 0, "%s: %s: %s", f->img->version, check, f->err.msg);
	c = find_check(&f->vm, check);
	cr_assert_not_null(c, "%s: no check of '%s'", f->img->version, check);
	cr_expect(!c->ok && !c->needed, "%s: %s: %s", f->img->version, check, c->detail);
}

/* It is refused, and the message names @field. */
static inline void expect_refused(struct fixture *f, const char *field)
{
	int r = prove(f);

	cr_expect_eq(r, -EPROTO, "%s: %s: %d", f->img->version, field, r);
	cr_expect_eq(f->err.kind, ERR_TARGET);
	char message[256];

	snprintf(message, sizeof(message),
		 "the memory layout found for Ruby %s is wrong: self-check failed at '%s'",
		 f->vm.binary.version, field);
	cr_expect_str_eq(f->err.msg, message);
}

#endif
