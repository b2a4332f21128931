/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/lost_names.h"

void lost_names_note(struct lost_names *l, uint64_t now_ns, bool lost)
{
	/* Records of different CPUs may be slightly out of order. */
	if (!l->window_ns ||
	    (now_ns > l->window_ns && now_ns - l->window_ns > LOST_NAMES_WINDOW_NS)) {
		l->learnt |= l->window_ns != 0;
		l->window_ns = now_ns;
		l->stacks = l->lost = l->asked = 0;
	}
	l->stacks++;
	l->lost += lost;
	l->last_lost = lost;
}

bool lost_names_ask_again(struct lost_names *l)
{
	const bool ask = l->last_lost && l->asked < LOST_NAMES_ASK;

	l->asked += ask;
	l->last_lost = false;
	return ask;
}

/* Whether so many got lost that it is worth it. */
static bool are_many(const struct lost_names *l)
{
	const bool few = !l->learnt || l->lost < LOST_NAMES_FEW;

	return l->lost >= (l->learnt ? LOST_NAMES_MIN : LOST_NAMES_MIN_FIRST) &&
	       (uint64_t)l->lost * (few ? LOST_NAMES_FEW_SHARE : LOST_NAMES_SHARE) > l->stacks;
}

uint64_t lost_names_copy_until(struct lost_names *l, uint64_t now_ns)
{
	if (now_ns < l->until_ns || !are_many(l))
		return 0;
	if (l->copy_ns && now_ns - l->until_ns < l->copy_ns) {
		if (l->copy_ns < LOST_NAMES_COPY_MAX_NS)
			l->copy_ns *= 2;
	} else {
		l->copy_ns = LOST_NAMES_COPY_NS;
	}
	l->window_ns = 0;
	l->learnt = true;
	l->until_ns = now_ns + l->copy_ns;
	return l->until_ns;
}
