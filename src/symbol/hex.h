/* SPDX-License-Identifier: GPL-2.0-only */
/* Hexadecimal numbers in lists of symbols, of which there are hundreds of thousands. */
#ifndef RBPF_SYMBOL_HEX_H
#define RBPF_SYMBOL_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Read the 1 to 16 digits at *@p, which ends at @end, and move *@p past them. Returns false if
 * there are none or more.
 */
static inline bool hex_read(const char **p, const char *end, uint64_t *ret)
{
	const char *start = *p, *s = start;
	uint64_t value = 0;

	for (; s < end; s++) {
		unsigned int c = (unsigned char)*s, letter = (c | 0x20) - 'a';

		if (c - '0' <= 9)
			value = value << 4 | (c - '0');
		else if (letter <= 5)
			value = value << 4 | (letter + 10);
		else
			break;
	}
	if (s == start || s - start > 16)
		return false;
	*p = s;
	*ret = value;
	return true;
}

#endif
