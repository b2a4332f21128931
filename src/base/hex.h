/* SPDX-License-Identifier: GPL-2.0-only */
/* Bytes as hexadecimal digits. */
#ifndef RBPF_BASE_HEX_H
#define RBPF_BASE_HEX_H

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

#endif
