/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_row.h"

/* Whether a character of a string is written as it is. */
static bool is_plain(char c)
{
	return (unsigned char)c >= 0x20 && c != '"' && c != '\\';
}

static void add_string(struct buf *out, const char *s)
{
	const char *done = s; /* what is before it is in @out */

	buf_addch(out, '"');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (is_plain(*s))
			continue;
		buf_add(out, done, (size_t)(s - done));
		done = s + 1;
		if (c == '"' || c == '\\') {
			buf_addch(out, '\\');
			buf_addch(out, (char)c);
		} else {
			buf_addf(out, "\\u%04x", c);
		}
	}
	buf_add(out, done, (size_t)(s - done));
	buf_addch(out, '"');
}

/*
 * What comes before any value: the comma and the key. Large files are mostly this, so a short key
 * without escapes is added together with what stands around it, and with @value, of @len bytes, if
 * that is short, too.
 */
#define SHORT 48u

static void add_value(struct json *j, const char *key, const char *value, size_t len)
{
	char text[SHORT + SHORT];
	size_t n = 0, k = 0;

	if (j->need_comma)
		text[n++] = ',';
	j->need_comma = true;
	if (key) {
		text[n++] = '"';
		while (n < SHORT - 2 && is_plain(key[k]))
			text[n++] = key[k++];
		if (key[k]) {
			n -= k + 1;
		} else {
			text[n++] = '"';
			text[n++] = ':';
		}
	}
	if ((!key || !key[k]) && len <= SHORT) {
		memcpy(text + n, value, len);
		buf_add(j->out, text, n + len);
		return;
	}
	buf_add(j->out, text, n);
	if (key && key[k]) {
		add_string(j->out, key);
		buf_addch(j->out, ':');
	}
	buf_add(j->out, value, len);
}

static void begin_value(struct json *j, const char *key)
{
	add_value(j, key, "", 0);
}

static void open_level(struct json *j, const char *key, char bracket)
{
	if (j->depth >= JSON_MAX_DEPTH)
		j->out->failed = true;
	begin_value(j, key);
	buf_addch(j->out, bracket);
	j->depth++;
	j->need_comma = false;
}

static void close_level(struct json *j, char bracket)
{
	if (!j->depth) {
		j->out->failed = true;
		return;
	}
	buf_addch(j->out, bracket);
	j->depth--;
	j->need_comma = true;
}

void json_object_begin(struct json *j, const char *key)
{
	open_level(j, key, '{');
}

void json_object_end(struct json *j)
{
	close_level(j, '}');
}

void json_array_begin(struct json *j, const char *key)
{
	open_level(j, key, '[');
}

void json_array_end(struct json *j)
{
	close_level(j, ']');
}

void json_str(struct json *j, const char *key, const char *value)
{
	begin_value(j, key);
	add_string(j->out, value);
}

void json_values(struct json *j, const struct buf *values)
{
	begin_value(j, NULL);
	buf_add(j->out, values->data, values->len);
}

void json_members(struct json *j, const struct buf *object)
{
	if (buf_failed(object) || object->len < 3) {
		j->out->failed = true;
		return;
	}
	begin_value(j, NULL);
	buf_add(j->out, object->data + 1, object->len - 2);
}

void json_row_end(struct json_row *row, struct json *j)
{
	if (row->failed || row->len < 2) {
		j->out->failed = true;
		return;
	}
	row->text[1] = '{';
	row->text[row->len++] = '}';
	row->text[0] = ',';
	buf_add(j->out, row->text + !j->need_comma, row->len - !j->need_comma);
	j->need_comma = true;
}

void json_u64(struct json *j, const char *key, uint64_t value)
{
	json_decimal(j, key, value, 0);
}

void json_i64(struct json *j, const char *key, int64_t value)
{
	begin_value(j, key);
	buf_addf(j->out, "%" PRId64, value);
}

/*
 * printf() uses the decimal point of the locale, which may be any character, but a number has
 * nothing else that is not in this set.
 */
static void add_number(struct buf *out, const char *s)
{
	bool in_point = false;

	for (; *s; s++) {
		bool plain = (*s >= '0' && *s <= '9') || *s == 'e' || *s == '+' || *s == '-';

		if (plain || !in_point)
			buf_addch(out, plain ? *s : '.');
		in_point = !plain;
	}
}

void json_double(struct json *j, const char *key, double value)
{
	char text[64];

	if (!isfinite(value)) {
		json_nil(j, key);
		return;
	}
	/* The shortest form that reads back as the same value; 17 digits are always enough. */
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	begin_value(j, key);
	add_number(j->out, text);
}

size_t json_decimal_digits(uint64_t value, unsigned int decimals,
			   char text[static JSON_DECIMAL_MAX])
{
	uint64_t unit = 1;
	size_t n;

	for (unsigned int i = 0; i < decimals; i++)
		unit *= 10;
	n = buf_u64_digits(value / unit, text);
	if (!decimals)
		return n;
	text[n++] = '.';
	value %= unit;
	for (unsigned int i = decimals; i-- > 0; value /= 10)
		text[n + i] = (char)('0' + value % 10);
	return n + decimals;
}

void json_decimal(struct json *j, const char *key, uint64_t value, unsigned int decimals)
{
	char text[1 + JSON_DECIMAL_MAX];
	const size_t n = json_decimal_digits(value, decimals, text + 1);

	if (key) {
		add_value(j, key, text + 1, n);
		return;
	}
	/* Lists of numbers are long. */
	text[0] = ',';
	buf_add(j->out, text + !j->need_comma, n + j->need_comma);
	j->need_comma = true;
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin_value(j, key);
	buf_addstr(j->out, value ? "true" : "false");
}

void json_nil(struct json *j, const char *key)
{
	begin_value(j, key);
	buf_addstr(j->out, "null");
}
