/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>

#include "base/attributes.h"
#include "base/buf.h"
#include "base/json.h"

static void add(struct buf *out, const char *key, const char *value)
{
	attributes_add(out, key, strlen(key), value, strlen(value));
}

Test(attributes, any_text_comes_back)
{
	struct buf text = BUF_INIT, key = BUF_INIT, value = BUF_INIT;
	const char *rest;

	add(&text, "service.name", "a=b,c%2C");
	add(&text, "", "no key");
	add(&text, "k=,%", "");
	add(&text, "ünï", "日本 x");
	rest = buf_str(&text);
	cr_expect_str_eq(rest, "service.name=a%3Db%2Cc%252C,k%3D%2C%25=,ünï=日本 x");
	cr_assert(attributes_next(&rest, &key, &value));
	cr_expect_str_eq(buf_str(&key), "service.name");
	cr_expect_str_eq(buf_str(&value), "a=b,c%2C");
	cr_assert(attributes_next(&rest, &key, &value));
	cr_expect_str_eq(buf_str(&key), "k=,%");
	cr_expect_str_eq(buf_str(&value), "");
	cr_assert(attributes_next(&rest, &key, &value));
	cr_expect_str_eq(buf_str(&key), "ünï");
	cr_expect_str_eq(buf_str(&value), "日本 x");
	cr_expect_not(attributes_next(&rest, &key, &value));
	cr_expect(attributes_get(buf_str(&text), "ünï", &value));
	cr_expect_str_eq(buf_str(&value), "日本 x");
	cr_expect_not(attributes_get(buf_str(&text), "service", &value));
	cr_expect_str_eq(buf_str(&value), "");
	buf_deinit(&text);
	buf_deinit(&key);
	buf_deinit(&value);
}

/* Whoever made the recording may have written anything. */
Test(attributes, what_is_no_pair_is_skipped_and_escapes_hide_nothing)
{
	const char *rest = ",,=x,y,a=1=2,b=%1b[31m%0a%zz%4,c=%00d%f";
	struct buf key = BUF_INIT, value = BUF_INIT;

	cr_assert(attributes_next(&rest, &key, &value));
	cr_expect_str_eq(buf_str(&key), "a");
	cr_expect_str_eq(buf_str(&value), "1=2");
	cr_assert(attributes_next(&rest, &key, &value));
	cr_expect_str_eq(buf_str(&value), "\uFFFD[31m\uFFFD%zz%4");
	cr_assert(attributes_next(&rest, &key, &value));
	cr_expect_str_eq(buf_str(&value), "\uFFFDd%f");
	cr_expect_not(attributes_next(&rest, &key, &value));
	buf_deinit(&key);
	buf_deinit(&value);
}

Test(attributes, as_json)
{
	struct buf out = BUF_INIT;
	struct json j = JSON_INIT(&out);

	json_object_begin(&j, NULL);
	attributes_json("a=\"x\",b=%2c", "of", &j);
	attributes_json("", "none", &j);
	attributes_json("%01=1,%02=2,c=3,c=4", "twice", &j);
	json_object_end(&j);
	cr_expect_str_eq(buf_str(&out), "{\"of\":{\"a\":\"\\\"x\\\"\",\"b\":\",\"},\"none\":{},"
					"\"twice\":{\"\uFFFD\":\"1\",\"c\":\"3\"}}");
	buf_deinit(&out);
}

Test(attributes, json_of_many)
{
	struct buf out = BUF_INIT, text = BUF_INIT;
	struct json j = JSON_INIT(&out);
	size_t n = 0;

	for (int i = 0; i < 2 * ATTRIBUTES_MAX; i++)
		buf_addf(&text, "k%d=v,", i);
	attributes_json(buf_str(&text), NULL, &j);
	for (const char *c = buf_str(&out); *c; c++)
		n += *c == ':';
	cr_expect_eq(n, ATTRIBUTES_MAX);
	buf_deinit(&out);
	buf_deinit(&text);
}

Test(attributes, without_some)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	attributes_without("a=1%2c2,command=x --key y,b=3,command=z", "command", &out);
	cr_expect_str_eq(buf_str(&out), "a=1%2C2,b=3");
}
