/* SPDX-License-Identifier: GPL-2.0-only */
/* Clocks in ns, as u64. */
#ifndef RBPF_BASE_CLOCK_H
#define RBPF_BASE_CLOCK_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define NSEC_PER_SEC  1000000000ull
#define NSEC_PER_MSEC 1000000ull
#define NSEC_PER_USEC 1000ull

static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	if (clock_gettime(id, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

#endif
