/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/attributes.h"

#include <string.h>

#include "base/buf.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/utf8.h"

static void add_escaped(struct buf *out, const char *s, size_t len)
{
	struct buf clean _cleanup_buf_ = BUF_INIT;
	const char *c;

	utf8_sanitise(&clean, s, len);
	for (c = buf_str(&clean); *c; c++) {
		if (strchr("%,=", *c))
			buf_addf(out, "%%%02X", (unsigned int)*c);
		else
			buf_addch(out, *c);
	}
	out->failed |= buf_failed(&clean);
}

void attributes_add(struct buf *out, const char *key, size_t key_len, const char *value,
		    size_t value_len)
{
	if (!key_len)
		return;
	if (out->len)
		buf_addch(out, ',');
	add_escaped(out, key, key_len);
	buf_addch(out, '=');
	add_escaped(out, value, value_len);
}

/* What is written as '%' may be a control character, so it is sanitised again. */
static void unescape(const char *s, size_t len, struct buf *out)
{
	struct buf plain _cleanup_buf_ = BUF_INIT;
	size_t i;

	for (i = 0; i < len; i++) {
		if (s[i] == '%' && len - i > 2 && hex_digit(s[i + 1]) >= 0 &&
		    hex_digit(s[i + 2]) >= 0) {
			buf_addch(&plain, (char)(hex_digit(s[i + 1]) << 4 | hex_digit(s[i + 2])));
			i += 2;
		} else {
			buf_addch(&plain, s[i]);
		}
	}
	buf_reset(out);
	if (plain.len)
		utf8_sanitise(out, plain.data, plain.len);
	out->failed |= buf_failed(&plain);
}

bool attributes_next(const char **text, struct buf *key, struct buf *value)
{
	const char *pair, *end, *equals;

	while (**text) {
		pair = *text;
		end = strchrnul(pair, ',');
		*text = *end ? end + 1 : end;
		equals = memchr(pair, '=', (size_t)(end - pair));
		if (!equals || equals == pair)
			continue;
		unescape(pair, (size_t)(equals - pair), key);
		unescape(equals + 1, (size_t)(end - equals - 1), value);
		return true;
	}
	return false;
}

bool attributes_get(const char *text, const char *key, struct buf *value)
{
	struct buf name _cleanup_buf_ = BUF_INIT;

	while (attributes_next(&text, &name, value))
		if (!strcmp(buf_str(&name), key))
			return true;
	buf_reset(value);
	return false;
}

/* Whether one of the first @n pairs of @text has @key. */
static bool is_among(const char *text, size_t n, const char *key)
{
	struct buf other _cleanup_buf_ = BUF_INIT, value _cleanup_buf_ = BUF_INIT;

	while (n-- && attributes_next(&text, &other, &value))
		if (!strcmp(buf_str(&other), key))
			return true;
	return false;
}

void attributes_without(const char *text, const char *key, struct buf *out)
{
	struct buf name _cleanup_buf_ = BUF_INIT, value _cleanup_buf_ = BUF_INIT;

	while (attributes_next(&text, &name, &value))
		if (strcmp(buf_str(&name), key))
			attributes_add(out, buf_str(&name), name.len, buf_str(&value), value.len);
	out->failed |= buf_failed(&name) || buf_failed(&value);
}

void attributes_json(const char *text, const char *name, struct json *j)
{
	struct buf key _cleanup_buf_ = BUF_INIT, value _cleanup_buf_ = BUF_INIT;
	const char *rest = text;
	size_t i;

	json_object_begin(j, name);
	for (i = 0; i < ATTRIBUTES_MAX && attributes_next(&rest, &key, &value); i++)
		if (!is_among(text, i, buf_str(&key)))
			json_str(j, buf_str(&key), buf_str(&value));
	json_object_end(j);
	j->out->failed |= buf_failed(&key) || buf_failed(&value);
}
