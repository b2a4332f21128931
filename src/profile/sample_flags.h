/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The flags of a SAMPLE in a file. They were added one after the other; in memory those by which
 * aggregates are told apart come first, for there is little room for them there.
 */
#ifndef RBPF_PROFILE_SAMPLE_FLAGS_H
#define RBPF_PROFILE_SAMPLE_FLAGS_H

#include <stdint.h>

#include "profile/profile.h"

/* Up to SAMPLE_GC_UNKNOWN they are the same; SAMPLE_NATIVE and SAMPLE_GAP since 1.3. */
#define FILE_SAMPLE_SAME       0x1ffu
#define FILE_SAMPLE_BEFORE     (1u << 9)  /* since 2.4 */
#define FILE_SAMPLE_AFTER      (1u << 10) /* since 2.4 */
#define FILE_SAMPLE_PAGE_FAULT (1u << 11) /* since 1.12 and 2.5 */

static inline uint16_t sample_flags_to_file(uint16_t flags)
{
	uint16_t ret = flags & FILE_SAMPLE_SAME;

	ret |= flags & SAMPLE_BEFORE ? FILE_SAMPLE_BEFORE : 0;
	ret |= flags & SAMPLE_AFTER ? FILE_SAMPLE_AFTER : 0;
	ret |= flags & SAMPLE_PAGE_FAULT ? FILE_SAMPLE_PAGE_FAULT : 0;
	return ret;
}

/* Without those that only a newer rbpf knows. */
static inline uint16_t sample_flags_of_file(uint64_t flags)
{
	uint16_t ret = flags & FILE_SAMPLE_SAME;

	ret |= flags & FILE_SAMPLE_BEFORE ? SAMPLE_BEFORE : 0;
	ret |= flags & FILE_SAMPLE_AFTER ? SAMPLE_AFTER : 0;
	ret |= flags & FILE_SAMPLE_PAGE_FAULT ? SAMPLE_PAGE_FAULT : 0;
	return ret;
}

#endif
