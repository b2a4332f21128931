/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "ruby/object.h"
#include "support/ruby_image.h"

static const char *const versions[] = { "3.1", "3.3", "3.4" };

#define FOR_EACH_IMAGE(img)                                                                        \
	for (size_t v_ = 0; v_ < sizeof(versions) / sizeof(versions[0]); v_++)                     \
		for (struct ruby_image *img = image_new(versions[v_]); img;                        \
		     image_free(img), img = NULL)

static void expect_string(struct ruby_image *img, uint64_t value, const char *want, size_t len)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	buf_addstr(&out, "<");
	cr_assert_eq(ruby_string_read(&img->vm, value, &out), 0, "%s: \"%.40s\"",
		     img->layout.version, want);
	cr_assert_eq(out.len, len + 1, "%s: %zu bytes of %zu", img->layout.version, out.len - 1,
		     len);
	cr_expect_arr_eq(out.data + 1, want, len);
}

static void expect_no_string(struct ruby_image *img, uint64_t value, int why)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	buf_addstr(&out, "kept");
	cr_expect_eq(ruby_string_read(&img->vm, value, &out), why, "%s: %llx", img->layout.version,
		     (unsigned long long)value);
	cr_expect_str_eq(buf_str(&out), "kept");
}

Test(object, strings)
{
	static const char *const texts[] = { "", "a", "twelve bytes", "exactly-23-bytes-long-!" };
	char bytes[600];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 7); /* NUL among them: it ends nothing */
	FOR_EACH_IMAGE(img)
	{
		for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
			size_t len = strlen(texts[i]);

			expect_string(img, image_string_embed(img, texts[i], len), texts[i], len);
			expect_string(img, image_string_heap(img, texts[i], len), texts[i], len);
		}
		expect_string(img, image_string_heap(img, bytes, sizeof(bytes)), bytes,
			      sizeof(bytes));
		expect_string(img, image_string_embed(img, bytes, 20), bytes, 20);
		if (!img->layout.string_len_in_flags) /* variable width allocation, 3.2 on */
			expect_string(img, image_string_embed(img, bytes, sizeof(bytes)), bytes,
				      sizeof(bytes));
	}
}

Test(object, strings_are_cut)
{
	static char bytes[RUBY_STRING_MAX + 5000];

	memset(bytes, 'x', sizeof(bytes));
	FOR_EACH_IMAGE(img)
	{
		uint64_t s;

		s = image_string_heap(img, bytes, RUBY_STRING_MAX);
		expect_string(img, s, bytes, RUBY_STRING_MAX);
		s = image_string_heap(img, bytes, RUBY_STRING_MAX + 1);
		expect_string(img, s, bytes, RUBY_STRING_MAX);
		s = image_string_heap(img, bytes, sizeof(bytes));
		expect_string(img, s, bytes, RUBY_STRING_MAX);
		image_put64(img, s + 16, 1ull << 62); /* a length that cannot be */
		expect_string(img, s, bytes, RUBY_STRING_MAX);
	}
}

Test(object, no_strings)
{
	FOR_EACH_IMAGE(img)
	{
		static const uint64_t special[] = { 0, 4, 8, 20, 36, 1, 3, 0x10c, 0x7f0000000004 };
		uint64_t s = image_string_heap(img, "hello", 5), flags = image_get64(img, s);

		for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
			expect_no_string(img, special[i], -EINVAL);
		for (uint64_t type = 0; type < 32; type++) {
			image_put64(img, s, (flags & ~31ull) | type);
			if (type == IMAGE_T_STRING)
				expect_string(img, s, "hello", 5);
			else
				expect_no_string(img, s, -EINVAL);
		}
		image_put64(img, s, flags);
		image_put64(img, s + 24, 0x123456000);
		expect_no_string(img, s, -EFAULT);
		expect_no_string(img, 0x123456000, -EFAULT);
		expect_no_string(img, ~7ull, -EFAULT);
	}
}

Test(object, arrays)
{
	FOR_EACH_IMAGE(img)
	{
		static const uint64_t v[] = { 10, 20, 30, 40, 50 };
		uint64_t heap = image_array(img, v, 5), embed = image_array_embed(img, v, 3), got;

		for (uint64_t i = 0; i < 5; i++) {
			cr_assert_eq(ruby_array_get(&img->vm, heap, i, &got), 0);
			cr_expect_eq(got, v[i]);
		}
		for (uint64_t i = 0; i < 3; i++) {
			cr_assert_eq(ruby_array_get(&img->vm, embed, i, &got), 0);
			cr_expect_eq(got, v[i]);
		}
		got = 77;
		cr_expect_eq(ruby_array_get(&img->vm, heap, 5, &got), -ENOENT);
		cr_expect_eq(ruby_array_get(&img->vm, heap, ~0ull, &got), -ENOENT);
		cr_expect_eq(ruby_array_get(&img->vm, image_string(img, "x"), 0, &got), -EINVAL);
		cr_expect_eq(ruby_array_get(&img->vm, 8, 0, &got), -EINVAL);
		cr_expect_eq(ruby_array_get(&img->vm, 0x5000, 0, &got), -EFAULT);
		image_put64(img, heap + 32, 0x5000);
		cr_expect_eq(ruby_array_get(&img->vm, heap, 0, &got), -EFAULT);
		cr_expect_eq(got, 77, "untouched by failures");
	}
}

/* An embedded Array has a length, too. */
Test(object, end_of_an_embedded_array)
{
	FOR_EACH_IMAGE(img)
	{
		static const uint64_t v[] = { 10, 20 };
		uint64_t embed = image_array_embed(img, v, 2), got = 77;

		cr_expect_neq(ruby_array_get(&img->vm, embed, 2, &got), 0);
		cr_expect_neq(ruby_array_get(&img->vm, embed, 50, &got), 0);
		cr_expect_eq(got, 77);
	}
}

/* ---- classes ---- */

static void expect_prefix(struct ruby_image *img, uint64_t owner, const char *want)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	cr_expect_eq(ruby_owner_prefix(&img->vm, owner, &out), 0, "%s: %s", img->layout.version,
		     want);
	cr_expect_str_eq(buf_str(&out), want, "%s: \"%s\", not \"%s\"", img->layout.version,
			 buf_str(&out), want);
}

static int class_name(struct ruby_image *img, uint64_t klass)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	return ruby_class_name(&img->vm, klass, &out);
}

Test(object, class_names)
{
	FOR_EACH_IMAGE(img)
	{
		_cleanup_buf_ struct buf out = BUF_INIT;
		uint64_t foo = image_class(img, "Foo"), anon = image_class(img, NULL);

		cr_expect_eq(ruby_class_name(&img->vm, foo, &out), 0);
		cr_expect_str_eq(buf_str(&out), "Foo");
		cr_expect_eq(class_name(img, anon), -ENOENT, "%s", img->layout.version);
		image_class_name(img, anon, "Outer::Inner::VeryLongNameOfAClass");
		cr_expect_eq(class_name(img, anon), 0, "it was given a name");
	}
}

Test(object, names_that_are_not_permanent)
{
	FOR_EACH_IMAGE(img)
	{
		const struct ruby_layout *l = &img->layout;
		uint64_t klass = image_class(img, NULL);

		if (l->class_form == RUBY_CLASS_IV_TBL) {
			image_iv_put(img, klass, image_id(img, "__tmp_classpath__"),
				     image_string(img, "#<Class:0x1>::Foo"));
			cr_expect_eq(class_name(img, klass), -ENOENT);
			continue;
		}
		image_put64(img, klass + l->class_path, image_string(img, "#<Class:0x1>::Foo"));
		cr_expect_eq(class_name(img, klass), -ENOENT, "the bit is not set");
		image_put64(img, klass + l->class_path, l->qnil);
		*(uint8_t *)image_at(img, klass + l->class_permanent, 1) = 0xff;
		cr_expect_eq(class_name(img, klass), -ENOENT, "nil is no name");
		image_put64(img, klass + l->class_path, image_string(img, "Foo"));
		*(uint8_t *)image_at(img, klass + l->class_permanent, 1) = 0xfe;
		cr_expect_eq(class_name(img, klass), -ENOENT, "only bit 0 counts");
	}
}

Test(object, owners)
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

/* The bit that means singleton up to 3.3 says something else from 3.4 on, and the other way round.
 */
Test(object, singleton_bit_of_another_version)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t other = img->layout.singleton_flag == 1 << 12 ? 1 << 13 : 1 << 12;
		uint64_t foo = image_class(img, "Foo");

		image_put64(img, foo, IMAGE_T_CLASS | other);
		expect_prefix(img, foo, "Foo#");
	}
}

Test(object, owners_that_are_none)
{
	FOR_EACH_IMAGE(img)
	{
		_cleanup_buf_ struct buf out = BUF_INIT;
		uint64_t foo = image_class(img, "Foo"), meta = image_singleton(img, foo);

		for (uint64_t type = 0; type < 32; type++) {
			if (type == IMAGE_T_CLASS || type == IMAGE_T_MODULE)
				continue;
			image_put64(img, foo, type);
			cr_expect_eq(ruby_owner_prefix(&img->vm, foo, &out), -EINVAL, "type %llu",
				     (unsigned long long)type);
		}
		cr_expect_neq(ruby_owner_prefix(&img->vm, 0, &out), 0);
		cr_expect_neq(ruby_owner_prefix(&img->vm, 8, &out), 0);
		cr_expect_eq(ruby_owner_prefix(&img->vm, 0x5000, &out), -EFAULT);
		cr_expect_eq(out.len, 0);

		/* A class whose name has been freed: no name is better than half of one. */
		image_put64(img, foo, IMAGE_T_CLASS);
		if (img->layout.class_form == RUBY_CLASS_IV_TBL) {
			image_put64(img, image_get64(img, foo + 24) + 8, 0x5000);
			cr_expect_eq(ruby_owner_prefix(&img->vm, foo, &out), -EFAULT);
		} else {
			image_put64(img, image_get64(img, foo + img->layout.class_path),
				    IMAGE_T_ZOMBIE);
			cr_expect_eq(ruby_owner_prefix(&img->vm, foo, &out), -EINVAL);
		}
		cr_expect_neq(ruby_owner_prefix(&img->vm, meta, &out), 0);
		cr_expect_eq(out.len, 0);
	}
}

Test(object, instance_variable_tables)
{
	struct ruby_image *img = image_new("3.1");
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

/* More entries than are read at a time. */
Test(object, a_class_with_many_instance_variables)
{
	struct ruby_image *img = image_new("3.1");
	uint64_t foo = image_class(img, "Foo"), ext = image_get64(img, foo + 24);
	uint64_t tbl = image_get64(img, ext + 8), entries = image_alloc(img, 1000 * 24);

	for (uint64_t at = 0; at < 1000; at += 111) {
		for (uint64_t i = 0; i < 1000; i++) {
			image_put64(img, entries + i * 24 + 8, 0x10000 + i * 16);
			image_put64(img, entries + i * 24 + 16, 8);
		}
		image_put64(img, entries + at * 24 + 8, img->vm.key_classpath);
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

Test(object, keys_are_learnt_from_object)
{
	struct ruby_image *img = image_new("3.1");
	uint64_t name = 1, attached = 2, ext;

	cr_assert_eq(ruby_class_keys_learn(&img->vm, img->object, &name, &attached), 0);
	cr_expect_eq(name, img->vm.key_classpath);
	cr_expect_eq(attached, img->vm.key_attached);

	name = attached = 7;
	cr_expect_neq(ruby_class_keys_learn(&img->vm, image_class(img, "Foo"), &name, &attached), 0,
		      "another class");
	ext = image_get64(img, image_get64(img, img->object + 8) + 24);
	image_put64(img, ext + 8, 0);
	cr_expect_neq(ruby_class_keys_learn(&img->vm, img->object, &name, &attached), 0,
		      "a singleton class that knows no object");
	cr_expect_eq(name, 7);
	cr_expect_eq(attached, 7);
	image_free(img);
}

/* ---- the symbol table ---- */

static void expect_id(struct ruby_image *img, uint64_t id, const char *want)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	int r = ruby_id_name(&img->vm, id, &out);

	if (!want) {
		cr_expect_neq(r, 0, "%s: id %llu", img->layout.version, (unsigned long long)id);
		cr_expect_eq(out.len, 0);
		return;
	}
	cr_expect_eq(r, 0, "%s: id %llu", img->layout.version, (unsigned long long)id);
	cr_expect_str_eq(buf_str(&out), want);
}

Test(object, ids)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t last = img->layout.last_op_id, id = image_id(img, "each");

		expect_id(img, id, "each");
		expect_id(img, id ^ 7, "each"); /* whatever its scope */
		expect_id(img, IMAGE_SERIAL_BANG, "!");
		image_serial_put(img, last, "last operator");
		image_serial_put(img, last + 1, "first name");
		image_serial_put(img, (last + 1) >> 4, "of a small serial");
		expect_id(img, last, "last operator");
		expect_id(img, last + 1, "of a small serial");
		expect_id(img, (last + 1) << 4, "first name");
		image_serial_put(img, 511, "end of a unit");
		image_serial_put(img, 512, "start of a unit");
		expect_id(img, 511 << 4, "end of a unit");
		expect_id(img, 512 << 4, "start of a unit");

		expect_id(img, 1999 << 4, NULL); /* not in use */
		expect_id(img, 4 * 512 << 4, NULL);
		expect_id(img, ~0ull, NULL);
		expect_id(img, 0, NULL);
		img->vm.symbols = 0x5000;
		expect_id(img, id, NULL);
		img->vm.symbols = 0;
		expect_id(img, id, NULL);
	}
}

Test(object, symbol_table_is_found_by_its_shape)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t data = image_region(img, 4 * IMAGE_PAGE), found = 7;
		uint64_t at = data + IMAGE_PAGE + 808;
		uint64_t end = data + 4 * IMAGE_PAGE;

		cr_expect_eq(ruby_symbols_search(&img->vm, data, end, &found), -ENOENT);
		/* Things that look like it: numbers and Arrays of other things. */
		for (uint64_t a = data; a < end - 32; a += 48) {
			uint64_t v[3] = { image_string(img, "!"), 8, 0x5000 };

			image_put64(img, a, 5000);
			image_put64(img, a + 8, image_array_embed(img, v, 3));
			image_put64(img, a + 16, image_array_embed(img, v, 3));
		}
		cr_expect_eq(ruby_symbols_search(&img->vm, data, end, &found), -ENOENT);
		cr_expect_eq(found, 7);
		for (int i = 0; i < 3; i++)
			image_put64(img, at + 8 * i, image_get64(img, img->vm.symbols + 8 * i));
		cr_expect_eq(ruby_symbols_search(&img->vm, data, end, &found), 0);
		cr_expect_eq(found, at);
		cr_expect_eq(ruby_symbols_search(&img->vm, data, at + 24, &found), 0, "at the end");
		cr_expect_neq(ruby_symbols_search(&img->vm, data, at + 16, &found), 0, "cut off");
		image_hide(img, data + 2 * IMAGE_PAGE, 1, true);
		cr_expect_eq(ruby_symbols_search(&img->vm, data, end, &found), 0,
			     "an unreadable page behind it");
		image_hide(img, data, 1, true);
		cr_expect_neq(ruby_symbols_search(&img->vm, data, end, &found), 0);
		cr_expect_neq(ruby_symbols_search(&img->vm, end, data, &found), 0);
		cr_expect_neq(ruby_symbols_search(&img->vm, data, data, &found), 0);
		cr_expect_neq(ruby_symbols_search(&img->vm, 0, ~0ull, &found), 0);
	}
}
