/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/xml.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* What the character at @s becomes, or NULL if it stays; *@n is its length, 1 for what stays. */
static const char *replacement_of(const char *s, size_t left, size_t *n)
{
	unsigned char c = (unsigned char)*s;

	*n = 1;
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\t':
	case '\n':
		return NULL;
	case 0xef:
		if (left < 3 || s[1] != '\xbf' || (s[2] != '\xbe' && s[2] != '\xbf'))
			return NULL;
		*n = 3;
		return REPLACEMENT;
	default:
		return c < 0x20 || c == 0x7f ? REPLACEMENT : NULL;
	}
}

/* What replacement_of() is asked of: it may have another answer than NULL. */
static const bool may_change[256] = {
	[0 ... 0x1f] = true, ['&'] = true,  ['<'] = true,  ['>'] = true,
	['"'] = true,	     [0x7f] = true, [0xef] = true,
};

void xml_escape_n(struct buf *out, const char *s, size_t len)
{
	size_t done = 0; /* what is before it is in @out */

	for (size_t i = 0, n; i < len; i += n) {
		const char *instead = NULL;

		n = 1;
		if (may_change[(unsigned char)s[i]])
			instead = replacement_of(s + i, len - i, &n);
		if (!instead)
			continue;
		buf_add(out, s + done, i - done);
		buf_addstr(out, instead);
		done = i + n;
	}
	buf_add(out, s + done, len - done);
}

void xml_escape(struct buf *out, const char *s)
{
	xml_escape_n(out, s, strlen(s));
}
