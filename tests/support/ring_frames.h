/* SPDX-License-Identifier: GPL-2.0-only */
/* The frames of a Ruby stack as the ring has them. */
#ifndef RBPF_TESTS_RING_FRAMES_H
#define RBPF_TESTS_RING_FRAMES_H

#include <stddef.h>

#include "rbpf_frame_words.h"

/* Put @n frames to @to, which has room for them as they are. Returns the end of what they took. */
static inline __u64 *ring_frames(void *to, const struct rbpf_frame *frames, size_t n)
{
	__u64 *words = to;

	for (size_t i = 0; i < n; i++)
		words += rbpf_frame_pack(&frames[i], words);
	return words;
}

#endif
