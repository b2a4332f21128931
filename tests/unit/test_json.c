/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <float.h>
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/json_row.h"

/* What jansson reads in @buf, which must be valid to it; to be released with json_decref(). */
static json_t *load(const struct buf *buf)
{
	json_error_t error;
	json_t *root;

	cr_assert(!buf_failed(buf));
	root = json_loadb(buf_str(buf), buf->len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
	cr_assert_not_null(root, "%s at %d of: %s", error.text, error.position, buf_str(buf));
	return root;
}

static void assert_writes(const struct buf *buf, const char *want)
{
	json_decref(load(buf));
	cr_assert_str_eq(buf_str(buf), want);
}

Test(json, values_at_the_top)
{
	static const char *const want[] = { "\"x\"", "1",    "-1", "0.5", "true",
					    "false", "null", "{}", "[]" };

	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		_cleanup_buf_ struct buf buf = BUF_INIT;
		struct json j = JSON_INIT(&buf);

		switch (i) {
		case 0:
			json_str(&j, NULL, "x");
			break;
		case 1:
			json_u64(&j, NULL, 1);
			break;
		case 2:
			json_i64(&j, NULL, -1);
			break;
		case 3:
			json_double(&j, NULL, 0.5);
			break;
		case 4:
			json_bool(&j, NULL, true);
			break;
		case 5:
			json_bool(&j, NULL, false);
			break;
		case 6:
			json_nil(&j, NULL);
			break;
		case 7:
			json_object_begin(&j, NULL);
			json_object_end(&j);
			break;
		case 8:
			json_array_begin(&j, NULL);
			json_array_end(&j);
			break;
		}
		assert_writes(&buf, want[i]);
		cr_expect_eq(j.depth, 0);
	}
}

Test(json, commas_and_keys)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;
	struct json j = JSON_INIT(&buf);

	json_object_begin(&j, NULL);
	json_u64(&j, "a", 1);
	json_array_begin(&j, "b");
	json_nil(&j, NULL);
	json_array_begin(&j, NULL);
	json_array_end(&j);
	json_array_begin(&j, NULL);
	json_bool(&j, NULL, true);
	json_str(&j, NULL, "x");
	json_array_end(&j);
	json_object_begin(&j, NULL);
	json_object_end(&j);
	json_object_begin(&j, NULL);
	json_i64(&j, "k", -5);
	json_double(&j, "l", 1.5);
	json_object_end(&j);
	json_array_end(&j);
	json_object_begin(&j, "c");
	json_object_end(&j);
	json_str(&j, "", "empty key");
	json_object_end(&j);
	assert_writes(&buf, "{\"a\":1,\"b\":[null,[],[true,\"x\"],{},{\"k\":-5,\"l\":1.5}],"
			    "\"c\":{},\"\":\"empty key\"}");
	cr_expect_eq(j.depth, 0);
}

/* Short ones are written at once: 44 characters fit, also with a comma. */
Test(json, keys_of_any_length_and_characters)
{
	for (size_t n = 0; n < 70; n++) {
		_cleanup_buf_ struct buf buf = BUF_INIT, key = BUF_INIT, want = BUF_INIT;
		struct json j = JSON_INIT(&buf);

		buf_add_repeat(&key, 'k', n);
		json_object_begin(&j, NULL);
		json_u64(&j, buf_str(&key), 1);
		buf_addch(&key, '"');
		json_u64(&j, buf_str(&key), 2);
		json_object_end(&j);
		buf_addf(&want, "{\"%.*s\":1,\"%.*s\\\"\":2}", (int)n, buf_str(&key), (int)n,
			 buf_str(&key));
		assert_writes(&buf, buf_str(&want));
	}
}

Test(json, escapes)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;
	struct json j = JSON_INIT(&buf);

	json_array_begin(&j, NULL);
	json_str(&j, NULL, "");
	json_str(&j, NULL, "\"");
	json_str(&j, NULL, "\\");
	json_str(&j, NULL, "a\"b\\c\\\"");
	json_str(&j, NULL, "\n\t\x01\x1f");
	json_str(&j, NULL, "\x7f </script> \xe2\x82\xac \xf0\x9f\x98\x80");
	json_array_end(&j);
	assert_writes(&buf, "[\"\",\"\\\"\",\"\\\\\",\"a\\\"b\\\\c\\\\\\\"\","
			    "\"\\u000a\\u0009\\u0001\\u001f\","
			    "\"\x7f </script> \xe2\x82\xac \xf0\x9f\x98\x80\"]");
}

/* Every byte below 0x80, and every position of an escape in a string, as key and as value. */
Test(json, strings_read_back)
{
	for (int c = 1; c < 0x80; c++) {
		for (int shape = 0; shape < 8; shape++) {
			_cleanup_buf_ struct buf buf = BUF_INIT;
			struct json j = JSON_INIT(&buf);
			char text[8] = "";
			size_t n = 0;
			json_t *root;
			json_t *value;

			/* Three places, each this byte or a plain one. */
			for (int bit = 0; bit < 3; bit++)
				text[n++] = shape & (1 << bit) ? (char)c : '.';
			json_object_begin(&j, NULL);
			json_str(&j, text, text);
			json_object_end(&j);
			root = load(&buf);
			value = json_object_get(root, text);
			cr_assert_not_null(value, "key with 0x%02x: %s", c, buf_str(&buf));
			cr_assert_str_eq(json_string_value(value), text, "0x%02x", c);
			json_decref(root);
		}
	}
}

Test(json, integers)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;
	struct json j = JSON_INIT(&buf);

	json_array_begin(&j, NULL);
	json_u64(&j, NULL, 0);
	json_u64(&j, NULL, UINT32_MAX);
	json_u64(&j, NULL, INT64_MAX);
	json_i64(&j, NULL, 0);
	json_i64(&j, NULL, INT64_MAX);
	json_i64(&j, NULL, INT64_MIN);
	json_array_end(&j);
	assert_writes(&buf, "[0,4294967295,9223372036854775807,0,9223372036854775807,"
			    "-9223372036854775808]");

	/* jansson has no larger integers, JSON does. */
	buf_reset(&buf);
	j = (struct json)JSON_INIT(&buf);
	json_u64(&j, NULL, UINT64_MAX);
	cr_expect_str_eq(buf_str(&buf), "18446744073709551615");
}

static const double doubles[] = {
	0.0,
	1.0,
	-1.0,
	0.1,
	0.5,
	1.0 / 3,
	2.0 / 3,
	100.0,
	1e15,
	1e16,
	1e17,
	1e21,
	1e22,
	1e300,
	1e-5,
	1e-300,
	DBL_MAX,
	-DBL_MAX,
	DBL_MIN,
	DBL_EPSILON,
	4.9406564584124654e-324,
	9007199254740993.0,
	123456789.123456789,
	0.1 + 0.2,
	33.3,
	1e9 / 7,
};

static void assert_doubles_read_back(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(doubles); i++) {
		_cleanup_buf_ struct buf buf = BUF_INIT;
		struct json j = JSON_INIT(&buf);
		char locale[64];
		json_t *root;

		json_array_begin(&j, NULL);
		json_double(&j, NULL, doubles[i]);
		json_double(&j, NULL, -doubles[i]);
		json_array_end(&j);
		/* A number is read in the locale that a reader elsewhere has. */
		strcpy(locale, setlocale(LC_NUMERIC, NULL));
		setlocale(LC_NUMERIC, "C");
		root = load(&buf);
		setlocale(LC_NUMERIC, locale);
		cr_assert_eq(json_array_size(root), 2, "%s", buf_str(&buf));
		cr_assert(json_number_value(json_array_get(root, 0)) == doubles[i], "%.17g: %s",
			  doubles[i], buf_str(&buf));
		cr_assert(json_number_value(json_array_get(root, 1)) == -doubles[i], "%.17g: %s",
			  doubles[i], buf_str(&buf));
		json_decref(root);
	}
}

Test(json, doubles_read_back)
{
	assert_doubles_read_back();
}

Test(json, doubles_read_back_in_a_locale_with_a_comma)
{
	if (!setlocale(LC_NUMERIC, "de_DE.UTF-8")) {
		setenv("LOCPATH", "build/locale", 1); /* of tests/support/fixtures.sh */
		if (!setlocale(LC_NUMERIC, "de_DE.UTF-8"))
			cr_skip_test("the locale de_DE.UTF-8 is not installed");
	}
	assert_doubles_read_back();
}

Test(json, doubles_are_short)
{
	static const struct {
		double v;
		const char *want;
	} numbers[] = {
		{ 0.1, "0.1" },	     { 33.3, "33.3" },
		{ 5.0, "5" },	     { 0.1 + 0.2, "0.30000000000000004" },
		{ 1e300, "1e+300" }, { -2.5, "-2.5" },
		{ 1e15, "1e+15" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		_cleanup_buf_ struct buf buf = BUF_INIT;
		struct json j = JSON_INIT(&buf);

		json_double(&j, NULL, numbers[i].v);
		assert_writes(&buf, numbers[i].want);
	}
}

Test(json, no_number_is_null)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;
	struct json j = JSON_INIT(&buf);

	json_object_begin(&j, NULL);
	json_double(&j, "a", (double)NAN);
	json_double(&j, "b", (double)INFINITY);
	json_double(&j, "c", -(double)INFINITY);
	json_object_end(&j);
	assert_writes(&buf, "{\"a\":null,\"b\":null,\"c\":null}");
}

Test(json, deepest_nesting)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;
	struct json j = JSON_INIT(&buf);

	for (int i = 0; i < JSON_MAX_DEPTH; i++) {
		if (i % 2)
			json_object_begin(&j, NULL);
		else
			json_array_begin(&j, i ? "k" : NULL);
	}
	for (int i = JSON_MAX_DEPTH; i-- > 0;) {
		if (i % 2)
			json_object_end(&j);
		else
			json_array_end(&j);
	}
	json_decref(load(&buf));
	cr_expect_eq(j.depth, 0);
}

Test(json, deeper_nesting_fails_the_buf)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;
	struct json j = JSON_INIT(&buf);

	for (int i = 0; i < JSON_MAX_DEPTH; i++)
		json_array_begin(&j, NULL);
	cr_expect(!buf_failed(&buf));
	json_array_begin(&j, NULL);
	cr_expect(buf_failed(&buf));
}

Test(json, closing_too_much_fails_the_buf)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;
	struct json j = JSON_INIT(&buf);

	json_object_begin(&j, NULL);
	json_object_end(&j);
	cr_expect(!buf_failed(&buf));
	json_object_end(&j);
	cr_expect(buf_failed(&buf));
	cr_expect_eq(j.depth, 0);
}

Test(json, appends_to_what_is_there)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;
	struct json j = JSON_INIT(&buf);

	buf_addstr(&buf, "data = ");
	json_array_begin(&j, NULL);
	json_array_end(&j);
	cr_expect_str_eq(buf_str(&buf), "data = []");
}

Test(json, decimals_are_exact)
{
	struct buf out = BUF_INIT;
	struct json j = JSON_INIT(&out);

	json_array_begin(&j, NULL);
	json_decimal(&j, NULL, 12345678, 6);
	json_decimal(&j, NULL, 5, 6);
	json_decimal(&j, NULL, 7, 0);
	json_decimal(&j, NULL, UINT64_MAX, 19);
	json_array_end(&j);
	cr_expect_str_eq(buf_str(&out), "[12.345678,0.000005,7,1.8446744073709551615]");
	buf_deinit(&out);
}

Test(json, rows_are_objects_of_a_list)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;
	struct json j = JSON_INIT(&buf);
	struct json_row row;

	json_array_begin(&j, NULL);
	json_row_begin(&row);
	JSON_ROW_U64(&row, "first", UINT64_MAX);
	JSON_ROW_DECIMAL(&row, "ms", 5, 6);
	JSON_ROW_RAW(&row, "names", "[\"a\"]", 5);
	json_row_end(&row, &j);
	json_row_begin(&row);
	JSON_ROW_U64(&row, "first", 0);
	json_row_end(&row, &j);
	json_u64(&j, NULL, 7);
	json_array_end(&j);
	cr_expect_not(buf_failed(&buf));
	cr_expect_str_eq(buf_str(&buf),
			 "[{\"first\":18446744073709551615,\"ms\":0.000005,\"names\":[\"a\"]},"
			 "{\"first\":0},7]");
}

/* The longest one, with a number at its end, and one that has a byte more. */
Test(json, rows_that_are_too_long_fail_the_buf)
{
	static const char text[JSON_ROW_MAX] = { 0 };
	const size_t keys = strlen(",,\"a\":,\"b\":"), digits = 20;
	struct json_row row;

	for (size_t more = 0; more < 2; more++) {
		_cleanup_buf_ struct buf buf = BUF_INIT;
		struct json j = JSON_INIT(&buf);

		json_row_begin(&row);
		JSON_ROW_RAW(&row, "a", text, JSON_ROW_MAX - keys - digits + more);
		JSON_ROW_U64(&row, "b", UINT64_MAX);
		json_row_end(&row, &j);
		cr_expect_eq(buf_failed(&buf), more == 1);
		cr_expect_eq(buf.len, more ? 0 : JSON_ROW_MAX);
	}
	for (size_t more = 0; more < 2; more++) {
		_cleanup_buf_ struct buf buf = BUF_INIT;
		struct json j = JSON_INIT(&buf);

		json_row_begin(&row);
		json_row_put(&row, text, JSON_ROW_MAX - 1 + more);
		json_row_end(&row, &j);
		cr_expect_eq(buf_failed(&buf), more == 1);
	}
}

Test(json, rows_without_members_fail_the_buf)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;
	struct json j = JSON_INIT(&buf);
	struct json_row row;

	json_row_begin(&row);
	json_row_end(&row, &j);
	cr_expect(buf_failed(&buf));
}
