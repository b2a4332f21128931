/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From the BPF programs' records to a recording: which process and thread a sample is of, which
 * Ruby that process runs, what its frames are called.
 *
 * It follows the processes' lives: a forked child is named like its parent, after exec the process
 * is examined anew, and a process that holds no Ruby yet is tried again when it uses CPU. What it
 * holds is bounded by what lives at once, and by memory_limit. Not thread-safe.
 */
#ifndef RBPF_SAMPLE_COLLECTOR_H
#define RBPF_SAMPLE_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile/id_holder.h"
#include "profile/profile.h"

struct collector;
struct engine;
struct err;
struct file_worker;
struct sink;
struct selection;
struct request_rules;

struct collector_options {
	struct engine *engine;	    /* takes the samples; not owned */
	struct file_worker *worker; /* reads the files of processes; not owned */
	unsigned int sources; /* to learn Rubies' layouts from: see struct ruby_attach_options */
	bool system_wide;     /* the Rubies of the whole machine, as they come and go */
	const struct selection *selection; /* … that are of these; NULL: all; not owned */
	/* Above so many bytes of memory rbpf forgets what it can read again; 0: no limit. */
	uint64_t memory_limit;
	const struct request_rules
		*requests;  /* which frames tell requests; NULL: none; not owned */
	uint32_t frequency; /* of engine_options */
	/*
	 * Percent of the CPU time of a busy machine that the recording may take before it takes
	 * fewer samples; 0: any.
	 */
	double max_cost;
	bool program_only; /* of command lines only the part that names the program is kept */
	bool native;	   /* native stacks are walked, too … */
	bool peers;	   /* of waits it is told what is behind the descriptor */
	bool inlines;	   /* … and what was inlined in their functions is looked for */
	/*
	 * Called when part of a process will be missing: its Ruby cannot be walked (system_wide),
	 * or some threads cannot be sampled.
	 */
	void (*warn)(void *arg, const char *message);
	void *warn_arg;
};

/* Returns 0 or -ENOMEM. */
int collector_new(const struct collector_options *opts, struct collector **ret);
void collector_free(struct collector *c); /* accepts NULL */

/*
 * Follow the running process @pid. If @must_be_ruby, a process that holds no Ruby, or one that
 * cannot be walked, is refused (ERR_TARGET). A process whose Ruby has not started yet is never
 * refused.
 */
int collector_add(struct collector *c, pid_t pid, bool must_be_ruby, struct err *err);

/*
 * Follow the running process @pid and all its descendants that run now. Refused as by
 * collector_add() with @must_be_ruby, but a process without a Ruby may have a descendant with one.
 */
int collector_add_family(struct collector *c, pid_t pid, struct err *err);

/* Follow all Rubies that run now (system_wide). */
int collector_scan(struct collector *c, struct err *err);

/* Begin to sample what was added, into @sink (not owned). */
int collector_start(struct collector *c, struct sink *sink, struct err *err);

/*
 * Empty the ring buffer and do what is due: call it when engine_fd() is readable, or else after
 * collector_pause_ms(), and at once if it returns 1: there are more. Fails when the recording can
 * no longer be written. With -E2BIG it is full, as the sink has no room for another definition:
 * samples that come after that are lost, and it can still be ended with collector_finish(). When
 * two signals have come (stop.h) it takes no more records and returns 0.
 */
int collector_poll(struct collector *c, struct err *err);

/*
 * For how many milliseconds nothing is due: 50 while processes and threads begin, and code is met
 * for the first time, whose names may be gone soon; 250 when nothing has begun for ten seconds, for
 * who is woken seldom finds more to do at once.
 */
int collector_pause_ms(const struct collector *c);

/*
 * Have the waits told that go on, as far as they have come: the next collector_poll() takes them.
 * Otherwise they are told about once a second, and short ones only when they have ended; once this
 * was called, it is to be called about once a second.
 */
int collector_tell_waits(struct collector *c, struct err *err);

/* How often a process or thread was said to begin, end or execute so far. */
uint64_t collector_lives(const struct collector *c);

/* The ids of its sink that it holds, while collector_poll() is not running. */
struct id_holder collector_ids(struct collector *c);

/* How things stand, for the progress line and the end of the loop. */
struct collector_status {
	size_t processes; /* seen in all */
	size_t live;	  /* of them, not known to have ended */
	size_t rubies;	  /* in which a Ruby was found */
	uint64_t samples;
	uint64_t lost;
	size_t threads;	    /* sampled so far */
	uint32_t frequency; /* Hz, at present … */
	uint32_t lowest_hz; /* … and the lowest so far, if it was lowered, else 0 */
	bool full;	    /* collector_poll() has failed as the sink has no room: see there */
	bool too_short;	    /* a process ended before a Ruby could be found in it */
	/*
	 * Why a process (the latest one) holds no Ruby, or one that cannot be walked; empty: all
	 * do.
	 */
	char refused[512];
};
void collector_status(const struct collector *c, struct collector_status *ret);

/* "3.1.2": the Ruby that was found first; "" if there is none. */
const char *collector_ruby_version(const struct collector *c);

/*
 * Stop sampling, take what is left, and say what was counted. Returns -EINTR, with @totals, if two
 * signals have come and more was left, which is given up.
 */
int collector_finish(struct collector *c, struct profile_totals *totals, struct err *err);

#endif
