/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/utf8.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/*
 * The well-formed sequences are those of table 3-7 of the Unicode standard: what a lead byte allows
 * for the byte after it is all that rules out overlong forms, surrogates and code points that
 * are too large.
 */
size_t utf8_sequence(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;
	unsigned char low = 0x80, high = 0xbf;
	size_t n;

	if (!len)
		return 0;
	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		n = 2;
	else if (p[0] >= 0xe0 && p[0] <= 0xef)
		n = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		n = 4;
	else
		return 0;

	if (p[0] == 0xe0)
		low = 0xa0; /* shorter forms exist below U+0800 */
	else if (p[0] == 0xed)
		high = 0x9f; /* U+D800 to U+DFFF are surrogates */
	else if (p[0] == 0xf0)
		low = 0x90; /* shorter forms exist below U+10000 */
	else if (p[0] == 0xf4)
		high = 0x8f; /* U+10FFFF is the last */

	if (len < n || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++) {
		if (!is_continuation(s[i]))
			return 0;
	}
	return n;
}

static bool is_control(char c)
{
	return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

void utf8_sanitise(struct buf *out, const char *s, size_t len)
{
	size_t done = 0; /* bytes of @s that are in @out */
	size_t i = 0;

	while (i < len) {
		size_t n = utf8_sequence(s + i, len - i);

		if (n && !is_control(s[i])) {
			i += n;
			continue;
		}
		buf_add(out, s + done, i - done);
		buf_addstr(out, REPLACEMENT);
		done = ++i;
	}
	if (len > done)
		buf_add(out, s + done, len - done);
}

size_t utf8_len(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += !is_continuation(*s);
	return n;
}

size_t utf8_prefix(const char *s, size_t max)
{
	size_t i = 0;

	for (; s[i]; i++) {
		if (is_continuation(s[i]))
			continue;
		if (!max)
			break;
		max--;
	}
	return i;
}
