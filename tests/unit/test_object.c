/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "ruby/object.h"
#include "support/ruby_image.h"

static void expect_string(struct ruby_image *img, uint64_t value, const char *want, size_t len)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	buf_addstr(&out, "<");
	cr_assert_eq(ruby_string_read(&img->vm, value, &out), 0, "%s: \"%.40s\"", img->version,
		     want);
	cr_assert_eq(out.len, len + 1, "%s: %zu bytes of %zu", img->version, out.len - 1, len);
	cr_expect_arr_eq(out.data + 1, want, len);
}

static void expect_no_string(struct ruby_image *img, uint64_t value, int why)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	buf_addstr(&out, "kept");
	cr_expect_eq(ruby_string_read(&img->vm, value, &out), why, "%s: %llx", img->version,
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
		if (img->facts.string_embed == 24) /* variable width allocation, 3.2 on */
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

/* ---- the symbol table ---- */

static void expect_id(struct ruby_image *img, uint64_t id, const char *want)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	int r = ruby_id_name(&img->vm, id, &out);

	if (!want) {
		cr_expect_neq(r, 0, "%s: id %llu", img->version, (unsigned long long)id);
		cr_expect_eq(out.len, 0);
		return;
	}
	cr_expect_eq(r, 0, "%s: id %llu", img->version, (unsigned long long)id);
	cr_expect_str_eq(buf_str(&out), want);
}

Test(object, ids)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t last = img->facts.last_op_id, id = image_id(img, "each");

		expect_id(img, id, "each");
		expect_id(img, id ^ 7, "each"); /* whatever its scope */
		expect_id(img, IMAGE_SERIAL_BANG, "!");
		image_serial_put(img, last, "last operator");
		image_serial_put(img, last + 1, "first name");
		expect_id(img, last, "last operator");
		for (uint64_t scope = 0; scope < 16; scope++)
			expect_id(img, (last + 1) << 4 | scope, "first name");
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

Test(object, ids_in_a_directory)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t id = image_id(img, "each"), dir, units;

		image_serial_put(img, 512, "start of a unit");
		image_symbols_in_directory(img);
		cr_expect(ruby_symbols_check(&img->vm, img->vm.symbols), "%s", img->version);
		expect_id(img, id, "each");
		expect_id(img, IMAGE_SERIAL_BANG, "!");
		expect_id(img, 512 << 4, "start of a unit");
		expect_id(img, IMAGE_ID_UNITS * 512ull << 4, NULL);
		expect_id(img, ~0ull, NULL);
		dir = image_get64(img, image_get64(img, img->vm.symbols + 16) + 32);
		units = image_get64(img, dir + 8);
		image_put64(img, units + 8, 0); /* not made so far */
		expect_id(img, 512 << 4, NULL);
		image_put64(img, dir, 0);
		expect_id(img, id, NULL);
		image_put64(img, dir, 1);
		expect_id(img, IMAGE_SERIAL_BANG, "!");
		image_put64(img, dir + 8, 0x5000);
		expect_id(img, IMAGE_SERIAL_BANG, NULL);
	}
}

/* What is no symbol table, or was one. */
Test(object, symbol_tables_that_are_none)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t symbols = img->vm.symbols, ids = image_get64(img, symbols + 16);
		uint64_t units = image_get64(img, ids + 32), unit = image_get64(img, units);
		uint64_t data = image_get64(img, unit + 32), flags = image_get64(img, unit);
		uint64_t id = image_serial_put(img, 200, "name") << 4;

		cr_expect(ruby_symbols_check(&img->vm, symbols), "%s", img->version);
		cr_expect_not(ruby_symbols_check(&img->vm, 0));
		cr_expect_not(ruby_symbols_check(&img->vm, symbols + 8));
		cr_expect_not(ruby_symbols_check(&img->vm, 0x5000), "unreadable");
		expect_id(img, id, "name");

		image_put64(img, unit, IMAGE_T_ZOMBIE);
		expect_id(img, id, NULL);
		image_put64(img, unit, img->facts.symbols_in_data ? IMAGE_T_ARRAY : IMAGE_T_DATA);
		expect_id(img, id, NULL);
		image_put64(img, unit, flags);
		image_put64(img, unit + 32, 0x5000);
		expect_id(img, id, NULL);
		cr_expect_not(ruby_symbols_check(&img->vm, symbols), "a unit that leads nowhere");
		image_put64(img, unit + 32, data);
		image_put64(img, units, img->facts.qnil);
		expect_id(img, id, NULL);
		image_put64(img, units, unit);
		expect_id(img, id, "name");

		image_serial_put(img, IMAGE_SERIAL_BANG, "!=");
		cr_expect_not(ruby_symbols_check(&img->vm, symbols), "33 is another operator");
		image_serial_put(img, IMAGE_SERIAL_BANG, "!");
		image_put64(img, symbols + 16, image_string(img, "!"));
		cr_expect_not(ruby_symbols_check(&img->vm, symbols), "no Array");
	}
}

/* A unit says how long it is. */
Test(object, end_of_a_unit_of_symbols)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t ids = image_get64(img, img->vm.symbols + 16);
		uint64_t unit = image_get64(img, image_get64(img, ids + 32));
		uint64_t len = img->facts.symbols_in_data ? image_get64(img, unit + 32) : unit + 16;
		uint64_t each = img->facts.symbols_in_data ? 1 : 2;

		image_serial_put(img, 300, "name");
		expect_id(img, 300 << 4, "name");
		image_put64(img, len, 301 * each);
		expect_id(img, 300 << 4, "name");
		image_put64(img, len, 300 * each);
		expect_id(img, 300 << 4, NULL);
	}
}
