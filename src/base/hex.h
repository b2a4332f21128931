/* SPDX-License-Identifier: GPL-2.0-only */
/* Bytes as hexadecimal digits. */
#ifndef RBPF_BASE_HEX_H
#define RBPF_BASE_HEX_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

/* Write the @n bytes of @bytes as 2 * @n lowercase digits and a NUL. */
static inline void hex_of_bytes(const void *bytes, size_t n, char *ret)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *from = bytes;
	size_t i;

	for (i = 0; i < n; i++) {
		*ret++ = digits[from[i] >> 4];
		*ret++ = digits[from[i] & 15];
	}
	*ret = '\0';
}

/* The value of a digit, of either case; -1 if it is none. */
static inline int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 'a' - 'A';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * Read @n bytes from @text, which has 2 * @n digits of either case and no more. Returns 0 or
 * -EINVAL.
 */
static inline int hex_parse_bytes(const char *text, uint8_t *ret, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++, text += 2) {
		const int high = hex_digit(text[0]), low = high < 0 ? -1 : hex_digit(text[1]);

		if (low < 0)
			return -EINVAL;
		ret[i] = (uint8_t)(high << 4 | low);
	}
	return *text ? -EINVAL : 0;
}

#endif
