/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/utf8.h"

#include <stdint.h>

#include "base/array.h"
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

/*
 * Characters above ASCII that are not seen but change what is: C1 controls, which terminals obey
 * like escape sequences; separators of lines; marks, embeddings, overrides and isolates of the
 * writing direction; blanks without a width, fillers and tags, which make two names look the same.
 * Joiners (U+200C, U+200D) and variation selectors stay: several scripts and emoji need them.
 * Sorted.
 */
static const struct {
	uint32_t first, last;
} invisible[] = {
	{ 0x80, 0x9f },	    { 0xad, 0xad },	  { 0x61c, 0x61c },	{ 0x115f, 0x1160 },
	{ 0x180e, 0x180e }, { 0x200b, 0x200b },	  { 0x200e, 0x200f },	{ 0x2028, 0x202e },
	{ 0x2060, 0x206f }, { 0x3164, 0x3164 },	  { 0xfeff, 0xfeff },	{ 0xffa0, 0xffa0 },
	{ 0xfff9, 0xfffb }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe007f },
};

/* The code point of a well-formed sequence of @n bytes. */
static uint32_t code_point(const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s;
	uint32_t cp = n == 1 ? p[0] : p[0] & (0x7fu >> n);

	for (size_t i = 1; i < n; i++)
		cp = cp << 6 | (p[i] & 0x3f);
	return cp;
}

bool utf8_presentable(const char *s, size_t n)
{
	uint32_t cp;

	if (n == 1)
		return ((unsigned char)*s >= 0x20 && *s != 0x7f) || *s == '\t';
	cp = code_point(s, n);
	for (size_t i = 0; i < ARRAY_SIZE(invisible) && cp >= invisible[i].first; i++) {
		if (cp <= invisible[i].last)
			return false;
	}
	return true;
}

void utf8_sanitise(struct buf *out, const char *s, size_t len)
{
	size_t done = 0; /* bytes of @s that are in @out */
	size_t i = 0;

	while (i < len) {
		size_t n = utf8_sequence(s + i, len - i);

		if (n && utf8_presentable(s + i, n)) {
			i += n;
			continue;
		}
		buf_add(out, s + done, i - done);
		buf_addstr(out, REPLACEMENT);
		i += n ? n : 1;
		done = i;
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
