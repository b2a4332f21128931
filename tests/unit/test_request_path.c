/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <string.h>

#include "base/buf.h"
#include "request/path.h"

static void expect_cut(const char *method, const char *path, bool cut, const char *name)
{
	struct buf out = BUF_INIT;
	uint64_t verb = 0;

	memcpy(&verb, method, strnlen(method, sizeof(verb)));
	request_path(&out, verb, path, strlen(path), cut);
	cr_expect_str_eq(buf_str(&out), name, "%s: '%s'", path, buf_str(&out));
	buf_deinit(&out);
}

static void expect(const char *path, const char *name)
{
	expect_cut("GET", path, false, name);
}

Test(request_path, words_are_kept)
{
	expect("/", "GET /");
	expect("/health", "GET /health");
	expect("/api/v1/order-items/", "GET /api/v1/order-items/");
	expect("/api/v12/x", "GET /api/v12/x");
	expect("//assets//app.js", "GET //assets//app.js");
	expect("/oauth2/facade", "GET /oauth2/facade");
}

Test(request_path, what_tells_one_from_the_other_is_not)
{
	expect("/orders/1", "GET /orders/:id");
	expect("/orders/17/items/2026-11-23", "GET /orders/:id/items/:id");
	expect("/u/6ba7b810-9dad-11d1-80b4-00c04fd430c8", "GET /u/:id");
	expect("/c/0a1b2c3d", "GET /c/:id");
	expect("/order-17/image_2041.jpg", "GET /order-:id/image_:id.jpg");
	expect("/u/bob@example.org/x", "GET /u/:id/x");
	expect("/q/caf%C3%A9", "GET /q/:id");
	expect("/q/caf\xc3\xa9\n", "GET /q/:id");
	expect("/s/eyJhbGciOiJIUzIqNiIsInRr", "GET /s/eyJhbGciOiJIUzIqNiIsInRr");
	expect("/s/eyJhbGciOiJIUzIqNiIsInRrQ", "GET /s/:id");
	expect("/s/a-long-title-in-words-of-letters", "GET /s/a-long-title-in-words-of-letters");
	expect("/s/a-long-title-in-words-1-of-letters", "GET /s/:id");
}

Test(request_path, parameters_are_left_out)
{
	expect("/search?q=secret", "GET /search");
	expect("/a;jsessionid=1/b", "GET /a");
	expect("/a#b", "GET /a");
}

Test(request_path, of_what_is_cut_the_last_part_is_left_out)
{
	expect_cut("GET", "/orders/12", true, "GET /orders/...");
	expect_cut("GET", "/orders/", true, "GET /orders/...");
	expect_cut("GET", "/orders?12", true, "GET /orders");
}

Test(request_path, what_is_no_path_or_method)
{
	expect("*", "GET [unknown]");
	expect("", "GET [unknown]");
	expect("http://secret/x", "GET [unknown]");
	expect_cut("", "/x", false, "[unknown] /x");
	expect_cut("GET\n", "/x", false, "[unknown] /x");
	expect_cut("get", "/x", false, "[unknown] /x");
	expect_cut("PROPPATCH", "/x", false, "PROPPATC /x");
}
