/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long waits were, each as a whole.
 *
 * The sum of waits does not tell a single wait of 10 s from 10,000 of 1 ms, and neither do samples:
 * a wait that goes on has one about once a second, and of one that is not all in the selected time
 * only a part is selected. Samples of one thread that wait for the same, each beginning when the
 * one before it ended, are one wait; between two of its waits a thread runs. Waiting for a CPU
 * after that is for something else, and a wait of its own.
 *
 * A wait is told when it is over, or the recording is: as its last selected sample, but with all
 * its length, as far as the recording has it, as its value, with its end as its time, and with
 * SAMPLE_BEFORE and SAMPLE_AFTER if it goes beyond the recording. Not thread-safe.
 */
#ifndef RBPF_PROFILE_WAIT_LENGTHS_H
#define RBPF_PROFILE_WAIT_LENGTHS_H

#include <stddef.h>

#include "profile/profile.h"

struct open_wait;

/* The waits that may go on. */
struct wait_lengths {
	struct open_wait *threads; /* by thread id: its last one; owned */
	size_t n, cap;
	sample_fn *fn; /* takes each wait that is over and selected; the caller's */
	void *arg;     /* its argument */
};

#define WAIT_LENGTHS_INIT                                                                          \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Note @recorded of @p, a sample of EVENT_WAIT; @selected: what is selected of it, with its event
 * as it is added up, or NULL. Samples of a thread come in the order of time. Returns 0, -ENOMEM, or
 * what @w->fn does.
 */
int wait_lengths_note(struct wait_lengths *w, const struct profile *p,
		      const struct profile_sample *recorded, const struct profile_sample *selected);

/* There are no more: all waits are over. Returns what @w->fn does. */
int wait_lengths_end(struct wait_lengths *w);

void wait_lengths_deinit(struct wait_lengths *w);

#endif
