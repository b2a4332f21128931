/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_MIN_CAP 64
#define BUF_MAX	    ((size_t)PTRDIFF_MAX) /* no C object is larger */

static bool drain(struct buf *buf)
{
	buf->drained += buf->len;
	if (buf->drain(buf->drain_arg, buf->data, buf->len))
		return false;
	buf->len = 0;
	buf->data[0] = '\0';
	return true;
}

/* Make room for @more bytes and the NUL. False, and sticky, when that is impossible. */
static bool reserve(struct buf *buf, size_t more)
{
	size_t need, cap;
	char *data;

	if (buf->failed)
		return false;
	if (more >= BUF_MAX - buf->len)
		goto fail;
	if (buf->max && more > buf->max - buf->drained - buf->len) {
		buf->exceeded = true;
		goto fail;
	}
	if (buf->drain && buf->len >= BUF_DRAIN && !drain(buf))
		goto fail;
	need = buf->len + more + 1;
	if (need <= buf->cap)
		return true;
	cap = buf->cap > BUF_MAX / 2 ? BUF_MAX : buf->cap * 2;
	if (cap < need)
		cap = need;
	if (cap < BUF_MIN_CAP)
		cap = BUF_MIN_CAP;
	data = realloc(buf->data, cap);
	if (!data)
		goto fail;
	buf->data = data;
	buf->cap = cap;
	return true;
fail:
	buf->failed = true;
	return false;
}

static void advance(struct buf *buf, size_t n)
{
	buf->len += n;
	buf->data[buf->len] = '\0';
}

void buf_deinit(struct buf *buf)
{
	if (!buf)
		return;
	free(buf->data);
	*buf = (struct buf)BUF_INIT;
}

void buf_reset(struct buf *buf)
{
	buf->len = 0;
	buf->failed = false;
	if (buf->data)
		buf->data[0] = '\0';
}

void buf_truncate(struct buf *buf, size_t len)
{
	if (len >= buf->len)
		return;
	buf->len = len;
	buf->data[len] = '\0';
}

void buf_add(struct buf *buf, const void *data, size_t len)
{
	if (!len || !reserve(buf, len))
		return;
	memcpy(buf->data + buf->len, data, len);
	advance(buf, len);
}

void buf_addch(struct buf *buf, char c)
{
	if (!reserve(buf, 1))
		return;
	buf->data[buf->len] = c;
	advance(buf, 1);
}

void buf_addstr(struct buf *buf, const char *s)
{
	buf_add(buf, s, strlen(s));
}

void buf_addf(struct buf *buf, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_vaddf(buf, fmt, ap);
	va_end(ap);
}

void buf_vaddf(struct buf *buf, const char *fmt, va_list ap)
{
	va_list again;
	size_t room;
	int n;

	/* Most additions fit in what is there; only the others are formatted twice. */
	if (!reserve(buf, 0))
		return;
	room = buf->cap - buf->len;
	va_copy(again, ap);
	n = vsnprintf(buf->data + buf->len, room, fmt, ap);
	if (n > 0 && (size_t)n >= room && reserve(buf, (size_t)n)) {
		room = buf->cap - buf->len;
		n = vsnprintf(buf->data + buf->len, room, fmt, again);
	}
	va_end(again);
	if (n < 0)
		buf->failed = true;
	if (buf->failed)
		n = 0; /* take back what the first try wrote */
	advance(buf, (size_t)n);
}

void buf_add_repeat(struct buf *buf, char c, size_t n)
{
	if (!n || !reserve(buf, n))
		return;
	memset(buf->data + buf->len, c, n);
	advance(buf, n);
}

void buf_add_shell_word(struct buf *buf, const char *word)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789_./:=,@%+-";

	if (word[0] && !word[strspn(word, plain)]) {
		buf_addstr(buf, word);
		return;
	}
	buf_addch(buf, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			buf_addstr(buf, "'\\'");
		buf_addch(buf, *word);
	}
	buf_addch(buf, '\'');
}

/*
 * How many digits it has: with n bits it is below 2^n, which has n * log10(2) of them, or one more.
 */
static size_t count_digits(uint64_t v)
{
	static const uint64_t powers[] = { 1ull,
					   10ull,
					   100ull,
					   1000ull,
					   10000ull,
					   100000ull,
					   1000000ull,
					   10000000ull,
					   100000000ull,
					   1000000000ull,
					   10000000000ull,
					   100000000000ull,
					   1000000000000ull,
					   10000000000000ull,
					   100000000000000ull,
					   1000000000000000ull,
					   10000000000000000ull,
					   100000000000000000ull,
					   1000000000000000000ull,
					   10000000000000000000ull };
	const unsigned int bits = 64 - (unsigned int)__builtin_clzll(v | 1), n = bits * 1233 >> 12;

	return n + (v >= powers[n]);
}

size_t buf_u64_digits(uint64_t v, char digits[static BUF_U64_MAX])
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930"
				    "31323334353637383940414243444546474849505152535455565758596061"
				    "62636465666768697071727374757677787980818283848586878889909192"
				    "93949596979899";
	const size_t n = v ? count_digits(v) : 1;
	size_t at = n;

	/* Two digits a division: an export writes more than 100 million numbers. */
	for (; at >= 2; v /= 100)
		memcpy(&digits[at -= 2], &pairs[2 * (v % 100)], 2);
	if (at)
		digits[0] = (char)('0' + v);
	return n;
}

void buf_add_u64(struct buf *buf, uint64_t v)
{
	char digits[BUF_U64_MAX];
	const size_t n = buf_u64_digits(v, digits);

	buf_add(buf, digits, n);
}

void buf_add_varint(struct buf *buf, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;

	while (v >= 0x80) {
		bytes[n++] = (uint8_t)v | 0x80;
		v >>= 7;
	}
	bytes[n++] = (uint8_t)v;
	buf_add(buf, bytes, n);
}

const char *buf_str(const struct buf *buf)
{
	return buf->data ? buf->data : "";
}

bool buf_failed(const struct buf *buf)
{
	return buf->failed;
}
