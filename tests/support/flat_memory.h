/* SPDX-License-Identifier: GPL-2.0-only */
/* The memory of a process of which a test has written all: one array. */
#ifndef RBPF_TESTS_FLAT_MEMORY_H
#define RBPF_TESTS_FLAT_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "target/memory.h"

/*
 * Fill the @n spans from the @size bytes that the process has from @base on. What is elsewhere
 * cannot be read.
 */
static inline void flat_memory_read(const uint8_t *bytes, uint64_t base, uint64_t size,
				    struct memory_span *spans, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t off = spans[i].addr - base;

		spans[i].ok = off < size && spans[i].len <= size - off;
		if (spans[i].ok)
			memcpy(spans[i].dst, bytes + off, spans[i].len);
	}
}

#endif
