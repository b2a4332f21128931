/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/recording.h"

void recording_close(struct recording *rec)
{
	profile_deinit(&rec->profile);
	*rec = (struct recording)RECORDING_INIT;
}

const char *recording_name(const struct recording *rec)
{
	return rec->name ? rec->name : rec->path;
}

uint64_t recording_duration(const struct recording *rec)
{
	uint64_t first, last;

	profile_time_range(&rec->profile, &first, &last);
	return last - first;
}
