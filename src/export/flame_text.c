/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/flame_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"

#define MIN_CELLS 3

/* The code point at @s, which is valid UTF-8; *@len is the number of its bytes. */
static uint32_t decode(const char *s, size_t *len)
{
	const unsigned char *b = (const unsigned char *)s;

	if (b[0] < 0x80) {
		*len = 1;
		return b[0];
	}
	if (b[0] < 0xe0) {
		*len = 2;
		return (b[0] & 0x1fu) << 6 | (b[1] & 0x3fu);
	}
	if (b[0] < 0xf0) {
		*len = 3;
		return (b[0] & 0xfu) << 12 | (b[1] & 0x3fu) << 6 | (b[2] & 0x3fu);
	}
	*len = 4;
	return (b[0] & 7u) << 18 | (b[1] & 0x3fu) << 12 | (b[2] & 0x3fu) << 6 | (b[3] & 0x3fu);
}

/* Rough on purpose, so that the script can do the same: too wide is never wrong. */
static size_t cells_of(uint32_t c)
{
	return c >= 0x2e80 || (c >= 0x1100 && c < 0x1160) ? 2 : 1;
}

size_t flame_cells(const char *s)
{
	size_t cells = 0;

	for (size_t len; *s; s += len)
		cells += cells_of(decode(s, &len));
	return cells;
}

unsigned int flame_sans_width(const char *s)
{
	static const struct {
		const char *letters;
		unsigned int width;
	} classes[] = {
		{ "fijlrtI'|!.,:; ()[]/-", 34 },
		{ "mwMW%@+<>=~", 88 },
		{ "ABCDEFGHJKLNOPQRSTUVXYZ#&", 71 },
	};
	unsigned int width = 0;

	for (size_t len; *s; s += len) {
		uint32_t c = decode(s, &len);
		unsigned int w = cells_of(c) == 2 ? 120 : 61;

		for (size_t i = 0; c < 0x80 && i < ARRAY_SIZE(classes); i++)
			if (strchr(classes[i].letters, (int)c))
				w = classes[i].width;
		width += w;
	}
	return width;
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || (c & 0x80);
}

/* Append @name without its "Word::" parts. */
static void drop_namespaces(struct buf *out, const char *name)
{
	while (*name) {
		size_t n = 0;

		while (is_word(name[n]))
			n++;
		if (n && name[n] == ':' && name[n + 1] == ':' && is_word(name[n + 2])) {
			name += n + 2;
			continue;
		}
		buf_add(out, name, n ? n : 1);
		name += n ? n : 1;
	}
}

/* "block in " and "block (2 levels) in " become "blk " and "blk2 ". */
static void shorten_block(struct buf *out, const char *name)
{
	static const char block[] = "block ", in[] = "in ", levels[] = " levels) in ";
	const char *rest = name + strlen(block);
	size_t digits;

	if (strncmp(name, block, strlen(block)) != 0) {
		buf_addstr(out, name);
		return;
	}
	digits = *rest == '(' ? strspn(rest + 1, "0123456789") : 0;
	if (!strncmp(rest, in, strlen(in))) {
		buf_addf(out, "blk %s", rest + strlen(in));
	} else if (digits && !strncmp(rest + 1 + digits, levels, strlen(levels))) {
		buf_addstr(out, "blk");
		buf_add(out, rest + 1, digits);
		buf_addf(out, " %s", rest + 1 + digits + strlen(levels));
	} else {
		buf_addstr(out, name);
	}
}

/*
 * Append the begin and the end of @name, with an ellipsis between: what is in the middle tells
 * least, for the method is at the end.
 */
static void cut_middle(struct buf *out, const char *name, size_t cells)
{
	const size_t width = flame_cells(name);
	const size_t tail = (cells - 1) / 2;
	const size_t head = cells - 1 - tail;
	size_t at = 0, left = width, end = 0, n;

	for (size_t len; *name; name += len, left -= n) {
		n = cells_of(decode(name, &len));
		if (at + n > head)
			break;
		at += n;
		buf_add(out, name, len);
	}
	buf_addstr(out, "…");
	for (size_t len; left > tail; end += len)
		left -= cells_of(decode(name + end, &len));
	buf_addstr(out, name + end);
}

void flame_fit(struct buf *out, const char *name, size_t cells)
{
	_cleanup_buf_ struct buf block = BUF_INIT;
	_cleanup_buf_ struct buf brief = BUF_INIT;

	if (cells < MIN_CELLS)
		return;
	if (flame_cells(name) <= cells) {
		buf_addstr(out, name);
		return;
	}
	shorten_block(&block, name);
	if (flame_cells(buf_str(&block)) <= cells) {
		buf_addstr(out, buf_str(&block));
		return;
	}
	drop_namespaces(&brief, buf_str(&block));
	if (flame_cells(buf_str(&brief)) <= cells)
		buf_addstr(out, buf_str(&brief));
	else
		cut_middle(out, buf_str(&brief), cells);
	out->failed |= block.failed || brief.failed;
}
