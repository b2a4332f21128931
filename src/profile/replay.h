/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The samples of a recording one by one, for what shows them in the order of time.
 *
 * There may be more of them than memory has room for. So they are not kept, but the recording is
 * read again whenever they are wanted; only what comes from a pipe is kept (struct read_options).
 */
#ifndef RBPF_PROFILE_REPLAY_H
#define RBPF_PROFILE_REPLAY_H

#include "profile/profile.h"
#include "profile/reader.h"

struct err;

/* Where a profile was read from, and how. All zero: it is from no file and has kept its samples. */
struct replay {
	const char *path; /* not owned */
	struct read_options
		options; /* .spans as the profile was read with, so that spans have their ids */
};

/*
 * Call @fn with each selected sample of the event of @p, in the order of the file, which is nearly
 * that of time, but for waits that are behind a later sample of their thread: these come where they
 * belong, so that the order of each thread is that of time (profile.late). @p has kept its samples,
 * or @from is what it was read from, with read_again.
 *
 * Returns 0; what @fn returned, which must have filled @err; what profile_read() returns; -ESTALE
 * if the file is no longer what was read.
 */
int profile_each_sample(const struct profile *p, const struct replay *from, sample_fn *fn,
			void *arg, struct err *err);

/*
 * Put the samples that @p has kept into the order in which profile_each_sample() calls @fn with
 * them: for who changes or removes some, so that what is late can no longer be told from them.
 * Returns 0 or -ENOMEM.
 */
int profile_place_late(struct profile *p);

/*
 * The same as profile_each_sample() with each wait of @p that is counted in its aggregate_waits, in
 * the order in which they were over: a sample whose value is all its length, and whose time its end
 * (wait_lengths.h). @p has whole_waits.
 */
int profile_each_wait(const struct profile *p, const struct replay *from, sample_fn *fn, void *arg,
		      struct err *err);

/* The same with the samples of all events, unless @from selects one, in the order of the file. */
int profile_each_of_all(const struct profile *p, const struct replay *from, sample_fn *fn,
			void *arg, struct err *err);

#endif
