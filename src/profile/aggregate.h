/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Adds up samples as they are read: those with the same stack and flags, and of the same thread
 * and kind of request where that is asked for, become one struct profile_aggregate. Memory grows
 * with the variety of a recording, not with its length. Not thread-safe.
 */
#ifndef RBPF_PROFILE_AGGREGATE_H
#define RBPF_PROFILE_AGGREGATE_H

#include <stddef.h>
#include <stdint.h>

struct profile;
struct profile_sample;

/* Finds the aggregate of a sample. The aggregates themselves are the profile's. */
struct aggregate_index {
	/*
	 * Without them: by stack id, the last aggregate of the stack + 1, 0 if there is none. A
	 * stack has an aggregate for each set of SAMPLE_FLAGS that its samples have: a list of 256
	 * at most. By request alone a stack is mostly met in the request that it was met in before:
	 * then it is the one that was added to last, which needs no look into the table.
	 */
	uint32_t *last;
	size_t n_last, cap_last;
	uint32_t *before; /* by aggregate: the one before of its stack + 1; owned, as is last */
	size_t cap_before;

	/*
	 * With threads, processes, spans or requests: a table with open addressing (aggregate.c); 0
	 * is free.
	 */
	uint32_t *slots;     /* owned */
	size_t mask;	     /* slots - 1 */
	uint64_t seed;	     /* hash_seed(), once there are slots */
	uint32_t *stand_ins; /* by process: the thread that stands for it + 1, 0 if none; owned */
	size_t cap_stand_ins;
};

#define AGGREGATE_INDEX_INIT                                                                       \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Add @sample to the aggregates of @p, by thread if @p->by_thread, by process if @p->by_process,
 * and count it for its thread if it is of the event of @p, as it must be if @p is not both by_event
 * and by_thread. All aggregates of @p must have been made with @index. Sums stop at UINT64_MAX.
 * Returns 0, -ENOMEM, or -E2BIG past RBPF_FILE_MAX_IDS aggregates.
 */
int aggregate_add(struct aggregate_index *index, struct profile *p,
		  const struct profile_sample *sample);

/* The same of @n samples that are alike: the value of @sample is the sum of theirs. */
int aggregate_add_sum(struct aggregate_index *index, struct profile *p,
		      const struct profile_sample *sample, uint64_t n);

/*
 * Count a wait as wait_lengths.h tells it in the aggregates of @p, which is with_lengths. Returns
 * what aggregate_add() does.
 */
int aggregate_add_length(struct aggregate_index *index, struct profile *p,
			 const struct profile_sample *wait);

/*
 * Add @n samples, at most AGGREGATE_BATCH, in their order. The stacks of samples are scattered over
 * more memory than a processor's cache holds, and it waits for that memory once for a batch, not
 * once for each sample. Returns what aggregate_add() does of the first sample that it failed for.
 */
#define AGGREGATE_BATCH 64u
int aggregate_add_batch(struct aggregate_index *index, struct profile *p,
			const struct profile_sample *samples, size_t n);

/*
 * Once all samples of @p are added up: say of its aggregates which requests were slow, if that is
 * asked for, and what kind they are of. Nothing can be added after that.
 */
void aggregate_tell_slow(struct profile *p);

void aggregate_index_deinit(struct aggregate_index *index);

#endif
