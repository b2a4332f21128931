/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A limit on how often something is done: so many times at once, and then one time in each
 * interval. It keeps no clock: the caller says what time it is, and waits. Not thread-safe.
 */
#ifndef RBPF_BASE_PACE_H
#define RBPF_BASE_PACE_H

#include <stdint.h>

struct pace {
	uint64_t interval_ns;
	uint64_t at_once;  /* times, at least 1 */
	uint64_t until_ns; /* the end of the interval of the last time; 0: there was none */
};

/* It is done once more at @now_ns. Returns how long not to do it again, in ns; 0: it may be. */
uint64_t pace_use(struct pace *p, uint64_t now_ns);

#endif
