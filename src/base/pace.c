/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/pace.h"

uint64_t pace_use(struct pace *p, uint64_t now_ns)
{
	const uint64_t ahead = p->interval_ns * (p->at_once - 1);

	/* Each time takes an interval, from the end of that of the time before. */
	p->until_ns = (p->until_ns > now_ns ? p->until_ns : now_ns) + p->interval_ns;
	return p->until_ns - now_ns > ahead ? p->until_ns - now_ns - ahead : 0;
}
