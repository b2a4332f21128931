/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The records of DATA chunks, decoded into a profile.
 *
 * It trusts nothing that it is given: a checksum guards against accidents, not against a file that
 * was made to hurt. What it has put into the profile is always sound: every id names something,
 * parents of stacks and processes come before their children, strings are valid UTF-8.
 *
 * It knows neither framing nor JSON. Not thread-safe.
 */
#ifndef RBPF_PROFILE_RECORD_DECODER_H
#define RBPF_PROFILE_RECORD_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "profile/aggregate.h"
#include "profile/profile.h"
#include "profile/wait_lengths.h"
#include "profile/wakeups.h"

/* What the samples of a thread are of; 0: none. */
struct decoder_thread {
	uint32_t request;
	uint32_t span; /* of the profile */
};

struct record_decoder {
	struct profile *profile; /* not owned */
	struct aggregate_index aggregates;
	uint32_t n_events; /* 0: samples do not say of which event they are; the caller's */
	uint32_t event;	   /* of which samples are selected; the caller's */
	bool all_events;   /* keep samples of the others, too; the caller's */
	bool is_cpu[PROFILE_MAX_EVENTS];    /* events whose values are CPU time; the caller's */
	bool in_sum[PROFILE_MAX_EVENTS];    /* taken for that of .event; the caller's */
	bool is_caused[PROFILE_MAX_EVENTS]; /* events that are added up besides; the caller's */
	bool is_wait[PROFILE_MAX_EVENTS];   /* of EVENT_WAIT; the caller's */
	bool of_wakeups;		    /* .event is EVENT_WAKEUP; the caller's */
	struct wakeups wakeups;		    /* .reasons is the caller's */
	struct wait_lengths waits; /* if the profile is with_lengths, or there is .take_wait */
	bool in_ns;		   /* values of .event are in ns; the caller's */
	uint64_t from_ts, to_ts;   /* selected times, without to_ts; the caller's */
	bool keep_samples;	   /* the caller's */
	sample_fn *take;	   /* see struct read_options; the caller's */
	void *take_arg;
	bool take_all;	      /* the same … */
	sample_fn *take_wait; /* … and with .take_arg */
	bool keep_waits;      /* the caller's */
	uint64_t base_ts;     /* what the next time is relative to, see rbpf_file.h */
	uint64_t last_ts;     /* latest time of a record; 0 if there was none */

	uint32_t *strings; /* profile string of each string of the file; owned */
	size_t n_strings, cap_strings;
	uint32_t *depths; /* by stack id; owned */
	size_t cap_depths;
	struct decoder_thread *threads; /* by thread id; owned */
	size_t n_threads, cap_threads;
	bool find_spans;       /* else samples are of none; the caller's, as is … */
	bool keep_spans;       /* … this: else those without a mark are of none */
	uint32_t n_file_spans; /* that were defined */
	uint32_t *spans;       /* find_spans: profile span of each span of the file; owned */
	size_t cap_spans;

	/* For RUN. */
	struct profile_sample sample; /* the last one */
	bool after_sample;	      /* the record before, in this chunk, is a SAMPLE or its RUN */
	uint64_t sample_step;	      /* its time minus the base it had */
	uint64_t run_left;	      /* of RBPF_FILE_MAX_RUN */

	uint64_t text;	   /* bytes of the names and files of all FRAME and STACK records */
	uint64_t text_max; /* what they may be; the caller's */

	struct profile_sample batch[AGGREGATE_BATCH]; /* selected, but not in an aggregate yet */
	size_t n_batch;

	/* Of all samples, selected or not, what TOTALS would say. */
	struct profile_totals totals;

	struct buf clean; /* scratch: a sanitised string */
};

/*
 * Decode into @p, which must be PROFILE_INIT apart from its meta and gets the string and the stack
 * of id 0. Returns 0 or -ENOMEM; @d must be released with record_decoder_deinit() in either case.
 */
int record_decoder_init(struct record_decoder *d, struct profile *p);
void record_decoder_deinit(struct record_decoder *d);

/*
 * Decode one payload. Returns 0, -ENOMEM, -EBADMSG at the first thing that is wrong, or -E2BIG if
 * RUN records repeat more samples than RBPF_FILE_MAX_RUN or more than @d->text_max bytes of text
 * are used. The records before it then are in the profile, and no further payload must be decoded.
 */
int record_decoder_chunk(struct record_decoder *d, const void *data, size_t len);

#endif
