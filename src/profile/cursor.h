/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reading the fields of a record, whose numbers are LEB128 (rbpf-file(5)), from bytes that nobody
 * vouches for.
 */
#ifndef RBPF_PROFILE_CURSOR_H
#define RBPF_PROFILE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/*
 * What is left of a body (or of a payload). The first thing that is wrong is sticky and empties it,
 * so that a decoder reads all its fields and asks once.
 */
struct cursor {
	const uint8_t *p, *end;
	bool bad;
};

static inline uint64_t cursor_fail(struct cursor *c)
{
	c->bad = true;
	c->p = c->end;
	return 0;
}

static inline uint64_t get_long(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 64 && c->p < c->end; shift += 7) {
		uint8_t byte = *c->p++;

		if (shift == 63 && byte > 1)
			break; /* more than 64 bits */
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return v;
	}
	return cursor_fail(c);
}

/* Most of a recording are samples, and most of their numbers have three bytes or one. */
static inline uint64_t get(struct cursor *c)
{
	const uint8_t *p = c->p;

	if (p < c->end && *p < 0x80)
		return *c->p++;
	if (c->end - p < 3 || p[1] < 0x80 || p[2] >= 0x80)
		return get_long(c);
	c->p += 3;
	return (uint64_t)(p[0] & 0x7f) | (uint64_t)(p[1] & 0x7f) << 7 | (uint64_t)p[2] << 14;
}

static inline int64_t get_zigzag(struct cursor *c)
{
	uint64_t v = get(c);

	return (int64_t)((v >> 1) ^ -(v & 1));
}

/* A value below @limit. */
static inline uint64_t get_below(struct cursor *c, uint64_t limit)
{
	uint64_t v = get(c);

	return v < limit ? v : cursor_fail(c);
}

static inline uint32_t get_u32(struct cursor *c)
{
	return (uint32_t)get_below(c, (uint64_t)UINT32_MAX + 1);
}

static inline uint32_t get_id(struct cursor *c, size_t count)
{
	return (uint32_t)get_below(c, count);
}

static inline uint32_t get_opt_id(struct cursor *c, size_t count)
{
	uint64_t v = get_below(c, (uint64_t)count + 1);

	return v ? (uint32_t)(v - 1) : PROFILE_NONE;
}

/*
 * A field that a newer minor version added at the end is 0 where the recording is older: no flags,
 * the empty string, none.
 */
static inline bool at_end(const struct cursor *c)
{
	return c->p == c->end;
}

#endif
