/* SPDX-License-Identifier: GPL-2.0-only */
/* A profile of CPU time and waits together, which only the reader makes, of a recording. */
#ifndef RBPF_TESTS_ALL_TIME_H
#define RBPF_TESTS_ALL_TIME_H

#include <stdio.h>
#include <unistd.h>

#include "profile/reader.h"
#include "support/profile_file.h"

/* @opts: what an exporter needs. @ret: profile_deinit(). */
static inline void all_time_read(struct profile_builder *b, struct read_options opts,
				 struct profile *ret)
{
	struct read_report report;
	struct err err = { 0 };
	char path[64];

	snprintf(path, sizeof(path), "/tmp/rbpf-test-all-time-%d.data", (int)getpid());
	builder_finish(b);
	profile_file_write(b, path);
	opts.keep_samples = true;
	opts.read_again = false;
	cr_assert_eq(profile_read(path, &opts, ret, &report, &err), 0, "%s", err.msg);
	unlink(path);
}

#endif
