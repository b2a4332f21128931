/* SPDX-License-Identifier: GPL-2.0-only */
/* A recording that was read: what a report is of. */
#ifndef RBPF_PROFILE_RECORDING_H
#define RBPF_PROFILE_RECORDING_H

#include <stdint.h>

#include "profile/profile.h"
#include "profile/reader.h"

struct recording {
	const char *path; /* as the user named it, or the default; not owned */
	const char *name; /* what messages call it; NULL: its path; not owned */
	struct profile profile;
	struct read_report report;
};

#define RECORDING_INIT                                                                             \
	{                                                                                          \
		0                                                                                  \
	}

void recording_close(struct recording *rec);
#define _cleanup_recording_ _cleanup_(recording_close)

/* What messages call it. */
const char *recording_name(const struct recording *rec);

/* Its length in ns. */
uint64_t recording_duration(const struct recording *rec);

#endif
