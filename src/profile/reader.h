/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reading a recording into memory: its definitions, and its samples added up by thread and stack.
 *
 * The reader trusts nothing: each length, id and checksum is checked against the limits of
 * rbpf-file(5), and it stops at the first thing that is wrong. What came before is whole and is
 * used.
 */
#ifndef RBPF_PROFILE_READER_H
#define RBPF_PROFILE_READER_H

#include <regex.h>
#include <stdint.h>

#include "profile/profile.h"
#include "profile/span_mark.h"
#include "profile/time_cut.h"
#include "profile/wakeups.h"
#include "profile/wall_time.h"

struct err;

struct read_report {
	bool complete;	     /* TOTALS was found: closed properly */
	uint64_t lost_bytes; /* bytes of the file that could not be used */
	uint64_t last_ts; /* ns, CLOCK_MONOTONIC: the latest time in a usable record; 0 if none */
};

/* Which samples are selected. */
struct read_options {
	const char *event;	   /* name; NULL: the first of the recording (of those kept, all) */
	uint64_t from_ns;	   /* since the start of the recording */
	uint64_t to_ns;		   /* since the start, not included; 0: up to the end */
	struct wall_time from, to; /* in place of these, if given */
	const struct time_cut
		*cuts; /* samples before and after one are added up apart, if by_thread */
	size_t n_cuts; /* with the next ones at most PROFILE_MAX_CUTS */
	const struct span_mark *span_marks; /* … and so those of a trace or span and the others */
	size_t n_span_marks;
	bool by_thread;	 /* add them up by thread, too: 32 bytes for each pair of a thread and a
			    stack */
	bool by_process; /* … or by process, unless by_thread */
	bool by_request; /* and by kind of request */
	bool by_span;	 /* and by span; needs spans */
	bool spans; /* samples, if they are given or kept one by one, say of which span they are */
	uint64_t slow_ns;      /* and whether the request took longer; 0: that is not asked for */
	struct wait_set ended; /* EVENT_WAKEUP: only those that ended one of these waits; none:
				      all. They are kept one by one */
	const regex_t *idle;   /* which waits are idle, too (idle_pattern.h); NULL: none are */
	bool gvl_caused; /* with EVENT_WALL and by_request: those of EVENT_GVL, too, and all kept */
	bool lengths;	 /* and how long each wait was, if the recording tells; not with cuts */
	bool by_event;	 /* without @event: those of all events, by event; needs by_thread */
	bool whole_waits;  /* with lengths: each can be had by profile_each_wait() (replay.h) … */
	bool keep_waits;   /* … as they are kept: 40 bytes each; else they are read again */
	bool keep_samples; /* also one by one: 40 bytes each */
	bool read_again;   /* keep_samples, if the recording can be read only once: from a pipe */
	bool sources;	   /* the source files that it has, too */
	bool wall;	   /* without @event: EVENT_WALL, if the recording has waits */
	sample_fn *
		take; /* not NULL: they are neither counted, added up nor kept, but given to it … */
	void *take_arg; /* … with this, in the order of the file; … */
	bool take_all;	/* … without @event, those of all events; in exporter.needs: it takes them
			   by profile_each_of_all() */
	sample_fn *take_wait; /* not NULL: this alone is done, with .take_arg: it is given each wait
				 as wait_lengths.h tells it */
};

/* Whether samples of all events are wanted, not of one alone. */
static inline bool read_options_of_all_events(const struct read_options *opts)
{
	return !opts->event && (opts->by_event || opts->take_all);
}

/*
 * Read @path ("-" is stdin); @opts NULL: all samples are selected, added up. *@ret is then owned by
 * the caller (profile_deinit).
 *
 * A FIFO, device or link that another user may have left is refused with -EPERM (dir_entry.h).
 * Otherwise it fails with ERR_PROFILE: no such file, unreadable, empty, not a recording ("starts
 * with '<?xml'"), an unknown major version of the format, damaged before its first records, or one
 * that takes far more memory than the file has bytes (-E2BIG); or with ERR_USAGE: without
 * @opts->event (-ENOENT), or if it does not say when @opts->from or to is (-EINVAL). A damaged tail
 * is no failure: @report says so. On failure *@ret and
 * *@report are untouched.
 *
 * What is returned is sound whatever the file was: every id names something that exists, ids of
 * parents are below those of their children, strings are valid UTF-8.
 */
int profile_read(const char *path, const struct read_options *opts, struct profile *ret,
		 struct read_report *report, struct err *err);

/* The same from memory, for tests and fuzzing; @name is for messages. */
int profile_read_mem(const void *data, size_t len, const char *name,
		     const struct read_options *opts, struct profile *ret,
		     struct read_report *report, struct err *err);

/* Set from_ns and to_ns of @opts, as profile_read() does, if its times are given. */
void read_options_find_times(struct read_options *opts, uint64_t start_realtime_ns);

#endif
