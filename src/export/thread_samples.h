/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The samples of one thread after another, each in the order of time, for formats that have a list
 * for each thread.
 *
 * A recording has the samples of all threads mixed. As many threads at a time as memory is meant to
 * hold are read from it (replay.h), so that it is read several times if it is long. Samples are
 * kept as the differences from those before them, about 9 bytes each. A thread whose samples alone
 * are too many is read anew each time that they are asked for.
 */
#ifndef RBPF_EXPORT_THREAD_SAMPLES_H
#define RBPF_EXPORT_THREAD_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct err;
struct profile;
struct replay;
struct shown;

/* One sample, with the stack that is shown of it. */
struct thread_sample {
	uint64_t ts; /* ns, CLOCK_MONOTONIC; not before the one of the sample before */
	uint64_t value;
	uint32_t stack;		   /* shown.h; 0: nothing of it is shown */
	uint16_t flags : 10;	   /* SAMPLE_FLAGS */
	uint16_t after_hidden : 1; /* the filter leaves out samples between it and the one before */
	uint16_t state : 5;	   /* enum thread_state: what the thread did, or waited for */
};

/* Bytes of samples that are kept at a time. */
#define THREAD_SAMPLES_MAX (220u << 20)

struct thread_samples;

/*
 * Those that @shown selects; @max is THREAD_SAMPLES_MAX, or less for tests. All but @ret must live
 * longer than *@ret, which is to be released with thread_samples_free(). The profile must be
 * by_thread if its filter leaves out samples. Returns 0 or -ENOMEM.
 */
int thread_samples_new(const struct shown *shown, const struct replay *from, size_t max,
		       struct thread_samples **ret);
void thread_samples_free(struct thread_samples *t); /* accepts NULL */

static inline void thread_samples_freep(struct thread_samples **t)
{
	thread_samples_free(*t);
}
#define _cleanup_thread_samples_ _cleanup_(thread_samples_freep)

/* The number of threads with samples; one of them (by index): in the order of names, then tids. */
size_t thread_samples_count(const struct thread_samples *t);
uint32_t thread_samples_thread(const struct thread_samples *t, size_t i);

/*
 * Read the samples of the @i-th thread, and how many there are into *@n: until another thread is
 * asked for, thread_samples_each() only reads what is kept of it, so that two threads may call it.
 * *@n is 0 if they are too many to be kept. Returns as thread_samples_each().
 */
int thread_samples_load(struct thread_samples *t, size_t i, uint64_t *n, struct err *err);

/*
 * Call @fn with each sample of the @i-th thread. To be called in the order of threads, any number
 * of times for each. Returns 0, what @fn returns, which ends it, or what profile_each_sample()
 * does.
 */
typedef int thread_sample_fn(void *arg, const struct thread_sample *s);
int thread_samples_each(struct thread_samples *t, size_t i, thread_sample_fn *fn, void *arg,
			struct err *err);

#endif
