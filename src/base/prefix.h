/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How texts begin.
 */
#ifndef RBPF_BASE_PREFIX_H
#define RBPF_BASE_PREFIX_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Whether @text begins with one of the @n @prefixes. */
static inline bool begins_with_any(const char *text, const char *const *prefixes, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!strncmp(text, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

#endif
