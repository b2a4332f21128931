/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/*
 * Messages quote what users typed and what files are called, so they may hold anything; one that
 * reaches a terminal must be a single line that cannot move the cursor.
 */
static void make_one_line(char *s)
{
	size_t left = strlen(s);

	while (left) {
		size_t n = utf8_sequence(s, left);

		if (!n || *s == '\t' || !utf8_presentable(s, n)) {
			n = n ? n : 1;
			memset(s, '?', n);
		}
		s += n;
		left -= n;
	}
}

/* vsnprintf() that drops the first bytes of a character it cut at the end. */
static void format_line(char *out, size_t size, const char *fmt, va_list ap)
{
	int n = vsnprintf(out, size, fmt, ap);

	if (n < 0)
		out[0] = '\0';
	if (n >= 0 && (size_t)n >= size) {
		size_t end = size - 1;
		size_t start = end;

		/* A lead byte is at most 3 bytes back. */
		while (start > 0 && end - start < 3 && (out[start - 1] & 0xc0) == 0x80)
			start--;
		if (start > 0 && (unsigned char)out[start - 1] >= 0xc0 &&
		    !utf8_sequence(out + start - 1, end - start + 1))
			out[start - 1] = '\0';
	}
	make_one_line(out);
}

int err_set(struct err *err, int code, enum err_kind kind, const char *fmt, ...)
{
	char msg[sizeof(err->msg)]; /* @fmt's arguments may point into err->msg */
	va_list ap;

	if (!err)
		return code;
	va_start(ap, fmt);
	format_line(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	err->code = code;
	err->kind = kind;
	memcpy(err->msg, msg, sizeof(msg));
	err->hint[0] = '\0';
	err->excerpt[0] = '\0';
	return code;
}

void err_hint(struct err *err, const char *fmt, ...)
{
	char hint[sizeof(err->hint)];
	va_list ap;

	if (!err)
		return;
	va_start(ap, fmt);
	format_line(hint, sizeof(hint), fmt, ap);
	va_end(ap);
	memcpy(err->hint, hint, sizeof(hint));
}

static void set_line(char *out, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void set_line(char *out, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	format_line(out, size, fmt, ap);
	va_end(ap);
}

int err_excerpt(struct err *err, const char *text, size_t at)
{
	const size_t around = ERR_EXCERPT / 3;
	size_t start = at > around ? at - around : 0;

	if (!err)
		return 0;
	while (start < at && ((unsigned char)text[start] & 0xc0) == 0x80)
		start++;
	/* What is replaced in it takes as many bytes as before. */
	set_line(err->excerpt, (at - start) + around, "%s", text + start);
	err->column = 0;
	for (const char *c = err->excerpt; *c && c < err->excerpt + (at - start); c++)
		err->column += ((unsigned char)*c & 0xc0) != 0x80;
	return err->code;
}

int err_context(struct err *err, const char *fmt, ...)
{
	char what[sizeof(err->msg)], msg[sizeof(err->msg)];
	va_list ap;

	if (!err)
		return 0;
	va_start(ap, fmt);
	format_line(what, sizeof(what), fmt, ap);
	va_end(ap);
	memcpy(msg, err->msg, sizeof(msg));
	set_line(err->msg, sizeof(err->msg), "%s: %s", what, msg);
	return err->code;
}

int err_oom(struct err *err)
{
	return err_set(err, -ENOMEM, ERR_RUNTIME, "out of memory");
}

int err_code(struct err *err, int code)
{
	if (!code)
		return 0;
	if (code == -ENOMEM)
		return err_oom(err);
	return err_set(err, code, ERR_RUNTIME, "internal error: %s", strerror(-code));
}
