/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/names_age.h"

bool names_age_over(struct names_age *a, size_t bytes, size_t room, uint64_t now)
{
	if (!bytes) {
		*a = (struct names_age) { 0 };
		return false;
	}
	if (!a->since_ns)
		a->since_ns = now;
	if (now - a->since_ns <= NAMES_SETTLE_NS)
		a->settled = bytes;
	if (now - a->since_ns < NAMES_KEEP_NS ||
	    bytes <= a->settled + a->settled / NAMES_GROWTH + room)
		return false;
	*a = (struct names_age) { 0 };
	return true;
}
