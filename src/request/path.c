/* SPDX-License-Identifier: GPL-2.0-only */
#include "request/path.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"

#define PLACEHOLDER "[unknown]"
#define ID	    ":id"
#define MAX_WORD    24 /* bytes of a part of a path that is not an id */
#define MIN_HEX	    8  /* digits of an id in hexadecimal */

/* What a part of a path is made of. */
struct part {
	size_t digits, hex, upper, lower, dashes; /* hex: a to f, A to F */
	bool odd; /* there is something else than letters, digits and - _ . ~ */
};

static struct part examine(const char *s, size_t len)
{
	struct part part = { 0 };

	for (size_t i = 0; i < len; i++) {
		const unsigned char c = (unsigned char)s[i];

		if (c >= '0' && c <= '9')
			part.digits++;
		else if (c >= 'a' && c <= 'z')
			part.lower++;
		else if (c >= 'A' && c <= 'Z')
			part.upper++;
		else if (c == '-' || c == '_' || c == '.' || c == '~')
			part.dashes++;
		else
			part.odd = true;
		part.hex += (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
	}
	return part;
}

/* A number, a date, a UUID, a hash, a token, an address, or text that was escaped. */
static bool is_id(const char *s, size_t len)
{
	const struct part part = examine(s, len);

	if (part.odd || (part.digits && part.digits + part.dashes == len))
		return true;
	if (part.digits && part.digits + part.hex >= MIN_HEX &&
	    part.digits + part.hex + part.dashes == len)
		return true;
	return len > MAX_WORD && (part.digits || (part.upper && part.lower));
}

/* v1, v12: what a part of a path says of an interface. */
static bool is_version(const char *s, size_t len)
{
	return len <= 3 && (*s == 'v' || *s == 'V');
}

/* A word; numbers of two digits or more within it are left out: order-17 is order-:id. */
static void add_word(struct buf *out, const char *s, size_t len)
{
	size_t i = 0, n;

	while (i < len) {
		for (n = 0; i + n < len && isdigit((unsigned char)s[i + n]); n++)
			;
		if (n >= 2) {
			buf_addstr(out, ID);
			i += n;
		} else {
			buf_addch(out, s[i++]);
		}
	}
}

static void add_part(struct buf *out, const char *s, size_t len)
{
	if (is_id(s, len))
		buf_addstr(out, ID);
	else if (is_version(s, len))
		buf_add(out, s, len);
	else
		add_word(out, s, len);
}

static void add_method(struct buf *out, uint64_t verb)
{
	char text[sizeof(verb) + 1] = { 0 };

	memcpy(text, &verb, sizeof(verb));
	for (const char *s = text; *s; s++)
		if (*s < 'A' || *s > 'Z')
			text[0] = '\0';
	buf_addstr(out, *text ? text : PLACEHOLDER);
}

void request_path(struct buf *out, uint64_t verb, const char *path, size_t len, bool cut)
{
	size_t end = 0, n;

	/* What comes behind these are parameters; a server takes most of them off the path. */
	while (end < len && path[end] && !strchr("?#;", path[end]))
		end++;
	cut = cut && end == len;
	add_method(out, verb);
	buf_addch(out, ' ');
	if (!end || *path != '/') {
		/* "*" of OPTIONS, an authority, a whole URL */
		buf_addstr(out, PLACEHOLDER);
		return;
	}
	for (size_t i = 0; i < end; i += n) {
		for (n = 0; i + n < end && path[i + n] != '/'; n++)
			;
		if (n && cut && i + n == end)
			buf_addstr(out, "...");
		else if (n)
			add_part(out, path + i, n);
		if (i + n < end)
			buf_addch(out, path[i + n++]);
	}
	if (cut && path[end - 1] == '/')
		buf_addstr(out, "...");
}
