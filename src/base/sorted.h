/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where something is in an array that is sorted by one of the members of its elements, an unsigned
 * number of 4 or 8 bytes: `struct x *v` and `size_t n` are the owner's, as with array.h.
 */
#ifndef RBPF_BASE_SORTED_H
#define RBPF_BASE_SORTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The same for the member of @size bytes at @offset of elements of @elem bytes. */
static inline __attribute__((always_inline)) size_t sorted_count_raw(const void *v, size_t n,
								     size_t elem, size_t offset,
								     size_t size, uint64_t key,
								     bool with_key)
{
	size_t low = 0, high = n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const char *at = (const char *)v + middle * elem + offset;
		uint64_t number;
		uint32_t half;

		if (size == sizeof(half)) {
			memcpy(&half, at, sizeof(half));
			number = half;
		} else {
			memcpy(&number, at, sizeof(number));
		}
		if (number < key || (with_key && number == key))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

#define SORTED_COUNT(v, n, member, key, with_key)                                                  \
	sorted_count_raw((v), (n), sizeof(*(v)), offsetof(__typeof__(*(v)), member),               \
			 sizeof((v)->member), (key), (with_key))

/*
 * How many of the @n elements of @v have a @member below @key: the index of the first one with
 * @key, or if there is none where it would be.
 */
#define sorted_below(v, n, member, key) SORTED_COUNT(v, n, member, key, false)

/* How many have a @member that is @key or below. */
#define sorted_up_to(v, n, member, key) SORTED_COUNT(v, n, member, key, true)

#endif
