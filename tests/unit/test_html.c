/* SPDX-License-Identifier: GPL-2.0-only */
/* The frame of a page: hashes, escapes, packed numbers. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "page/html.h"
#include "page/sha256.h"

static void expect_sha256(const char *text, size_t repeat, const char *want)
{
	_cleanup_buf_ struct buf data = BUF_INIT, got = BUF_INIT;
	uint8_t hash[SHA256_BYTES];

	while (repeat--)
		buf_addstr(&data, text);
	sha256(buf_str(&data), data.len, hash);
	for (size_t i = 0; i < sizeof(hash); i++)
		buf_addf(&got, "%02x", hash[i]);
	cr_expect_str_eq(buf_str(&got), want);
}

/* Those of FIPS 180-4's examples, and of sha256sum(1) around the length of a block. */
Test(html, sha256)
{
	expect_sha256("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	expect_sha256("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	expect_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
		      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	expect_sha256("a", 1000000,
		      "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	expect_sha256("x", 55, "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072");
	expect_sha256("x", 63, "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2");
	expect_sha256("x", 64, "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c");
}

Test(html, text_is_escaped)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	html_add_text(&out, "<a b=\"c\">&amp;ü");
	cr_expect_str_eq(buf_str(&out), "&lt;a b=&quot;c&quot;&gt;&amp;amp;ü");
}

Test(html, json_cannot_end_its_element)
{
	_cleanup_buf_ struct buf json = BUF_INIT, out = BUF_INIT;

	buf_addstr(&json, "[\"</script><!--<script>\"]");
	html_add_json(&out, "x", &json);
	cr_expect_str_eq(buf_str(&out), "<script type=\"application/json\" id=\"x\">"
					"[\"\\u003c/script>\\u003c!--\\u003cscript>\"]</script>\n");
}

Test(html, packed)
{
	static const char *const want[] = { "", "AA==", "AAE=", "AAEC", "AAEC/w==" };
	static const uint8_t bytes[] = { 0, 1, 2, 0xff };

	for (size_t n = 0; n < ARRAY_SIZE(want); n++) {
		_cleanup_buf_ struct buf data = BUF_INIT, out = BUF_INIT, all = BUF_INIT;

		buf_add(&data, bytes, n);
		html_add_packed(&out, "x", &data);
		buf_addf(&all, "<script type=\"text/plain\" id=\"x\">%s</script>\n", want[n]);
		cr_expect_str_eq(buf_str(&out), buf_str(&all));
	}
}

Test(html, failures_are_passed_on)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct buf failed = { .failed = true };

	html_add_packed(&out, "x", &failed);
	cr_expect(buf_failed(&out));
}

Test(html, the_policy_names_its_own)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	html_begin(&out, "a < b", "abc", "");
	html_end(&out, "");
	cr_expect(strstr(buf_str(&out), "default-src 'none'"));
	cr_expect(strstr(buf_str(&out),
			 "style-src 'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='"));
	cr_expect(strstr(buf_str(&out),
			 "script-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"));
	cr_expect(strstr(buf_str(&out), "<title>a &lt; b</title>"));
	cr_expect_null(strstr(buf_str(&out), "unsafe"));
}
