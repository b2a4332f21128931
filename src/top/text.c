/* SPDX-License-Identifier: GPL-2.0-only */
/* Text in columns of a terminal: see layout.h. */
#include <string.h>
#include <wchar.h>

#include "base/utf8.h"
#include "top/layout.h"

/* The code point of the well-formed character of @n bytes at @s. */
static wchar_t code_point(const char *s, size_t n)
{
	static const unsigned char first[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	wchar_t c = (unsigned char)s[0] & first[n];

	for (size_t i = 1; i < n; i++)
		c = c << 6 | ((unsigned char)s[i] & 0x3f);
	return c;
}

/*
 * The character at @s, not NUL: its bytes in *@n, which are 1 or more; its columns. -1: '?' is
 * shown in its place. A control would act on the terminal, and what that does not know it would
 * show at its discretion.
 */
static int character(const char *s, bool utf8, size_t *n)
{
	*n = utf8_sequence(s, strnlen(s, 4));
	if (!*n) {
		*n = 1;
		return -1;
	}
	if (*n == 1)
		return *s >= ' ' && *s < 0x7f ? 1 : -1;
	return utf8 && utf8_presentable(s, *n) ? wcwidth(code_point(s, *n)) : -1;
}

static size_t columns_of(int width)
{
	return width < 0 ? 1 : (size_t)width;
}

size_t top_width(const char *s, bool utf8)
{
	size_t width = 0, n;

	for (; *s; s += n)
		width += columns_of(character(s, utf8, &n));
	return width;
}

/* The columns that "…" takes. */
static size_t ellipsis(bool utf8)
{
	return utf8 ? 1 : 2;
}

/* Add the characters of @s up to @max columns; how many they take. */
static size_t add_up_to(struct buf *out, const char *s, size_t max, bool utf8)
{
	size_t taken = 0, n;

	for (; *s; s += n) {
		const int width = character(s, utf8, &n);

		if (taken + columns_of(width) > max)
			break;
		taken += columns_of(width);
		if (width < 0)
			buf_addch(out, '?');
		else
			buf_add(out, s, n);
	}
	return taken;
}

size_t top_add_cut(struct buf *out, const char *s, size_t max, bool tail, bool utf8)
{
	size_t whole = top_width(s, utf8), mark = ellipsis(utf8), n;

	if (whole <= max || max <= mark)
		return add_up_to(out, s, max, utf8);
	if (!tail) {
		whole = add_up_to(out, s, max - mark, utf8);
		buf_addstr(out, utf8 ? "…" : "..");
		return whole + mark;
	}
	buf_addstr(out, utf8 ? "…" : "..");
	for (; whole > max - mark; s += n)
		whole -= columns_of(character(s, utf8, &n));
	return mark + add_up_to(out, s, max - mark, utf8);
}
