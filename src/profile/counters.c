/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/counters.h"

#include "base/json.h"
#include "profile/profile.h"

#define MANY_PERCENT 1 /* of the ticks */

const struct profile_counter_info profile_counters[COUNTER_COUNT] = {
#define COUNTER_INFO(name, key, when, one, many, text)                                             \
	[COUNTER_##name] = { key, COUNTER_##when, one, many, text },
	RBPF_KERNEL_COUNTERS(COUNTER_INFO) RBPF_USER_COUNTERS(COUNTER_INFO)
#undef COUNTER_INFO
};

void profile_counters_json(const struct profile_totals *totals, struct json *j)
{
	int i;

	json_object_begin(j, "counters");
	for (i = 0; i < COUNTER_COUNT; i++)
		json_u64(j, profile_counters[i].key, json_clamp(totals->counters[i]));
	json_object_end(j);
}

bool profile_counter_matters(const struct profile_totals *totals, enum profile_counter i)
{
	uint64_t n = totals->counters[i];

	if (profile_counters[i].when == COUNTER_MANY)
		return n > totals->counters[COUNTER_TICKS] / 100 * MANY_PERCENT;
	return n && profile_counters[i].when == COUNTER_ALWAYS;
}
