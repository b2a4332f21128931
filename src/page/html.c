/* SPDX-License-Identifier: GPL-2.0-only */
#include "page/html.h"

#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "page/sha256.h"

static void add_base64(struct buf *out, const uint8_t *data, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t v = (uint32_t)data[i] << 16 | (n > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
			     (n > 2 ? data[i + 2] : 0);
		char four[4] = { digits[v >> 18], digits[v >> 12 & 63], digits[v >> 6 & 63],
				 digits[v & 63] };

		memset(four + n + 1, '=', 3 - n);
		buf_add(out, four, sizeof(four));
	}
}

void html_add_hash(struct buf *out, const char *text)
{
	uint8_t hash[SHA256_BYTES];

	sha256(text, strlen(text), hash);
	buf_addstr(out, "'sha256-");
	add_base64(out, hash, sizeof(hash));
	buf_addch(out, '\'');
}

void html_add_text(struct buf *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			buf_addstr(out, "&amp;");
			break;
		case '<':
			buf_addstr(out, "&lt;");
			break;
		case '>':
			buf_addstr(out, "&gt;");
			break;
		case '"':
			buf_addstr(out, "&quot;");
			break;
		default:
			buf_addch(out, *text);
		}
	}
}

void html_begin(struct buf *out, const char *title, const char *css, const char *js)
{
	html_begin_with(out, title, css, js, "");
}

void html_begin_with(struct buf *out, const char *title, const char *css, const char *js,
		     const char *policy)
{
	buf_addstr(out,
		   "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		   "base-uri 'none'; form-action 'none'; script-src ");
	html_add_hash(out, js);
	buf_addstr(out, "; style-src ");
	html_add_hash(out, css);
	buf_addstr(out, policy);
	buf_addstr(out, "\">\n<meta name=\"viewport\" content=\"width=device-width\">\n"
			"<meta name=\"generator\" content=\"rbpf " RBPF_VERSION "\">\n<title>");
	html_add_text(out, title);
	buf_addstr(out, "</title>\n<style>");
	buf_addstr(out, css);
	buf_addstr(out, "</style>\n</head>\n<body>\n<noscript>This page needs its script; "
			"the browser does not run any.</noscript>\n");
}

/*
 * In a script element only "<" can end it or begin what hides its end; in JSON, "<" is only ever
 * inside of strings, where it may be written by its number.
 */
void html_add_json(struct buf *out, const char *id, const struct buf *json)
{
	const char *s = buf_str(json);

	buf_addf(out, "<script type=\"application/json\" id=\"%s\">", id);
	while (*s) {
		size_t n = strcspn(s, "<");

		buf_add(out, s, n);
		s += n;
		if (*s) {
			buf_addstr(out, "\\u003c");
			s++;
		}
	}
	buf_addstr(out, "</script>\n");
	out->failed |= json->failed;
}

void html_add_packed(struct buf *out, const char *id, const struct buf *bytes)
{
	buf_addf(out, "<script type=\"text/plain\" id=\"%s\">", id);
	add_base64(out, (const uint8_t *)buf_str(bytes), bytes->len);
	buf_addstr(out, "</script>\n");
	out->failed |= bytes->failed;
}

void html_end(struct buf *out, const char *js)
{
	buf_addstr(out, "<script>");
	buf_addstr(out, js);
	buf_addstr(out, "</script>\n</body>\n</html>\n");
}
