/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "ruby/class.h"
#include "support/ruby_image.h"

static void expect_prefix(struct ruby_image *img, uint64_t owner, const char *want)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	cr_expect_eq(ruby_owner_prefix(&img->vm, owner, &out), 0, "%s: %s", img->version, want);
	cr_expect_str_eq(buf_str(&out), want, "%s: \"%s\", not \"%s\"", img->version, buf_str(&out),
			 want);
}

static int class_name(struct ruby_image *img, uint64_t klass)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	return ruby_class_name(&img->vm, klass, &out);
}

Test(class, names)
{
	FOR_EACH_IMAGE(img)
	{
		_cleanup_buf_ struct buf out = BUF_INIT;
		uint64_t foo = image_class(img, "Foo"), anon = image_class(img, NULL);

		cr_expect_eq(ruby_class_name(&img->vm, foo, &out), 0, "%s", img->version);
		cr_expect_str_eq(buf_str(&out), "Foo");
		cr_expect_eq(class_name(img, anon), -ENOENT, "%s", img->version);
		image_class_name(img, anon, "Outer::Inner::VeryLongNameOfAClass");
		cr_expect_eq(class_name(img, anon), 0, "%s: it was given a name", img->version);
	}
}

Test(class, names_that_are_not_permanent)
{
	FOR_EACH_IMAGE(img)
	{
		const struct image_facts *f = &img->facts;
		uint64_t klass = image_class(img, NULL), tmp;

		if (f->class_form != IMAGE_CLASS_CLASSEXT) {
			tmp = image_id(img, "__tmp_classpath__");
			image_iv_put(img, klass, tmp, image_string(img, "#<Class:0x1>::Foo"));
			cr_expect_eq(class_name(img, klass), -ENOENT, "%s", img->version);
			continue;
		}
		image_put64(img, klass + f->class_path, image_string(img, "#<Class:0x1>::Foo"));
		cr_expect_eq(class_name(img, klass), -ENOENT, "the bit is not set");
		image_put64(img, klass + f->class_path, f->qnil);
		*(uint8_t *)image_at(img, klass + f->class_permanent, 1) = 0xff;
		cr_expect_eq(class_name(img, klass), -ENOENT, "nil is no name");
		image_put64(img, klass + f->class_path, image_string(img, "Foo"));
		*(uint8_t *)image_at(img, klass + f->class_permanent, 1) = 0xfe;
		cr_expect_eq(class_name(img, klass), -ENOENT, "only bit 0 counts");
	}
}

Test(class, owners)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t foo = image_class(img, "A::Foo"), mod = image_module(img, "Mod");
		uint64_t anon = image_class(img, NULL), object = image_alloc(img, 40);
		uint64_t meta = image_singleton(img, foo);

		image_put64(img, object, IMAGE_T_OBJECT);
		expect_prefix(img, foo, "A::Foo#");
		expect_prefix(img, mod, "Mod#");
		expect_prefix(img, meta, "A::Foo.");
		expect_prefix(img, image_singleton(img, mod), "Mod.");
		expect_prefix(img, anon, "");
		expect_prefix(img, image_singleton(img, anon), "");
		expect_prefix(img, image_singleton(img, object), "");
		expect_prefix(img, image_singleton(img, meta), "");
		expect_prefix(img, img->object, "Object#");
		image_class_name(img, anon, "Late");
		expect_prefix(img, anon, "Late#");
	}
}

/*
 * The bit that means singleton up to 3.3 says something else from 3.4 on, and the other way round.
 */
Test(class, singleton_bit_of_another_version)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t other = img->facts.singleton_bit == 12 ? 1 << 13 : 1 << 12;
		uint64_t foo = image_class(img, "Foo");

		image_put64(img, foo, image_get64(img, foo) | other);
		expect_prefix(img, foo, "Foo#");
	}
}

/* Make what leads to the name of @klass lead to what is freed. Returns the error that this is. */
static int free_name(struct ruby_image *img, uint64_t klass)
{
	switch (img->facts.class_form) {
	case IMAGE_CLASS_IV_TBL:
		image_put64(img, image_get64(img, klass + 24) + 8, 0x5000);
		return -EFAULT;
	case IMAGE_CLASS_IV_PTR:
		image_put64(img, klass + 32, 0x5000);
		return -EFAULT;
	default:
		image_put64(img, image_get64(img, klass + img->facts.class_path), IMAGE_T_ZOMBIE);
		return -EINVAL;
	}
}

Test(class, owners_that_are_none)
{
	FOR_EACH_IMAGE(img)
	{
		_cleanup_buf_ struct buf out = BUF_INIT;
		uint64_t foo = image_class(img, "Foo"), meta = image_singleton(img, foo);
		uint64_t flags = image_get64(img, foo);
		int why;

		for (uint64_t type = 0; type < 32; type++) {
			if (type == IMAGE_T_CLASS || type == IMAGE_T_MODULE)
				continue;
			image_put64(img, foo, (flags & ~31ull) | type);
			cr_expect_eq(ruby_owner_prefix(&img->vm, foo, &out), -EINVAL,
				     "%s: type %llu", img->version, (unsigned long long)type);
		}
		cr_expect_neq(ruby_owner_prefix(&img->vm, 0, &out), 0);
		cr_expect_neq(ruby_owner_prefix(&img->vm, 8, &out), 0);
		cr_expect_eq(ruby_owner_prefix(&img->vm, 0x5000, &out), -EFAULT);
		cr_expect_eq(out.len, 0);

		/* A class whose name has been freed: no name is better than half of one. */
		image_put64(img, foo, flags);
		why = free_name(img, foo);
		cr_expect_eq(ruby_owner_prefix(&img->vm, foo, &out), why, "%s", img->version);
		cr_expect_neq(ruby_owner_prefix(&img->vm, meta, &out), 0);
		cr_expect_eq(out.len, 0);
	}
}

/* ---- up to 3.1: a table ---- */

static const char *const with_tables[] = { "2.7", "3.0", "3.1" };

Test(class, instance_variable_tables)
{
	for (size_t v = 0; v < 3; v++) {
		struct ruby_image *img = image_new(with_tables[v]);
		uint64_t foo = image_class(img, NULL), ext = image_get64(img, foo + 24), tbl;

		cr_expect_eq(class_name(img, foo), -ENOENT, "no table");
		image_iv_put(img, foo, image_id(img, "@a"), 8);
		image_iv_put(img, foo, image_id(img, "@b"), image_string(img, "Bar"));
		cr_expect_eq(class_name(img, foo), -ENOENT, "a table without it");
		image_class_name(img, foo, "Foo");
		expect_prefix(img, foo, "Foo#");

		tbl = image_get64(img, ext + 8);
		image_put64(img, image_get64(img, tbl + 48) + 2 * 24, ~0ull);
		cr_expect_eq(class_name(img, foo), -ENOENT, "a deleted entry");
		image_put64(img, tbl + 40, ~0ull);
		cr_expect_neq(class_name(img, foo), 0, "an absurd count ends");
		image_put64(img, tbl + 48, 0x5000);
		cr_expect_eq(class_name(img, foo), -EFAULT);
		image_put64(img, ext + 8, 0x5000);
		cr_expect_eq(class_name(img, foo), -EFAULT);
		image_put64(img, foo + 24, 0);
		cr_expect_eq(class_name(img, foo), -EFAULT);
		image_free(img);
	}
}

/* More entries than are read at a time. */
Test(class, many_instance_variables)
{
	struct ruby_image *img = image_new("3.1");
	uint64_t foo = image_class(img, "Foo"), ext = image_get64(img, foo + 24);
	uint64_t tbl = image_get64(img, ext + 8), entries = image_alloc(img, 1000 * 24);

	for (uint64_t at = 0; at < 1000; at += 111) {
		for (uint64_t i = 0; i < 1000; i++) {
			image_put64(img, entries + i * 24 + 8, 0x10000 + i * 16);
			image_put64(img, entries + i * 24 + 16, 8);
		}
		image_put64(img, entries + at * 24 + 8, img->vm.class_keys.classpath);
		image_put64(img, entries + at * 24 + 16, image_string(img, "Foo"));
		image_put64(img, tbl + 48, entries);
		image_put64(img, tbl + 40, 1000);
		expect_prefix(img, foo, "Foo#");
		image_put64(img, tbl + 40, at + 1);
		expect_prefix(img, foo, "Foo#");
		image_put64(img, tbl + 40, at);
		cr_expect_eq(class_name(img, foo), -ENOENT, "behind the last of %llu",
			     (unsigned long long)at);
	}
	image_free(img);
}

/* ---- 3.2: slots by shape ---- */

static uint32_t shape_of(struct ruby_image *img, uint64_t klass)
{
	return (uint32_t)(image_get64(img, klass) >> 32);
}

Test(class, shapes)
{
	struct ruby_image *img = image_new("3.2");
	uint64_t foo = image_class(img, NULL), bar = image_class(img, NULL), slots;

	cr_expect_eq(class_name(img, foo), -ENOENT, "the root shape");
	image_iv_put(img, foo, image_id(img, "@a"), image_string(img, "Wrong"));
	cr_expect_eq(class_name(img, foo), -ENOENT, "another variable");
	image_class_name(img, foo, "Foo");
	image_iv_put(img, foo, image_id(img, "@b"), image_string(img, "Wrong"));
	expect_prefix(img, foo, "Foo#");

	/* Frozen, or with more room: shapes that name no variable. */
	for (uint8_t type = 2; type <= 5; type++)
		image_put32(img, foo + 4,
			    image_shape_new(img, shape_of(img, foo), type, img->n_shapes));
	expect_prefix(img, foo, "Foo#");

	/* Of the same shape, but with what another class has. */
	slots = image_alloc(img, 64);
	image_put32(img, bar + 4, shape_of(img, foo));
	image_put64(img, bar + 32, slots);
	image_put64(img, slots + 8, image_string(img, "Bar"));
	expect_prefix(img, bar, "Bar#");
	image_free(img);
}

Test(class, shapes_that_are_none)
{
	struct ruby_image *img = image_new("3.2");
	uint64_t foo = image_class(img, "Foo"), slots = image_get64(img, foo + 32);
	uint32_t shape = shape_of(img, foo), loop, other;

	image_put32(img, foo + 4, IMAGE_MAX_SHAPES + 1000);
	cr_expect_eq(class_name(img, foo), -EFAULT, "a shape beyond the list");
	image_put32(img, foo + 4, 0xffffffff);
	cr_expect_eq(class_name(img, foo), -EFAULT);
	other = image_shape_new(img, 0, 1, image_id(img, "@x"));
	loop = image_shape_new(img, other, 1, image_id(img, "@y"));
	image_put32(img, image_shape_at(img, other) + 28, loop);
	image_put32(img, foo + 4, loop);
	cr_expect_neq(class_name(img, foo), 0, "a ring of parents ends");
	image_put32(img, foo + 4, shape);
	expect_prefix(img, foo, "Foo#");

	image_put64(img, foo + 32, 0x5000);
	cr_expect_eq(class_name(img, foo), -EFAULT, "no slots");
	image_put64(img, foo + 32, slots);
	image_put64(img, slots, 0x5000);
	cr_expect_eq(class_name(img, foo), -EFAULT, "a name that is gone");
	image_put64(img, slots, img->facts.qnil);
	cr_expect_eq(class_name(img, foo), -EINVAL, "no String");
	image_hide(img, foo, 8, true);
	cr_expect_eq(class_name(img, foo), -EFAULT);
	image_free(img);
}

/* ---- where they are, learnt from Object ---- */

Test(class, keys_are_learnt_from_object)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t classpath = img->vm.class_keys.classpath;
		uint64_t attached = img->vm.class_keys.attached;
		uint64_t foo = image_class(img, "Foo"), meta = image_singleton(img, foo);

		if (img->facts.class_form == IMAGE_CLASS_CLASSEXT)
			continue;
		memset(&img->vm.class_keys, 0, sizeof(img->vm.class_keys));
		cr_assert_eq(ruby_class_keys_learn(&img->vm, img->object, img->vm.vm), 0, "%s",
			     img->version);
		cr_expect_eq(img->vm.class_keys.classpath, classpath, "%s", img->version);
		cr_expect_eq(img->vm.class_keys.attached, attached, "%s", img->version);
		if (img->facts.class_form == IMAGE_CLASS_IV_PTR)
			cr_expect_eq(img->vm.class_keys.shapes, img->shapes);
		expect_prefix(img, foo, "Foo#");
		expect_prefix(img, meta, "Foo.");
	}
}

Test(class, keys_that_cannot_be_learnt)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t foo = image_class(img, "Foo"), other;

		if (img->facts.class_form == IMAGE_CLASS_CLASSEXT)
			continue;
		image_singleton(img, foo);
		cr_expect_neq(ruby_class_keys_learn(&img->vm, foo, img->vm.vm), 0,
			      "%s: another class", img->version);
		/* A singleton class that knows no object. */
		other = image_class_of(img, IMAGE_T_CLASS | 1ull << img->facts.singleton_bit, NULL);
		image_put64(img, img->object + 8, other);
		cr_expect_neq(ruby_class_keys_learn(&img->vm, img->object, img->vm.vm), 0, "%s",
			      img->version);
		image_hide_all(img, true);
		cr_expect_neq(ruby_class_keys_learn(&img->vm, img->object, img->vm.vm), 0, "%s",
			      img->version);
	}
}

/* 3.2: words of the rb_vm_t that lead to what could be shapes, but are none. */
Test(class, shapes_are_searched_for)
{
	struct ruby_image *img = image_new("3.2");
	uint64_t decoy = image_region(img, IMAGE_MAX_SHAPES * IMAGE_SHAPE_SIZE), seed = 1;
	uint64_t foo = image_class(img, "Foo");

	for (uint64_t i = 0; i < IMAGE_MAX_SHAPES * IMAGE_SHAPE_SIZE; i += 8) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		image_put64(img, decoy + i, seed >> 60);
	}
	for (uint64_t at = 8; at < img->facts.vm_size; at += 8)
		if (at != img->facts.vm_shape_list && at % 24 == 8)
			image_put64(img, img->vm.vm + at, decoy + at % 512);
	img->vm.class_keys.shapes = 0;
	cr_assert_eq(ruby_class_keys_learn(&img->vm, img->object, img->vm.vm), 0);
	cr_expect_eq(img->vm.class_keys.shapes, img->shapes);
	expect_prefix(img, foo, "Foo#");

	image_put64(img, img->vm.vm + img->facts.vm_shape_list, decoy);
	cr_expect_neq(ruby_class_keys_learn(&img->vm, img->object, img->vm.vm), 0, "none is left");
	image_free(img);
}
